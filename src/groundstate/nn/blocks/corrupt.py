r"""Rows made worse on purpose, :math:`\tilde x \sim q(\cdot \mid x)`, for networks that repair them."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

Kind = Literal["gaussian", "mask", "saltpepper"]
KINDS = ("gaussian", "mask", "saltpepper")


class Corruption(nn.Module):
    r"""Noise on rows ``(B, d)``.

    "gaussian" adds :math:`\text{level}\cdot\varepsilon`; "mask" sets each cell to 0 with probability
    ``level``; "saltpepper" sets it to the least or the largest value of its column.

    Parameters
    ----------
    kind : "gaussian", "mask" or "saltpepper"
    level : standard deviation, or probability of each cell
    low, high : ends of each column, ``(d,)``, for "saltpepper"; 0 and 1 when None

    Examples
    --------
    >>> noise = Corruption("mask", 0.5)
    >>> noise(torch.ones(1, 6), torch.Generator().manual_seed(0)).tolist()
    [[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]]
    """

    low: Tensor
    high: Tensor

    def __init__(
        self,
        kind: Kind = "gaussian",
        level: float = 0.3,
        low: Tensor | None = None,
        high: Tensor | None = None,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"corruption must be one of {', '.join(KINDS)}, got {kind!r}")
        if not level >= 0 or (kind != "gaussian" and level > 1):
            raise ValueError(
                f"level is a standard deviation of at least 0, or for {kind!r} a probability, "
                f"got {level}"
            )
        self.kind, self.level = kind, float(level)
        self.register_buffer("low", torch.zeros(()) if low is None else low)
        self.register_buffer("high", torch.ones(()) if high is None else high)

    def config(self) -> dict[str, Any]:
        return {"kind": self.kind, "level": self.level, "low": self.low, "high": self.high}

    def extra_repr(self) -> str:
        return f"{self.kind!r}, level={self.level}"

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        if not self.level:
            return x
        device = x.device if generator is None else generator.device
        if self.kind == "gaussian":
            noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=device)
            return x + self.level * noise.to(x.device)
        u = torch.rand(x.shape, generator=generator, dtype=x.dtype, device=device).to(x.device)
        if self.kind == "mask":
            return torch.where(u < self.level, torch.zeros_like(x), x)
        end = torch.where(u < 0.5 * self.level, self.low.to(x.dtype), self.high.to(x.dtype))
        return torch.where(u < self.level, end, x)
