"""A live line on the terminal."""

from __future__ import annotations

import time

from groundstate.learn.callbacks.base import Callback, Run


class Progress(Callback):
    """A live bar with the objective, examples per second and the time left.

    It is silent when the output is not a terminal. Within long epochs it moves at most a few times
    per second.

    Parameters
    ----------
    description : str
        Text before the bar; the name of the energy by default.
    every : float, default=0.2
        Seconds between updates inside an epoch.
    """

    def __init__(self, description: str = "", every: float = 0.2) -> None:
        self.description, self.every = description, every

    def on_begin(self, run: Run) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[place]}"),
            TextColumn("{task.fields[objective]}"),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            transient=True,
        )
        self._bar.disable = not self._bar.console.is_terminal
        self._task = self._bar.add_task(
            self.description or type(run.energy).__name__,
            total=run.max_epochs,
            completed=run.epoch,
            place=f"{run.epoch}/{run.max_epochs}",
            objective="",
            speed="",
        )
        self._bar.start()
        self._start = self._last = time.perf_counter()
        self._before = (run.examples, run.epoch)
        self._steps = 0  # of a whole epoch, known after the first

    def on_step(self, run: Run) -> None:
        now = time.perf_counter()
        if now - self._last < self.every or self._bar.disable:
            return
        within = run.step / self._steps if self._steps else 0.0
        self._show(run, run.epoch + min(within, 1.0), now)

    def on_epoch(self, run: Run) -> None:
        if run.epoch > self._before[1]:
            self._steps = run.total_steps // run.epoch
        self._show(run, float(run.epoch), time.perf_counter())

    def _show(self, run: Run, done: float, now: float) -> None:
        self._last = now
        self._bar.update(
            self._task,
            completed=done,
            place=f"{run.epoch}/{run.max_epochs}",
            objective="" if run.objective != run.objective else f"{run.objective:.6g}",
            speed=self.speed(run, now - self._start),
        )

    def speed(self, run: Run, seconds: float) -> str:
        """Examples per second since the start, or nothing where the solver does not count them."""
        seen = run.examples - self._before[0]
        return f"{seen / seconds:,.0f} examples/s" if seen and seconds > 0 else ""

    def on_end(self, run: Run) -> None:
        self._bar.stop()
