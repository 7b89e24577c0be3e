r"""Learning by heart: θ is the rows themselves."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import torch

from groundstate.energy.neighbors.index import NeighborIndexEnergy
from groundstate.energy.neighbors.votes import NeighborEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run


@dataclass(frozen=True)
class Memorise:
    r"""Keep all rows, :math:`\theta = \{(x_i, y_i, w_i)\}_i`: the work is done when a question comes.

    Without y the rows alone are kept. Every row is its own nearest
    neighbour, so with one neighbour the energy of the data is zero.
    """

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, NeighborEnergy | NeighborIndexEnergy):
            return "it is for energies that remember rows"
        needed = [name for name in ("x", "y") if name in problem.energy.spaces]
        if not problem.is_resident or set(problem.names) != set(needed):
            return f"it needs resident {' and '.join(needed)}"
        if problem.penalty is not None:
            return "it has no parameters to penalise"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy, data = problem.energy, problem.resident
        assert isinstance(energy, NeighborEnergy | NeighborIndexEnergy)
        history = History(converged=True, solver="Memorise", stop="memorised")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            if isinstance(energy, NeighborIndexEnergy):
                energy.remember(data["x"], problem.sample_weight)
            else:
                energy.remember(data["x"], data["y"], problem.sample_weight)
            history.seconds.append(time.perf_counter() - start)
            value = float("nan")
            if problem.callbacks:
                with warnings.catch_warnings():  # no energy falls here, so none falls without end
                    warnings.filterwarnings("ignore", "Naive lowers")
                    value = float(problem.objective())
                history.objective.append(value)
            monitor.epoch(value)
        return history
