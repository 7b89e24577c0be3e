"""What may watch and stop a solver while it runs.

Every iterative solver reports to its callbacks through one ``Monitor``: at the start, after each
step (only to callbacks that ask for steps), after each epoch or iteration, and at the end. A hook
that returns True stops the run. A run without callbacks pays nothing.
"""

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
    everything needed to go on exactly from here, where the solver supports it.
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
    logs: dict[str, float] = field(default_factory=dict)

    @property
    def energy(self) -> Energy:
        return self.problem.energy


class Callback:
    """Base of callbacks; override the hooks you need. Returning True stops the run."""

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


class Monitor:
    """Fans events out to the callbacks of one run."""

    def __init__(self, callbacks: Sequence[Callback], run: Run) -> None:
        self.run = run
        self.callbacks = tuple(callbacks)
        self.steppers = tuple(c for c in self.callbacks if type(c).on_step is not Callback.on_step)

    def __enter__(self) -> Monitor:
        for callback in self.callbacks:
            callback.on_begin(self.run)
        return self

    def __exit__(self, *exc: object) -> None:
        for callback in self.callbacks:
            callback.on_end(self.run)

    def step(self) -> bool:
        """Report a finished step; True when a callback wants to stop."""
        wishes = [c.on_step(self.run) for c in self.steppers]  # all are told, whoever stops
        return any(wishes)

    def epoch(self, objective: float) -> bool:
        """Report a finished epoch with its objective; True when a callback wants to stop."""
        run = self.run
        run.epoch += 1
        run.step = 0
        run.objective = objective
        run.history.n_iter = run.epoch
        wishes = [c.on_epoch(run) for c in self.callbacks]
        stop = any(wishes)
        if stop:
            run.history.stop = run.history.stop or "callback"
        return stop


class EarlyStopping(Callback):
    """Stop when a validation objective has not improved by ``min_delta`` for ``patience`` epochs.

    Parameters
    ----------
    validation : mapping of tensors, optional
        Held-out rows; the rule's weighted mean loss on them is watched. None watches the training
        objective.
    sample_weight : (M,) tensor, optional
        Weights of the held-out rows.
    restore_best : bool
        Put the best parameters back at the end.
    """

    def __init__(
        self,
        validation: Mapping[str, Tensor] | None = None,
        *,
        sample_weight: Tensor | None = None,
        patience: int = 10,
        min_delta: float = 0.0,
        restore_best: bool = True,
    ) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1 epoch, got {patience}")
        self.validation = validation
        self.sample_weight = sample_weight
        self.patience = patience
        self.min_delta = min_delta
        self.restore_best = restore_best

    def on_begin(self, run: Run) -> None:
        self.best = math.inf
        self.best_epoch = 0
        self._kept: dict[str, Tensor] | None = None

    def on_epoch(self, run: Run) -> bool:
        value = run.objective if self.validation is None else self._validate(run)
        run.history.extra.setdefault("validation", []).append(value)
        if value < self.best - self.min_delta:
            self.best, self.best_epoch = value, run.epoch
            if self.restore_best:
                self._kept = {k: v.clone() for k, v in run.energy.state_dict().items()}
        stop = run.epoch - self.best_epoch >= self.patience
        if stop:
            run.history.stop = f"no improvement in {self.patience} epochs"
        return stop

    def on_end(self, run: Run) -> None:
        if self._kept is not None:
            run.energy.load_state_dict(self._kept)

    def _validate(self, run: Run) -> float:
        import torch

        from groundstate.learn.base import weighted_mean

        assert self.validation is not None
        rule = run.problem.rule
        training = rule.training, run.energy.training
        rule.eval(), run.energy.eval()
        generator = run.problem.key.fold("validation").torch(run.energy.placement()[0])
        with torch.enable_grad() if rule.needs_gradient else torch.no_grad():
            terms = rule(run.energy, self.validation, generator=generator)
            value = float(weighted_mean(terms.loss.detach(), self.sample_weight))
        rule.train(training[0]), run.energy.train(training[1])
        return value


class Progress(Callback):
    """A live bar on the terminal, silent when the output is not one.

    Parameters
    ----------
    description : str
        Text before the bar; the name of the energy by default.
    """

    def __init__(self, description: str = "") -> None:
        self.description = description

    def on_begin(self, run: Run) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[objective]}"),
            TimeRemainingColumn(),
            transient=True,
        )
        self._bar.disable = not self._bar.console.is_terminal
        self._task = self._bar.add_task(
            self.description or type(run.energy).__name__,
            total=run.max_epochs,
            completed=run.epoch,
            objective="",
        )
        self._bar.start()

    def on_epoch(self, run: Run) -> None:
        text = f"{run.objective:.6g}"
        self._bar.update(self._task, completed=run.epoch, objective=text)

    def on_end(self, run: Run) -> None:
        self._bar.stop()
