r"""The margin against the best wrong class, in the dual: all classes of a linear machine at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg.lapack import dposv

from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.margins.margin import Margin
from groundstate.learn.solvers.passes import until_optimal
from groundstate.learn.solvers.svm.dual_coordinate import BETWEEN, LEAPS, MOST_CELLS, ROUNDS
from groundstate.learn.solvers.svm.dual_coordinate_numba import joint_passes, joint_sum
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    F64,
    dense_rows,
    matrix_of,
    reason_against,
    rows_of,
    squared_norms,
    stream,
    strengths,
)
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.registry import solvers

MOST_JOINT = 400  # coefficients of a Newton step: its cube is to stay a matter of milliseconds


@solvers.register(
    formula=r"\min_A \tfrac12\sum_k\|\sum_i A_{ik}x_i\|^2 + m\sum_{i,\,k \ne y_i}A_{ik}",
    make=lambda energy: CrammerSinger(),
)
@dataclass(frozen=True)
class CrammerSinger:
    r"""Blocks of the dual of :math:`\tfrac\lambda2\|W\|^2 + \sum_i w_i\max(0, m + e_{y_i} -
    e_{\hat y_i})`, where :math:`\hat y` is the best wrong class.

    With :math:`W_k = \sum_i A_{ik}\tilde x_i` the coefficients of one row over the classes sum to
    zero, :math:`A_{ik} \le 1_{k = y_i}w_i/\lambda`; they move together, to the minimum of their
    block, found by sorting K numbers. Rows that cannot move are set aside, and now and then all
    coefficients that are not at a bound take a Newton step together. Rows may be dense or CSR; equal
    rows count as one with their summed weight.

    Parameters
    ----------
    max_iter : passes over the rows and Newton steps at most
    tol : largest violation of the optimality conditions at the end
    """

    max_iter: int = 1000
    tol: float = 1e-4

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, LinearEnergy) or type(rule) is not Margin:
            return "it is for a linear class energy with the margin rule"
        if rule.cost is not None or rule.T != 0 or rule.contrasted(energy) != ("y",):
            return "it needs Margin over y without a cost, at T=0"
        reason = reason_against(problem, L2)
        if reason is not None:
            return reason
        if bool((problem.resident["y"] < 0).any()):
            return "some targets are unknown"
        if energy.W.device.type != "cpu":
            return "it visits one row at a time, which is for the CPU"
        return None

    def run(self, problem: Problem) -> History:
        dual = _Joint(problem)

        def advance(passes: int) -> tuple[float, int, bool]:
            done = dual.descend(self.tol, passes)
            dual.store()
            return dual.value(), done, dual.converged

        return until_optimal(
            problem, "CrammerSinger", self.max_iter, advance,
            f"the dual did not reach tol={self.tol} in {self.max_iter} passes; raise max_iter"
            ", lower C or scale the inputs",
        )  # fmt: skip


class _Joint:
    """The rows, the coefficients of all classes and where their passes are."""

    def __init__(self, problem: Problem) -> None:
        energy, rule = problem.energy, problem.rule
        assert isinstance(energy, LinearEnergy) and isinstance(rule, Margin)
        self.energy, self.m = energy, float(rule.m)
        x, y = problem.resident["x"].detach(), problem.resident["y"]
        self.rows, self.y = rows_of(x), y.numpy()
        self.index, self.weight = canonical_rows(matrix_of(x), y, problem.sample_weight)
        self.lam, on_intercept = strengths(problem.penalty, L2) or (1.0, 1.0)
        norms = squared_norms(x)[self.index]
        self.intercept = energy.b is not None
        self.free = self.intercept and on_intercept == 0
        self.scale = 0.0
        if self.free:
            self.scale = math.sqrt(max(float(norms.mean()), 1e-12))
        elif self.intercept:
            self.scale = math.sqrt(self.lam / on_intercept)
        n, (classes, d) = len(self.index), energy.W.shape
        self.upper, self.norms = self.weight / self.lam, norms + self.scale**2
        self.alpha = np.zeros((n, classes))
        self.W = np.zeros((d + (self.scale > 0), classes))
        self.centre, self.rounds, self.fresh = np.zeros(classes), 0, False
        self.place, self.state = np.arange(n), np.array([float(n), np.inf])
        self.random = stream(problem.key.fold("passes"))
        self.matrix = matrix_of(x)
        self.converged = False

    def descend(self, tol: float, passes: int) -> int:
        """Passes until optimal or used up; how many they were."""
        used = 0
        while used < passes and not self.converged:
            self.fresh = False
            done, solved = joint_passes(
                self.rows, self.y, self.index, self.upper, self.norms, self.alpha, self.W,
                self.centre, self.scale, self.m, self.place, self.state, self.random, tol,
                min(passes - used, BETWEEN),
            )  # fmt: skip
            used += int(done)
            if solved:
                self.converged = not self.free or self._settled(tol)
                continue
            for _ in range(min(LEAPS, passes - used)):
                used += 1  # a leap counts as a pass: where they are many, they are the work
                if not self._leap():
                    break
        return used

    def _leap(self) -> bool:
        """A Newton step of the coefficients that are not at a bound; True when it met one.

        Those of one row sum to zero, so each moves against one of them, its reference.
        """
        own = self.y[self.index]
        upper = np.zeros_like(self.alpha)
        upper[np.arange(len(own)), own] = self.upper
        free = self.alpha < upper
        at = np.flatnonzero(free.sum(1) > 1)
        count = int(free[at].sum()) - len(at)
        if not 0 < count <= MOST_JOINT or count * self.W.size > MOST_CELLS:
            return False
        free, upper, here = free[at], upper[at], self.alpha[at]
        rows = np.full((len(at), len(self.W)), self.scale)
        rows[:, : self.matrix.shape[1]] = dense_rows(self.matrix, self.index[at])
        reference = free.argmax(1)
        free[np.arange(len(at)), reference] = False
        who, which = np.nonzero(free)  # the variables: a row and a class
        g = rows @ self.W + self.centre + self.m
        g[np.arange(len(at)), own[at]] -= self.m
        G = rows @ rows.T
        same = np.equal.outer
        one, two = which, reference[who]
        Q = G[np.ix_(who, who)] * (
            same(one, one).astype(float) - same(one, two) - same(two, one) + same(two, two)
        )
        Q.reshape(-1)[:: len(Q) + 1] += 1e-12 * max(np.trace(Q) / len(Q), 1e-12)
        _, found, failed = dposv(Q, g[who, two] - g[who, one], lower=1)
        if failed != 0 or not np.isfinite(found).all():
            return False
        move = np.zeros_like(here)
        move[who, one] = found
        np.subtract.at(move, (who, two), found)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move > 0, (upper - here) / move, np.inf)
        step = min(1.0, float(room.min()))
        new = np.minimum(here + step * move, upper)
        if step < 1.0:
            met = np.unravel_index(room.argmin(), room.shape)
            new[met] = upper[met]
        # rounding must not break the sums: the reference takes what is left
        new[np.arange(len(at)), reference] -= new.sum(1)
        new = np.minimum(new, upper)
        self.alpha[at] = new
        self.W += rows.T @ (new - here)
        return step < 1.0

    def _settled(self, tol: float) -> bool:
        """Move the centres of free intercepts to where they went; True when they stayed."""
        moved = self.scale * self.W[-1]
        self.centre = self.centre + moved
        self.rounds, self.fresh = self.rounds + 1, True
        self.state[:] = len(self.alpha), np.inf
        return float(np.abs(moved).max()) <= tol or self.rounds >= ROUNDS

    def _intercepts(self) -> F64:
        if not self.intercept or self.fresh:
            return self.centre
        return np.asarray(self.centre + self.scale * self.W[-1])

    def _weights(self) -> F64:
        return self.W[:-1] if self.intercept else self.W  # (d, K)

    @torch.no_grad()
    def store(self) -> None:
        self.energy.W.copy_(torch.from_numpy(self._weights().T))
        if self.energy.b is not None:
            self.energy.b.copy_(torch.from_numpy(self._intercepts()))

    def value(self) -> float:
        """The primal objective, on the scale of the summed loss."""
        loss = joint_sum(
            self.rows, self.y, self.index, self.weight, np.ascontiguousarray(self._weights()),
            self._intercepts(), self.m,
        )  # fmt: skip
        held = self._weights() if self.free else self.W
        return float(loss) + 0.5 * self.lam * float((held * held).sum())
