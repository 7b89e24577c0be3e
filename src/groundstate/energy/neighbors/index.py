r"""Energy of a hidden row: which of the remembered rows is x like?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.neighbors.memory import Memory
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.distances.euclidean import power_of
from groundstate.math.distributions.operations import isotropic
from groundstate.math.info.free_energy import boltzmann_logits

CELLS = 2**22  # energies of one block


def _example() -> NeighborIndexEnergy:
    energy = NeighborIndexEnergy(2)
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(rows, torch.tensor([1.0, 2.0, 1.0, 0.5]))
    return energy


def _euclidean(energy: NeighborIndexEnergy) -> bool:
    memory = energy.memory
    plain = not callable(memory.metric) and not len(memory.root)
    return plain and power_of(str(memory.metric), memory.p) == 2.0


@registered(r"e(x, z) = \tfrac12\,d(x, x_z)^2 - \log w_z", _example)
class NeighborIndexEnergy(Energy):
    r"""Squared distance to one of the rows, :math:`e(x, z) = \tfrac12\,d(x, x_z)^2 - \log w_z`.

    The k lowest energies over z are the k nearest rows; :math:`p(z\mid x)` is the softmin of half
    the squared distances, and the marginal over z a density of equal bumps on all rows. A row of
    weight w is as probable as w rows.

    Parameters
    ----------
    d : number of features
    metric, p, VI, algorithm, n, weighted
        See ``Memory``.

    Attributes
    ----------
    memory : Memory
        The rows, their weights and the search among them.

    Examples
    --------
    >>> e = NeighborIndexEnergy(1)
    >>> e.remember(torch.tensor([[0.0], [1.0], [4.0]]))
    >>> e.table("z", x=torch.tensor([[2.0]])).tolist(), e.nearest(torch.tensor([[2.0]])).tolist()
    ([[2.0, 0.5, 2.0]], [1])
    """

    def __init__(self, d: int, **memory: Any) -> None:
        kept = Memory(d, 0, **memory)
        super().__init__(x=Real(d), z=Finite(max(1, len(kept.rows))))
        self.memory = kept

    def config(self) -> dict[str, Any]:
        config = self.memory.config()
        del config["n_neighbors"]
        return config

    def remember(self, x: Tensor, weight: Tensor | None = None) -> None:
        """Keep these rows; a row of weight zero is not kept."""
        self.memory.keep(x, weight)
        self.spaces = {**self.spaces, "z": Finite(max(1, len(self.memory.rows)))}

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        if not len(self.memory.rows):
            return 0.0 * x.sum(1)
        e = 0.5 * self.memory.squared(x, z)
        if len(self.memory.weight):
            e = e - self.memory.weight.double().log()[z]
        return e.to(x.dtype)

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        if not len(self.memory.rows):
            return 0.0 * x.sum(1, keepdim=True)
        e = 0.5 * self.memory.every(x).square()
        if len(self.memory.weight):
            e = e - self.memory.weight.double().log()
        return e.to(x.dtype)

    def _blocks(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.split(max(1, CELLS // max(1, len(self.memory.rows))))

    @offers.argmin("z")
    def nearest(self, x: Tensor) -> Tensor:
        """The row of lowest energy, ``(B,)``; of equals the first."""
        if len(self.memory.rows) and not len(self.memory.weight):
            with torch.no_grad():
                return self.memory.nearest(x, 1)[1][:, 0]
        return torch.cat([self.energies(part).argmin(1) for part in self._blocks(x)])

    @offers.conditional("z")
    def distribution(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.log_partition("z")
    def log_sum(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.cat([
            torch.logsumexp(boltzmann_logits(self.energies(part), T), -1)
            for part in self._blocks(x)
        ])  # fmt: skip

    @offers.conditional("x", when=_euclidean)
    def around(self, z: Tensor, T: float = 1.0) -> Distribution:
        return isotropic(self.memory.rows[z], T**0.5)
