r"""How far a row is from groups of rows, :math:`e(x, z) = \tfrac12 D(x, G_z)^2`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.neighbors.memory import Memory
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.distances.euclidean import CELLS
from groundstate.math.info.free_energy import boltzmann_logits

LINKAGES = ("single", "complete", "average", "ward")


def _example() -> LinkageEnergy:
    energy = LinkageEnergy(2, 2)
    rows = torch.tensor([[-1.0, 0.0], [-1.5, 0.2], [1.0, 0.0], [1.2, 0.7]])
    energy.remember(rows, torch.tensor([0, 0, 1, 1]))
    return energy


@registered(r"e(x, z) = \tfrac12 D(x, G_z)^2", _example)
class LinkageEnergy(Energy):
    r"""The price of one more row x in group z, :math:`e(x, z) = \tfrac12 D(x, G_z)^2`.

    .. math::
        D_{single} = \min_{i\in G_z}\max(d(x, x_i), c_i),\quad
        D_{complete} = \max_{i\in G_z}d(x, x_i),\quad
        D_{average} = \frac1{n_z}\sum_{i\in G_z}d(x, x_i),\quad
        D_{ward}^2 = \frac{n_z}{n_z + 1}\|x - \mu_z\|^2,

    the last of which makes e the growth of half the squares within groups. With ``noise`` there is one
    more value of z, last, for rows of no group: its energy is :math:`\tfrac12 r_z^2` with the reach of
    the nearest group.

    Parameters
    ----------
    k : number of groups
    d : number of features
    linkage : "single", "complete", "average" or "ward"
    noise : whether a row may be in no group
    memory : arguments of ``Memory``: the metric and its parameters

    Attributes
    ----------
    memory : Memory, the rows of the groups
    group : buffer, ``(n,)``; the group of each
    core : buffer, ``(n,)``; the least distance c at which each is reached
    reach : buffer, ``(max(k, 1),)``

    Examples
    --------
    >>> e = LinkageEnergy(2, 1, noise=True)
    >>> e.remember(torch.tensor([[0.0], [1.0], [9.0]]), torch.tensor([0, 0, 1]),
    ...            reach=torch.tensor([1.0, 1.0]))
    >>> e.table("z", x=torch.tensor([[3.0]])).tolist()
    [[2.0, 18.0, 0.5]]
    """

    group: Tensor
    core: Tensor
    reach: Tensor

    def __init__(
        self, k: int, d: int, *, linkage: str = "single", noise: bool = False, **memory: Any
    ) -> None:
        if linkage not in LINKAGES:
            raise ValueError(f"linkage must be one of {', '.join(LINKAGES)}, got {linkage!r}")
        super().__init__(x=Real(d), z=Finite(k + noise))
        self.k, self.linkage, self.noise = k, linkage, noise
        self.memory = Memory(d, 1, **memory)
        n = len(self.memory.rows)
        self.register_buffer("group", torch.zeros(n, dtype=torch.int64))
        self.register_buffer("core", torch.zeros(n))
        self.register_buffer("reach", torch.ones(max(k, 1)))

    def config(self) -> dict[str, Any]:
        memory = self.memory.config()
        memory.pop("n_neighbors")
        return {"k": self.k, "linkage": self.linkage, "noise": self.noise, **memory}

    def remember(
        self, x: Tensor, group: Tensor, core: Tensor | None = None, reach: Tensor | None = None,
        columns: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Rows of the groups, the least distances at which they are reached, the reach of groups.

        ``columns`` says which of precomputed distances these rows are.
        """
        if len(x):
            self.memory.keep(x, None)
        else:
            self.memory.rows = x.clone()
        if columns is not None:
            self.memory.column = columns.to(x.device)
        self.group = group.to(x.device, torch.int64)
        self.core = x.new_zeros(len(x)) if core is None else core.to(x)
        if reach is not None:
            self.reach = reach.to(x)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.energies(x).gather(1, z[:, None]).squeeze(1)

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        step = max(1, CELLS // max(1, len(self.group)))
        parts = [self._squares(part) for part in x.split(step)] if len(x) else [self._squares(x)]
        e = 0.5 * torch.cat(parts)  # (B, k)
        if self.noise:
            near = (
                e.argmin(1) if self.k else torch.zeros(len(x), dtype=torch.int64, device=e.device)
            )
            away = 0.5 * self.reach.double().square()[near] + self.memory.nothing(x).double()
            e = torch.cat([e, away[:, None]], 1)
        return e.to(x.dtype)

    def _squares(self, x: Tensor) -> Tensor:
        """:math:`D^2`, ``(B, k)`` float64."""
        if self.k == 0 or not len(self.group):
            return x.double().new_full((len(x), self.k), math.inf)
        n = torch.bincount(self.group, minlength=self.k).to(torch.float64)
        if self.linkage == "ward":
            rows = self.memory.rows.double()
            mu = rows.new_zeros(self.k, rows.shape[1]).index_add(0, self.group, rows) / n[:, None]
            away = (x.double()[:, None] - mu).square().sum(-1)
            return away * (n / (n + 1))
        square, at = self._measured(x), self.group.expand(len(x), -1)  # (B, n)
        out = square.new_zeros(len(x), self.k)
        if self.linkage == "average":
            return (out.scatter_add(1, at, square.sqrt()) / n).square()
        if self.linkage == "complete":
            return out.scatter_reduce(1, at, square, "amax", include_self=False)
        square = torch.maximum(square, self.core.double().square())
        return out.scatter_reduce(1, at, square, "amin", include_self=False)

    def _measured(self, x: Tensor) -> Tensor:
        """Squared distances to all rows, ``(B, n)`` float64."""
        if not (torch.is_grad_enabled() and x.requires_grad):
            return self.memory.every(x).square()
        n = len(self.group)  # differences have second derivatives, also at distance zero
        index = torch.arange(n, device=x.device).repeat(len(x))
        return self.memory.squared(x.repeat_interleave(n, 0), index).reshape(len(x), n)

    @offers.conditional("z")
    def distribution(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.log_partition("z")
    def log_sum(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.energies(x), T), -1)


__all__ = ["LINKAGES", "LinkageEnergy"]
