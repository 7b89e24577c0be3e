r"""Energies of remembered rows: what all of them within a radius say about y."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.neighbors.memory import Memory
from groundstate.energy.neighbors.votes import (
    NeighborClassEnergy,
    NeighborValueEnergy,
    Votes,
)
from groundstate.energy.registering import registered


class RadiusVotes:
    """The rows within a radius have the vote, as many as there are."""

    memory: Memory
    votes: Votes
    radius: float

    def near(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, rows and votes of all pairs within the radius, ``(pairs,)`` each, and the votes of
        each query ``(B,)``. Of x that is ``memory.rows`` itself, the very tensor, no row votes on itself.
        """
        with torch.no_grad():
            found = self.memory.within(x, self.radius)
        index, distance = found.index, found.distance
        query = torch.arange(len(x), device=x.device).repeat_interleave(found.count)
        count = torch.ones_like(distance)
        if len(self.memory.weight):
            count = self.memory.weight.double()[index]
        if x is self.memory.rows:
            count = count - (index == query).to(count)
            other = count > 0
            query, index, distance, count = (v[other] for v in (query, index, distance, count))
        if x.requires_grad and torch.is_grad_enabled() and len(index):
            distance = self.memory.measured(x[query], index[:, None])[:, 0]
        count = count + 0.0 * distance  # a vote that does not move has gradient zero
        if self.votes != "uniform":
            if callable(self.votes):
                given = np.asarray(self.votes(distance.detach().cpu().numpy()), dtype=np.float64)
                strength = torch.as_tensor(given, device=count.device)
                hit = strength.isposinf()
            else:
                hit = distance == 0
                strength = torch.where(hit, 1.0, distance).reciprocal()
            exact = self._summed(query, hit.to(count.dtype), len(x))[query] > 0
            vote = count * torch.where(exact, hit.to(count.dtype), strength)
        else:
            vote = count
        total = self._summed(query, vote, len(x))
        if callable(self.votes):  # where nobody votes, all count the same
            vote = torch.where(total[query] > 0, vote, count)
            total = self._summed(query, vote, len(x))
        if x.requires_grad and torch.is_grad_enabled():
            total = total + 0.0 * x.sum(1)  # where no row is near, nothing moves
        return query, index, vote, total

    def _summed(self, query: Tensor, values: Tensor, n: int) -> Tensor:
        return values.new_zeros(n).index_add(0, query, values)

    def tally(self, x: Tensor, code: Tensor, k: int) -> Tensor:
        """Shares by what the rows say, ``(B, k)``; zeros where no row is near."""
        query, index, vote, total = self.near(x)
        p = self._summed(query * k + code[index], vote, len(x) * k).reshape(len(x), k)
        return p / torch.where(total > 0, total, 1.0)[:, None]

    def average(self, x: Tensor, values: Tensor) -> Tensor:
        """The mean of what the rows say, ``(B, m)``; NaN where no row is near."""
        query, index, vote, total = self.near(x)
        sums = vote.new_zeros(len(x), values.shape[1])
        sums = sums.index_add(0, query, values.to(vote.dtype)[index] * vote[:, None])
        return sums / torch.where(total > 0, total, math.nan)[:, None]


def _example_classes() -> RadiusClassEnergy:
    energy = RadiusClassEnergy(3, 2, 100.0, votes="distance")
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(rows, torch.tensor([0, 1, 2, 1]))
    return energy


@registered(r"e(x, y) = -\log\sum_{i : d(x, x_i) \le r} s_i(x)\,[y_i = y]", _example_classes)
class RadiusClassEnergy(RadiusVotes, NeighborClassEnergy):
    r"""The rows within a radius vote on the class,
    :math:`e(x, y) = -\log\sum_{i : d(x, x_i) \le r} s_i(x)\,[y_i = y]`, with shares s that sum to one.

    Where no row is near, one class is certain, or all rows vote.

    Parameters
    ----------
    k : number of classes
    d : number of features
    radius : r; a row at exactly this distance votes
    votes : "uniform", "distance" or a function of the distances ``(pairs,)``
    otherwise : class of an x that no row is near; None lets all rows vote there
    metric, p, VI, algorithm, n, weighted
        See ``Memory``.

    Attributes
    ----------
    target : buffer, ``(n,)``; the remembered classes

    Examples
    --------
    >>> e = RadiusClassEnergy(2, 1, 1.0, otherwise=1)
    >>> e.remember(torch.tensor([[0.0], [1.0], [2.0], [9.0]]), torch.tensor([0, 0, 1, 1]))
    >>> e.table("y", x=torch.tensor([[1.0], [5.0]])).neg().exp().round(decimals=4).tolist()
    [[0.666700005531311, 0.33329999446868896], [0.0, 1.0]]
    """

    def __init__(
        self,
        k: int,
        d: int,
        radius: float = 1.0,
        *,
        votes: Votes = "uniform",
        otherwise: int | None = None,
        **memory: Any,
    ) -> None:
        super().__init__(k, d, 0, votes=votes, **memory)
        self.radius, self.otherwise = float(radius), otherwise

    def config(self) -> dict[str, Any]:
        config = {**super().config(), "radius": self.radius, "otherwise": self.otherwise}
        del config["n_neighbors"]
        return config

    def tally(self, x: Tensor, code: Tensor, k: int) -> Tensor:
        p = super().tally(x, code, k)
        alone = ~(p > 0).any(1, keepdim=True)
        if code is not self.target or not bool(alone.any()):
            return p
        return torch.where(alone, self.otherwise_shares(code, k), p)

    def otherwise_shares(self, code: Tensor, k: int) -> Tensor:
        """Probabilities of what rows say where none of them is near, ``(k,)``."""
        if self.otherwise is not None:
            chosen = torch.arange(k, device=code.device) == self.otherwise
            return chosen.double()
        weight = self.memory.weight.double() if len(self.memory.weight) else None
        count = torch.bincount(code, weight, minlength=k).double()
        return count / count.sum()


def _example_values() -> RadiusValueEnergy:
    energy = RadiusValueEnergy(2, 1, 100.0, votes="distance")
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(rows, torch.tensor([[0.0], [1.0], [2.0], [-1.0]]))
    return energy


@registered(r"e(x, y) = \tfrac12\|y - \sum_{i : d(x, x_i) \le r} s_i(x)\,y_i\|^2", _example_values)
class RadiusValueEnergy(RadiusVotes, NeighborValueEnergy):
    r"""Squared distance to the mean of the rows within a radius,
    :math:`e(x, y) = \tfrac12\|y - \sum_{i : d(x, x_i) \le r} s_i(x)\,y_i\|^2`.

    Where no row is near, nothing is known: the mean is NaN, and no y fits, e = +∞.

    Parameters
    ----------
    d : number of features
    m : number of outputs
    radius : r; a row at exactly this distance counts
    votes : "uniform", "distance" or a function of the distances ``(pairs,)``
    metric, p, VI, algorithm, n, weighted
        See ``Memory``.

    Attributes
    ----------
    target : buffer, ``(n, m)``; the remembered values

    Examples
    --------
    >>> e = RadiusValueEnergy(1, 1, 1.0)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[1.0], [3.0], [9.0]]))
    >>> e.mean(torch.tensor([[0.2], [3.0]])).tolist()
    [[2.0], [nan]]
    """

    def __init__(
        self, d: int, m: int = 1, radius: float = 1.0, *, votes: Votes = "uniform", **memory: Any
    ) -> None:
        super().__init__(d, m, 0, votes=votes, **memory)
        self.radius = float(radius)

    def config(self) -> dict[str, Any]:
        config = {**super().config(), "radius": self.radius}
        del config["n_neighbors"]
        return config

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        mean = self.mean(x)
        known = ~mean.isnan().any(1)
        e = 0.5 * (y - torch.where(known[:, None], mean, 0.0)).square().sum(-1)
        return torch.where(known, e, math.inf)
