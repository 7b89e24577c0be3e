r"""A local metric is learned by remembering rows and finding how far a neighbourhood reaches."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch

from groundstate.compute.rows.distinct import merged
from groundstate.energy.neighbors.local_metric import LocalMetricEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.math.distances.local_metric import LocalMetric


@dataclass(frozen=True)
class Remembered:
    """Keep the rows with their weights.

    Parameters
    ----------
    sigma : width, or "auto"; where most rows have many twins, "auto" is the root of ``rho``
    rho : the least variance
    kind : "diagonal" or "full"
    """

    sigma: Any = "auto"
    rho: float = 1e-2
    kind: Any = "diagonal"

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, LocalMetricEnergy):
            return "it is for a local metric"
        return None if problem.is_resident else "it needs resident x"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        history = History(converged=True, solver="Remembered", stop="closed form", n_iter=1)
        energy = problem.energy
        assert isinstance(energy, LocalMetricEnergy)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            rows, w = merged({"x": problem.resident["x"].detach()}, problem.sample_weight)
            energy.remember(fitted_metric(rows["x"], w, self.sigma, self.rho, self.kind))
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(float("nan"))
        return history


def fitted_metric(x: Any, w: Any, sigma: Any, rho: float, kind: Any) -> LocalMetric:
    """The metric of some rows; twins do not make its neighbourhoods vanish."""
    try:
        return LocalMetric(x, sigma, rho, weights=w, kind=kind)
    except ValueError:
        if sigma != "auto":
            raise
        return LocalMetric(x, rho**0.5, rho, weights=w, kind=kind)
