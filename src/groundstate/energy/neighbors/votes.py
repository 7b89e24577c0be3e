r"""Energies of remembered rows: what the nearest of them say about y."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.neighbors.memory import Memory
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.value import ValueEnergy
from groundstate.math.info.free_energy import boltzmann_logits

Votes = str | Callable[[Any], Any]


class NeighborEnergy(Energy):
    """Base of energies that look at the nearest remembered rows.

    Attributes
    ----------
    memory : Memory
        The rows, their weights and the search among them.
    """

    def __init__(self, y: Any, memory: Memory, votes: Votes) -> None:
        super().__init__(x=Real(memory.d), y=y)
        if votes not in ("uniform", "distance") and not callable(votes):
            raise ValueError(f"votes must be 'uniform', 'distance' or a function, got {votes!r}")
        self.memory, self.votes = memory, votes

    def remember(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> None:
        """Keep rows and what they say; a row of weight zero is not kept."""
        kept = self.memory.keep(x, weight)
        self.target = y.clone() if kept is None else y[kept]

    target: Tensor

    def shares(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Indices of the rows that vote and their shares, ``(B, m)`` each; shares sum to one."""
        with torch.no_grad():
            distance, index, count = self.memory.counted(x)
        if x.requires_grad and torch.is_grad_enabled():
            distance = self.memory.measured(x, index)
            count = count + 0.0 * distance  # a vote that does not move has gradient zero
        if self.votes != "uniform":
            if callable(self.votes):
                given = np.asarray(self.votes(distance.detach().cpu().numpy()))
                strength = torch.as_tensor(given, dtype=count.dtype, device=count.device)
                hit = strength.isposinf()
            else:
                hit = distance == 0
                strength = torch.where(distance > 0, distance, 1.0).reciprocal()
            hit = hit & (count > 0)  # votes without bound leave nothing to the others
            share = torch.where(hit.any(1, keepdim=True), hit.to(count.dtype), strength)
            vote = torch.where(count > 0, count * share, 0.0)
        else:
            vote = count
        total = vote.sum(1, keepdim=True)
        vote = torch.where(total > 0, vote, count)  # nobody votes: all count the same
        return index, vote / vote.sum(1, keepdim=True)

    def tally(self, x: Tensor, code: Tensor, k: int) -> Tensor:
        """Shares of the rows by what they say, numbers below k of all rows ``(n,)``: ``(B, k)``."""
        index, share = self.shares(x)
        return share.new_zeros(len(x), k).scatter_add(1, code[index], share)

    def average(self, x: Tensor, values: Tensor) -> Tensor:
        """The mean of values of all rows ``(n, m)`` by their shares, ``(B, m)``."""
        index, share = self.shares(x)
        return (values.to(share.dtype)[index] * share[:, :, None]).sum(1)


def _example_classes() -> NeighborClassEnergy:
    energy = NeighborClassEnergy(3, 2, 4, votes="distance")
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(rows, torch.tensor([0, 1, 2, 1]))
    return energy


@registered(r"e(x, y) = -\log\sum_{i\in N(x)} s_i(x)\,[y_i = y]", _example_classes)
class NeighborClassEnergy(NeighborEnergy):
    r"""The nearest rows vote on the class, :math:`e(x, y) = -\log\sum_{i\in N(x)} s_i(x)\,[y_i = y]`.

    N(x) are the k nearest remembered rows and the shares s sum to one: all equal, inversely
    proportional to distance, or any function of it. A class without votes has energy +inf. A row of
    weight w counts as w rows.

    Parameters
    ----------
    k : number of classes
    d : number of features
    n_neighbors : rows that vote
    votes : "uniform", "distance" or a function of the distances ``(B, m)``
    metric, p, VI, algorithm, n, weighted
        See ``Memory``.

    Attributes
    ----------
    target : buffer, ``(n,)``; the remembered classes

    Examples
    --------
    >>> e = NeighborClassEnergy(2, 1, 3)
    >>> e.remember(torch.tensor([[0.0], [1.0], [2.0], [9.0]]), torch.tensor([0, 0, 1, 1]))
    >>> e.table("y", x=torch.tensor([[1.0]])).exp().reciprocal().round(decimals=4).tolist()
    [[0.666700005531311, 0.33329999446868896]]
    """

    normalised = frozenset({"y"})

    def __init__(
        self, k: int, d: int, n_neighbors: int = 5, *, votes: Votes = "uniform", **memory: Any
    ) -> None:
        super().__init__(Finite(k), Memory(d, n_neighbors, **memory), votes)
        self.k = k
        self.register_buffer("target", torch.zeros(len(self.memory.rows), dtype=torch.int64))

    def config(self) -> dict[str, Any]:
        return {"k": self.k, **self.memory.config(), "votes": self.votes}

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        if not len(self.target):
            return x.new_full((len(x), self.k), math.log(self.k))
        p = self.tally(x, self.target, self.k)
        voted = p > 0
        return torch.where(voted, -torch.where(voted, p, 1.0).log(), math.inf).to(x.dtype)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.log_partition("y")
    def log_sum(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.energies(x), T), -1)


def _example_values() -> NeighborValueEnergy:
    energy = NeighborValueEnergy(2, 1, 2)
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(rows, torch.tensor([[0.0], [1.0], [2.0], [-1.0]]))
    return energy


@registered(r"e(x, y) = \tfrac12\|y - \sum_{i\in N(x)} s_i(x)\,y_i\|^2", _example_values)
class NeighborValueEnergy(ValueEnergy, NeighborEnergy):
    r"""Squared distance to the mean of the nearest rows,
    :math:`e(x, y) = \tfrac12\|y - \sum_{i\in N(x)} s_i(x)\,y_i\|^2`.

    Parameters
    ----------
    d : number of features
    m : number of outputs
    n_neighbors : rows in the mean
    votes : "uniform", "distance" or a function of the distances ``(B, m)``
    metric, p, VI, algorithm, n, weighted
        See ``Memory``.

    Attributes
    ----------
    target : buffer, ``(n, m)``; the remembered values

    Examples
    --------
    >>> e = NeighborValueEnergy(1, 1, 2)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[1.0], [3.0], [9.0]]))
    >>> e.mean(torch.tensor([[0.2]])).tolist()
    [[2.0]]
    """

    def __init__(
        self, d: int, m: int = 1, n_neighbors: int = 5, *, votes: Votes = "uniform", **memory: Any
    ) -> None:
        super().__init__(Real(m), Memory(d, n_neighbors, **memory), votes)
        self.m = m
        self.register_buffer("target", torch.zeros(len(self.memory.rows), m))

    def config(self) -> dict[str, Any]:
        return {"m": self.m, **self.memory.config(), "votes": self.votes}

    def predict(self, x: Tensor) -> Tensor:
        return self.mean(x)

    def mean(self, x: Tensor) -> Tensor:
        """The mean of the nearest, ``(B, m)``; zero before anything is remembered."""
        if not len(self.target):
            return x.new_zeros(len(x), self.m)
        return self.average(x, self.target).to(x.dtype)
