r"""The linear class energy, :math:`e(x, y) = -(Wx + b)_y`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real


@registered(r"e(x, y) = -(Wx + b)_y", lambda: LinearEnergy(3, 4, scale=1.0))
class LinearEnergy(Energy):
    r"""A linear energy per class, :math:`e(x, y) = -(Wx + b)_y`; low where w_y agrees with x.

    Parameters
    ----------
    d : number of features
    k : number of classes
    bias : whether there is a ``b``
    scale : standard deviation of the initial ``W``; 0 starts at zero
    generator : source of the initial ``W``

    Attributes
    ----------
    W : Parameter, ``(k, d)``
    b : Parameter, ``(k,)``, or None

    Examples
    --------
    >>> e = LinearEnergy(2, 3)
    >>> _ = e.W.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> e.table("y", x=torch.tensor([[2.0, 3.0]])).tolist()
    [[-2.0, -3.0, -5.0]]
    """

    b: Tensor | None

    def __init__(
        self,
        d: int,
        k: int,
        bias: bool = True,
        *,
        scale: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        W = torch.zeros(k, d)
        if scale:
            W = scale * torch.randn(k, d, generator=generator or torch.Generator().manual_seed(0))
        self.W = nn.Parameter(W)
        self.b = nn.Parameter(torch.zeros(k)) if bias else None

    def config(self) -> dict[str, Any]:
        return {"d": self.W.shape[1], "k": self.W.shape[0], "bias": self.b is not None}

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if x.layout != torch.strided:  # sparse rows know products with a matrix only
            return self.energies(x).gather(1, y[:, None])[:, 0]
        e = -(x * self.W[y]).sum(-1)
        return e if self.b is None else e - self.b[y]

    @offers.scores("y")
    def scores(self, x: Tensor) -> Tensor:
        """The logits ``-e`` of all classes, ``(B, k)``: one matrix product, no sign pass."""
        return linear(x, self.W, self.b)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.scores(x)
