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
from numba import njit

from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    add_row,
    dot_row,
    matrix_of,
    rows_of,
    strengths,
)
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.losses import EpsilonInsensitive
from groundstate.registry import solvers

MAX_UNKNOWNS = 1000  # a dense matrix of columns by columns
jit = njit(cache=True, nogil=True, error_model="numpy")  # slacks may underflow to zero


@solvers.register(
    formula=r"(\Lambda + X^\top HX)\,\Delta\theta = X^\top c", make=lambda energy: TubeInterior()
)
@solver_for(LinearLossEnergy, Naive)
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
        self.rows, self.bias = rows_of(x), energy.bias
        self.eps, self.total = energy.loss.epsilon, problem.total_weight
        own = strengths(problem.penalty, L2)
        assert own is not None
        self.ridge = np.full(energy.d + energy.bias, own[0])
        self.theta = np.zeros(len(self.ridge))
        far = self.y
        if energy.bias:
            self.ridge[-1] = own[1]
            self.theta[-1] = float(np.median(self.y))
            far = far - self.theta[-1]
        size = max(float(abs(far).mean()), self.eps, 1e-12)
        self.beta = np.stack([0.5 * self.w, 0.5 * self.w])  # a and b, inside their boxes
        signed = np.stack([far, -far]) - self.eps  # ξ ≥ this
        self.xi = np.maximum(signed, 0.0) + size
        self.slack = self.xi - signed
        self.stuck = False

    def steps(self, tol: float, most: int) -> tuple[int, float, float]:
        """Steps taken, the objective and the duality gap after them."""
        done, primal, gap, self.stuck = interior_steps(
            self.rows, self.index, self.y, self.w, self.eps, self.ridge, self.bias, self.theta,
            self.beta, self.xi, self.slack, tol, most,
        )  # fmt: skip
        return int(done), float(primal), float(gap)

    def store(self, energy: LinearLossEnergy) -> None:
        energy.W[0] = torch.from_numpy(self.theta[: energy.d]).to(energy.W)
        if energy.b is not None:
            energy.b[0] = float(self.theta[-1])


@jit
def _scores(rows: Any, index: Any, theta: Any, bias: bool, out: Any) -> None:
    for q in range(len(index)):
        out[q] = dot_row(rows, index[q], theta) + (theta[-1] if bias else 0.0)


@jit
def _back(rows: Any, index: Any, values: Any, bias: bool, out: Any) -> None:
    """Σ values x̃."""
    out[:] = 0.0
    for q in range(len(index)):
        add_row(rows, index[q], values[q], out)
        if bias:
            out[-1] += values[q]


@jit
def _gram(rows: Any, index: Any, h: Any, bias: bool, out: Any) -> None:
    """Λ + X̃ᵀ diag(h) X̃, Λ being on the diagonal of ``out``."""
    d = len(out) - (1 if bias else 0)
    if len(rows.starts) == 0:
        scaled = np.empty((len(out), len(index)))
        for q in range(len(index)):
            root = np.sqrt(h[q])
            for j in range(d):
                scaled[j, q] = root * rows.x[index[q], j]
            if bias:
                scaled[d, q] = root
        out += np.dot(scaled, scaled.T)
        return
    for q in range(len(index)):
        i = index[q]
        for s in range(rows.starts[i], rows.starts[i + 1]):
            left = h[q] * rows.data[s]
            for t in range(rows.starts[i], rows.starts[i + 1]):
                out[rows.columns[s], rows.columns[t]] += left * rows.data[t]
            if bias:
                out[rows.columns[s], d] += left
                out[d, rows.columns[s]] += left
        if bias:
            out[d, d] += h[q]


@jit
def interior_steps(
    rows: Any, index: Any, y: Any, w: Any, eps: float, ridge: Any, bias: bool, theta: Any, a: Any,
    xi: Any, p: Any, tol: float, most: int,
) -> tuple[int, float, float, bool]:  # fmt: skip
    """Predictor-corrector steps in place; their number, objective, duality gap, whether stuck."""
    n, size = len(index), len(theta)
    f, move, pull, right = np.empty(n), np.empty(size), np.empty(size), np.empty(size)
    da, dxi, dp = np.zeros((2, n)), np.zeros((2, n)), np.zeros((2, n))
    D, off, c, h, dr = (
        np.empty((2, n)),
        np.empty((2, n)),
        np.empty((2, n)),
        np.empty(n),
        np.empty(n),
    )
    primal, gap = 1e300, 1e300
    _scores(rows, index, theta, bias, f)
    for done in range(1, most + 1):
        mu = 0.0
        for q in range(n):
            h[q] = 0.0
            dr[q] = a[0, q] - a[1, q]
            for k in range(2):
                sign = 1.0 if k == 0 else -1.0
                off[k, q] = p[k, q] - (xi[k, q] - (sign * (y[q] - f[q]) - eps))
                rest = w[q] - a[k, q]
                D[k, q] = p[k, q] / a[k, q] + xi[k, q] / rest
                h[q] += 1.0 / D[k, q]
                mu += a[k, q] * p[k, q] + rest * xi[k, q]
        mu /= 4 * n
        _back(rows, index, dr, bias, pull)
        pull -= ridge * theta
        matrix = np.diag(ridge)
        _gram(rows, index, h, bias, matrix)
        for j in range(size):  # near the end Λ drowns in the rest
            matrix[j, j] *= 1.0 + 1e-13
        goal, length = 0.0, 0.0
        for corrected in range(2):
            for q in range(n):
                dr[q] = 0.0
                for k in range(2):
                    rest = w[q] - a[k, q]
                    one = goal - a[k, q] * p[k, q] - corrected * da[k, q] * dp[k, q]
                    two = goal - rest * xi[k, q] + corrected * da[k, q] * dxi[k, q]
                    c[k, q] = one / a[k, q] - two / rest + off[k, q]
                    dxi[k, q] = two  # kept for below
                    dr[q] += (1.0 if k == 0 else -1.0) * c[k, q] / D[k, q]
            _back(rows, index, dr, bias, right)
            right += pull
            if not np.isfinite(np.sum(right)) or not np.isfinite(np.sum(matrix)):
                return done, primal, gap, True
            move[:] = np.linalg.solve(matrix, right)
            _scores(rows, index, move, bias, dr)
            length = 1.0
            for q in range(n):
                for k in range(2):
                    turn = -dr[q] if k == 0 else dr[q]
                    rest = w[q] - a[k, q]
                    da[k, q] = (c[k, q] + turn) / D[k, q]
                    dxi[k, q] = (dxi[k, q] + xi[k, q] * da[k, q]) / rest
                    dp[k, q] = dxi[k, q] - turn - off[k, q]
                    if da[k, q] < 0.0:
                        length = min(length, -a[k, q] / da[k, q])
                    elif da[k, q] > 0.0:
                        length = min(length, rest / da[k, q])
                    if dxi[k, q] < 0.0:
                        length = min(length, -xi[k, q] / dxi[k, q])
                    if dp[k, q] < 0.0:
                        length = min(length, -p[k, q] / dp[k, q])
            if not corrected:
                ahead = 0.0
                for q in range(n):
                    for k in range(2):
                        new = a[k, q] + length * da[k, q]
                        ahead += new * (p[k, q] + length * dp[k, q])
                        ahead += (w[q] - new) * (xi[k, q] + length * dxi[k, q])
                goal = mu * (ahead / (4 * n * mu)) ** 3
        length = min(1.0, 0.995 * length)
        if not np.isfinite(np.sum(move)) or not length >= 1e-10:  # rounding is all that is left
            return done, primal, gap, True
        theta += length * move
        a += length * da
        xi += length * dxi
        p += length * dp
        _scores(rows, index, theta, bias, f)
        half = 0.5 * np.sum(ridge * theta * theta)
        primal, dual = half, -half
        for q in range(n):
            dr[q] = a[0, q] - a[1, q]
            primal += w[q] * max(abs(y[q] - f[q]) - eps, 0.0)
            dual += y[q] * dr[q] - eps * (a[0, q] + a[1, q])
        _back(rows, index, dr, bias, right)
        # θ stands for that of β in the dual value: what they differ by counts to first order
        gap = max(primal - dual, 0.0) + abs(np.sum(theta * (right - ridge * theta)))
        if gap <= tol * max(primal, 1e-300):
            return done, primal, gap, False
    return most, primal, gap, False
