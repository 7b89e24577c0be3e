r"""Classes with hidden styles, :math:`e(x, y, z) = -(w_{yz}^\top x + b_{yz})`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal, seeded
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.info.free_energy import boltzmann_logits


@registered(
    r"e(x, y, z) = -(w_{yz}^\top x + b_{yz})",
    lambda: LatentClassEnergy(3, 4, 2, scale=1.0),
)
class LatentClassEnergy(Energy):
    r"""A class y that comes in hidden styles z, :math:`e(x, y, z) = -(w_{yz}^\top x + b_{yz})`.

    Parameters
    ----------
    d : number of features
    k : number of classes
    m : number of styles per class
    scale : standard deviation of the initial weights, which tells the styles apart
    generator : source of the initial weights

    Attributes
    ----------
    W : Parameter, ``(k, m, d)``
    b : Parameter, ``(k, m)``

    Examples
    --------
    >>> e = LatentClassEnergy(2, 3, 4)
    >>> e.joint(torch.zeros(5, 2)).shape
    torch.Size([5, 3, 4])
    """

    def __init__(
        self,
        d: int,
        k: int,
        m: int,
        *,
        scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(d), y=Finite(k), z=Finite(m))
        self.W = nn.Parameter(normal(k, m, d, scale=scale, generator=seeded(generator)))
        self.b = nn.Parameter(torch.zeros(k, m))

    def config(self) -> dict[str, Any]:
        k, m, d = self.W.shape
        return {"d": d, "k": k, "m": m}

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return -(self.W[y, z] * x).sum(-1) - self.b[y, z]

    def joint(self, x: Tensor) -> Tensor:
        """All energies, ``(B, k, m)``."""
        k, m, d = self.W.shape
        return -torch.addmm(self.b.flatten(), x, self.W.view(k * m, d).T).view(-1, k, m)

    @offers.table("y")
    def classes(self, x: Tensor, z: Tensor) -> Tensor:
        index = z[:, None, None].expand(-1, self.W.shape[0], 1)
        return self.joint(x).gather(2, index).squeeze(2)

    @offers.table("z")
    def styles(self, x: Tensor, y: Tensor) -> Tensor:
        index = y[:, None, None].expand(-1, 1, self.W.shape[1])
        return self.joint(x).gather(1, index).squeeze(1)

    @offers.log_partition("y", "z")
    def total(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.joint(x), T).flatten(1), -1)
