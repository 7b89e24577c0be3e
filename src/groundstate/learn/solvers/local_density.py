r"""Learning local densities: rows are remembered with how dense it is around them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from groundstate.energy.neighbors.local_density import LocalDensityEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run


@dataclass(frozen=True)
class LocalDensities:
    """Keep all rows, the distance to their k-th neighbour, and their densities."""

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, LocalDensityEnergy):
            return "it is for local densities"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x alone"
        return "it takes no penalty" if problem.penalty is not None else None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, LocalDensityEnergy)
        history = History(converged=True, solver="LocalDensities", stop="memorised", n_iter=1)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            energy.remember(problem.resident["x"], problem.sample_weight)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(float("nan"))
        return history
