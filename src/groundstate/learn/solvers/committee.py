r"""Fit the members of a committee, each on its own weights of the rows and its own columns."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.base import Energy
from groundstate.energy.basic import LinearEnergy, SquaredEnergy
from groundstate.energy.compose.committee import CommitteeClassEnergy, CommitteeMeanEnergy
from groundstate.errors import NotApplicable
from groundstate.learn.base import History, Problem, Rule
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import fit
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.registry import solvers

_log = logging.getLogger(__name__)

F64 = NDArray[np.float64]
Member = Callable[[Tensor, Tensor, Tensor | None, Key], Energy]


def linear(x: Tensor, y: Tensor, weight: Tensor | None, key: Key) -> Energy:
    """A linear member: softmax regression of classes, ridge regression of values."""
    energy: Energy
    rule: Rule
    if y.is_floating_point():
        energy, rule = SquaredEnergy(x.shape[1], y.shape[1]), Naive()
    else:
        energy, rule = LinearEnergy(x.shape[1], int(y.max()) + 1), SoftMin()
    energy.to(x.device, x.dtype)
    fit(energy, {"x": x, "y": y}, rule, sample_weight=weight, penalty=L2(1.0), random_state=key)
    return energy


@solvers.register(
    formula=r"\theta_m = \arg\min \sum_i w_{mi} L_i,\quad w_m \sim \text{bootstrap}",
    make=lambda energy: FitMembers((linear,) * 3),
)
@dataclass(frozen=True)
class FitMembers:
    r"""Fit every member on its own: :math:`\theta_m = \arg\min\sum_i w_{mi}L_i(\theta_m)`.

    The weights are those of the rows, or how often points of the weight line fall on each row
    (bootstrap), or a share of the line (subsample); no row is copied.

    Parameters
    ----------
    members : each fits one: ``member(x, y, weight, key) -> Energy``
    weights : a of the members; equal unless given
    bootstrap : whether each member sees rows drawn with replacement
    draws : weight that a member sees; None: as much as there is
    columns : how many columns a member sees; None: all
    repeat_columns : whether columns are drawn with replacement
    out_of_bag : whether to average, for each row, the members that did not see it
    continued : keep the members that the energy has
    earlier : (n,) weights that those saw, for rows outside the bag; none where they are not known
    threads : members that are fitted at a time
    """

    members: tuple[Member, ...] = (linear,) * 10
    weights: tuple[float, ...] | None = None
    bootstrap: bool = True
    draws: float | None = None
    columns: int | None = None
    repeat_columns: bool = False
    out_of_bag: bool = False
    continued: bool = False
    earlier: tuple[F64, ...] = ()
    threads: int = 1

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, CommitteeClassEnergy | CommitteeMeanEnergy):
            return "it fits the members of a committee"
        if not isinstance(problem.rule, SoftMin | Naive):
            return "members lower the summed energy: use SoftMin or Naive"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return "its members have their own penalties" if problem.penalty is not None else None

    def run(self, problem: Problem) -> History:
        return _Fit(self, problem).run()


class _Fit:
    """One run: bags, members, out-of-bag sums."""

    def __init__(self, solver: FitMembers, problem: Problem) -> None:
        self.solver, self.problem = solver, problem
        self.energy: Any = problem.energy
        self.x, self.y = problem.resident["x"], problem.resident["y"]
        given = problem.sample_weight
        self.weight = None if given is None else given.double().cpu().numpy()
        self.line: WeightLine | None = None
        if solver.bootstrap or solver.draws is not None:
            self.line = WeightLine.of(
                self.x.cpu().numpy(), self.y.cpu().numpy(), weights=self.weight
            )

    def bag(self, key: Key) -> F64 | None:
        """Weights of the rows for one member, ``(n,)``; None where all count once."""
        if self.line is None:
            return self.weight
        draws = self.solver.draws
        if self.solver.bootstrap:
            n = None if draws is None else max(1, round(draws))
            return self.line.bootstrap(key.fold("rows"), n).astype(np.float64)
        assert draws is not None
        share = min(1.0, draws / self.line.total)
        return self.line.subsample(key.fold("rows"), share)

    def seen(self, key: Key) -> list[int] | None:
        """Columns of one member, in order."""
        d, n = self.x.shape[1], self.solver.columns
        if n is None and not self.solver.repeat_columns:
            return None
        n = d if n is None else n
        place = key.fold("columns").uniform(n if self.solver.repeat_columns else d)
        if self.solver.repeat_columns:
            return sorted(int(v) for v in np.minimum(place * d, d - 1))
        return None if n == d else sorted(int(j) for j in np.argsort(place)[:n])

    def member(self, t: int) -> tuple[Energy, list[int] | None, F64 | None]:
        key = self.problem.key.fold("member", t)
        weight, columns = self.bag(key), self.seen(key)
        x = self.x if columns is None else self.x[:, columns]
        w = None if weight is None else torch.from_numpy(weight).to(x.device, x.dtype)
        return self.solver.members[t](x, self.y, w, key.fold("fit")), columns, weight

    def run(self) -> History:
        solver, start = self.solver, time.perf_counter()
        history = History(converged=True, solver="FitMembers", stop="fitted")
        done = len(self.energy.members) if solver.continued else 0
        if not solver.continued and len(self.energy.members):
            self.energy.empty()
        bags = history.extra.setdefault("bags", [])
        outside = _Outside(self.energy, self.x) if solver.out_of_bag else None
        for m, bag in enumerate(solver.earlier[:done]):
            if outside is not None:
                outside.add(m, bag == 0)
        rest = range(done, len(solver.members))
        with Monitor(self.problem.callbacks, Run(self.problem, history, len(rest))) as monitor:
            for t, (own, columns, weight) in zip(rest, self._fitted(rest)):
                a = 1.0 if solver.weights is None else solver.weights[t]
                self.energy.add(own, a, columns)
                bags.append(weight)  # type: ignore[arg-type]
                if outside is not None and weight is not None:
                    outside.add(len(self.energy.members) - 1, weight == 0)
                history.seconds.append(time.perf_counter() - start)
                value = float(self.problem.objective()) if monitor.callbacks else float("nan")
                if monitor.epoch(value):
                    break
        history.n_iter = len(self.energy.members)
        if outside is not None:
            history.extra["out_of_bag"] = outside.mean()  # type: ignore[assignment]
        return history

    def _together(self, rest: range) -> list[tuple[Energy, None, F64 | None]] | None:
        """Members of one kind as one program, where they can be."""
        if not rest:
            return None
        kinds = {id(self.solver.members[t]) for t in rest}
        fit_all = (
            getattr(self.solver.members[rest[0]], "together", None) if len(kinds) == 1 else None
        )
        if fit_all is None or len(rest) < 2:
            return None
        keys = [self.problem.key.fold("member", t) for t in rest]
        if any(self.seen(key) is not None for key in keys):
            return None
        bags = [self.bag(key) for key in keys]
        rows = [None if b is None else torch.from_numpy(b).to(self.x.device) for b in bags]
        try:
            found = fit_all(self.x, self.y, rows, [key.fold("fit") for key in keys])
        except NotApplicable as reason:
            _log.debug("members are fitted one by one: %s", reason)
            return None
        return [(e, None, b) for e, b in zip(found, bags, strict=True)]

    def _fitted(self, rest: range) -> Iterator[tuple[Energy, list[int] | None, F64 | None]]:
        together = self._together(rest)
        if together is not None:
            yield from together
            return
        if self.solver.threads <= 1:
            yield from map(self.member, rest)
            return
        with ThreadPoolExecutor(self.solver.threads) as pool:
            yield from pool.map(self.member, rest)


class _Outside:
    """Means over the members that did not see a row; NaN where all did."""

    def __init__(self, energy: Any, x: Tensor) -> None:
        self.energy, self.x = energy, x
        classes = isinstance(energy, CommitteeClassEnergy)
        self.sums = np.zeros((len(x), energy.k if classes else energy.m))
        self.count = np.zeros((len(x), 1))

    @torch.no_grad()
    def add(self, m: int, out: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(out)
        if not len(rows):
            return
        x = self.x[torch.from_numpy(rows).to(self.x.device)]
        if isinstance(self.energy, CommitteeClassEnergy):
            value = self.energy.member_log_distribution(m, x).exp()
        else:
            value = self.energy.member_value(m, x)
        self.sums[rows] += value.double().cpu().numpy()
        self.count[rows] += 1

    def mean(self) -> F64:
        with np.errstate(invalid="ignore"):
            return self.sums / self.count
