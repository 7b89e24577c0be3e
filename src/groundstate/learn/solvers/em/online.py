r"""EM on mini-batches: statistics as a moving average."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.em.steps import ClosedM, MStep
from groundstate.learn.train.feed import Feed

if TYPE_CHECKING:
    from groundstate.learn.solvers.em.em import EM


def decaying(t: int) -> float:
    r""":math:`\rho_t = (t+2)^{-0.7}`: sums to infinity, its squares do not."""
    return float((t + 2) ** -0.7)


class Move(Protocol):
    """How a mini-batch moves θ; ``average`` is all that is remembered between mini-batches."""

    average: dict[str, Tensor]

    def step(self, unit: dict[str, Tensor], t: int) -> None:
        """Move θ by the statistics of a unit of weight, after ``t`` mini-batches."""
        ...


@dataclass
class Averaged:
    r""":math:`s \leftarrow (1-\rho_t)s + \rho_t s_{batch}`, then θ from s as if from all rows."""

    set_theta: Callable[[dict[str, Tensor]], None]
    total: float
    rho: Callable[[int], float] | None
    average: dict[str, Tensor] = field(default_factory=dict)  # statistics of a unit of weight

    def step(self, unit: dict[str, Tensor], t: int) -> None:
        old = self.average or unit
        rho = (self.rho or decaying)(t) if self.average else 1.0
        self.average = {k: torch.lerp(old[k], v, rho) for k, v in unit.items()}
        self.set_theta({k: v * self.total for k, v in self.average.items()})


def averaged(settings: EM, problem: Problem, m: MStep) -> Averaged:
    """The move of stepwise EM."""
    assert isinstance(m, ClosedM)
    total = problem.total_weight if problem.is_resident else 1.0
    return Averaged(m.set_theta, total, settings.step)


def run_online(settings: EM, problem: Problem) -> History:
    r"""EM with :math:`s \leftarrow (1-\rho_t)s + \rho_t s_{batch}`, s per unit of weight.

    Memory does not grow with the number of rows. J of a pass is the mean over its mini-batches,
    each taken before θ moves.
    """
    return _Online(settings, problem).run()


@dataclass
class _Online:
    settings: EM
    problem: Problem
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])  # J and weight of this pass

    def run(self) -> History:
        settings, problem = self.settings, self.problem
        self.m = settings.m_step(problem)
        self.feed = Feed(problem, settings.batch_size)
        self.move: Move = settings.online_move(problem, self.m)
        history = History(solver="EM")
        self.progress = run = Run(
            problem, history, settings.max_iter, state=self.state, restore=self.restore
        )
        before: float | None = None
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < settings.max_iter:
                if history.objective:
                    before = history.objective[-1]
                start = time.perf_counter()
                if self._pass(monitor):  # a pass cut short is not a pass
                    history.stop = "callback"
                    break
                J = self.sums[0] / max(self.sums[1], 1e-300)
                self.sums = [0.0, 0.0]
                history.objective.append(J)
                history.extra.setdefault("log_likelihood", []).append(-J)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(J):
                    break
                if settings.tol is not None and before is not None and before - J < settings.tol:
                    history.converged = True
                    history.stop = f"J of a pass fell by less than tol={settings.tol}"
                    break
        history.stop = history.stop or "max_iter"
        return history

    @torch.no_grad()
    def _pass(self, monitor: Monitor) -> bool:
        run, settings = self.progress, self.settings
        T = settings.temperature(self.problem, run.epoch)
        for batch, weight, _ in self.feed.epoch(run.epoch, run.step):
            self._step(batch, weight, T)
            run.step += 1
            run.total_steps += 1
            if monitor.steppers and monitor.step():
                return True
        return False

    def _step(self, batch: Any, weight: Tensor | None, T: float) -> None:
        m = self.m
        assert isinstance(m, ClosedM)
        m.begin(T)
        m.add(batch, weight)
        J = m.close()
        unit = {k.removeprefix("stats "): v / m.weight for k, v in m.sums.items()}
        self.move.step(unit, self.progress.total_steps)
        self.sums = [self.sums[0] + J * m.weight, self.sums[1] + m.weight]

    def state(self) -> dict[str, Any]:
        """Everything needed to go on to the same bits."""
        run, history = self.progress, self.progress.history
        return {
            "energy": run.energy.state_dict(),
            "place": [run.epoch, run.step, run.total_steps],
            "average": self.move.average,
            "sums": self.sums,
            "history": [history.objective, history.seconds],
            "extra": history.extra,
        }

    def restore(self, state: dict[str, Any]) -> None:
        run, history = self.progress, self.progress.history
        run.energy.load_state_dict(state["energy"])
        run.epoch, run.step, run.total_steps = state["place"]
        device = run.energy.placement()[0]
        self.move.average = {k: v.to(device) for k, v in state["average"].items()}
        self.sums = list(state["sums"])
        history.objective, history.seconds = map(list, state["history"])
        history.extra = {k: list(v) for k, v in state["extra"].items()}
        history.n_iter = run.epoch
