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

from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.glm.irls_rows import Array
from groundstate.learn.solvers.linear.residuals import line_rows, solved
from groundstate.learn.solvers.svm.hinge.rows_numba import strengths
from groundstate.math.losses import EpsilonInsensitive
from groundstate.registry import solvers

MAX_UNKNOWNS = 1000  # a dense matrix of columns by columns


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
                primal, gap = path.step()
                history.converged = gap <= self.tol * max(primal, 1e-300)
                if problem.callbacks or history.converged:
                    path.store(energy)
                history.objective.append(primal / path.total)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(history.objective[-1]) or history.converged or path.stuck:
                    break
            path.store(energy)
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
        self.rows, self.y, self.w = line_rows(problem)
        self.eps, self.total = energy.loss.epsilon, problem.total_weight
        own = strengths(problem.penalty, L2)
        assert own is not None
        self.ridge = np.full(self.rows.size, own[0])
        if energy.bias:
            self.ridge[-1] = own[1]
        self.theta = np.zeros(self.rows.size)
        self.beta = np.stack([0.5 * self.w, 0.5 * self.w])  # a and b, inside their boxes
        far = self.y - float(np.median(self.y)) if energy.bias else self.y
        if energy.bias:
            self.theta[-1] = float(np.median(self.y))
        size = max(float(abs(far).mean()), self.eps, 1e-12)
        signed = np.stack([far, -far]) - self.eps  # ξ ≥ this
        self.xi = np.maximum(signed, 0.0) + size
        self.slack = self.xi - signed
        self.stuck = False

    def _residuals(self) -> Any:
        r = self.y - self.rows.score(self.theta)
        return np.stack([r, -r]) - self.eps

    def step(self) -> tuple[float, float]:
        """One predictor-corrector step; the objective and the duality gap after it."""
        a, xi, p, w = self.beta, self.xi, self.slack, self.w
        rest = w - a
        signed = self._residuals()
        off = p - (xi - signed)  # of the slacks, where they are not yet feasible
        pull = self.rows.sums(a[0] - a[1], None)[0] - self.ridge * self.theta
        D = p / a + xi / rest
        H = (1 / D).sum(0)
        gram = self.rows.sums(self.y, H)[1]
        assert gram is not None
        matrix = gram + np.diag(self.ridge)
        mu = float((a * p + rest * xi).sum()) / (4 * len(w))

        def direction(one: Any, two: Any) -> tuple[Array, Any, Any, Any]:
            c = one / a - two / rest + off
            right = self.rows.sums((c[0] / D[0]) - (c[1] / D[1]), None)[0] + pull
            move = solved(matrix, right)
            dr = -(self.rows.score(move))
            da = (c + np.stack([dr, -dr])) / D
            dxi = (two + xi * da) / rest
            return move, da, dxi, dxi - np.stack([dr, -dr]) - off

        move, da, dxi, dp = direction(-a * p, -rest * xi)
        size = _longest(a, da, rest, xi, dxi, p, dp)
        ahead = float(((a + size * da) * (p + size * dp)).sum())
        ahead += float(((rest - size * da) * (xi + size * dxi)).sum())
        goal = mu * (ahead / (4 * len(w) * mu)) ** 3
        move, da, dxi, dp = direction(goal - a * p - da * dp, goal - rest * xi + da * dxi)
        size = min(1.0, 0.995 * _longest(a, da, rest, xi, dxi, p, dp))
        self.stuck = size < 1e-10
        self.theta = self.theta + size * move
        self.beta, self.xi, self.slack = a + size * da, xi + size * dxi, p + size * dp
        return self._gap()

    def _gap(self) -> tuple[float, float]:
        loss = float((np.maximum(self._residuals(), 0.0) * self.w).sum())
        primal = loss + 0.5 * float(self.ridge @ (self.theta**2))
        beta = self.beta[0] - self.beta[1]
        own = self.rows.sums(beta, None)[0]  # Λθ of the dual point
        free = self.ridge == 0
        size = float((own[~free] ** 2 / self.ridge[~free]).sum())
        dual = float(self.y @ beta) - self.eps * float(self.beta.sum()) - 0.5 * size
        # an intercept without a penalty asks for a sum of zero
        slip = float(abs(own[free] * self.theta[free]).sum())
        return primal, max(primal - dual, 0.0) + slip

    def store(self, energy: LinearLossEnergy) -> None:
        W, shift = self.theta[: energy.d], self.rows.shift
        energy.W[0] = torch.from_numpy(W).to(energy.W)
        if energy.b is not None:
            energy.b[0] = float(self.theta[-1]) - (0.0 if shift is None else float(W @ shift))


def _longest(a: Any, da: Any, rest: Any, xi: Any, dxi: Any, p: Any, dp: Any) -> float:
    """The longest step that keeps a, w − a, ξ and the slacks positive, at most 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = [
            np.where(move < 0, -value / move, np.inf).min()
            for value, move in ((a, da), (rest, -da), (xi, dxi), (p, dp))
        ]
    return float(min(1.0, *reach))


__all__ = ["TubeInterior"]
