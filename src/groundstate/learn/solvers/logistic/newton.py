r"""Newton's method for the linear soft-min: logistic and softmax regression."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Literal

import torch

from groundstate.compute.thread_policy import for_rows
from groundstate.energy.basic import LinearEnergy
from groundstate.errors import NotConverged, SeparationWarning
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import plain_l2
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse
from groundstate.learn.solvers.logistic.large import (
    MAX_DENSE,
    conjugate_newton,
    exact_newton,
    metric_newton,
    sampled_newton,
)
from groundstate.learn.solvers.logistic.objective import SoftmaxObjective, reason_against_softmax
from groundstate.registry import solvers

MAX_FEATURES = 1000  # a dense matrix of columns by columns: beyond this L-BFGS is the better trade
SMALL = 2**15  # rows times unknowns below which the whole Hessian costs less than a call
LARGE = 2**21  # rows times unknowns from which a part of the rows gives the Hessian
HUGE = 2**24  # where for several classes a part of the rows beats the metric
WAYS = {
    "exact": exact_newton,
    "metric": metric_newton,
    "sampled": sampled_newton,
    "conjugate": conjugate_newton,
}


@solvers.register(formula=r"\Delta\theta = -H^{-1}\nabla J", make=lambda energy: Newton())
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
            rows = SoftmaxObjective(problem)
            # a tenth of the tolerance, so that the answer does not depend on the path to it
            steps = WAYS[way](rows, self.tol if way == "exact" else 0.1 * self.tol)
            theta, start = rows.start(), time.perf_counter()
            for step in steps:
                theta, history.converged = step.theta, step.done
                if problem.callbacks:
                    rows.store(theta)
                history.objective.append(step.value)
                history.seconds.append(time.perf_counter() - start)
                start = time.perf_counter()
                if monitor.epoch(step.value) or step.done or run.epoch >= self.max_iter:
                    break
                if problem.penalty is None and rows.separates(theta):
                    history.stop = "separable"
                    break
            else:  # no descent is left
                history.converged = True
                if not history.objective:  # already at the start
                    history.objective.append(rows.evaluate(theta)[0])
                    monitor.epoch(history.objective[0])
            rows.store(theta)
        if history.stop != "callback":
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
