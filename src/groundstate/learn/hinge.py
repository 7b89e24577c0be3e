r"""Solvers of the linear support vector machine: Newton in the primal, coordinates in the dual."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.line import WeightLine
from groundstate.compute.reduce import current
from groundstate.energy.reference import LinearEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.penalties import L2
from groundstate.learn.rules.one_vs_rest import OneVsRest
from groundstate.registry import solvers

MAX_FEATURES = 2000  # the Newton system is dense


def _reason(problem: Problem, power: int) -> str | None:
    energy, rule = problem.energy, problem.rule
    if not isinstance(energy, LinearEnergy) or type(rule) is not OneVsRest:
        return "it is for a linear class energy with the one-against-rest rule"
    if rule.power != power:
        return f"it is for power={power}, got power={rule.power}"
    if not problem.is_resident or set(problem.names) != {"x", "y"}:
        return "it needs resident x and y"
    if not isinstance(problem.penalty, L2) or problem.penalty.select is not None:
        return "it needs an L2 penalty, without which the solution is not unique"
    return None


@solvers.register(
    formula=r"(2X_A^\top w X_A + \lambda)\Delta = -\nabla", make=lambda energy: SquaredHingeNewton()
)
@solver_for(LinearEnergy, OneVsRest)
@dataclass(frozen=True)
class SquaredHingeNewton:
    r"""Newton steps on :math:`\sum_i w_i \max(0, m - t_i f_i)^2 + \tfrac\lambda2\|\theta\|^2`, one
    problem for each class.

    The objective is piecewise quadratic: on the active rows :math:`A = \{t_i f_i < m\}` the system
    is :math:`(2 \tilde X_A^\top w \tilde X_A + \lambda)\,\Delta = -\nabla`; the active set settles
    after a few steps and the last step is exact.

    Parameters
    ----------
    max_iter : steps at most
    tol : largest entry of the gradient, relative to that at zero
    """

    max_iter: int = 100
    tol: float = 1e-10

    def reason_against(self, problem: Problem) -> str | None:
        return _reason(problem, 2)

    def fits(self, problem: Problem) -> bool:
        """Few enough features for a dense Newton system."""
        return int(problem.resident["x"].shape[1]) <= MAX_FEATURES

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="SquaredHingeNewton")
        run = Run(problem, history, self.max_iter)
        binary = _OneClass.all_of(problem)
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                done = [problem_.step(self.tol) for problem_ in binary]
                _OneClass.store(problem, binary)
                value = sum(p.value for p in binary) / problem.total_weight
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(value):
                    return history
                if all(done):
                    history.converged = True
                    break
        history.stop = "gradient" if history.converged else "max_iter"
        if not history.converged:
            warnings.warn(
                f"the squared hinge did not reach tol={self.tol} in {self.max_iter} steps; raise "
                "max_iter or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history


class _OneClass:
    """One class against the rest: its rows, signs and weights."""

    def __init__(self, x: Tensor, t: Tensor, w: Tensor | None, ridge: Tensor, m: float) -> None:
        self.x, self.t, self.w, self.ridge, self.m = x, t, w, ridge, m
        self.theta = x.new_zeros(x.shape[1])
        self.score = x.new_zeros(len(x))
        self.value, self.first = self._value(self.score, self.theta), 0.0
        self.done = False

    @staticmethod
    def all_of(problem: Problem) -> list[_OneClass]:
        energy, penalty, rule = problem.energy, problem.penalty, problem.rule
        assert isinstance(energy, LinearEnergy) and isinstance(penalty, L2)
        assert isinstance(rule, OneVsRest)
        x = problem.resident["x"].double()
        if energy.b is not None:
            x = torch.cat([x, x.new_ones(len(x), 1)], 1)
        y = problem.resident["y"]
        w = None if problem.sample_weight is None else problem.sample_weight.double()
        classes = energy.W.shape[0]
        # two classes: θ = W₁ − W₀ and W₀ = −W₁, so λ(‖W₀‖² + ‖W₁‖²)/2 = (λ/2)‖θ‖²/2
        strength = float(penalty.strength) / (2 if classes == 2 else 1)
        ridge = x.new_full((x.shape[1],), strength)
        if energy.b is not None and not penalty.intercept:
            ridge[-1] = 0.0
        wanted = [1] if classes == 2 else range(classes)
        signs = (torch.where(y == k, 1.0, -1.0).to(x.dtype) for k in wanted)
        return [_OneClass(x, t, w, ridge, rule.m) for t in signs]

    @staticmethod
    def store(problem: Problem, parts: list[_OneClass]) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        theta = torch.stack([p.theta for p in parts])
        if len(parts) == 1:
            theta = torch.cat([-theta / 2, theta / 2])
        energy.W.copy_(theta[:, : energy.W.shape[1]])
        if energy.b is not None:
            energy.b.copy_(theta[:, -1])

    def _value(self, score: Tensor, theta: Tensor) -> float:
        gap = (self.m - self.t * score).clamp(min=0).square()
        total = current().sum(gap.sum() if self.w is None else gap @ self.w)
        return float(total + 0.5 * (self.ridge * theta * theta).sum())

    def step(self, tol: float) -> bool:
        """One Newton step with backtracking; True when the gradient is small enough."""
        if self.done:
            return True
        gap = (self.m - self.t * self.score).clamp(min=0)
        active = (gap > 0).nonzero()[:, 0]
        xa = self.x[active]
        slope = gap[active] * self.t[active]
        if self.w is not None:
            slope = slope * self.w[active]
            hessian = 2 * xa.T @ (xa * self.w[active, None])
        else:
            hessian = 2 * xa.T @ xa
        sums = current().sum_dict({"g": -2 * (slope @ xa), "h": hessian})
        gradient = sums["g"] + self.ridge * self.theta
        hessian = sums["h"]
        hessian.diagonal().add_(self.ridge)
        size = float(gradient.abs().max())
        self.first = self.first or size or 1.0
        self.done = size <= tol * self.first
        factor, failed = torch.linalg.cholesky_ex(hessian)
        if int(failed):
            move = -torch.linalg.lstsq(hessian, gradient[:, None], driver="gelsd").solution[:, 0]
        else:
            move = -torch.cholesky_solve(gradient[:, None], factor)[:, 0]
        descent = float(move @ gradient)
        ahead = self.x @ move
        step = 1.0
        for _ in range(40):
            score, theta = self.score + step * ahead, self.theta + step * move
            value = self._value(score, theta)
            if value <= self.value + 1e-4 * step * descent:
                self.score, self.theta, self.value = score, theta, value
                return self.done
            step *= 0.5
        self.done = True  # no descent left in floating point
        return True


@solvers.register(
    formula=r"\min_\alpha \tfrac12\|\sum_i\alpha_i t_i x_i\|^2 - m\sum_i\alpha_i",
    make=lambda energy: HingeDual(),
)
@solver_for(LinearEnergy, OneVsRest)
@dataclass(frozen=True)
class HingeDual:
    r"""Dual coordinate descent for the hinge: :math:`\min_\alpha \tfrac12\|\sum_i \alpha_i t_i
    \tilde x_i\|^2 - m\sum_i\alpha_i`, :math:`0 \le \alpha_i \le w_i/\lambda`.

    Parameters
    ----------
    max_iter : passes over the rows at most
    tol : largest violation of the optimality conditions at the end
    """

    max_iter: int = 1000
    tol: float = 1e-4

    def reason_against(self, problem: Problem) -> str | None:
        reason = _reason(problem, 1)
        if reason is not None:
            return reason
        energy, penalty = problem.energy, problem.penalty
        assert isinstance(energy, LinearEnergy) and isinstance(penalty, L2)
        if energy.b is not None and not penalty.intercept:
            return "the dual needs the intercept in the penalty: L2(strength, intercept=True)"
        if energy.W.device.type != "cpu":
            return "it visits one row at a time, which is for the CPU"
        return None

    def run(self, problem: Problem) -> History:
        history = History(solver="HingeDual")
        run = Run(problem, history, self.max_iter)
        parts = _OneClass.all_of(problem)
        x = parts[0].x.numpy()
        line = WeightLine.of(x, problem.resident["y"].numpy(), weights=problem.sample_weight)
        weight = np.ones(len(x)) if problem.sample_weight is None else line.weights
        bound = weight / float(parts[0].ridge[0])
        norms = np.einsum("ij,ij->i", x, x)
        alphas = [np.zeros(len(x)) for _ in parts]
        thetas = [np.zeros(x.shape[1]) for _ in parts]
        m = parts[0].m
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                order = line.order(problem.key.fold("epoch", run.epoch))
                worst = max(
                    _dual_pass(x, p.t.numpy(), a, theta, bound, norms, order, m)
                    for p, a, theta in zip(parts, alphas, thetas, strict=True)
                )
                value = self._close(problem, parts, thetas)
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(value):
                    return history
                if worst <= self.tol:
                    history.converged = True
                    break
        history.stop = "optimality" if history.converged else "max_iter"
        if not history.converged:
            warnings.warn(
                f"the hinge did not reach tol={self.tol} in {self.max_iter} passes; raise max_iter "
                "or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history

    @torch.no_grad()
    def _close(
        self, problem: Problem, parts: list[_OneClass], thetas: list[NDArray[np.float64]]
    ) -> float:
        total = 0.0
        for part, theta in zip(parts, thetas, strict=True):
            part.theta = torch.from_numpy(theta)
            gap = (part.m - part.t * (part.x @ part.theta)).clamp(min=0)
            total += float(gap.sum() if part.w is None else gap @ part.w)
            total += 0.5 * float((part.ridge * part.theta**2).sum())
        _OneClass.store(problem, parts)
        return total / problem.total_weight


@numba.njit(cache=True)
def _dual_pass(
    x: Any, t: Any, alpha: Any, theta: Any, bound: Any, norms: Any, order: Any, m: float
) -> float:
    worst = 0.0
    d = x.shape[1]
    for i in order:
        if norms[i] == 0.0 or bound[i] == 0.0:
            continue
        f = 0.0
        for j in range(d):
            f += theta[j] * x[i, j]
        g = t[i] * f - m
        projected = g
        if alpha[i] <= 0.0:
            projected = min(g, 0.0)
        elif alpha[i] >= bound[i]:
            projected = max(g, 0.0)
        worst = max(worst, abs(projected))
        if projected == 0.0:
            continue
        new = min(max(alpha[i] - g / norms[i], 0.0), bound[i])
        change = (new - alpha[i]) * t[i]
        alpha[i] = new
        for j in range(d):
            theta[j] += change * x[i, j]
    return worst
