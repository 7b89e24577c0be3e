r"""Two kinds of rows in one space of codes, :math:`e(x, y) = -e^s\cos(f(x), g(y)) - b`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real, Space

LARGEST = math.log(100.0)  # of s: sharper similarities make learning unstable


def _example() -> SimilarityEnergy:
    g = torch.Generator().manual_seed(0)
    nets = nn.Linear(3, 4), nn.Linear(2, 4)
    for net in nets:
        nn.init.normal_(net.weight, generator=g)
    return SimilarityEnergy(Real(3), Real(2), *nets, scale=2.0, bias=0.5)


@registered(r"e(x, y) = -e^s\cos(f(x), g(y)) - b,\ \text{two encoders}", _example)
class SimilarityEnergy(Energy):
    r"""How unlike the codes of two rows are, :math:`e(x, y) = -e^s\cos(f(x), g(y)) - b`.

    f and g give codes of one length, which are brought to length one. With s as a parameter the softmax
    over partners, :math:`p(y \mid x) \propto e^{-e(x, y)}`, has a learned temperature :math:`e^{-s}`.

    Parameters
    ----------
    x, y : spaces of the two kinds of rows
    net, other : f and g, modules to ``(B, k)``
    scale : :math:`e^s` at the start; at most 100
    bias : b at the start, learned; None is none, which a softmax would not see

    Examples
    --------
    >>> e = SimilarityEnergy(Real(2), Real(2), nn.Identity(), nn.Identity(), scale=10.0)
    >>> e(x=torch.tensor([[2.0, 0.0]]), y=torch.tensor([[1.0, 1.0]]))
    tensor([-7.0711], grad_fn=<NegBackward0>)
    """

    def __init__(
        self,
        x: Space,
        y: Space,
        net: nn.Module,
        other: nn.Module,
        scale: float = 1 / 0.07,
        bias: float | None = None,
    ) -> None:
        super().__init__(x=x, y=y)
        if not 0 < scale <= 100:
            raise ValueError(f"scale lies above 0 and is at most 100, got {scale}")
        self.net, self.other = net, other
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = None if bias is None else nn.Parameter(torch.tensor(float(bias)))

    def config(self) -> dict[str, Any]:
        return {
            "x": self.spaces["x"], "y": self.spaces["y"], "net": self.net, "other": self.other,
            "scale": 1.0, "bias": None if self.bias is None else 0.0,
        }  # fmt: skip

    def embed(self, x: Any) -> Tensor:
        """f(x) of length one, ``(B, k)``."""
        return normalize(self.net(x), dim=1)

    def embed_y(self, y: Any) -> Tensor:
        """g(y) of length one, ``(B, k)``."""
        return normalize(self.other(y), dim=1)

    @property
    def scale(self) -> Tensor:
        """:math:`e^s`."""
        return self.log_scale.exp()

    @torch.no_grad()
    def bound(self) -> None:
        """Bring s back to log 100 where it is above."""
        self.log_scale.clamp_(max=LARGEST)

    def forward(self, x: Any, y: Any) -> Tensor:
        near = self.scale * (self.embed(x) * self.embed_y(y)).sum(1)
        return -near if self.bias is None else -(near + self.bias)
