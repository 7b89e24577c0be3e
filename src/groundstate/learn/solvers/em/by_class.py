r"""Each class on its own: :math:`\min_{\theta_k}\sum_{i: y_i = k}w_iL(x_i; \theta_k)`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from groundstate.energy.graphical.by_class import ByClassEnergy
from groundstate.learn.base import History, Problem, Solver
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.em.expected import ExpectedEM
from groundstate.registry import solvers


@solvers.register(
    formula=r"\min_{\theta_k} \sum_{i: y_i = k} w_i L(x_i; \theta_k)", make=lambda energy: ByClass()
)
@dataclass(frozen=True)
class ByClass:
    """A solver for each class of a ``ByClassEnergy``, with the rows of that class.

    Parameters
    ----------
    solver : of the parts
    """

    solver: Any = field(default_factory=ExpectedEM)

    def _problems(self, problem: Problem) -> list[Problem]:
        energy = problem.energy
        assert isinstance(energy, ByClassEnergy)
        x, y, w = problem.resident["x"], problem.resident["y"], problem.sample_weight
        return [
            replace(
                problem, energy=part, data={"x": x[rows]},
                sample_weight=None if w is None else w[rows],
            )
            for part, rows in energy.groups(y)
        ]  # fmt: skip

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, ByClassEnergy):
            return f"{type(problem.energy).__name__} has no parts for classes"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        solver: Solver = self.solver
        reasons = [solver.reason_against(p) for p in self._problems(problem)]
        return next((r for r in reasons if r is not None), None)

    def run(self, problem: Problem) -> History:
        solver: Solver = self.solver
        parts = self._problems(problem)
        history = History(solver="ByClass", stop="all classes", converged=True)
        weight, last = [part.total_weight for part in parts], []
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=len(parts))) as monitor:
            for part in parts:
                found = solver.run(replace(part, callbacks=()))
                last.append(found.objective[-1] if found.objective else math.nan)
                history.converged = history.converged and found.converged
                history.n_iter = max(history.n_iter, found.n_iter)
                history.seconds.append(sum(found.seconds))
                mean = sum(v * w for v, w in zip(last, weight, strict=False)) / sum(
                    weight[: len(last)]
                )
                history.objective.append(mean)
                if monitor.epoch(mean):
                    break
        return history
