r"""The squared hinge with an L1 penalty: coordinate descent over the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg.lapack import dposv
from torch import Tensor

from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.penalties.norms import L1
from groundstate.learn.rules.margins.one_vs_rest import OneVsRest
from groundstate.learn.solvers.passes import until_optimal
from groundstate.learn.solvers.svm.dual_coordinate import BETWEEN, LEAPS, MOST_CELLS, MOST_FREE
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    F64,
    Rows,
    inside,
    jit,
    matrix_of,
    reason_against,
    store,
    strengths,
    wanted_classes,
)
from groundstate.registry import solvers


@solvers.register(
    formula=r"\min_\theta \sum_i w_i\max(0, m - t_if_i)^2 + \lambda\|\theta\|_1",
    make=lambda energy: SquaredHingeL1(),
)
@dataclass(frozen=True)
class SquaredHingeL1:
    r"""Newton steps, one weight at a time, on :math:`\sum_i w_i\max(0, m - t_i f_i)^2 +
    \lambda\|\theta\|_1`, one problem for each class.

    A weight moves to the minimum of its quadratic model plus λ|·|, which is zero on an interval, with
    a line search; weights at zero that stay there are set aside. Now and then all weights that are
    not zero take a Newton step together, up to where the first of them would change its sign. Rows
    may be dense or CSR.

    Parameters
    ----------
    max_iter : passes over the weights at most
    tol : summed violation of optimality at the end, relative to that at zero
    """

    max_iter: int = 1000
    tol: float = 1e-5

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, LinearEnergy) or type(rule) is not OneVsRest:
            return "it is for a linear class energy with the one-against-rest rule"
        if rule.power != 2:
            return f"it is for power=2, got power={rule.power}"
        reason = reason_against(problem, L1)
        if reason is None and energy.W.device.type != "cpu":
            return "it visits one weight at a time, which is for the CPU"
        return reason

    def run(self, problem: Problem) -> History:
        energy, rule = problem.energy, problem.rule
        assert isinstance(energy, LinearEnergy) and isinstance(rule, OneVsRest)
        x, y, w = problem.resident["x"].detach(), problem.resident["y"], problem.sample_weight
        columns = _columns(x)
        on_weights, on_intercept = strengths(problem.penalty, L1) or (1.0, 0.0)
        d = x.shape[1]
        lam = np.full(d + (energy.b is not None), on_weights)
        if energy.b is not None:
            lam[-1] = on_intercept
        weight = np.ones(x.shape[0]) if w is None else w.double().numpy()
        parts = [
            _OneClass(columns, np.where(y.numpy() == k, 1.0, -1.0), weight, lam, rule.m, d)
            for k in wanted_classes(energy)
        ]

        def advance(passes: int) -> tuple[float, int, bool]:
            done = max(part.descend(self.tol, passes) for part in parts)
            store(energy, [part.theta for part in parts])
            return sum(p.value() for p in parts), done, all(p.converged for p in parts)

        return until_optimal(
            problem, "SquaredHingeL1", self.max_iter, advance,
            f"coordinate descent did not reach tol={self.tol} in {self.max_iter} passes; raise max_iter"
            ", lower C or scale the inputs",
        )  # fmt: skip


def _columns(x: Tensor) -> Rows:
    """The columns of the table, each stored in one piece."""
    if x.layout == torch.sparse_csr:
        turned = matrix_of(x).tocsc()
        index, starts = turned.indices.astype(np.int64), turned.indptr.astype(np.int64)
        return Rows(None, (turned.data.astype(np.float64), index, starts))
    return Rows(np.ascontiguousarray(x.numpy().T), None)


class _OneClass:
    """Weights and gaps m − t f of one class against the rest."""

    def __init__(self, columns: Rows, t: F64, w: F64, lam: F64, m: float, d: int) -> None:
        self.columns, self.t, self.w, self.lam, self.d = columns, t, w, lam, d
        self.theta, self.gap = np.zeros(len(lam)), np.full(len(t), m)
        self.place = np.arange(len(lam))
        self.state = np.array([float(len(lam)), np.inf, -1.0])
        self.converged = False

    def descend(self, tol: float, passes: int) -> int:
        used = 0
        while used < passes and not self.converged:
            done, self.converged = _passes(
                self.columns, self.t, self.w, self.lam, self.d, self.theta, self.gap, self.place,
                self.state, tol, min(passes - used, BETWEEN),
            )  # fmt: skip
            used += int(done)
            for _ in range(0 if self.converged else LEAPS):
                if not self._leap():
                    break
        return used

    def _dense(self, some: Any) -> F64:
        """Some columns ``(n, m)``; the one after the last is the intercept's."""
        out = np.ones((len(self.t), len(some)))
        x, sparse = self.columns
        for k, j in enumerate(some):
            if j == self.d:
                continue
            if sparse is not None:
                data, index, starts = sparse
                piece = slice(starts[j], starts[j + 1])
                out[:, k] = 0.0
                out[index[piece], k] = data[piece]
            if x is not None:
                out[:, k] = x[j]
        return out

    def _leap(self) -> bool:
        """A Newton step of the weights that are not zero; False when it gained nothing."""
        some = np.flatnonzero(self.theta)
        if not 0 < len(some) <= MOST_FREE or len(some) * len(self.t) > MOST_CELLS:
            return False
        x, here = self._dense(some), self.theta[some]
        sign = self.lam[some] * np.sign(here)
        live = self.gap > 0
        g = sign - 2.0 * ((self.w * self.t * self.gap)[live] @ x[live])
        root = x[live] * np.sqrt(2.0 * self.w[live])[:, None]
        scale = np.sqrt((root * root).sum(0))
        if not scale.min() > 0.0:  # a weight without a row that feels it: the passes remove it
            return False
        root /= scale
        H = root.T @ root
        H.reshape(-1)[:: len(H) + 1] += 1e-10
        _, move, failed = dposv(H, -g / scale, lower=1)
        move = move / scale
        slope = float(g @ move)
        if failed != 0 or not slope < 0:
            return False
        room = np.where(move * here < 0, -here / np.where(move == 0, 1.0, move), np.inf)
        ahead, value, step = self.t * (x @ move), self.value(), min(1.0, float(room.min()))
        first = step < 1.0
        for _ in range(30):
            theta, gap = self.theta.copy(), self.gap - step * ahead
            theta[some] = here + step * move
            if first:
                theta[some[int(room.argmin())]] = 0.0
            loss = float(self.w @ np.square(np.maximum(gap, 0.0)))
            if loss + float(self.lam @ np.abs(theta)) <= value + 1e-4 * step * slope:
                self.theta[:], self.gap[:] = theta, gap
                return -slope > 1e-14 * value
            step, first = 0.5 * step, False
        return False

    def value(self) -> float:
        loss = float(self.w @ np.square(np.maximum(self.gap, 0.0)))
        return loss + float(self.lam @ np.abs(self.theta))


@inside
def _slopes(
    x: Any, sparse: Any, j: int, d: int, t: Any, w: Any, gap: Any
) -> tuple[float, float]:  # fmt: skip
    """First and second derivative of the loss along one column; j = d is the intercept's."""
    g, h = 0.0, 0.0
    if j == d:
        for i in range(len(t)):
            if gap[i] > 0.0:
                g -= w[i] * t[i] * gap[i]
                h += w[i]
        return 2.0 * g, 2.0 * h
    if x is not None:
        for i in range(len(t)):
            if gap[i] > 0.0:
                g -= w[i] * t[i] * gap[i] * x[j, i]
                h += w[i] * x[j, i] * x[j, i]
    if sparse is not None:
        data, index, starts = sparse
        for at in range(starts[j], starts[j + 1]):
            i, v = index[at], data[at]
            if gap[i] > 0.0:
                g -= w[i] * t[i] * gap[i] * v
                h += w[i] * v * v
    return 2.0 * g, 2.0 * h


@inside
def _move(x: Any, sparse: Any, j: int, d: int, t: Any, w: Any, gap: Any, by: float) -> float:
    """gap −= by · t · column; the change of the loss."""
    change = 0.0
    if j == d:
        for i in range(len(t)):
            change += _moved(i, by * t[i], w, gap)
        return change
    if x is not None:
        for i in range(len(t)):
            change += _moved(i, by * t[i] * x[j, i], w, gap)
    if sparse is not None:
        data, index, starts = sparse
        for at in range(starts[j], starts[j + 1]):
            i = index[at]
            change += _moved(i, by * t[i] * data[at], w, gap)
    return change


@inside
def _moved(i: int, by: float, w: Any, gap: Any) -> float:
    """gap[i] −= by; the change of the loss."""
    old = max(gap[i], 0.0)
    gap[i] -= by
    new = max(gap[i], 0.0)
    return float(w[i] * (new * new - old * old))


@jit
def _passes(
    columns: Any, t: Any, w: Any, lam: Any, d: int, theta: Any, gap: Any, place: Any, state: Any,
    tol: float, passes: int,
) -> tuple[int, bool]:  # fmt: skip
    """``state``: active weights, largest violation of the last pass, violation of the first."""
    x, sparse = columns
    p = len(theta)
    size = int(state[0])
    for done in range(1, passes + 1):
        summed, worst = 0.0, 0.0
        s = 0
        while s < size:
            j = place[s]
            g, h = _slopes(x, sparse, j, d, t, w, gap)
            h = max(h, 1e-12)
            here, strength = theta[j], lam[j]
            above, below = g + strength, g - strength
            violation = 0.0
            if here == 0.0:
                if above < 0.0:
                    violation = -above
                elif below > 0.0:
                    violation = below
                elif above > state[1] / p and below < -state[1] / p:
                    size -= 1
                    place[s], place[size] = place[size], j
                    continue
            else:
                violation = abs(above) if here > 0.0 else abs(below)
            summed += violation
            worst = max(worst, violation)
            s += 1
            by = -here
            if above <= h * here:
                by = -above / h
            elif below >= h * here:
                by = -below / h
            if abs(by) < 1e-14:
                continue
            promised = g * by + strength * (abs(here + by) - abs(here))
            moved = 0.0
            change = 0.0
            for _ in range(30):
                change += _move(x, sparse, j, d, t, w, gap, by - moved)
                moved = by
                if change + strength * (abs(here + by) - abs(here)) <= 0.01 * promised:
                    break
                by *= 0.5
                promised *= 0.5
            theta[j] = here + moved
        if state[2] < 0.0:
            state[2] = summed
        if summed <= tol * state[2]:
            full = size == p
            size = p
            state[0], state[1] = p, np.inf
            if full:
                return done, True
            continue
        state[0], state[1] = size, worst
    return passes, False
