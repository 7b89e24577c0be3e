"""Wall time that a study may take, and what happens when it is over."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from groundstate.study.race.names import FOR_TIME

USUAL = 60.0  # seconds for a table of up to USUAL_CELLS cells
USUAL_CELLS = 250_000
USUAL_CLASSES = 10
LONGEST = 600.0
QUICK = 1 / 6  # of the usual time for a first answer
_SOON = 1 / 3  # share of a budget until when a model is chosen among the candidates so far
_SPARED = 0.1  # share of a budget that is kept for the last refit and the report
_MORE = 1.2  # times as long as the last time that the end may take
_AGAIN = 0.05  # seconds until an alarm that came at a bad moment asks again
_WHOLE = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "numba", "llvmlite")


def _half_done(frame: FrameType | None, outer: FrameType) -> bool:
    """Whether an import or a compilation runs inside, which would stay broken if it were stopped."""
    while frame is not None and frame is not outer:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _WHOLE:
            return True
        frame = frame.f_back
    return False


class OutOfTime(BaseException):
    """The time for a part of the study is over; like an interrupt, no model may swallow it."""


def usual_budget(rows: int, columns: int, classes: int = 2) -> float:
    """Seconds for a table unasked: a minute up to 5,000 × 50 cells, then by the root of the size.

    From ten classes on their number multiplies the cells: each has probabilities of its own.

    >>> usual_budget(150, 5), usual_budget(20_000, 50), usual_budget(10**6, 100)
    (60.0, 120.0, 600.0)
    >>> usual_budget(5_000, 50, classes=90)
    180.0
    """
    cells = rows * columns * max(1.0, classes / USUAL_CLASSES)
    return min(USUAL * max(1.0, math.sqrt(cells / USUAL_CELLS)), LONGEST)


class Clock:
    """Counts down; None is no limit, and then nothing depends on the clock.

    Parameters
    ----------
    budget : seconds, or None
    begun : moment of `now` from which they count; now by default
    without : parts that are left out whatever time there is

    Attributes
    ----------
    left_out : parts that were left out so far
    now : what is counted, wall time; a benchmark on a busy machine counts processor time
    alarm : names of the timer that counts the same and of the signal it sends
    """

    now: Callable[[], float] = staticmethod(time.monotonic)
    alarm = ("ITIMER_REAL", "SIGALRM")

    def __init__(
        self, budget: float | None, begun: float | None = None, without: Iterable[str] = ()
    ) -> None:
        self.budget = budget
        self.without = frozenset(without)
        self.left_out: list[str] = []
        self.begun = self.now() if begun is None else begun
        self.least = 0.0 if budget is None else min(_SPARED * budget, 5.0)
        self.spare = self.least
        self.took: dict[str, float] = {}

    def spent(self) -> float:
        """Seconds since they count."""
        return self.now() - self.begun

    def left(self) -> float:
        """Seconds until the last refit and the report have to begin."""
        if self.budget is None:
            return math.inf
        return self.budget - self.spare - self.spent()

    def keep(self, what: str, seconds: float) -> None:
        """Spare time for the end: a fit to all rows, intervals and the report, as long as they took.

        Parameters
        ----------
        what : which of them
        seconds : what it took the last time
        """
        self.took[what] = seconds
        if self.budget is not None:
            wanted = _MORE * sum(self.took.values())
            self.spare = min(max(self.least, wanted), 0.5 * self.budget)

    def leave(self, *parts: str) -> None:
        """Write down that parts are left out, so that they can be named when it all runs again."""
        self.left_out += [part for part in parts if part not in self.left_out]

    def remedy(self, part: str) -> str:
        """How to ask for a part that was left out."""
        return "--without" if part in self.without else FOR_TIME

    def begins(self, part: str, seconds: float, share: float = 1.0) -> bool:
        """Whether a part is wanted and fits into a share of the time left, else it is left out."""
        wanted = part not in self.without and self.allows(seconds, share)
        if not wanted:
            self.leave(part)
        return wanted

    def allows(self, seconds: float, share: float = 1.0) -> bool:
        """Whether something of that length fits into a share of the time left."""
        return self.budget is None or seconds <= share * self.left()

    def until_soon(self) -> float:
        """Seconds until a first choice is awaited."""
        return math.inf if self.budget is None else _SOON * self.budget - self.spent()

    @contextmanager
    def limit(
        self, share: float = 1.0, least: float = 0.0, most: float = math.inf
    ) -> Iterator[None]:
        """Raise `OutOfTime` inside the block when that share of the time left is over.

        At least and at most so many seconds are given, where there is a budget. What ran into an
        import or a compilation, which happen once, has the same time again after it, as far as there
        is some left.

        Outside the main thread, where no alarm can be set, only before the block.
        """
        left = max(share * self.left(), least)
        left = left if self.budget is None else min(left, most)
        if left <= 0:
            raise OutOfTime
        main = threading.current_thread() is threading.main_thread()
        if left == math.inf or not main or not hasattr(signal, "setitimer"):
            yield
            return

        timer, number = (getattr(signal, name) for name in self.alarm)
        outer = sys._getframe(2)  # whose block it is

        waited = False

        def over(_: int, frame: FrameType | None) -> None:
            nonlocal waited
            if _half_done(frame, outer):
                waited = True
                signal.setitimer(timer, _AGAIN)
            elif waited and (more := min(left, self.left())) > 0:
                waited = False
                signal.setitimer(timer, more)
            else:
                raise OutOfTime

        before = signal.signal(number, over)
        signal.setitimer(timer, left)
        try:
            yield
        finally:
            signal.setitimer(timer, 0.0)
            signal.signal(number, signal.SIG_DFL if before is None else before)
