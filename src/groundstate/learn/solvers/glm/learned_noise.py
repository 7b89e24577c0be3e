r"""Fisher scoring for regression with learned noise, mean and noise in turn."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import numpy as np
import torch

from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.glm.irls_rows import Array, Rows, over_shards, rows_of
from groundstate.learn.solvers.glm.irls_system import WEAK, Factor
from groundstate.registry import solvers

FLOOR = 1e-6  # smallest variance, as a share of that of y


@solvers.register(
    formula=r"v \leftarrow v + (X^\top X)^{-1}X^\top(r^2/\sigma^2 - 1)",
    make=lambda energy: NoiseScoring(),
)
@dataclass(frozen=True)
class NoiseScoring:
    r"""Lower :math:`\sum_i w_i\{\tfrac12\log\sigma_i^2 + r_i^2/(2\sigma_i^2)\}` in turn.

    The mean is a least-squares fit with weights :math:`w/\sigma^2`; then the noise takes the step
    :math:`(X^\top wX)^{-1}X^\top w(r^2/\sigma^2 - 1)` for log σ², or the same with the information
    :math:`2/\sigma^2` for σ itself, halved while the objective rises. The variance stays above a
    millionth of that of y.

    Parameters
    ----------
    max_iter : rounds at most
    tol : fall of the mean objective in one round at the end
    """

    max_iter: int = 200
    tol: float = 1e-10

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, GaussianNoiseEnergy) or energy.net is not None:
            return "it is for a linear mean with linear noise"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "it knows no penalty"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, GaussianNoiseEnergy)
        history = History(solver="NoiseScoring", converged=True)
        x, total = problem.resident["x"], problem.total_weight
        rows, noisy = rows_of(x, energy.b is not None), rows_of(x, True)
        n = len(x)
        w = np.ones(n) if problem.sample_weight is None else _numbers(problem.sample_weight)
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            for j in range(energy.m):
                y = _numbers(problem.resident["y"][:, j])
                task = _Task(rows, noisy, y, w, total, energy.link, energy.noise == "constant")
                history.converged &= self._lower(task, energy, j, problem, monitor)
                _store(energy, j, task)
        history.stop = "objective" if history.converged else "max_iter"
        if not history.converged:
            warnings.warn(
                f"NoiseScoring stopped after {self.max_iter} rounds before the objective settled "
                f"to tol={self.tol}; raise max_iter or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _lower(
        self, task: _Task, energy: GaussianNoiseEnergy, j: int, problem: Problem, monitor: Monitor
    ) -> bool:
        history = monitor.run.history
        for _ in range(self.max_iter):
            start, before = time.perf_counter(), task.value
            task.mean_step()
            if not task.constant:
                task.noise_step()
            history.objective.append(task.value)
            history.seconds.append(time.perf_counter() - start)
            if problem.callbacks:
                _store(energy, j, task)
            settled = task.constant or before - task.value <= self.tol * (1 + abs(task.value))
            if monitor.epoch(task.value) or settled:
                return True
        return False


def _numbers(values: torch.Tensor) -> Array:
    return np.ascontiguousarray(values.detach().double().cpu().numpy())


class _Task:
    """One output: its mean, its noise and its objective."""

    def __init__(
        self, rows: Rows, noisy: Rows, y: Array, w: Array, total: float, link: str, constant: bool
    ) -> None:
        self.rows, self.noisy, self.y, self.w, self.total = rows, noisy, y, w, total
        self.link, self.constant = link, constant
        self.theta, self.v = np.zeros(rows.size), np.zeros(noisy.size)
        sums = over_shards(np.float64(w @ y), np.float64(w @ (y * y)))
        mean = float(sums[0]) / total
        (square,) = over_shards(np.float64(w @ (y - mean) ** 2))
        spread = float(square) / total
        self.floor = math.log(FLOOR * (spread if spread > 0 else 1.0))
        self.log_v = np.zeros(len(y))
        self.mu = np.zeros(len(y))
        self.factor: Factor | None = None
        self.mean_step()  # least squares; then one noise for all
        (sse,) = over_shards(np.float64(w @ (y - self.mu) ** 2))
        level = max(float(sse) / total, math.exp(self.floor))
        self.v[-1] = math.log(level) if link == "log" else math.sqrt(level)
        self.log_v = self._log_variance(self.noisy.score(self.v))
        self.value = self._objective(self.log_v)

    def _log_variance(self, score: Array) -> Array:
        if self.link == "log":
            return np.maximum(score, self.floor)
        return np.log(score * score + math.exp(self.floor))

    def _objective(self, log_v: Array) -> float:
        r = self.y - self.mu
        with np.errstate(over="ignore"):
            rows = 0.5 * (math.log(2 * math.pi) + log_v + r * r * np.exp(-log_v))
        (total,) = over_shards(np.float64(self.w @ rows))
        value = float(total) / self.total
        return value if math.isfinite(value) else math.inf

    def mean_step(self) -> None:
        """Weighted least squares for the mean."""
        weight = self.w * np.exp(-self.log_v)
        right, gram = self.rows.sums(weight * (self.y - self.mu), weight)
        assert gram is not None
        self.theta = self.theta + Factor(gram, np.zeros(len(gram)), WEAK).solve(right)
        self.mu = self.rows.score(self.theta)
        self.value = self._objective(self.log_v)

    def noise_step(self) -> None:
        """One scoring step for the noise, halved until the objective falls."""
        r = self.y - self.mu
        excess = r * r * np.exp(-self.log_v) - 1
        if self.link == "log":
            right, gram = self.noisy.sums(self.w * excess, self.w if self.factor is None else None)
            if gram is not None:
                self.factor = Factor(gram, np.zeros(len(gram)), WEAK)
            factor = self.factor
        else:  # ∂/∂σ with dσ² = 2σ dσ; the information of σ is 2/σ²
            sigma = self.noisy.score(self.v)
            precision = np.exp(-self.log_v)
            right, gram = self.noisy.sums(
                self.w * sigma * precision * excess, 2 * self.w * sigma**2 * precision**2
            )
            assert gram is not None
            factor = Factor(gram, np.zeros(len(gram)), WEAK)
        assert factor is not None
        move, size = factor.solve(right), 1.0
        for _ in range(30):
            v = self.v + size * move
            log_v = self._log_variance(self.noisy.score(v))
            value = self._objective(log_v)
            if value < self.value:
                self.v, self.log_v, self.value = v, log_v, value
                return
            size *= 0.5


def _store(energy: GaussianNoiseEnergy, j: int, task: _Task) -> None:
    _store_line(energy.W, energy.b, j, task.theta, task.rows)
    _store_line(energy.V, energy.c, j, task.v, task.noisy)
    energy.floor[j] = task.floor


def _store_line(W: torch.Tensor, b: torch.Tensor | None, j: int, theta: Array, rows: Rows) -> None:
    if b is None:
        W[j].copy_(torch.from_numpy(theta))
        return
    W[j].copy_(torch.from_numpy(theta[:-1]))
    b[j] = float(theta[-1] - (0.0 if rows.shift is None else theta[:-1] @ rows.shift))
