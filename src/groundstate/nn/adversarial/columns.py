r"""The last layer of a generator of tables: real columns, and blocks that name one category each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Columns(nn.Module):
    r"""Real columns pass an activation; a block of k columns becomes one category,
    :math:`\mathrm{onehot}\arg\max_j(a_j + g_j)` with Gumbel noise g, which draws from
    :math:`\mathrm{softmax}(a)`.

    The gradient is that of :math:`\mathrm{softmax}((a + g)/\tau)` (straight-through Gumbel-softmax), so
    generated categories are as crisp as real ones and a discriminator cannot tell them by their edges.

    Parameters
    ----------
    blocks : how many of the columns belong together, in order; 1 is a real column
    activation : "identity" or "tanh", of the real columns
    tau : temperature of the gradient
    bits : how the code writes "not this category" and "this one"

    Examples
    --------
    Two real columns, then a category of three values:

    >>> noise = torch.Generator().manual_seed(0)
    >>> out = Columns([1, 1, 3])(torch.zeros(4, 5), noise)
    >>> out[:, :2].sum().item(), out[:, 2:].sum(1).tolist()
    (0.0, [1.0, 1.0, 1.0, 1.0])
    """

    def __init__(
        self,
        blocks: Sequence[int],
        activation: str = "identity",
        tau: float = 0.5,
        bits: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__()
        if activation not in ("identity", "tanh"):
            raise ValueError(f"activation is 'identity' or 'tanh', got {activation!r}")
        self.blocks, self.activation, self.tau = tuple(map(int, blocks)), activation, tau
        self.bits = (float(bits[0]), float(bits[1]))
        starts, at = [], 0
        for width in self.blocks:
            starts.append(at)
            at += width
        real = [s for s, k in zip(starts, self.blocks, strict=True) if k == 1]
        self.parts = [(s, k) for s, k in zip(starts, self.blocks, strict=True) if k > 1]
        self.coded = [j for s, k in self.parts for j in range(s, s + k)]
        self.plain = len(real) == at  # nothing but real columns

    def config(self) -> dict[str, Any]:
        return {"blocks": list(self.blocks), "activation": self.activation, "tau": self.tau,
                "bits": list(self.bits)}  # fmt: skip

    def forward(self, a: Tensor, generator: torch.Generator | None = None) -> Tensor:
        out = torch.tanh(a) if self.activation == "tanh" else a
        if self.plain:
            return out
        waits = torch.empty(len(a), len(self.coded), device=a.device, dtype=a.dtype)
        gumbel = -waits.exponential_(generator=generator).log()
        (low, high), pieces, at, seen = self.bits, [], 0, 0
        for start, k in self.parts:
            pieces.append(out[:, at:start])
            noisy = a[:, start : start + k] + gumbel[:, seen : seen + k]
            soft = torch.softmax(noisy / self.tau, 1)
            hard = nn.functional.one_hot(noisy.argmax(1), k).to(soft.dtype)
            block = hard + (soft - soft.detach())  # the value of the one, the gradient of the other
            pieces.append(block if self.bits == (0.0, 1.0) else low + (high - low) * block)
            at, seen = start + k, seen + k
        pieces.append(out[:, at:])
        return torch.cat(pieces, 1)
