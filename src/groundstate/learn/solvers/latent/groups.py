r"""Groups found by an algorithm of its own, kept as the rows of an energy."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.energy.latent.linkage import LinkageEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run


@dataclass(frozen=True)
class KeepGroups:
    r"""Keep the rows of groups that are known, :math:`\theta = \{(x_i, z_i)\}_i`.

    Parameters
    ----------
    rows : numbers of the rows to keep, ``(m,)``
    group : the group of each, ``(m,)``
    core : least distances at which they are reached, ``(m,)``
    reach : how far groups reach, ``(k,)``
    """

    rows: Tensor
    group: Tensor
    core: Tensor | None = None
    reach: Tensor | None = None

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, LinkageEnergy):
            return "it is for a LinkageEnergy"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        return None if problem.penalty is None else "it has no parameters to penalise"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy, x = problem.energy, problem.resident["x"]
        assert isinstance(energy, LinkageEnergy)
        history = History(converged=True, solver="KeepGroups", stop="kept", n_iter=1)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            columns = self.rows if energy.memory.metric == "precomputed" else None
            kept = x[self.rows.to(x.device)]
            energy.remember(kept, self.group, self.core, self.reach, columns)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(float("nan"))  # the energy of all rows costs more than to find the groups
        return history


__all__ = ["KeepGroups"]
