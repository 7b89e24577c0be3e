r"""Energy of an outlier by local density: how much denser are the neighbours?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.neighbors.memory import Memory
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real

LEAST = 1e-10  # of a distance, so that twins have a density


def _example() -> LocalDensityEnergy:
    energy = LocalDensityEnergy(2, 2)
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(rows, torch.tensor([1.0, 2.0, 1.0, 1.0]))
    return energy


@registered(
    r"e(x, z) = \{\overline{\rho(o)}/\rho(x),\ t\}_z, \quad "
    r"1/\rho(x) = \overline{\max(d_k(o), d(x, o))}",
    _example,
)
class LocalDensityEnergy(Energy):
    r"""Is x an outlier, z = 1? :math:`e(x, 0) = \tfrac1k\sum_{o}\rho(o)/\rho(x)` over the k nearest rows o,
    and :math:`e(x, 1) = t`.

    :math:`1/\rho(x) = \tfrac1k\sum_o\max(d_k(o), d(x, o))` is the mean distance to the neighbours, none
    counted below the distance :math:`d_k(o)` to that row's own k-th neighbour. The ratio is one inside a
    cloud of any density and larger outside.

    Parameters
    ----------
    d : number of features
    n_neighbors : k, in units of weight
    metric, p, VI, w, algorithm, n, weighted
        See ``Memory``.

    Attributes
    ----------
    memory : Memory
    reach, density : buffers, ``(n,)``, :math:`d_k` and ρ of the remembered rows
    threshold : buffer, ``()``, t
    own : ``(n,)``, after `remember`: the ratios of the rows, none of which is its own neighbour

    Examples
    --------
    >>> e = LocalDensityEnergy(1, 1)
    >>> e.remember(torch.tensor([[0.0], [1.0], [2.0]]))
    >>> e.energies(torch.tensor([[5.0]])).tolist()
    [[3.0, 1.5]]
    """

    reach: Tensor
    density: Tensor
    threshold: Tensor
    own: Tensor

    def __init__(self, d: int, n_neighbors: int = 20, **memory: Any) -> None:
        super().__init__(x=Real(d), z=Finite(2))
        self.memory = Memory(d, n_neighbors, **memory)
        n = len(self.memory.rows)
        self.register_buffer("reach", torch.zeros(n))
        self.register_buffer("density", torch.ones(n))
        self.register_buffer("threshold", torch.tensor(1.5))

    def config(self) -> dict[str, Any]:
        return self.memory.config()

    @torch.no_grad()
    def remember(self, x: Tensor, weight: Tensor | None = None) -> None:
        """Keep these rows; a row of weight zero is not kept."""
        self.memory.keep(x, weight)
        rows = self.memory.rows
        distance, index = self.memory.units(rows, self.memory.n_neighbors, own=True)
        self.reach = distance[:, -1].to(rows)
        density = self._densities(distance, index)
        self.density = density.to(rows)
        self.own = (density[index].mean(1) / density).to(rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if name != "own"}

    def _densities(self, distance: Tensor, index: Tensor) -> Tensor:
        return 1 / (torch.maximum(distance.double(), self.reach.double()[index]).mean(1) + LEAST)

    def ratios(self, x: Tensor) -> Tensor:
        """How much denser the neighbours are, ``(B,)``, differentiable in x."""
        if not len(self.memory.rows):
            return 1.0 + 0.0 * x.sum(1)
        with torch.no_grad():
            distance, index = self.memory.units(x, self.memory.n_neighbors)
        if x.requires_grad:
            distance = self.memory.measured(x, index)
        return (self.density.double()[index].mean(1) / self._densities(distance, index)).to(x.dtype)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.energies(x).gather(1, z[:, None])[:, 0]

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        usual = self.ratios(x)
        return torch.stack([usual, self.threshold.to(usual).expand_as(usual)], 1)
