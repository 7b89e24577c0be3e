r"""A line in a tube by an interior-point method: few steps to the last digits, for few columns.

With :math:`r = y - X\theta` and the coefficients :math:`\beta = a - b` of the dual, the conditions

.. math::
    \Lambda\theta = X^\top(a - b),\quad a\,(\xi - r + \varepsilon) = 0,\quad (w - a)\,\xi = 0,\quad
    b\,(\zeta + r + \varepsilon) = 0,\quad (w - b)\,\zeta = 0

are followed along their central path (products equal to μ, which falls), by Newton steps on
:math:`(\Lambda + X^\top HX)\,\Delta\theta` with a diagonal H.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, hstack, issparse

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L2
from groundstate.learn.solvers.svm.hinge.rows_numba import matrix_of, strengths
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.losses import EpsilonInsensitive
from groundstate.registry import solvers

MAX_UNKNOWNS = 1000  # a dense matrix of columns by columns
BLOCK = 4096  # rows whose products are summed at once
SMALL = 64  # unknowns up to which a loop beats the library


@solvers.register(
    formula=r"(\Lambda + X^\top HX)\,\Delta\theta = X^\top c", make=lambda energy: TubeInterior()
)
@dataclass(frozen=True)
class TubeInterior:
    r"""Lower :math:`\sum_i w_i\max(0, |r_i| - \varepsilon) + \tfrac\lambda2\|W\|^2
    + \tfrac{\lambda_b}2b^2`; an intercept without a penalty is free.

    Parameters
    ----------
    max_iter : steps at most
    tol : duality gap at the end, relative to the objective
    """

    max_iter: int = 100
    tol: float = 1e-9

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, LinearLossEnergy) or type(energy.loss) is not EpsilonInsensitive:
            return "it is for a line with the loss epsilon_insensitive"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.resident["x"].device.type != "cpu":
            return "it is compiled for the CPU"
        own = strengths(problem.penalty, L2)
        return None if own is not None and own[0] > 0 else "it needs an L2 penalty"

    def fits(self, problem: Problem) -> bool:
        return bool(problem.resident["x"].shape[1] <= MAX_UNKNOWNS)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearLossEnergy)
        history = History(solver="TubeInterior")
        run = Run(problem, history, self.max_iter)
        with Monitor(problem.callbacks, run) as monitor:
            path = _Path(problem)
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                many = 1 if problem.callbacks else self.max_iter
                done, primal, gap = path.steps(self.tol, many)
                history.converged = gap <= self.tol * max(primal, 1e-300)
                path.store(energy)
                history.objective.append(primal / path.total)
                history.seconds.append(time.perf_counter() - start)
                run.epoch += done - 1
                stop = monitor.epoch(history.objective[-1])
                if stop or history.converged or done < many or path.stuck:
                    break
        history.extra["dual_gap"] = [gap / path.total]
        history.converged |= gap <= 1e-6 * max(primal, 1e-300)  # rounding is all that is left
        history.stop = history.stop or ("duality gap" if history.converged else "max_iter")
        if history.stop == "max_iter":
            warnings.warn(
                f"the interior-point steps stopped after {run.epoch} at a relative gap of "
                f"{gap / max(primal, 1e-300):.2g}, above tol={self.tol}; scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history


class _Path:
    """θ, the coefficients a and b, their slacks, and steps along the central path."""

    def __init__(self, problem: Problem) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearLossEnergy)
        assert isinstance(energy.loss, EpsilonInsensitive)
        x, given = problem.resident["x"].detach(), problem.resident["y"].detach()
        self.index, self.w = canonical_rows(matrix_of(x), given, problem.sample_weight)
        self.y = given.double().numpy()[self.index, 0]
        self.eps, self.total = energy.loss.epsilon, problem.total_weight
        own = strengths(problem.penalty, L2)
        assert own is not None
        self.ridge = np.full(energy.d + energy.bias, own[0])
        self.theta = np.zeros(len(self.ridge))
        # rows in their order with a one for the intercept, or the three arrays of CSR
        self.table: Any = None
        self.sparse: Any = None
        some = matrix_of(x)[self.index]
        if issparse(some):
            ones = csr_matrix(np.ones((len(self.index), int(energy.bias))))
            full = hstack([some.astype(np.float64), ones], "csr")
            self.sparse = full.data, full.indices.astype(np.int64), full.indptr.astype(np.int64)
        else:
            self.table = np.ones((len(self.index), len(self.ridge)))
            self.table[:, : energy.d] = some.numpy()
        if energy.bias:
            self.ridge[-1] = own[1]
            self.theta[-1] = np.sort(self.y)[len(self.y) // 2]
        # a and b, ξ and ζ, and the slacks of their lower bounds, which the first step starts
        self.beta, self.xi, self.slack = np.zeros((3, 2, len(self.y)))
        self.stuck = False

    def steps(self, tol: float, most: int) -> tuple[int, float, float]:
        """Steps taken, the objective and the duality gap after them."""
        done, primal, gap, self.stuck = interior_steps(
            self.table, self.sparse, self.y, self.w, self.eps, self.ridge, self.theta,
            self.beta, self.xi, self.slack, tol, most,
        )  # fmt: skip
        return int(done), float(primal), float(gap)

    def store(self, energy: LinearLossEnergy) -> None:
        energy.W.numpy(force=True)[0] = self.theta[: energy.d]
        if energy.b is not None:
            energy.b.numpy(force=True)[0] = self.theta[-1]


@inner
def _scores(table: Any, sparse: Any, theta: Any, out: Any) -> None:
    if table is not None:
        np.dot(table, theta, out)
    if sparse is not None:
        data, columns, starts = sparse
        for q in range(len(out)):
            out[q] = 0.0
            for s in range(starts[q], starts[q + 1]):
                out[q] += data[s] * theta[columns[s]]


@inner
def _back(table: Any, sparse: Any, values: Any, out: Any) -> None:
    """Σ values x̃."""
    if table is not None:
        np.dot(values, table, out)
    if sparse is not None:
        data, columns, starts = sparse
        for j in range(len(out)):
            out[j] = 0.0
        for q in range(len(values)):
            for s in range(starts[q], starts[q + 1]):
                out[columns[s]] += values[q] * data[s]


@inner
def _gram(table: Any, sparse: Any, h: Any, ridge: Any, out: Any) -> None:
    """Λ + X̃ᵀ diag(h) X̃, with a little more on the diagonal: near the end Λ drowns in the rest."""
    size = len(ridge)
    for i in range(size):
        for j in range(size):
            out[i, j] = 0.0
    if table is not None:
        scaled, part = np.empty((min(len(table), BLOCK), size)), np.empty((size, size))
        for first in range(0, len(table), BLOCK):
            some = scaled[: min(BLOCK, len(table) - first)]
            for q in range(len(some)):
                root = np.sqrt(h[first + q])
                for j in range(size):
                    some[q, j] = root * table[first + q, j]
            np.dot(some.T, some, part)
            for i in range(size):
                for j in range(size):
                    out[i, j] += part[i, j]
    if sparse is not None:
        data, columns, starts = sparse
        for q in range(len(h)):
            for s in range(starts[q], starts[q + 1]):
                left = h[q] * data[s]
                for t in range(starts[q], starts[q + 1]):
                    out[columns[s], columns[t]] += left * data[t]
    for j in range(size):
        out[j, j] = (out[j, j] + ridge[j]) * (1.0 + 1e-13)


@inner
def _begin(y: Any, w: Any, eps: float, f: Any, a: Any, xi: Any, p: Any) -> None:
    """Coefficients in the middle of their boxes, and slacks above zero by the size of the errors."""
    size = 0.0
    for q in range(len(y)):
        size += abs(y[q] - f[q])
    size = max(size / len(y), eps, 1e-12)
    for k in range(2):
        sign = 1.0 if k == 0 else -1.0
        for q in range(len(y)):
            least = sign * (y[q] - f[q]) - eps
            a[k, q] = 0.5 * w[q]
            xi[k, q] = max(least, 0.0) + size
            p[k, q] = xi[k, q] - least


@inner
def _factor(A: Any) -> None:
    """Cholesky's L in the lower half of A, in place, with the reciprocals of its diagonal on it.

    Columns go by blocks, whose products with the rows below them are taken at once.
    """
    size = len(A)
    for first in range(0, size, SMALL):
        last = min(first + SMALL, size)
        for i in range(first, size):
            for j in range(first, min(i + 1, last)):
                total = A[i, j]
                for k in range(first, j):
                    total -= A[i, k] * A[j, k]
                A[i, j] = 1.0 / np.sqrt(total) if i == j else total * A[j, j]
        if last < size:
            below = A[last:, first:last].copy()
            product = np.dot(below, below.T)
            for i in range(size - last):
                for j in range(i + 1):
                    A[last + i, last + j] -= product[i, j]


@inner
def _solve(L: Any, right: Any, out: Any) -> None:
    """L Lᵀ out = right, with what `_factor` left."""
    for i in range(len(L)):
        total = right[i]
        for k in range(i):
            total -= L[i, k] * out[k]
        out[i] = total * L[i, i]
    for i in range(len(L) - 1, -1, -1):
        out[i] *= L[i, i]
        for k in range(i):
            out[k] -= L[i, k] * out[i]


@inner
def _room(a: Any, da: Any, w: Any, xi: Any, dxi: Any, p: Any, dp: Any) -> float:
    """The longest step, of 1 at most, after which all that is above zero still is."""
    length = 1.0
    for k in range(2):
        for q in range(len(w)):
            if a[k, q] + length * da[k, q] < 0.0:
                length = -a[k, q] / da[k, q]
            if w[q] - a[k, q] - length * da[k, q] < 0.0:
                length = (w[q] - a[k, q]) / da[k, q]
            if xi[k, q] + length * dxi[k, q] < 0.0:
                length = -xi[k, q] / dxi[k, q]
            if p[k, q] + length * dp[k, q] < 0.0:
                length = -p[k, q] / dp[k, q]
    return length


@inner
def _finite(values: Any) -> bool:
    total = 0.0
    for value in values:
        total += value
    return bool(np.isfinite(total))


@inner
def _follow(values: Any, length: float, change: Any) -> None:
    """values += length · change."""
    for k in range(2):
        for q in range(values.shape[1]):
            values[k, q] += length * change[k, q]


@outer
def interior_steps(
    table: Any, sparse: Any, y: Any, w: Any, eps: float, ridge: Any, theta: Any, a: Any, xi: Any,
    p: Any, tol: float, most: int,
) -> tuple[int, float, float, bool]:  # fmt: skip
    """Predictor-corrector steps in place; their number, objective, duality gap, whether stuck."""
    n, size = len(y), len(theta)
    f, move, pull, right = np.empty(n), np.empty(size), np.empty(size), np.empty(size)
    da, dxi, dp = np.zeros((2, n)), np.zeros((2, n)), np.zeros((2, n))
    off, c = np.empty((2, n)), np.empty((2, n))
    # reciprocals of a, of w − a and of p/a + ξ/(w − a), which divisions by them would compute often
    ia, ir, iD = np.empty((2, n)), np.empty((2, n)), np.empty((2, n))
    h, dr, matrix = np.empty(n), np.empty(n), np.empty((size, size))
    primal, gap = 1e300, 1e300
    _scores(table, sparse, theta, f)
    if a[0, 0] == 0.0:  # at the start; w − a and a are above zero on the path
        _begin(y, w, eps, f, a, xi, p)
    for done in range(1, most + 1):
        mu = 0.0
        for k in range(2):
            sign = 1.0 if k == 0 else -1.0
            for q in range(n):
                rest = w[q] - a[k, q]
                off[k, q] = p[k, q] - (xi[k, q] - (sign * (y[q] - f[q]) - eps))
                ia[k, q], ir[k, q] = 1.0 / a[k, q], 1.0 / rest
                iD[k, q] = 1.0 / (p[k, q] * ia[k, q] + xi[k, q] * ir[k, q])
                mu += a[k, q] * p[k, q] + rest * xi[k, q]
        for q in range(n):
            h[q] = iD[0, q] + iD[1, q]
            dr[q] = a[0, q] - a[1, q]
        mu /= 4 * n
        _back(table, sparse, dr, pull)
        for j in range(size):
            pull[j] -= ridge[j] * theta[j]
        _gram(table, sparse, h, ridge, matrix)
        _factor(matrix)
        goal, length = 0.0, 0.0
        for corrected in range(2):
            for k in range(2):
                for q in range(n):
                    rest = w[q] - a[k, q]
                    one = goal - a[k, q] * p[k, q] - corrected * da[k, q] * dp[k, q]
                    two = goal - rest * xi[k, q] + corrected * da[k, q] * dxi[k, q]
                    c[k, q] = one * ia[k, q] - two * ir[k, q] + off[k, q]
                    dxi[k, q] = two  # kept for below
            for q in range(n):
                dr[q] = c[0, q] * iD[0, q] - c[1, q] * iD[1, q]
            _back(table, sparse, dr, right)
            for j in range(size):
                right[j] += pull[j]
            _solve(matrix, right, move)
            if not _finite(move):
                return done, primal, gap, True
            _scores(table, sparse, move, dr)
            for k in range(2):
                sign = -1.0 if k == 0 else 1.0
                for q in range(n):
                    turn = sign * dr[q]
                    da[k, q] = (c[k, q] + turn) * iD[k, q]
                    dxi[k, q] = (dxi[k, q] + xi[k, q] * da[k, q]) * ir[k, q]
                    dp[k, q] = dxi[k, q] - turn - off[k, q]
            length = _room(a, da, w, xi, dxi, p, dp)
            if not corrected:
                ahead = 0.0
                for k in range(2):
                    for q in range(n):
                        new = a[k, q] + length * da[k, q]
                        ahead += new * (p[k, q] + length * dp[k, q])
                        ahead += (w[q] - new) * (xi[k, q] + length * dxi[k, q])
                goal = mu * (ahead / (4 * n * mu)) ** 3
        length = min(1.0, 0.995 * length)
        if not length >= 1e-10:  # rounding is all that is left
            return done, primal, gap, True
        _follow(a, length, da)
        _follow(xi, length, dxi)
        _follow(p, length, dp)
        half = 0.0
        for j in range(size):
            theta[j] += length * move[j]
            half += 0.5 * ridge[j] * theta[j] * theta[j]
        _scores(table, sparse, theta, f)
        primal, dual = half, -half
        for q in range(n):
            dr[q] = a[0, q] - a[1, q]
            primal += w[q] * max(abs(y[q] - f[q]) - eps, 0.0)
            dual += y[q] * dr[q] - eps * (a[0, q] + a[1, q])
        _back(table, sparse, dr, right)
        # θ stands for that of β in the dual value: what they differ by counts to first order
        off_by = 0.0
        for j in range(size):
            off_by += theta[j] * (right[j] - ridge[j] * theta[j])
        gap = max(primal - dual, 0.0) + abs(off_by)
        if gap <= tol * max(primal, 1e-300):
            return done, primal, gap, False
    return most, primal, gap, False
