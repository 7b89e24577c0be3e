"""What is going on, how much of it is done, and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


def progress_line(stage: str) -> str:
    """What runs now, with the share that is done and the time left where they are known.

    >>> progress_line("comparing Ridge")
    'comparing Ridge'
    """
    done, left = getattr(stage, "done", None), getattr(stage, "left", None)
    share = "" if done is None else f"{done:.0%} "
    rest = "" if left is None else f", about {left:.0f} s left"
    return f"{share}{stage}{rest}"


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
        self.parts: dict[str, float] = {}
        self.share = 0.0
        self._nominal = self._measured = 0.0  # seconds of the parts that ended

    def plan(self, parts: Mapping[str, float], clock: Clock) -> None:
        """Expect parts of so many nominal seconds each."""
        self.parts, self.clock = dict(parts), clock

    @property
    def pace(self) -> float:
        """Seconds that a nominal second takes here, by the parts that ended."""
        return self._measured / self._nominal if self._nominal else 1.0

    def expect(self, part: str, seconds: float) -> None:
        """A part will take so many seconds, as measured here; none when it is left out."""
        self.parts[part] = seconds / max(self.pace, 1e-9)

    def _step(self, stage: str) -> Step:
        """What starts, with the share of the time that is over.

        The rest takes what the parts so far promise, and never more than the clock allows.
        """
        step = Step(stage)
        if not self.parts:
            return step
        spent = self.clock.spent()
        left = min(max(self.clock.left() + self.clock.spare, 0.0), self.pace * self._ahead)
        self.share = max(self.share, min(spent / max(spent + left, 1e-9), 0.99))
        step.done, step.left = self.share, left
        return step

    @property
    def _ahead(self) -> float:
        return sum(self.parts.values())

    @contextmanager
    def __call__(self, stage: str, part: str = "", share: float = 1.0) -> Iterator[None]:
        """Inside the block a stage runs: a part that was planned, or a share of what is left of it."""
        if self.progress is not None:
            self.progress(self._step(stage))
        start, nominal = self.clock.now(), share * self.parts.get(part, 0.0)
        try:
            yield
        finally:
            spent = self.clock.now() - start
            if part:
                self.parts[part] = self.parts.get(part, 0.0) - nominal
                self._nominal += nominal
                self._measured += spent
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
