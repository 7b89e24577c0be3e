"""What is going on, how much of it is done, and how long it took."""

from __future__ import annotations

import time as clocks
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from groundstate.study.race.clock import Clock

Progress = Callable[[str], None]


class Step(str):
    """What runs now, in words.

    Attributes
    ----------
    done : share of the study that is finished, or None
    left : seconds that the rest takes, about, or None
    """

    done: float | None = None
    left: float | None = None


class Watch:
    """Says what starts and remembers how long it took.

    Parameters
    ----------
    progress : is called with each `Step`
    """

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}
        self.clock = Clock(None)
        self.total = self.done = 0.0
        self._begun: float | None = None

    def plan(self, units: float, clock: Clock) -> None:
        """Expect work of so many units, of any kind."""
        self.total, self.clock, self._begun = units, clock, clocks.perf_counter()

    def _step(self, stage: str) -> Step:
        step = Step(stage)
        if self.total and self._begun is not None:
            step.done = min(self.done / self.total, 0.99)
            if self.done:
                spent = clocks.perf_counter() - self._begun
                left = spent * (self.total - self.done) / self.done
                step.left = max(min(left, self.clock.left()), 0.0)
        return step

    @contextmanager
    def __call__(self, stage: str, units: float = 0.0) -> Iterator[None]:
        if self.progress is not None:
            self.progress(self._step(stage))
        start = clocks.perf_counter()
        try:
            yield
        finally:
            self.done += units
            spent = clocks.perf_counter() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
