r"""L1 and elastic-net penalties on a linear soft-min: proximal Newton on working sets, with a gap.

:math:`P(\theta) = \sum_i w_i\ell_i + \lambda\|\theta\|_1 + \tfrac\mu2\|\theta\|^2`. With the residual
:math:`r_i = w_i(1_{y_i} - p_i)` and :math:`g = X^\top r - \mu\theta`, the point :math:`\tau r` for
:math:`\tau = \min(1, \lambda/\|g\|_\infty)` is dual feasible once the intercepts are optimal, and

.. math::
    D = -\sum_i w_i\sum_k q_{ik}\log q_{ik} - \tfrac{\tau^2\mu}2\|\theta\|^2, \qquad
    q_i = 1_{y_i} - \tau(1_{y_i} - p_i),

bounds the optimum from below. Entries with
:math:`\tau|g_{kj}| + \sqrt{(P - D)\sum_i w_ix_{ij}^2/2} < \lambda` are zero at the optimum.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from groundstate.compute.reduce import current
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L1, ElasticNet
from groundstate.learn.solvers.logistic.objective import reason_against_softmax
from groundstate.learn.solvers.logistic.sparse_rows import SparseLogit
from groundstate.registry import solvers

START = 10  # columns of the first working set
ROUNDING = 1e-6  # relative gap at which steps that no longer descend are an optimum
PATIENCE = 6  # working sets without descent before that
INNER = 4  # proximal Newton steps on one working set


@solvers.register(
    formula=r"\theta \leftarrow \arg\min_u \tfrac12\|u - \theta + H^{-1}\nabla\|_H^2 + \lambda\|u\|_1",
    make=lambda energy: ProximalNewton(),
)
@dataclass(frozen=True)
class ProximalNewton:
    r"""Solve :math:`\min_\theta \sum_i w_i\ell_i + \lambda\|\theta\|_1 + \tfrac\mu2\|\theta\|^2`.

    Intercepts are free. The loss is replaced by its quadratic model, a lasso on the working set of
    columns; a line search on the true objective makes every step one of descent. The set grows by
    the columns that violate the optimality conditions most, and columns that the duality gap proves
    to be zero are left out. Rows may be sparse.

    Parameters
    ----------
    max_iter : working sets at most
    tol : duality gap at the end, relative to the objective at zero
    """

    max_iter: int = 100
    tol: float = 1e-8

    def reason_against(self, problem: Problem) -> str | None:
        reason = reason_against_softmax(problem)
        if reason is not None:
            return reason
        penalty = problem.penalty
        if not isinstance(penalty, L1 | ElasticNet):
            return "it needs an L1 or elastic-net penalty"
        if penalty.select is not None or penalty.intercept:
            return "it penalises all weights and no intercept"
        if bool((problem.resident["y"] < 0).any()):
            return "some targets are unknown"
        if current().world > 1:
            return "it needs all rows in one process"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="ProximalNewton")
        run = Run(problem, history, self.max_iter)
        state = SparseLogit(problem)
        size, stalled, start = START, 0, time.perf_counter()
        gap = goal = np.inf
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter:
                state.balance()
                g = state.correlations()
                primal, gap, tau = state.gap(g)
                goal = max(self.tol, 1e-11) * state.at_zero
                if problem.callbacks or gap <= goal:
                    state.store()
                history.objective.append(primal / state.total)
                history.seconds.append(time.perf_counter() - start)
                start = time.perf_counter()
                if monitor.epoch(history.objective[-1]):
                    break
                if gap <= goal:
                    history.converged = True
                    break
                state.screen(g, gap, tau)
                chosen = _chosen(state, g, size)
                size = max(size, 2 * len(chosen))
                moved = 0
                while moved < INNER and state.newton(chosen, 0.01 * gap):
                    moved += 1
                stalled = 0 if moved else stalled + 1
                if stalled > PATIENCE:  # rounding is all that is left
                    history.converged = gap <= ROUNDING * state.at_zero
                    break
        state.store()
        history.extra["dual_gap"] = [float(gap) / state.total]
        history.extra["screened"] = [float((~state.alive).sum())]
        if not history.stop:
            history.stop = "duality gap" if history.converged else "max_iter"
        if history.stop == "max_iter":
            warnings.warn(
                f"proximal Newton stopped after {self.max_iter} working sets with a duality gap of "
                f"{gap:.3g}, above {goal:.3g}; raise max_iter or scale the columns",
                NotConverged,
                stacklevel=3,
            )
        return history


def _chosen(state: SparseLogit, g: Any, size: int) -> Any:
    """Columns of the working set: the support, and those that violate most."""
    support = (state.W != 0).any(0)
    reach = np.where(support | ~state.alive, -np.inf, abs(g - state.mu * state.W).max(0))
    others = np.flatnonzero(reach > state.lam * (1 - 1e-3))
    room = max(size - int(support.sum()), START)
    if len(others) > room:
        others = others[np.argpartition(-reach[others], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(support), others]))
