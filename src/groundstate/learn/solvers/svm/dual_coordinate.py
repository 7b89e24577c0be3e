r"""Coordinate descent in the dual of the linear support vector machine, one row at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.margins.one_vs_rest import OneVsRest
from groundstate.learn.solvers.passes import until_optimal
from groundstate.learn.solvers.svm.dual_coordinate_numba import dual_passes, hinge_sum
from groundstate.learn.solvers.svm.hinge.newton import MAX_FEATURES
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    F64,
    I64,
    dense_rows,
    matrix_of,
    reason_against,
    rows_of,
    squared_norms,
    store,
    stream,
    strengths,
    wanted_classes,
)
from groundstate.learn.solvers.svm.hinge.start import smooth_start
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.registry import solvers

LONG = 40  # rows for each weight from which on smooth hinges are the better beginning
BETWEEN = 20  # passes between Newton steps of the free coefficients
CHEAP = 10_000  # visits that cost less than such a step
LEAPS = 100  # Newton steps at a time, each ending at a bound but the last
MOST_FREE, MOST_CELLS = 1000, 2**22  # size of such a step
ROUNDS = 200  # of the multiplier of a free intercept, at most


@solvers.register(
    formula=r"\min_\alpha \tfrac12\|\sum_i\alpha_i t_i x_i\|^2 - m\sum_i\alpha_i",
    make=lambda energy: HingeDual(),
)
@dataclass(frozen=True)
class HingeDual:
    r"""Dual coordinate descent: :math:`\min_\alpha \tfrac12\|\sum_i \alpha_i t_i \tilde x_i\|^2
    + \tfrac12\sum_i D_i\alpha_i^2 - m\sum_i\alpha_i`.

    For the hinge :math:`0 \le \alpha_i \le w_i/\lambda` and D = 0; for its square
    :math:`0 \le \alpha_i` and :math:`D_i = \lambda/2w_i`. Rows come in a fresh order each pass;
    those at a bound that cannot move are set aside, and now and then the coefficients between their
    bounds take a Newton step together. Equal rows count as one with their summed weight. A long
    table begins at the solution of a smooth hinge. An intercept outside the penalty makes
    :math:`\sum_i\alpha_it_i = 0` a constraint, kept by the method of multipliers. Rows may be dense
    or CSR.

    Parameters
    ----------
    max_iter : passes over the rows at most
    tol : largest violation of the optimality conditions at the end
    """

    max_iter: int = 1000
    tol: float = 1e-4

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, LinearEnergy) or type(rule) is not OneVsRest:
            return "it is for a linear class energy with the one-against-rest rule"
        reason = reason_against(problem, L2)
        if reason is None and energy.W.device.type != "cpu":
            return "it visits one row at a time, which is for the CPU"
        return reason

    def fits(self, problem: Problem) -> bool:
        """Among solvers that choose themselves, it is the one for the plain hinge."""
        return isinstance(problem.rule, OneVsRest) and problem.rule.power == 1

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        table = _Table(problem)
        parts = [_Dual(table, k) for k in wanted_classes(energy)]

        def advance(passes: int) -> tuple[float, int, bool]:
            done = max(part.descend(self.tol, passes) for part in parts)
            store(energy, [part.weights() for part in parts])
            return sum(p.value() for p in parts), done, all(p.converged for p in parts)

        return until_optimal(
            problem, "HingeDual", self.max_iter, advance,
            f"the dual did not reach tol={self.tol} in {self.max_iter} passes; raise max_iter"
            ", lower C or scale the inputs",
        )  # fmt: skip


class _Table:
    """The different rows with their summed weights, as all classes see them."""

    def __init__(self, problem: Problem) -> None:
        energy, rule = problem.energy, problem.rule
        assert isinstance(energy, LinearEnergy) and isinstance(rule, OneVsRest)
        x, y = problem.resident["x"].detach(), problem.resident["y"]
        self.rows, self.y = rows_of(x), y.numpy()
        self.index, self.weight = canonical_rows(matrix_of(x), y, problem.sample_weight)
        on_weights, on_intercept = strengths(problem.penalty, L2) or (1.0, 1.0)
        # two classes: θ = W₁ − W₀ and W₀ = −W₁, so λ(‖W₀‖² + ‖W₁‖²)/2 = (λ/2)‖θ‖²/2
        self.lam = on_weights / (2 if energy.W.shape[0] == 2 else 1)
        self.m, self.power, self.key = rule.m, rule.power, problem.key
        norms = squared_norms(x)[self.index]
        self.free = energy.b is not None and on_intercept == 0
        self.intercept = energy.b is not None
        self.scale = 0.0  # entry of the intercept's column, whose weight is penalised like others
        if self.free:
            self.scale = math.sqrt(max(float(norms.mean()), 1e-12))
        elif self.intercept:
            self.scale = math.sqrt(on_weights / on_intercept)
        bound = self.power == 1
        self.upper: F64 = self.weight / self.lam if bound else np.full(len(norms), np.inf)
        self.curve: F64 = np.zeros(len(norms)) if bound else self.lam / (2.0 * self.weight)
        self.diagonal = np.maximum(norms + self.scale**2 + self.curve, 1e-12)
        self.matrix: Any = matrix_of(x)
        dense = self.rows.sparse is None and x.shape[1] <= MAX_FEATURES
        self.is_long = dense and bound and len(self.index) >= LONG * (x.shape[1] + 1)

    def signed(self, i: I64, k: int, width: int) -> F64:
        """Rows t x̃ with the intercept's column, dense."""
        out = np.full((len(i), width), self.scale)
        out[:, : self.matrix.shape[1]] = dense_rows(self.matrix, i)
        out[self.y[i] != k] *= -1.0
        return out


class _Dual:
    """The dual of one class against the rest."""

    def __init__(self, table: _Table, k: int) -> None:
        self.table, self.k = table, k
        n, d = len(table.index), table.matrix.shape[1]
        self.alpha = np.zeros(n)
        self.theta = np.zeros(d + (table.scale > 0))
        self.place: I64 = np.arange(n)
        self.state = np.array([float(n), np.inf, -np.inf])
        self.random: NDArray[np.uint64] = stream(table.key.fold("passes", k))
        self.centre, self.rounds, self.fresh = 0.0, 0, False  # of a free intercept
        self.converged = False
        if table.is_long:
            self._begin()

    def _begin(self) -> None:
        """Take the coefficients of a smooth hinge, and the weights they stand for."""
        at = self.table
        rows = at.matrix.numpy()[at.index].astype(np.float64)
        t = np.where(at.y[at.index] == self.k, 1.0, -1.0)
        ridge = np.full(rows.shape[1] + at.intercept, at.lam)
        if at.intercept:
            ridge[-1] = 0.0 if at.free else at.lam / at.scale**2
        theta, share = smooth_start(rows, t, at.weight, at.m, ridge, at.intercept)
        self.alpha = share * at.upper
        by = self.alpha * t
        self.theta[: rows.shape[1]] = by @ rows
        if at.scale > 0:
            self.theta[-1] = at.scale * by.sum()
        if at.free:
            self.centre = float(theta[-1])

    def descend(self, tol: float, passes: int) -> int:
        """Passes until optimal or used up; how many they were."""
        used = 0
        while used < passes and not self.converged:
            few = max(BETWEEN, min(CHEAP // len(self.alpha), 5 * BETWEEN))
            done, solved = self._passes(tol, min(passes - used, few))
            used += done
            if solved:
                self.converged = not self.table.free or self._settled(tol)
            else:
                self._leap()
        return used

    def _leap(self) -> None:
        """Newton steps of the coefficients between their bounds, each until one is met."""
        at = self.table
        for _ in range(LEAPS):
            free = np.flatnonzero((self.alpha > 0.0) & (self.alpha < at.upper))
            if not 0 < len(free) <= MOST_FREE or len(free) * len(self.theta) > MOST_CELLS:
                return
            i = at.index[free]
            z = at.signed(i, self.k, len(self.theta))  # (F, d)
            offset = self.centre * np.where(at.y[i] == self.k, 1.0, -1.0)
            g = z @ self.theta + offset - at.m + at.curve[free] * self.alpha[free]
            Q = z @ z.T
            Q.reshape(-1)[:: len(Q) + 1] += at.curve[free] + 1e-12 * max(
                np.trace(Q) / len(Q), 1e-12
            )
            _, move, failed = dposv(Q, -g, lower=1)
            if failed != 0 or not np.isfinite(move).all():
                return
            here, upper = self.alpha[free], at.upper[free]
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(move > 0, (upper - here) / move, -here / move)
            room[move == 0] = np.inf
            step = min(1.0, float(room.min()))
            new = np.clip(here + step * move, 0.0, upper)
            if step < 1.0:
                hit = int(room.argmin())
                new[hit] = upper[hit] if move[hit] > 0 else 0.0
            self.alpha[free] = new
            self.theta += (new - here) @ z
            if step == 1.0:
                return

    def _passes(self, tol: float, passes: int) -> tuple[int, bool]:
        at = self.table
        self.fresh = False
        found: Any = dual_passes(
            at.rows, at.y, self.k, at.index, at.upper, at.curve, at.diagonal, self.alpha,
            self.theta, self.centre, at.scale, at.m, self.place, self.state, self.random, tol,
            passes,
        )  # fmt: skip
        return found

    def _settled(self, tol: float) -> bool:
        """Move the centre of a free intercept to where it went; True when it stayed."""
        moved = self.table.scale * self.theta[-1]
        self.centre += moved
        self.rounds, self.fresh = self.rounds + 1, True
        self.state[:] = len(self.alpha), np.inf, -np.inf
        return abs(moved) <= tol or self.rounds >= ROUNDS

    def weights(self) -> F64:
        """θ with the intercept in its own unit."""
        if not self.table.intercept:
            return self.theta
        out = self.theta.copy()
        out[-1] = self.centre if self.fresh else self.centre + self.table.scale * out[-1]
        return out

    def value(self) -> float:
        """The primal objective, on the scale of the summed loss."""
        at, theta = self.table, self.weights()
        loss = hinge_sum(
            at.rows, at.y, self.k, at.index, at.weight, theta, at.intercept, at.m, at.power
        )
        held = self.theta[:-1] if at.free else self.theta
        return float(loss) + 0.5 * at.lam * float(held @ held)
