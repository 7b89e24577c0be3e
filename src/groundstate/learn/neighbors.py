r"""Learning by heart: θ is the rows themselves."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from groundstate.energy.neighbors import NeighborEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin


@solver_for(NeighborEnergy, SoftMin)
@solver_for(NeighborEnergy, Naive)
@dataclass(frozen=True)
class Memorise:
    r"""Keep all rows, :math:`\theta = \{(x_i, y_i, w_i)\}_i`: the work is done when a question comes.

    Every row is its own nearest neighbour, so with one neighbour the energy of the data is zero.
    """

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, NeighborEnergy):
            return "it is for energies that remember rows"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "it has no parameters to penalise"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy, data = problem.energy, problem.resident
        assert isinstance(energy, NeighborEnergy)
        history = History(converged=True, solver="Memorise", stop="memorised")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            energy.remember(data["x"], data["y"], problem.sample_weight)
            history.seconds.append(time.perf_counter() - start)
            value = float(problem.objective()) if problem.callbacks else float("nan")
            if problem.callbacks:
                history.objective.append(value)
            monitor.epoch(value)
        return history


__all__ = ["Memorise"]
