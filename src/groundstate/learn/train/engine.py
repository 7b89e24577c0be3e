r"""The loop of every stochastic run: epochs of steps, until each member has stopped.

A run has P members and one step program. A single fit is a population of one whose program
differentiates in place and may be anything that ``Stochastic`` can be asked for; the programs of many
members compute all losses and gradients at once. What they share is here: the order of events,
callbacks, the place in the data, schedules, stops and checkpoints.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from groundstate.compute.device import same_convolutions
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Callback, Monitor, Run
from groundstate.learn.train.checkpoint import Checkpoint

if TYPE_CHECKING:
    from groundstate.learn.train.stochastic import Stochastic


class Engine(ABC):
    """One run; subclasses are the step programs.

    Attributes
    ----------
    progress : where the run stands, as callbacks see it
    history : what it did
    """

    def __init__(self, settings: Stochastic, problem: Problem) -> None:
        self.settings, self.problem = settings, problem
        self.history = History(solver="Stochastic")
        self.progress = Run(
            problem, self.history, settings.max_epochs, state=self.state, restore=self.load
        )
        self.progress.lr = settings.lr

    def run(self) -> History:
        """Run to the end."""
        run, history = self.progress, self.history
        with ExitStack() as stack:
            stack.enter_context(same_convolutions())
            self.begin(stack)
            watching = sorted(self.watching(), key=lambda c: isinstance(c, Checkpoint))
            monitor = stack.enter_context(Monitor(watching, run))
            while run.epoch < self.settings.max_epochs and not history.stop and self.alive():
                if self._epoch(monitor):
                    break
        self.finish()
        history.stop = history.stop or "max_epochs"
        return history

    def _epoch(self, monitor: Monitor) -> bool:
        """One pass over the data; whether it was the last."""
        run, history = self.progress, self.history
        start, began = time.perf_counter(), run.step
        for _ in self.steps(monitor):
            if monitor.steppers and self.agree(monitor.step()):
                history.stop = "callback"
                break
        steps = max(1, run.step - began)
        if run.step == 0:
            raise ValueError("the stream of batches gave no rows in this epoch; can it be re-read?")
        objective = self.close((time.perf_counter() - start) / steps)
        # an epoch cut short is not an epoch: a checkpoint must not take it for a finished one
        if history.stop:
            return True
        settled = self.settled(objective)
        return self.agree(monitor.epoch(objective) or settled)

    # --- what a program does -------------------------------------------------------------

    @abstractmethod
    def begin(self, stack: ExitStack) -> None:
        """Before anything: contexts that last as long as the run."""

    def watching(self) -> list[Callback]:
        """Who gets reports of steps and epochs."""
        return list(self.problem.callbacks)

    def alive(self) -> bool:
        """Whether there is anything left to train."""
        return True

    @abstractmethod
    def steps(self, monitor: Monitor) -> Iterator[None]:
        """Do the rest of the epoch; yields after each step, or several, that is reported to callbacks."""

    def advance(self, steps: int = 1) -> None:
        """Count finished steps."""
        self.progress.step += steps
        self.progress.total_steps += steps

    @abstractmethod
    def close(self, seconds: float) -> float:
        """Read the epoch's numbers; its objective. ``seconds`` is the time of a step."""

    @abstractmethod
    def settled(self, objective: float) -> bool:
        """Whether the run is through by itself; decided before a checkpoint is written."""

    def agree(self, stop: bool) -> bool:
        """What all processes do."""
        return stop

    @abstractmethod
    def finish(self) -> None:
        """After the last epoch."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything needed to go on to the same bits."""

    @abstractmethod
    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
