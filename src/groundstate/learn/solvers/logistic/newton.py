r"""Newton's method for the linear soft-min: logistic and softmax regression."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from scipy.linalg.lapack import dposv
from torch.nn import functional

from groundstate.compute.reduce import current
from groundstate.compute.thread_policy import for_rows
from groundstate.energy.basic import LinearEnergy
from groundstate.errors import NotConverged, SeparationWarning
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.penalties.norms import L2, plain_l2
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse
from groundstate.learn.solvers.logistic.large import (
    MAX_DENSE,
    Step,
    conjugate_newton,
    metric_newton,
    sampled_newton,
)
from groundstate.learn.solvers.logistic.rows import SoftmaxRows, far_means, reason_against_softmax
from groundstate.registry import solvers

MAX_FEATURES = 1000  # a dense matrix of columns by columns: beyond this L-BFGS is the better trade
SMALL = 2**15  # rows times unknowns below which the whole Hessian costs less than a call
LARGE = 2**21  # rows times unknowns from which a part of the rows gives the Hessian
HUGE = 2**24  # where for several classes a part of the rows beats the metric
WAYS = {"metric": metric_newton, "sampled": sampled_newton, "conjugate": conjugate_newton}
MAX_CELLS = 2**22  # of one block of P⊗X rows


@solvers.register(formula=r"\Delta\theta = -H^{-1}\nabla J", make=lambda energy: Newton())
@solver_for(LinearEnergy, SoftMin)
@dataclass(frozen=True)
class Newton:
    r"""Newton steps with backtracking on :math:`J(W) = \frac1{\sum w}\bigl(\sum_i w_i
    [\,F(x_i) + W_{y_i}\tilde x_i] + \tfrac\lambda2\|W\|^2\bigr)`.

    With :math:`p_i = \mathrm{softmax}(W\tilde x_i)` the gradient is
    :math:`\sum_i w_i (p_i - 1_{y_i})\tilde x_i^\top + \lambda W` and the Hessian
    :math:`\sum_i w_i (\mathrm{diag}\,p_i - p_i p_i^\top)\otimes\tilde x_i\tilde x_i^\top + \lambda`.
    Two classes use the antisymmetry :math:`W_0 = -W_1` and have half the unknowns. Adding the same
    vector to all rows of W changes no probability; that null direction is pinned to zero mean.

    Parameters
    ----------
    max_iter : steps at most
    tol : largest entry of the gradient of J at the end
    way : "exact" forms the whole Hessian, "metric" that of equally likely classes and "sampled"
        that of a part of the rows, both with secant corrections, "conjugate" never forms it;
        "auto" decides by the size of the problem
    """

    max_iter: int = 100
    tol: float = 1e-4
    way: Literal["auto", "exact", "metric", "sampled", "conjugate"] = "auto"

    def reason_against(self, problem: Problem) -> str | None:
        reason = reason_against_softmax(problem)
        if reason is not None:
            return reason
        if problem.penalty is not None and not plain_l2(problem.penalty):
            return "its only penalty is L2 on the weights"
        if bool((problem.resident["y"] < 0).any()):
            return "some targets are unknown"
        return None

    @staticmethod
    def handles(classes: int, features: int) -> bool:
        """Whether a dense matrix of columns by columns is small enough to be the better choice."""
        return features < MAX_FEATURES

    def fits(self, problem: Problem) -> bool:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        return self.handles(*energy.W.shape)

    def _way(self, problem: Problem) -> str:
        if self.way != "auto":
            return self.way
        energy, x = problem.energy, problem.resident["x"]
        assert isinstance(energy, LinearEnergy)
        k, d = energy.W.shape
        unknowns = (1 if k == 2 else k) * (d + 1)
        if not self.handles(k, d) or (is_sparse(x) and unknowns > MAX_DENSE):
            return "conjugate"
        cells = problem.rows * unknowns
        if k > 2 and not is_sparse(x) and (SMALL < cells < HUGE or unknowns > MAX_DENSE):
            return "metric"
        large = cells > LARGE and problem.rows > 60 * unknowns
        return "sampled" if large or is_sparse(x) else "exact"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="Newton")
        run = Run(problem, history, self.max_iter)
        way = self._way(problem)
        with Monitor(problem.callbacks, run) as monitor, for_rows(problem.resident["x"]):
            steps = self._exact(problem) if way == "exact" else self._large(problem, way)
            unpenalised = problem.penalty is None
            start = time.perf_counter()
            for value, done, store, separates in steps:
                history.converged = done
                if problem.callbacks:
                    store()
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - start)
                start = time.perf_counter()
                if monitor.epoch(value) or done or run.epoch >= self.max_iter:
                    break
                if unpenalised and separates():
                    history.stop = "separable"
                    break
            store()
        if history.stop == "callback":
            return history
        self._say_why(history)
        return history

    def _say_why(self, history: History) -> None:
        if history.stop == "separable":
            history.extra["separable"] = [1.0]
            warnings.warn(
                f"the classes are separable: after {history.n_iter} steps every row is on the right "
                "side, and without a penalty the weights grow for ever; the last ones are kept, "
                "set C or a penalty for a finite optimum",
                SeparationWarning,
                stacklevel=4,
            )
            return
        history.stop = "gradient" if history.converged else "max_iter"
        if not history.converged:
            warnings.warn(
                f"Newton stopped after {self.max_iter} steps before the gradient reached "
                f"tol={self.tol}; the classes may be separable: strengthen the penalty",
                NotConverged,
                stacklevel=4,
            )

    def _exact(self, problem: Problem) -> Iterator[Any]:
        """Steps with the whole Hessian: value, whether done, how to store, whether separated."""
        system = _Softmax(problem)
        while True:
            gradient, hessian = system.derivatives()
            small = float(abs(gradient).max()) <= self.tol
            moved = system.step(gradient, hessian)
            # the step taken from a gradient below tol squares its error: stop after it
            yield system.value, small or not moved, system.store, system.separates

    def _large(self, problem: Problem, way: str) -> Iterator[Any]:
        rows = SoftmaxRows(problem)
        # a tenth of the tolerance, so that the answer does not depend on the path to it
        tol = 0.1 * self.tol
        steps = WAYS[way](rows, tol)
        last: Step | None = None
        for step in steps:
            if last is not None:
                yield (
                    last.value,
                    False,
                    partial(rows.store, last.theta),
                    partial(rows.separates, last.theta),
                )
            last = step
            if step.slope <= tol:
                break
        if last is None:  # no descent from the start: it is the optimum
            theta = rows.start()
            last = Step(rows.evaluate(theta)[0], 0.0, theta)
        yield last.value, True, partial(rows.store, last.theta), lambda: False


class _Softmax:
    """The sums over rows that Newton needs, in float64.

    Plain operators only, so that the arrays are NumPy's on the CPU, where a small problem is all
    call overhead, and torch's on a GPU.
    """

    def __init__(self, problem: Problem) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        self.energy = energy
        on_host = energy.W.device.type == "cpu"
        self.xp: Any = np if on_host else torch
        self.array: Any = (lambda t: t.detach().numpy()) if on_host else (lambda t: t.detach())
        x, y = problem.resident["x"].double(), problem.resident["y"]
        self.intercept = energy.b is not None
        w = problem.sample_weight
        far = far_means(x, w) if self.intercept else None
        x = x if far is None else x - far
        self.shift = None if far is None else functional.pad(far, (0, 1))  # (D,)
        self.x = self.array(functional.pad(x, (0, 1), value=1.0) if self.intercept else x)  # (N, D)
        self.w = None if w is None else self.array(w.double())[:, None]  # (N, 1)
        self.total = problem.total_weight
        self.classes = energy.W.shape[0]
        self.binary = self.classes == 2
        if self.binary:
            target = y.double()[:, None]
        else:
            target = x.new_zeros(len(y), self.classes).scatter_(1, y[:, None], 1.0)
        self.target = self.array(target)  # (N, R)
        strength = problem.penalty.strength if isinstance(problem.penalty, L2) else 0.0
        ridge = x.new_full((self.x.shape[1],), float(strength))
        if self.binary:
            ridge *= 0.5  # W₀ = −W₁: λ(‖W₀‖² + ‖W₁‖²)/2 = (λ/2)‖W₁ − W₀‖²/2
        if self.intercept:
            ridge[-1] = 0.0
        theta = energy.W.double()
        if energy.b is not None:
            theta = torch.cat([theta, energy.b.double()[:, None]], 1)
            if self.shift is not None:
                theta[:, -1] += theta @ self.shift
        theta = theta[1:] - theta[:1] if self.binary else theta - theta.mean(0)
        self.theta, self.ridge = self.array(theta), self.array(ridge)  # (R, D), (D,)
        self.ridges = self.array(ridge.repeat(len(theta)))  # (RD,)
        self.score = self.x @ self.theta.T  # (N, R)
        self.value = self.objective(self.score, self.theta)

    def store(self) -> None:
        theta = torch.as_tensor(self.theta)
        if self.binary:
            theta = torch.cat([-theta / 2, theta / 2])
        self.energy.W.copy_(theta[:, :-1] if self.intercept else theta)
        if self.energy.b is not None:
            moved = 0.0 if self.shift is None else theta @ self.shift
            self.energy.b.copy_(theta[:, -1] - moved)

    def separates(self) -> bool:
        """Whether every row of positive weight has its own class strictly ahead."""
        if self.binary:
            margin = self.score[:, 0] * (2.0 * self.target[:, 0] - 1.0)
        else:
            own = (self.score * self.target).sum(1)
            margin = own - self.xp.amax(self.score - 1e300 * self.target, 1)
        if self.w is not None:
            margin = margin[self.w[:, 0] > 0]
        behind = torch.tensor(float((margin <= 0).sum()), dtype=torch.float64)
        return float(current().sum(behind)) == 0.0

    def _over_shards(self, *sums: Any) -> tuple[Any, ...]:
        reduce = current()
        if reduce.world == 1:
            return sums
        named = {str(i): torch.as_tensor(v) for i, v in enumerate(sums)}
        return tuple(self.array(v) for v in reduce.sum_dict(named).values())

    def objective(self, score: Any, theta: Any) -> float:
        """J at θ from its scores ``(N, R)``, over all shards."""
        xp = self.xp
        if self.binary:
            log_sum = xp.logaddexp(score, xp.zeros_like(score))
        else:
            top = xp.amax(score, 1)[:, None]
            log_sum = top + xp.log(xp.exp(score - top).sum(1))[:, None]
        loss = log_sum.sum(1) - (self.target * score).sum(1)
        local = loss.sum() if self.w is None else self.w[:, 0] @ loss
        (total,) = self._over_shards(local)
        return (float(total) + 0.5 * float((theta * theta * self.ridge).sum())) / self.total

    def derivatives(self) -> tuple[Any, Any]:
        """Gradient ``(R, D)`` and Hessian ``(RD, RD)`` of J at θ, over all shards."""
        xp = self.xp
        if self.binary:
            p = 0.5 + 0.5 * xp.tanh(0.5 * self.score)
        else:
            odds = xp.exp(self.score - xp.amax(self.score, 1)[:, None])
            p = odds / odds.sum(1)[:, None]
        residual = p - self.target
        if self.w is not None:
            residual = residual * self.w
        gradient, hessian = self._over_shards(residual.T @ self.x, self._hessian(p))
        gradient = (gradient + self.theta * self.ridge) / self.total
        _diagonal(hessian)[...] += self.ridges
        if not self.binary:
            self._pin(hessian)
        hessian /= self.total
        return gradient, hessian

    def _hessian(self, p: Any) -> Any:
        r, d = self.theta.shape
        x, w = self.x, self.w
        if self.binary:
            curvature = p * (1 - p)
            return x.T @ (x * (curvature if w is None else curvature * w))
        wp = p if w is None else p * w
        out = self.xp.zeros_like(self.ridges[:, None] * self.ridges)
        for k in range(r):
            block = slice(k * d, (k + 1) * d)
            out[block, block] = x.T @ (x * wp[:, k : k + 1])
        rows = max(1, MAX_CELLS // (r * d))
        for at in range(0, len(x), rows):
            piece = slice(at, at + rows)
            m = (p[piece, :, None] * x[piece, None, :]).reshape(-1, r * d)  # (n, RD)
            out -= m.T @ (m if w is None else m * w[piece])
        return out

    def _pin(self, hessian: Any) -> None:
        """Give the null directions (all classes shifted alike, where unpenalised) curvature."""
        r, d = self.theta.shape
        scale = max(float(_diagonal(hessian).mean()), 1e-12) / r
        blocks = hessian.reshape(r, d, r, d)
        for j in range(d):
            if self.ridge[j] == 0:
                blocks[:, j, :, j] += scale

    def step(self, gradient: Any, hessian: Any) -> bool:
        """One damped Newton step; False when no descent is left."""
        flat = gradient.reshape(-1)
        direction = _descent(hessian, flat)
        slope = float(direction @ flat)
        if slope >= 0.0:
            return False
        move = direction.reshape(self.theta.shape)
        ahead = self.x @ move.T
        step = 1.0
        for _ in range(30):
            theta, score = self.theta + step * move, self.score + step * ahead
            value = self.objective(score, theta)
            if value <= self.value + 1e-4 * step * slope:
                moved = value < self.value  # else what is left is below rounding
                self.theta, self.score, self.value = theta, score, value
                return moved
            step *= 0.5
        return False


def _diagonal(matrix: Any) -> Any:
    """A writable view of the diagonal."""
    return matrix.reshape(-1)[:: len(matrix) + 1]


def _descent(hessian: Any, gradient: Any) -> Any:
    """−H⁻¹g; where H is not positive definite, its small eigenvalues are raised."""
    if isinstance(hessian, np.ndarray):
        _, solution, failed = dposv(hessian, -gradient, lower=1)
        if failed == 0:
            return solution
        values, vectors = np.linalg.eigh(hessian)
        floor = 1e-10 * float(abs(_diagonal(hessian)).max()) + 1e-300
        return -(vectors @ ((vectors.T @ gradient) / np.maximum(values, floor)))
    factor, info = torch.linalg.cholesky_ex(hessian)
    if int(info) == 0:
        return torch.cholesky_solve(-gradient[:, None], factor)[:, 0]
    values, vectors = torch.linalg.eigh(hessian)
    floor = 1e-10 * float(_diagonal(hessian).abs().max()) + 1e-300
    return -(vectors @ ((vectors.T @ gradient) / values.clamp_min(floor)))
