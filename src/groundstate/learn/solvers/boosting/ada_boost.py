r"""AdaBoost (SAMME): members that look at the rows their predecessors got wrong."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.trees.votes import VoteEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.trees.member import GrownMember
from groundstate.registry import solvers

Member = Callable[[Tensor, Tensor, Tensor, Key], Energy]


def stump(x: Tensor, y: Tensor, weight: Tensor, key: Key) -> Energy:
    """A tree with one cut."""
    return GrownMember()(x, y, weight, key)


@solvers.register(
    formula=r"w_i \leftarrow w_i e^{a\,1[h(x_i) \ne y_i]}", make=lambda e: AdaBoost(10)
)
@dataclass(frozen=True)
class AdaBoost:
    r"""Lower :math:`\sum_i e^{-f(x_i) t_i}` member by member.

    With the weighted error ε of a member, :math:`a = \nu(\ln\frac{1-\varepsilon}{\varepsilon} +
    \ln(K-1))` and :math:`w_i \leftarrow w_i e^{a 1[h(x_i) \ne y_i]}`. It stops at ε = 0, and before
    a member that is no better than chance, ε ≥ 1 − 1/K.

    Parameters
    ----------
    n_members : at most
    learning_rate : ν
    member : fits one: ``member(x, y, weight, key) -> Energy``
    """

    n_members: int = 50
    learning_rate: float = 1.0
    member: Member = stump

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, VoteEnergy):
            return "it fits the members of a vote"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return "it has no penalty" if problem.penalty is not None else None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        history = History(solver="AdaBoost", stop="max_iter")
        energy: Any = problem.energy
        x, y = problem.resident["x"], problem.resident["y"]
        given = problem.sample_weight
        w = torch.ones(len(x), dtype=torch.float64) if given is None else given.double().cpu()
        total = float(w.sum())  # members see as much weight as there is, for their penalties
        w = w / total
        k = energy.k
        with Monitor(problem.callbacks, Run(problem, history, self.n_members)) as monitor:
            for t in range(self.n_members):
                scaled = (w * total).to(x.device, x.dtype)
                with torch.enable_grad():  # members may learn by gradients
                    own = self.member(x, y, scaled, problem.key.fold("member", t))
                wrong = (own.table("y", x=x).argmin(1) != y).cpu()
                error = float(w[wrong].sum())
                history.extra.setdefault("error", []).append(error)
                if error >= 1 - 1 / max(k, 2) - 1e-12 and k > 1:
                    history.extra["error"].pop()
                    if t == 0:
                        raise DataError(
                            f"the first member is no better than chance (error {error:.3f}); boosting "
                            "needs weak learners that are: try a deeper or another estimator"
                        )
                    history.stop = "a member is no better than chance"
                    break
                perfect = error <= 1e-15
                a = 1.0
                if not perfect:
                    odds = math.log((1 - error) / error) + math.log(max(k - 1, 1))
                    a = self.learning_rate * odds
                    w = w * torch.where(wrong, math.exp(a), 1.0)
                    w = w / w.sum()
                energy.add(own, a)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(error) or perfect:
                    history.converged = perfect
                    history.stop = "no error left" if perfect else history.stop
                    break
        history.n_iter = len(energy.members)
        return history
