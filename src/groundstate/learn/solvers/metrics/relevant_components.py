r"""Relevant components: directions in which rows of one class differ count for little."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from groundstate.energy.neighbors.linear_metric import LinearMetricEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.metrics.neighborhood import reason_against, rows_of, set_map
from groundstate.learn.solvers.metrics.starts import discriminant, whitener, within


@dataclass(frozen=True)
class RelevantComponents:
    r"""The inverse covariance within the classes, :math:`M = J^\top J = \Sigma_w^{-1}`, in closed form.

    Directions without any spread within the classes are left out. With fewer rows of J than features
    they are those in which the classes differ most (discriminant directions).
    """

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem)

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearMetricEnergy)
        start = time.perf_counter()
        history = History(converged=True, solver="RelevantComponents", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            x, y, w = (t.cpu().numpy() for t in rows_of(problem))
            p, d = energy.J.shape
            S = within(x, y, w)[0] / w.sum()
            if not np.trace(S) > 0:
                raise DataError(
                    "rows of one class are all equal, so that there is no spread within the classes "
                    "to measure by; RCA needs at least one class with two different rows"
                )
            if p < d:
                J = discriminant(x, y, w, p)
            else:
                root = whitener(S)
                J = np.zeros((p, d))
                J[: len(root)] = root
            set_map(energy, J)
            energy.remember(problem.resident["x"], problem.resident["y"], problem.sample_weight)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(0.0)
        return history
