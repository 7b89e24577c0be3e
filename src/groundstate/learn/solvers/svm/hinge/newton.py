r"""Newton's method for the squared hinge: the linear support vector machine in the primal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from groundstate.compute.reduce import current
from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.margins.one_vs_rest import OneVsRest
from groundstate.learn.solvers.passes import until_optimal
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    F64,
    reason_against,
    store,
    strengths,
    wanted_classes,
)
from groundstate.learn.solvers.svm.hinge.sums_numba import ProductSums, Sums, TileSums
from groundstate.registry import solvers

MAX_FEATURES = 2000  # up to this many the Newton system is solved directly
PILOT = 2**16  # beyond this many rows a share of them gives the first weights
SHARE = 16
ROUNDING = 1e-16


@solvers.register(
    formula=r"(2X_A^\top w X_A + \lambda)\Delta = -\nabla", make=lambda energy: SquaredHingeNewton()
)
@dataclass(frozen=True)
class SquaredHingeNewton:
    r"""Newton steps on :math:`\sum_i w_i \max(0, m - t_i f_i)^2 + \tfrac\lambda2\|\theta\|^2`, one
    problem for each class.

    The objective is piecewise quadratic: on the active rows :math:`A = \{t_i f_i < m\}` the system
    is :math:`(2 \tilde X_A^\top w \tilde X_A + \lambda)\,\Delta = -\nabla`; the active set settles
    after a few steps and the last step is exact. Wide and sparse tables solve the system by
    conjugate gradients. A large table begins at the solution of a sixteenth of its rows.

    Parameters
    ----------
    max_iter : steps at most
    tol : largest entry of the gradient, relative to that at zero
    """

    max_iter: int = 100
    tol: float = 1e-10

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, LinearEnergy) or type(rule) is not OneVsRest:
            return "it is for a linear class energy with the one-against-rest rule"
        if rule.power != 2:
            return f"it is for power=2, got power={rule.power}"
        return reason_against(problem, L2)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        parts = _separate(problem)

        def advance(passes: int) -> tuple[float, int, bool]:
            done = [part.step(self.tol) for part in parts]
            store(energy, [part.theta for part in parts])
            return sum(part.value for part in parts), 1, all(done)

        return until_optimal(
            problem, "SquaredHingeNewton", self.max_iter, advance,
            f"the squared hinge did not reach tol={self.tol} in {self.max_iter} steps; raise max_iter"
            " or scale the inputs", "gradient",
        )  # fmt: skip


class Descent:
    """One class against the rest: where Newton is, and the sums that take it further."""

    def __init__(self, sums: Sums, ridge: F64, start: F64, scale: float = 0.0) -> None:
        self.sums, self.ridge, self.theta = sums, ridge, start
        self.value, self.gradient = self._at(start)
        self.scale = scale or float(np.abs(self.gradient).max()) or 1.0  # of the gradient at zero
        self.done = False

    def _at(self, theta: F64) -> tuple[float, F64]:
        loss, gradient = self.sums.at(theta)
        return loss + 0.5 * float(self.ridge @ (theta * theta)), gradient + self.ridge * theta

    def step(self, tol: float) -> bool:
        """One Newton step with backtracking; True when the gradient is small enough."""
        if self.done:
            return True
        move = self.sums.direction(self.gradient, self.ridge)
        descent = float(move @ self.gradient)
        # what is left to gain may be below the last digit of the value
        last, rounding = -descent <= ROUNDING * self.value, ROUNDING * self.value
        step = 1.0
        for _ in range(40):
            theta = self.theta + step * move
            value, gradient = self._at(theta)
            if value <= self.value + 1e-4 * step * descent + last * rounding:
                self.theta, self.value, self.gradient = theta, value, gradient
                self.done = last or float(np.abs(gradient).max()) <= tol * self.scale
                return self.done
            step *= 0.5
        self.done = True  # no descent left in floating point
        return True


def _separate(problem: Problem) -> list[Descent]:
    """One problem for each class; with two classes θ = W₁ − W₀ and W₀ = −W₁."""
    energy, rule = problem.energy, problem.rule
    assert isinstance(energy, LinearEnergy) and isinstance(rule, OneVsRest)
    on_weights, on_intercept = strengths(problem.penalty, L2) or (0.0, 0.0)
    x, y, w = problem.resident["x"].detach(), problem.resident["y"], problem.sample_weight
    intercept = energy.b is not None
    ridge = np.full(x.shape[1] + intercept, on_weights)
    if intercept:
        ridge[-1] = on_intercept
    wanted = wanted_classes(energy)
    if len(wanted) == 1:
        ridge *= 0.5  # λ(‖W₀‖² + ‖W₁‖²)/2 = (λ/2)‖θ‖²/2
    labels = y.cpu().numpy()
    signs = [np.where(labels == k, 1.0, -1.0) for k in wanted]
    zero = np.zeros(len(ridge))
    narrow = x.shape[1] <= MAX_FEATURES and x.layout == torch.strided
    if narrow and x.device.type == "cpu":
        rows = np.ascontiguousarray(x.numpy())
        weight = None if w is None else w.double().numpy()
        found = []
        for t in signs:
            start, scale = zero, 0.0
            if len(rows) > PILOT and current().world == 1:
                start, scale = _pilot(rows, t, weight, rule.m, intercept, ridge)
            sums = TileSums(rows, t, weight, rule.m, intercept)
            found.append(Descent(sums, ridge, start, scale))
        return found
    return [Descent(ProductSums(x, t, w, rule.m, intercept, narrow), ridge, zero) for t in signs]


def _pilot(
    rows: F64, t: F64, weight: F64 | None, m: float, intercept: bool, ridge: F64
) -> tuple[F64, float]:
    """The weights of every sixteenth row, roughly, and the size of the gradient at zero."""
    some = slice(None, None, SHARE)
    w = None if weight is None else np.ascontiguousarray(weight[some])
    sums = TileSums(np.ascontiguousarray(rows[some]), t[some].copy(), w, m, intercept)
    part = Descent(sums, ridge / SHARE, np.zeros(len(ridge)))
    for _ in range(30):
        if part.step(1e-4):
            break
    return part.theta, SHARE * part.scale
