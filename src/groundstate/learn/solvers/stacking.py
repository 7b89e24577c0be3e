r"""Fit members, then a last energy on what they say of rows that they have not seen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.compose.stacked import Stacked
from groundstate.learn.base import History, Problem
from groundstate.learn.solvers.committee import Member
from groundstate.learn.solvers.passes import at_once

F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OutOfFold:
    r"""Members on all rows, :math:`\theta_m = \arg\min\sum_i w_iL_i`; the last energy on out-of-fold answers:

    .. math:: \theta = \arg\min_\theta \sum_i w_i\,L\bigl(\varphi_{-f(i)}(x_i), y_i; \theta\bigr) ,

    where the members of :math:`\varphi_{-f(i)}` were fitted without the fold of row i.

    Parameters
    ----------
    members : each fits one: ``member(x, y, weight, key) -> Energy``
    final : fits the last energy in the same way
    train, held : weights ``(folds, n)`` of the rows that train and that are held out; None takes the
        members as they are, without folds
    threads : members that are fitted at a time
    """

    members: tuple[Member, ...]
    final: Member
    train: F64 | None = None
    held: F64 | None = None
    threads: int = 1

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, Stacked):
            return "it fits a stack of members"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return "its members have their own penalties" if problem.penalty is not None else None

    def run(self, problem: Problem) -> History:
        energy, x, y = problem.energy, problem.resident["x"], problem.resident["y"]
        assert isinstance(energy, Stacked)
        weight = problem.sample_weight
        with at_once(problem, "OutOfFold", "fitted") as history:
            weights = [weight]
            if self.train is not None:
                # weights of ones are none, for members that take none
                weights += [_rows(w, weight, x) for w in self.train]
            jobs = [(m, w) for m in range(len(self.members)) for w in weights]

            def one(job: tuple[int, Tensor | None]) -> Any:
                return self._fitted(*job, x, y, problem.key)

            if self.threads > 1:
                with ThreadPoolExecutor(self.threads) as pool:
                    fitted = list(pool.map(one, jobs))
            else:
                fitted = [one(job) for job in jobs]
            each = [fitted[i : i + len(weights)] for i in range(0, len(fitted), len(weights))]
            energy.members = nn.ModuleList([own[0] for own in each])
            features, rows = self._features(energy, [own[1:] for own in each], x)
            own = None if weight is None else weight[rows]
            energy.final = self.final(features, y[rows], own, problem.key.fold("final"))
        return history

    def _fitted(self, m: int, weight: Tensor | None, x: Tensor, y: Tensor, key: Key) -> Any:
        if weight is None:
            return self.members[m](x, y, None, key.fold("member", m))
        kept = weight > 0
        own = weight[kept]
        plain = weight.dtype == torch.bool
        return self.members[m](x[kept], y[kept], None if plain else own, key.fold("member", m))

    def _features(
        self, energy: Stacked, folds: list[list[Any]], x: Tensor
    ) -> tuple[Tensor, Tensor]:
        """φ of the rows by members that have not seen them, and which rows."""
        if self.held is None:
            return energy.features(x), torch.arange(len(x), device=x.device)
        members, parts, places = energy.members, [], []
        for f, held in enumerate(self.held):
            at = torch.from_numpy(np.flatnonzero(held)).to(x.device)
            energy.members = nn.ModuleList([own[f] for own in folds])
            parts.append(energy.features(x[at]))
            places.append(at)
        energy.members = members
        rows, order = torch.cat(places).sort()
        return torch.cat(parts)[order], rows


def _rows(train: F64, weight: Tensor | None, x: Tensor) -> Tensor:
    """Training weights of a fold; a mask where rows have none of their own."""
    given = torch.from_numpy(train > 0 if weight is None else train)
    return given.to(x.device) if weight is None else given.to(x.device, x.dtype)
