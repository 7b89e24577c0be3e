r"""The closed form where the sufficient statistics were found elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.learn.base import History, Problem
from groundstate.learn.solvers.passes import at_once


@dataclass(frozen=True)
class FromStatistics:
    r"""Set θ to the minimiser that belongs to given sums, :math:`\theta = \arg\min_\theta s(\theta)`.

    Parameters
    ----------
    stats : sums by name, as the energy's ``from_stats`` takes them
    """

    stats: Mapping[str, Tensor]

    def reason_against(self, problem: Problem) -> str | None:
        if problem.energy.ability("from_stats") is None:
            return f"{type(problem.energy).__name__} offers no from_stats"
        return None if problem.penalty is None else "given sums know of no penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        from_stats = problem.energy.ability("from_stats")
        assert from_stats is not None
        with at_once(problem, "FromStatistics") as history:
            from_stats(dict(self.stats))
        return history
