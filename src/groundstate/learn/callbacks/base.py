"""The protocol between a solver and what watches it: ``Run``, ``Callback`` and ``Monitor``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from groundstate.energy.base import Energy
    from groundstate.learn.base import History, Problem


@dataclass
class Run:
    """The state of a solver that callbacks see.

    ``objective`` is the last epoch's mean objective; ``state`` and ``restore`` give and take
    everything needed to go on exactly from here, where the solver supports it. ``loss``, ``batch``
    and ``weight`` are those of the last step, on the device: the loss was taken before the update.
    ``factor`` multiplies the learning rate from the next step on and is for callbacks to change.
    """

    problem: Problem
    history: History
    max_epochs: int
    epoch: int = 0  # finished epochs or iterations
    step: int = 0  # finished steps of the current epoch
    total_steps: int = 0
    objective: float = math.nan
    state: Callable[[], dict[str, Any]] | None = None
    restore: Callable[[dict[str, Any]], None] | None = None
    logs: dict[str, float] = field(default_factory=dict)  # of the current epoch, by name
    loss: Tensor | None = None  # ()
    batch: Mapping[str, Tensor] | None = None
    weight: Tensor | None = None  # (B,)
    factor: float = 1.0
    lr: float = math.nan
    examples: float = 0.0  # rows (units of weight) seen so far
    callbacks: tuple[Callback, ...] = ()
    began: bool = False  # the start has been reported to all callbacks
    waiting: dict[str, dict[str, Any]] = field(default_factory=dict)
    learned: Sequence[Tensor] = ()  # what the main optimiser moves, of energy and rule
    keeps_losses: bool = False  # the objectives of all epochs go into the history
    restored: bool = False  # the best state has been put back, so that nothing else replaces it

    @property
    def energy(self) -> Energy:
        return self.problem.energy

    def callback_states(self) -> dict[str, dict[str, Any]]:
        """What the callbacks need to go on exactly, by class and place, for a checkpoint."""
        states = ((name, callback.state()) for name, callback in self._named())
        return {name: state for name, state in states if state}

    def load_callbacks(self, states: Mapping[str, dict[str, Any]]) -> None:
        """Give the callbacks their states back, once all of them have begun."""
        if not self.began:
            self.waiting = dict(states)
            return
        for name, callback in self._named():
            if name in states:
                callback.load(states[name])

    def _named(self) -> list[tuple[str, Callback]]:
        seen: dict[str, int] = {}
        named = []
        for callback in self.callbacks:
            kind = type(callback).__name__
            seen[kind] = seen.get(kind, -1) + 1
            named.append((f"{kind}.{seen[kind]}", callback))
        return named


class Callback:
    """Base of callbacks; override the hooks you need. Returning True stops the run.

    A callback that keeps something between epochs gives it to checkpoints in ``state`` (numbers,
    strings, lists, dictionaries and tensors) and takes it back in ``load``.
    """

    @property
    def watches(self) -> bool:
        """Whether ``on_epoch`` looks at the objective, which is NaN where nobody does."""
        return True

    def on_begin(self, run: Run) -> None:
        """Before the first step; may restore an earlier state."""

    def on_step(self, run: Run) -> bool | None:
        """After each step of a stochastic solver. Only called where it is overridden."""
        return None

    def on_epoch(self, run: Run) -> bool | None:
        """After each epoch or iteration."""
        return None

    def on_end(self, run: Run) -> None:
        """Always, also when the run fails."""

    def state(self) -> dict[str, Any]:
        """What is needed to go on exactly; empty when there is nothing."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Take back what ``state`` gave; called after ``on_begin``."""


class Monitor:
    """Fans events out to the callbacks of one run, in the order of the list.

    An exception in a hook keeps its type and gets a note that names the callback.

    Attributes
    ----------
    steppers : callbacks that hear of each step
    watching : whether anybody looks at each epoch
    """

    def __init__(self, callbacks: Sequence[Callback], run: Run) -> None:
        self.run = run
        self.callbacks = run.callbacks = (*_masks(run), *callbacks)
        self.steppers = tuple(c for c in self.callbacks if type(c).on_step is not Callback.on_step)
        self._finish_epoch = getattr(getattr(run.problem, "rule", None), "end_epoch", None)
        looking = any(c.watches for c in self.callbacks)
        self.watching = looking or self._finish_epoch is not None
        self._begun: list[Callback] = []

    def __enter__(self) -> Monitor:
        try:
            for callback in self.callbacks:
                self._begun.append(callback)
                self._call(callback, "on_begin")
        except BaseException:
            self._end(quiet=True)
            raise
        self.run.began = True
        if self.run.waiting:
            self.run.load_callbacks(self.run.waiting)
            self.run.waiting = {}
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._end(quiet=kind is not None)

    def _end(self, quiet: bool) -> None:
        """The end is reported to all callbacks; the first failure counts unless one is under way."""
        failure: Exception | None = None
        for callback in self._begun:
            try:
                self._call(callback, "on_end")
            except Exception as error:
                failure = failure or error
        self._begun = []
        if failure is not None and not quiet:
            raise failure

    def _call(self, callback: Callback, hook: str) -> bool:
        try:
            return bool(getattr(callback, hook)(self.run))
        except Exception as error:
            error.add_note(f"raised in {hook} of the callback {type(callback).__name__}")
            raise

    def step(self) -> bool:
        """Report a finished step; True when a callback wants to stop."""
        stop, run = False, self.run
        for callback in self.steppers:  # reported to all, whoever stops
            try:
                stop |= bool(callback.on_step(run))
            except Exception as error:
                error.add_note(f"raised in on_step of the callback {type(callback).__name__}")
                raise
        return stop

    def epoch(self, objective: float) -> bool:
        """Report a finished epoch with its objective; True when a callback wants to stop."""
        run = self.run
        run.epoch += 1
        run.step = 0
        run.objective = objective
        run.history.n_iter = run.epoch
        run.logs.clear()
        if self._finish_epoch is not None:
            self._finish_epoch(run)
        stop = False
        for callback in self.callbacks:
            stop |= self._call(callback, "on_epoch")
        if stop:
            run.history.stop = run.history.stop or "callback"
        return stop


def _masks(run: Run) -> tuple[Callback, ...]:
    """What renews dropout masks after each epoch, where a network has masks that last one."""
    net = getattr(run.problem, "energy", None)
    if net is None or not net._modules:
        return ()
    if not any(vars(m).get("mask_per_epoch", False) for m in net.modules()):
        return ()
    from groundstate.learn.callbacks.masks import EpochMasks

    return (EpochMasks(),)
