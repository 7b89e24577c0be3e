r"""A line in a tube, in the dual, one row at a time.

.. math::
    \min_\beta\; \tfrac12\bigl\|\textstyle\sum_i\beta_i\tilde x_i\bigr\|_\Lambda^2
    - y^\top\beta + \varepsilon\|\beta\|_1, \qquad |\beta_i| \le w_i,

with :math:`W = \sum_i\beta_i x_i/\lambda` and :math:`b = \sum_i\beta_i/\lambda_b`. The best
:math:`\beta_i` given the others is a soft threshold within its box. The duality gap says how far the
optimum can be.
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
from groundstate.learn.penalties.norms import L2
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    add_row,
    dot_row,
    jit,
    matrix_of,
    rows_of,
    shuffle,
    squared_norms,
    stream,
    strengths,
)
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.losses import EpsilonInsensitive
from groundstate.registry import solvers


@solvers.register(
    formula=r"\beta_i \leftarrow \mathrm{clip}(\mathrm{soft}_\varepsilon(\cdot), \pm w_i)",
    make=lambda energy: TubeDual(),
)
@dataclass(frozen=True)
class TubeDual:
    r"""Dual coordinate descent on :math:`\sum_i w_i\max(0, |r_i| - \varepsilon)
    + \tfrac\lambda2\|W\|^2 + \tfrac{\lambda_b}2b^2`.

    Rows whose coefficient cannot leave its bound or zero are set aside.

    Parameters
    ----------
    max_iter : passes over the rows at most
    tol : largest step of optimality that is left in a pass, in units of y
    """

    max_iter: int = 1000
    tol: float = 1e-4

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, LinearLossEnergy) or type(energy.loss) is not EpsilonInsensitive:
            return "it is for a line with the loss epsilon_insensitive"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        own = strengths(problem.penalty, L2)
        if own is None or own[0] <= 0 or (energy.bias and own[1] <= 0):
            return "it needs an L2 penalty on the weights and the intercept"
        if problem.resident["x"].device.type != "cpu":
            return "it visits one row at a time, which is for the CPU"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearLossEnergy)
        assert isinstance(energy.loss, EpsilonInsensitive)
        history = History(solver="TubeDual")
        run = Run(problem, history, self.max_iter)
        x, given = problem.resident["x"].detach(), problem.resident["y"].detach()
        own = strengths(problem.penalty, L2)
        assert own is not None
        index, box = canonical_rows(matrix_of(x), given, problem.sample_weight)
        y = given.double().numpy()[:, 0]
        inverse = 1 / own[0], 1 / own[1] if energy.bias else 0.0
        diagonal = inverse[0] * squared_norms(x) + inverse[1]
        rows, theta, beta = rows_of(x), np.zeros(energy.d + 1), np.zeros(len(index))
        place, random = np.arange(len(index)), stream(problem.key.fold("visits"))
        size, limit, eps = len(index), np.inf, energy.loss.epsilon
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                passes = 1 if problem.callbacks else min(10, self.max_iter - run.epoch)
                size, limit, left = tube_passes(
                    rows, y, index, box, diagonal, beta, theta, *inverse, eps, place, size, limit,
                    random, self.tol, passes,
                )  # fmt: skip
                history.converged = left <= self.tol
                energy.W[0] = torch.from_numpy(theta[:-1]).to(energy.W)
                if energy.b is not None:
                    energy.b[0] = float(theta[-1])
                value = _dual(theta, y[index], beta, eps, own) / problem.total_weight
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - start)
                run.epoch += passes - 1
                if monitor.epoch(value) or history.converged:
                    break
        history.stop = history.stop or ("optimal" if history.converged else "max_iter")
        if history.stop == "max_iter":
            warnings.warn(
                f"the dual reached {left:.2g}, not tol={self.tol}, in {self.max_iter} passes; raise "
                "max_iter, lower C or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history


def _dual(theta: Any, y: Any, beta: Any, eps: float, own: tuple[float, float]) -> float:
    size = own[0] * float(theta[:-1] @ theta[:-1]) + own[1] * float(theta[-1] ** 2)
    return float(y @ beta) - eps * float(abs(beta).sum()) - 0.5 * size


@jit
def tube_passes(
    rows: Any, y: Any, index: Any, box: Any, diagonal: Any, beta: Any, theta: Any,
    scale: float, centre: float, eps: float, place: Any, size: int, limit: float, random: Any,
    tol: float, passes: int,
) -> tuple[int, float, float]:  # fmt: skip
    """Passes over the active rows: how many are left, the last violation, and it over all rows."""
    x, sparse = rows
    n, d = len(index), len(theta) - 1
    worst = 0.0
    for _ in range(passes):
        shuffle(place, size, random)
        worst = 0.0
        p = 0
        while p < size:
            q = place[p]
            i = index[q]
            g = dot_row(x, sparse, i, theta) + theta[d] - y[i]
            up, down, a, u = g + eps, g - eps, beta[q], box[q]
            aside = False
            if a == 0.0:
                off = -up if up < 0.0 else down if down > 0.0 else 0.0
                aside = up > limit and down < -limit
            elif a >= u:
                off = max(up, 0.0)
                aside = up < -limit
            elif a <= -u:
                off = max(-down, 0.0)
                aside = down > limit
            else:
                off = abs(up) if a > 0.0 else abs(down)
            if aside:
                size -= 1
                place[p], place[size] = place[size], q
                continue
            worst = max(worst, off)
            if off > 1e-14 and diagonal[i] > 0.0:
                h = diagonal[i]
                if up < h * a:
                    move = -up / h
                elif down > h * a:
                    move = -down / h
                else:
                    move = -a
                new = min(max(a + move, -u), u)
                if new != a:
                    beta[q] = new
                    by = new - a
                    add_row(x, sparse, i, scale * by, theta)
                    theta[d] += centre * by
            p += 1
        if worst <= tol:
            if size == n:
                return size, worst, worst
            size, limit = n, np.inf
            continue
        limit = worst
    return size, limit, worst if size == n and worst <= tol else np.inf
