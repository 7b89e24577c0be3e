r"""Lines with a smooth loss of the residual, and with a scale that is learned along."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve

from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L2
from groundstate.learn.solvers.glm.irls_rows import Array, Rows, SparseRows, over_shards, rows_of
from groundstate.learn.solvers.svm.hinge.rows_numba import matrix_of, strengths
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.losses.base import weighted_quantile
from groundstate.math.losses.pointwise_numba import pointwise
from groundstate.registry import solvers

FLOOR = 1e-10  # least σ, in units of the spread of y: a line through all rows has none


@solvers.register(
    formula=r"\Delta = -(X^\top\rho''X + \lambda)^{-1}\nabla J",
    make=lambda energy: ResidualNewton(),
)
@dataclass(frozen=True)
class ResidualNewton:
    r"""Lower :math:`\sum_i w_i\rho(r_i) + \tfrac\lambda2\|W\|^2` by Newton steps, or with the scale
    :math:`\sum_i w_i[\tfrac\sigma2 + \sigma\rho(r_i/\sigma)] + \tfrac\lambda2\|W\|^2`.

    The second is Huber's way to learn σ with the line, and convex in both. A few steps end it, since
    the loss is made of quadratic pieces; steps are halved until the objective falls.

    Parameters
    ----------
    max_iter : steps at most
    tol : largest entry of the gradient of the mean objective at the end
    scale : learn σ; the energy keeps it
    """

    max_iter: int = 100
    tol: float = 1e-8
    scale: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, LinearLossEnergy):
            return "it is for a line with a loss of the residual"
        if not energy.loss.smooth or energy.loss.compiled is None:
            return f"the loss {energy.loss.name!r} has kinks"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None and strengths(problem.penalty, L2) is None:
            return "its only penalty is L2"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearLossEnergy)
        history = History(solver="ResidualNewton")
        run = Run(problem, history, self.max_iter)
        with Monitor(problem.callbacks, run) as monitor:
            line = _Line(problem, self.scale)
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                # the step taken from a small gradient squares its error: stop after it
                small = float(abs(line.gradient).max()) <= self.tol * line.total
                history.converged = not line.step() or small
                if problem.callbacks:
                    line.store(energy)
                history.objective.append(line.value / line.total)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(history.objective[-1]) or history.converged:
                    break
            line.store(energy)
        history.stop = history.stop or ("gradient" if history.converged else "max_iter")
        if history.stop == "max_iter":
            warnings.warn(
                f"Newton's method stopped after {self.max_iter} steps before the gradient reached "
                f"tol={self.tol}; raise max_iter or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history


def line_rows(problem: Problem) -> tuple[Rows, Array, Array]:
    """The rows of different content, their targets and their summed weights."""
    x, y = problem.resident["x"].detach(), problem.resident["y"].detach().cpu()
    w = problem.sample_weight
    index, weight = canonical_rows(matrix_of(x.cpu()), y, None if w is None else w.cpu())
    own = matrix_of(x)
    if x.layout == torch.sparse_csr:
        rows: Rows = SparseRows(own[index].astype(np.float64), _bias(problem))
    else:
        rows = rows_of(x[torch.from_numpy(index).to(x.device)], _bias(problem))
    return rows, y.double().numpy()[index, 0], weight


def _bias(problem: Problem) -> bool:
    assert isinstance(problem.energy, LinearLossEnergy)
    return problem.energy.bias


class _Line:
    """θ (and σ as its last entry), and value, gradient and pieces of the Hessian there."""

    def __init__(self, problem: Problem, scaled: bool) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearLossEnergy)
        self.rows, self.y, self.w = line_rows(problem)
        self.zero, self.total = np.zeros_like(self.y), problem.total_weight
        assert energy.loss.compiled is not None
        self.loss, self.scaled, d = energy.loss.compiled, scaled, self.rows.size
        own = (0.0, 0.0) if problem.penalty is None else strengths(problem.penalty, L2)
        assert own is not None
        self.ridge = np.full(d + scaled, own[0])
        self.ridge[d:] = 0.0
        self.theta = np.zeros(d + scaled)
        self.theta[: energy.d] = energy.W[0].double().cpu().numpy()
        if energy.b is not None:
            self.ridge[d - 1] = own[1]
            b = float(energy.b[0])
            shift = self.rows.shift
            self.theta[d - 1] = b if shift is None else b + float(self.theta[: d - 1] @ shift)
        weight = self.w
        far = self.y - self.rows.score(self.theta[:d])
        if energy.b is not None and not self.theta[:d].any():
            middle = weighted_quantile(self.y, weight, 0.5)
            self.theta[d - 1], far = middle, self.y - middle
        if scaled:
            spread = 1.4826 * weighted_quantile(abs(far), weight, 0.5)
            spread = spread or float(abs(far).mean()) or 1.0
            self.floor = FLOOR * spread
            learned = float(energy.scale)
            self.theta[d] = spread if learned == 1.0 else max(learned, self.floor)
        self.value, self.gradient, self.kept = self._at(self.theta)

    def _at(self, theta: Array) -> tuple[float, Array, tuple[Array, Array, float]]:
        d = self.rows.size
        sigma = float(theta[d]) if self.scaled else 1.0
        u = (self.rows.score(theta[:d]) - self.y) / sigma
        g, h = np.empty_like(u), np.empty_like(u)
        local = pointwise(*self.loss, u, self.zero, self.w, g, h)
        (summed, pull) = map(float, over_shards(np.float64(local), np.float64(g @ u)))
        gradient = self.ridge * theta
        gradient[:d] += self.rows.sums(g, None)[0]
        value = sigma * summed + 0.5 * float(self.ridge @ (theta * theta))
        if self.scaled:
            value += 0.5 * sigma * self.total
            gradient[d] = 0.5 * self.total + summed - pull
        return value, gradient, (u, h, sigma)

    def _hessian(self) -> Any:
        d, (u, h, sigma) = self.rows.size, self.kept
        out = np.diag(self.ridge)
        gram = self.rows.sums(self.zero, h / sigma)[1]
        assert gram is not None
        out[:d, :d] += gram
        if self.scaled:
            cross = self.rows.sums(h * u / sigma, None)[0]
            out[:d, d] = out[d, :d] = -cross
            (out[d, d],) = over_shards(np.float64((h * u * u).sum() / sigma))
        return out

    def step(self) -> bool:
        """One damped Newton step; False when no descent is left."""
        hessian = self._hessian()
        move = -solved(hessian, self.gradient)
        slope = float(move @ self.gradient)
        if not slope < -1e-15 * abs(self.value):
            return False
        size, d = 1.0, self.rows.size
        if self.scaled:
            if self.theta[d] <= self.floor:  # the line meets all rows
                return False
            least = -0.9 * float(self.theta[d])
            if move[d] < least:  # σ would be gone before the line has found its place
                line = np.append(-solved(hessian[:d, :d], self.gradient[:d]), 0.0)
                down = float(line @ self.gradient)
                if down < -1e-8 * abs(self.value):
                    move, slope = line, down
                else:
                    size = least / float(move[d])
        for _ in range(50):
            theta = self.theta + size * move
            value, gradient, kept = self._at(theta)
            if value <= self.value + 1e-4 * size * slope + 1e-15 * abs(self.value):
                fell = value < self.value
                self.theta, self.value, self.gradient, self.kept = theta, value, gradient, kept
                return fell
            size *= 0.5
        return False

    def store(self, energy: LinearLossEnergy) -> None:
        d, shift = self.rows.size, self.rows.shift
        W = self.theta[: energy.d]
        energy.W[0] = torch.from_numpy(W).to(energy.W)
        if energy.b is not None:
            moved = 0.0 if shift is None else float(W @ shift)
            energy.b[0] = float(self.theta[d - 1]) - moved
        if self.scaled:
            energy.scale.fill_(float(self.theta[d]))


def solved(matrix: Any, right: Array) -> Array:
    """The solution of a system that is positive definite, or is made so by a little more."""
    top = float(matrix.diagonal().max()) or 1.0
    for raised in (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0):
        try:
            found: Array = cho_solve(
                cho_factor(matrix + raised * top * np.eye(len(right)), lower=True), right
            )
        except np.linalg.LinAlgError:
            continue
        return found
    return right
