r"""Columns read one after the other by a recurrent network or by causal attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn.attention.transformer import TransformerEncoder
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.columns.heads import _spans
from groundstate.nn.recurrent.recurrent import Recurrent

KINDS = ("gru", "attention")


class ColumnSequence(nn.Module):
    r"""The state behind the columns before j, :math:`h_j = \phi(\text{start}, x_{\pi(1)}, \dots,
    x_{\pi(j-1)})`, and the outputs :math:`o_j = V_jh_j + c_j`.

    A start token is read first, then each column by a map of its own; state j knows what was read up to
    there. "gru" keeps one state, "attention" looks back at all tokens (mask :math:`i \le j`).

    Parameters
    ----------
    widths, sizes : inputs and outputs of each column
    kind : "gru" or "attention"
    dim : size of a state
    layers : of the network
    heads : of attention
    context : numbers that are added to every token by a linear map
    order : π, the order of the columns
    generator : source of the initial weights

    Examples
    --------
    >>> net = ColumnSequence((1, 3), (6, 3), "attention", 8)
    >>> net(torch.zeros(2, 4)).shape
    torch.Size([2, 9])
    """

    def __init__(
        self,
        widths: Sequence[int],
        sizes: Sequence[int],
        kind: str = "gru",
        dim: int = 64,
        layers: int = 1,
        heads: int = 4,
        context: int = 0,
        order: Sequence[int] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise Unsupported(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        generator = generator or torch.Generator().manual_seed(0)
        self.widths, self.sizes, self.kind = tuple(widths), tuple(sizes), kind
        self.dim, self.layers, self.heads, self.context = dim, layers, heads, context
        self.order = tuple(range(len(self.widths))) if order is None else tuple(order)
        self.read = nn.ModuleList([linear(n, dim) for n in self.widths])
        self.first = nn.Parameter(torch.zeros(dim))
        self.given = linear(context, dim, bias=False) if context else None
        self.core: Any
        if kind == "gru":
            self.core = Recurrent("gru", dim, dim, layers, generator=generator)
        else:
            self.core = TransformerEncoder(
                dim, heads, layers, 2 * dim, "gelu", norm_first=True, generator=generator
            )
            self.place = nn.Parameter(0.1 * torch.randn(len(self.widths), dim, generator=generator))
        self.write = nn.ModuleList([linear(dim, n) for n in self.sizes])
        for part in (self.read, self.given, self.write):
            if part is not None:
                init_(part, "torch", generator)
        for head in self.write:
            nn.init.zeros_(head.weight)  # type: ignore[arg-type]

    def config(self) -> dict[str, Any]:
        return {
            "widths": list(self.widths), "sizes": list(self.sizes), "kind": self.kind,
            "dim": self.dim, "layers": self.layers, "heads": self.heads, "context": self.context,
            "order": list(self.order),
        }  # fmt: skip

    def _token(self, at: int, features: Tensor | None, rows: int, context: Tensor | None) -> Tensor:
        """Token of place ``at`` in the order: the column before it, or the start, ``(B, dim)``."""
        if features is None:
            token = self.first.expand(rows, -1)
        else:
            token = self.read[self.order[at - 1]](features)
        if self.kind == "attention":
            token = token + self.place[at]
        return token if context is None or self.given is None else token + self.given(context)

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Outputs ``(B, sum(sizes))`` of inputs ``(B, sum(widths))``."""
        spans = _spans(self.widths)
        before = [None, *(features[:, spans[j]] for j in self.order[:-1])]
        tokens = [self._token(at, v, len(features), context) for at, v in enumerate(before)]
        x = torch.stack(tokens, 1)  # (B, d, dim)
        h = self.core(x) if self.kind == "gru" else self.core(x, causal=True)
        out: list[Any] = [None] * len(self.order)
        for at, j in enumerate(self.order):
            out[j] = self.write[j](h[:, at])
        return torch.cat(out, 1)

    @torch.no_grad()
    def start_at(self, outputs: Tensor) -> None:
        """Give these outputs ``(sum(sizes),)`` for every row at first."""
        for head, span in zip(self.write, _spans(self.sizes), strict=True):
            head.bias.copy_(outputs[span])  # type: ignore[operator]

    def stepper(self, rows: int, context: Tensor | None = None) -> _Steps:
        """The outputs column by column in the order; states or keys of what was read are kept."""
        return _Steps(self, rows, context)


class _Steps:
    def __init__(self, net: ColumnSequence, rows: int, context: Tensor | None) -> None:
        self.net, self.rows, self.context, self.at = net, rows, context, 0
        length = len(net.widths)
        self.state = net.core.start(rows) if net.kind == "gru" else net.core.cache(rows, length)

    def next(self, features: Tensor | None) -> Tensor:
        """Outputs ``(B, size)`` of the next column from the inputs ``(B, width)`` of the one before."""
        net = self.net
        token = net._token(self.at, features, self.rows, self.context)
        if net.kind == "gru":
            h, self.state = net.core.step(token, self.state)
        else:
            h = net.core(token[:, None], causal=True, cache=self.state)[:, 0]
        out: Tensor = net.write[net.order[self.at]](h)
        self.at += 1
        return out
