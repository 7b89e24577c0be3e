r"""The support vector machine in the dual, for each pair of classes."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.kernels.machine import KernelMachineEnergy
from groundstate.errors import DataError, NotConverged, NotSeparableError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.function_norm import FunctionNorm
from groundstate.learn.rules.margins.one_vs_one import OneVsOne
from groundstate.learn.solvers.svm.smo.engine import Solution, in_one_piece, smo
from groundstate.learn.solvers.svm.smo.rows import F64, I64, canonical_rows, gram
from groundstate.math.kernels import Precomputed
from groundstate.registry import solvers

BOUND = 1e-9  # share of the box within which a coefficient counts as at its bound
THINNEST = 1e-6  # margin, relative to the size of the features, that still separates


@solvers.register(
    formula=r"\max_\alpha \sum_i\alpha_i - \tfrac12\sum_{ij}\alpha_i\alpha_j t_it_j k(x_i, x_j)",
    make=lambda energy: SMO(),
)
@dataclass(frozen=True)
class SMO:
    r"""Sequential minimal optimisation of the dual,
    :math:`\max_\alpha \sum_i\alpha_i - \tfrac12\sum_{ij}\alpha_i\alpha_j t_it_jk(x_i,x_j)` with
    :math:`0 \le \alpha_i \le w_i/\lambda` and :math:`\sum_i\alpha_it_i = 0`.

    Two coefficients move at a time, chosen by second order, within working sets whose kernel rows
    are computed by one matrix product and kept in a cache. Without a penalty (λ = 0) the margin is
    hard.

    Parameters
    ----------
    tol : largest violation of optimality at the end
    max_steps : pair steps for each pair of classes, −1 for ten million or a hundred for each row
    megabytes : size of the cache of kernel rows
    shrinking : set coefficients aside that cannot move
    block : rows of a working set
    """

    tol: float = 1e-3
    max_steps: int = -1
    megabytes: float = 200.0
    shrinking: bool = True
    block: int = 512

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, KernelMachineEnergy):
            return "it is for a kernel machine"
        if type(problem.rule) is not OneVsOne or problem.rule.m != 1.0:
            return "it is for the rule OneVsOne with margin 1"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if not isinstance(problem.penalty, FunctionNorm):
            return "it needs a FunctionNorm penalty, which bounds the coefficients"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy, penalty = problem.energy, problem.penalty
        assert isinstance(energy, KernelMachineEnergy) and isinstance(penalty, FunctionNorm)
        history = History(solver="SMO")
        with Monitor(problem.callbacks, Run(problem, history, 1)) as monitor:
            pairs = _Pairs(problem, penalty.strength, self.megabytes)
            found = [self._pair(pairs, a, b) for a, b in pairs.names]
            pairs.store(energy, found)
            value = pairs.log(history, found)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(value)
        history.n_iter = max(1, sum(s.steps for s in found))  # pair steps, not epochs
        if not history.converged:
            worst = max(s.violation for s in found)
            warnings.warn(
                f"the dual reached a violation of {worst:.2g}, not tol={self.tol}, in "
                f"{history.n_iter} steps; raise max_iter, lower C or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _pair(
        self, pairs: _Pairs, a: int, b: int, last: tuple[Solution, float] | None = None
    ) -> Solution:
        """The machine of one pair, from that of another strength where there is one."""
        x, t, w = pairs.of(a, b)
        if pairs.strength > 0:
            upper = w / pairs.strength
            start = None if last is None else _grown(last[0], t, w / last[1], upper)
            solution = self._solve(pairs, x, t, upper, start)
            pairs.report(solution, t, upper)
            return solution
        size = math.sqrt(max(pairs.size(x), np.finfo(float).tiny))
        box = 1e3 / size**2
        while True:  # a hard margin is a soft one whose box is not felt
            solution = self._solve(pairs, x, t, np.full(len(t), box))
            total = float(np.abs(solution.beta).sum())
            norm = math.sqrt(max(float(solution.beta @ (t - solution.F)), 0.0))
            if not (np.abs(solution.beta) >= box * (1 - BOUND)).any():
                pairs.report(solution, t, np.full(len(t), np.inf))
                return solution
            if norm / total < THINNEST * size or not solution.converged:
                raise NotSeparableError(
                    f"no margin separates class {a} from class {b}: rows of both lie within "
                    f"{norm / total:.1e} of each other in the kernel's space; give a finite C"
                )
            box *= 100.0

    def _solve(
        self, pairs: _Pairs, x: Tensor, t: F64, upper: F64, start: tuple[F64, F64] | None = None
    ) -> Solution:
        return smo(
            pairs.energy.kernel if pairs.whole is None else None, x, t,
            np.where(t > 0, 0.0, -upper), np.where(t > 0, upper, 0.0), tol=self.tol,
            max_steps=self.max_steps, megabytes=self.megabytes, shrinking=self.shrinking,
            block=len(t) if pairs.shared else self.block, start=start,
        )  # fmt: skip


def _grown(s: Solution, t: F64, before: F64, upper: F64) -> tuple[F64, F64]:
    """A start for another box: coefficients as they were, or grown with it, where that is better."""
    scale = float((upper / before).mean())
    top = np.abs(s.beta) >= before * (1 - BOUND)
    beta = np.where(top, np.sign(s.beta) * upper, s.beta * scale)
    F = t - scale * (t - s.F)
    if scale < 1 or beta @ (t + F) > s.beta @ (t + s.F):
        return beta, F
    return s.beta, s.F


class _Pairs:
    """The rows of all pairs of classes and what was found for them."""

    def __init__(
        self, problem: Problem, strength: float, megabytes: float,
        table: Callable[[I64], F64] | None = None,
    ) -> None:  # fmt: skip
        energy = problem.energy
        assert isinstance(energy, KernelMachineEnergy)
        self.energy, self.strength = energy, strength
        self.shared = table is not None  # by several strengths: few steps each
        self.x, y = problem.resident["x"].detach(), problem.resident["y"]
        self.index, self.weight = canonical_rows(self.x, y, problem.sample_weight)
        self.plain = len(self.index) == len(self.x) and bool((self.weight == 1).all())
        self.y: I64 = y.cpu().numpy()[self.index]
        k = energy.k
        counts = np.bincount(self.y, minlength=k)
        if (counts == 0).any():
            raise DataError(
                f"class {int(np.argmin(counts))} has no row of positive weight; every class needs one"
            )
        self.names = [(a, b) for a in range(k) for b in range(a + 1, k)]
        self.given = isinstance(energy.kernel, Precomputed)
        at = torch.from_numpy(self.index)
        if self.x.device.type == "cpu":
            rows = torch.from_numpy(self.x.numpy()[self.index])
        else:
            rows = self.x[at.to(self.x.device)]
        self.whole: F64 | None = None  # matrix of all rows, shared by the pairs
        if table is not None:
            self.whole = table(self.index)
        elif self.given:
            self.whole = rows.cpu()[:, at].double().numpy()
        elif in_one_piece(len(rows), megabytes):
            self.whole = gram(energy.kernel, rows)
        self.rows = rows
        self.members: list[I64] = []
        self.reports: list[dict[str, float]] = []

    def again(self, energy: KernelMachineEnergy, strength: float) -> None:
        """Begin anew for another strength."""
        self.energy, self.strength = energy, strength
        self.members, self.reports = [], []

    def log(self, history: History, found: list[Solution]) -> float:
        """Put what was found into a history; the mean objective."""
        history.extra = {key: [row[key] for row in self.reports] for key in self.reports[0]}
        value = sum(history.extra["primal"]) * self.strength / float(self.weight.sum())
        if self.strength == 0:
            value = 0.0  # a hard margin leaves no loss
        history.objective.append(value)
        history.converged = all(s.converged for s in found)
        history.stop = "optimality" if history.converged else "max_iter"
        history.n_iter = max(1, sum(s.steps for s in found))
        return value

    def of(self, a: int, b: int) -> tuple[Tensor, F64, F64]:
        """Rows (or their Gram matrix), signs and weights of one pair."""
        if len(self.names) == 1:
            mine: I64 = np.arange(len(self.y))
            rows = self.rows if self.whole is None else torch.from_numpy(self.whole)
        else:
            mine = np.flatnonzero((self.y == a) | (self.y == b))
            if self.whole is None:
                rows = self.rows[torch.from_numpy(mine).to(self.x.device)]
            else:
                rows = torch.from_numpy(self.whole[np.ix_(mine, mine)])
        self.members.append(mine)
        return rows, np.where(self.y[mine] == a, 1.0, -1.0), self.weight[mine]

    def size(self, rows: Tensor) -> float:
        """The mean of k(x, x)."""
        values = rows.diagonal()
        if self.whole is None:
            values = self.energy.kernel.diagonal(rows.double())
        return float(values.abs().mean())

    def report(self, s: Solution, t: F64, upper: F64) -> None:
        r"""Both objectives, on the scale :math:`\tfrac12\|f\|^2 + C\sum\xi`, and counts of rows."""
        slack = np.maximum(t * (s.F - s.intercept), 0.0)  # 1 − t f
        felt = slack > s.violation + 1e-12  # what is within the tolerance is no slack
        norm = float(s.beta @ (t - s.F))
        alpha = np.abs(s.beta)
        top = alpha >= upper * (1 - BOUND)
        paid = float(upper @ slack) if self.strength > 0 else 0.0
        primal, dual = 0.5 * norm + paid, s.dual(t)
        self.reports.append(
            {
                "primal": primal, "dual": dual, "gap": primal - dual, "kkt": s.violation,
                "zero": float((alpha == 0).sum()), "bound": float(top.sum()),
                "free": float(((alpha > 0) & ~top).sum()), "slack": float(slack.sum()),
                "inside": float((felt & (slack <= 1)).sum()),
                "wrong": float((felt & (slack > 1)).sum()), "norm": norm, "steps": float(s.steps),
            }
        )  # fmt: skip

    def store(self, energy: KernelMachineEnergy, found: list[Solution]) -> None:
        """Keep the rows with a coefficient in any pair, grouped by class.

        Within a class they stand in the order of the table; with weights or repeated rows, in that
        of their content, so that both tables give the same machine.
        """
        k = energy.k
        if k == 2:
            table = found[0].beta[None]
            kept = np.flatnonzero(found[0].beta)
        else:
            table = np.zeros((k - 1, len(self.index)))
            for (a, b), members, s in zip(self.names, self.members, found, strict=True):
                of_a = self.y[members] == a
                table[b - 1, members[of_a]] = s.beta[of_a]
                table[a, members[~of_a]] = s.beta[~of_a]
            kept = np.flatnonzero((table != 0).any(0))
        order = self.index[kept] if self.plain else kept
        kept = kept[np.lexsort((order, self.y[kept]))]
        support: NDArray[np.int64] = self.index[kept]
        at = torch.from_numpy(support)
        centers = at[:, None] if self.given else self.rows[torch.from_numpy(kept).to(self.x.device)]
        energy.set(
            centers,
            torch.from_numpy(table[:, kept]),
            torch.tensor([s.intercept for s in found], dtype=torch.float64),
            np.bincount(self.y[kept], minlength=k).tolist(),
            at,
        )
