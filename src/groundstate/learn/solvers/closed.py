r"""Closed form: one pass of sufficient statistics, then the minimiser."""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L2, plain_l2
from groundstate.registry import solvers


@solvers.register(formula=r"\theta = \arg\min_\theta\, s(\theta)", make=lambda energy: Closed())
@dataclass(frozen=True)
class Closed:
    r"""Set θ to the exact minimiser from sums over rows, :math:`s = \sum_i w_i\, t(x_i, y_i)`.

    Runs where the energy offers ``stats`` and ``from_stats``, every variable is observed, and the
    contrast does not depend on θ (``Naive``, or ``SoftMin`` with a θ-free normaliser). Statistics
    of chunks and shards add.

    Parameters
    ----------
    chunk_rows : rows of one pass over resident data
    with_objective : look once more at the rows for the objective; callbacks always get it
    """

    chunk_rows: int = 2**18
    with_objective: bool = True

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        name = type(energy).__name__
        if energy.ability("stats") is None or energy.ability("from_stats") is None:
            return f"{name} offers no stats and from_stats"
        if problem.is_resident and problem.rule.latents(energy, problem.names):
            return f"{', '.join(problem.rule.latents(energy, problem.names))} is not observed"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if problem.penalty is not None and not (
            plain_l2(problem.penalty)
            and torch.as_tensor(problem.penalty.strength).ndim == 0
            and "l2" in _arguments(energy.ability("from_stats"))
        ):
            return f"{name} has no closed form with the penalty {type(problem.penalty).__name__}"
        return None

    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        stats_of, from_stats = energy.ability("stats"), energy.ability("from_stats")
        assert stats_of is not None and from_stats is not None
        total: dict[str, Tensor] = {}
        history = History(converged=True, solver="Closed", stop="closed form")
        monitor = Monitor(problem.callbacks, Run(problem, history, max_epochs=1))
        with monitor, torch.no_grad():
            for batch, weight in problem.chunks(self.chunk_rows):
                for k, v in stats_of(weight, **batch).items():
                    total[k] = total[k] + v if k in total else v
            total = current().sum_dict(total)
            if isinstance(problem.penalty, L2):
                from_stats(total, l2=problem.penalty.strength)
            else:
                from_stats(total)
            history.seconds.append(time.perf_counter() - start)
            wanted = self.with_objective or problem.callbacks
            objective = float(problem.objective()) if wanted and problem.is_resident else math.nan
            if wanted:
                history.objective.append(objective)
            monitor.epoch(objective)
        return history


def _arguments(method: object) -> tuple[str, ...]:
    return tuple(inspect.signature(method).parameters) if callable(method) else ()
