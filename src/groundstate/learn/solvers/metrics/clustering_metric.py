r"""A metric for clustering: similar pairs near, different ones as far apart as that allows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from groundstate.energy.neighbors.linear_metric import LinearMetricEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.metrics.information_theoretic import root
from groundstate.learn.solvers.metrics.neighborhood import reason_against, set_map
from groundstate.learn.solvers.metrics.pairs import Pairs

F64 = NDArray[np.float64]
RIDGE = 1e-9  # of the mean square of similar pairs, where they do not differ in some direction


@dataclass(frozen=True)
class ClusteringMetric:
    r"""Maximise :math:`\sum_{D}\sqrt{v^\top Mv}` under :math:`\sum_Sv^\top Mv \le 1`, M positive
    semidefinite.

    Both sides only scale with M, so that the same directions minimise

    .. math:: \operatorname{tr}(MS) - \log\sum_{v \in D}\sqrt{v^\top Mv}, \qquad S = \sum_{v \in S}vv^\top,

    without a bound: by L-BFGS over J with :math:`M = J^\top J`, or over the diagonal of J.

    Parameters
    ----------
    pairs : Pairs
    init : first M, ``(d, d)``
    diagonal : only scales of the features are learned
    max_iter, tol : of L-BFGS
    remembers : whether the energy keeps the rows
    """

    pairs: Pairs
    init: F64
    diagonal: bool = False
    max_iter: int = 100
    tol: float = 1e-6
    remembers: bool = True

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem)

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearMetricEnergy)
        start = time.perf_counter()
        history = History(solver="ClusteringMetric")
        p, d = energy.J.shape
        within = self.pairs.similar.T @ self.pairs.similar
        S = within + RIDGE * max(np.trace(within) / d, np.finfo(float).tiny) * np.eye(d)
        far = self.pairs.different

        def full(entries: F64) -> F64:
            return np.diag(entries) if self.diagonal else entries.reshape(p, d)

        def objective(entries: F64) -> tuple[float, F64]:
            J = full(entries)
            mapped = far @ J.T  # (q, p)
            length = np.sqrt((mapped**2).sum(1) + np.finfo(float).tiny)
            total = length.sum()
            JS = J @ S
            slope = 2 * JS - (mapped / length[:, None]).T @ far / total
            value = float((JS * J).sum() - np.log(total))
            return value, (np.diagonal(slope) if self.diagonal else slope).ravel()

        J = np.sqrt(np.diagonal(self.init)) if self.diagonal else root(self.init, p).ravel()
        size = (full(J) @ S * full(J)).sum()
        J = J / np.sqrt(2 * size)  # the best of this shape
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:

            def step(intermediate_result: Any) -> None:
                set_map(energy, full(intermediate_result.x)[:p])
                history.objective.append(float(intermediate_result.fun))
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(float(intermediate_result.fun)):
                    raise StopIteration

            found = minimize(
                objective, J, jac=True, method="L-BFGS-B", callback=step,
                options={"maxiter": self.max_iter, "ftol": self.tol**2, "gtol": self.tol},
            )  # fmt: skip
            best = full(found.x)
            M = best.T @ best
            used = (M * within).sum()  # the bound holds with equality, where anything is bounded
            set_map(energy, root(M / (used if used > 0 else (M * S).sum()), p))
            if self.remembers:
                energy.remember(problem.resident["x"], problem.resident["y"], problem.sample_weight)
        history.n_iter = int(found.nit)
        history.converged, history.stop = bool(found.success), str(found.message)
        return history
