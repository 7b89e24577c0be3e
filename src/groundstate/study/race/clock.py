"""Wall time that a study may take, and what happens when it is over."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

USUAL = 60.0  # seconds for a table of up to USUAL_CELLS cells
USUAL_CELLS = 250_000
LONGEST = 600.0
_SPARED = 0.1  # share of a budget that is kept for the last refit and the report


class OutOfTime(BaseException):
    """The time for a part of the study is over; like an interrupt, no model may swallow it."""


def usual_budget(rows: int, columns: int) -> float:
    """Seconds for a table unasked: a minute up to 5,000 × 50 cells, then by the root of the size.

    >>> usual_budget(150, 5), usual_budget(20_000, 50), usual_budget(10**6, 100)
    (60.0, 120.0, 600.0)
    """
    return min(USUAL * max(1.0, math.sqrt(rows * columns / USUAL_CELLS)), LONGEST)


class Clock:
    """Counts down; None is no limit, and then nothing depends on the clock.

    Parameters
    ----------
    budget : seconds, or None
    begun : moment of `time.monotonic` from which they count; now by default
    """

    def __init__(self, budget: float | None, begun: float | None = None) -> None:
        self.budget = budget
        self.begun = time.monotonic() if begun is None else begun
        self.spare = 0.0 if budget is None else min(_SPARED * budget, 5.0)

    def left(self) -> float:
        """Seconds until the last refit and the report have to begin."""
        if self.budget is None:
            return math.inf
        return self.budget - self.spare - (time.monotonic() - self.begun)

    def allows(self, seconds: float, share: float = 1.0) -> bool:
        """Whether something of that length fits into a share of the time left."""
        return self.budget is None or seconds <= share * self.left()

    @contextmanager
    def limit(self, share: float = 1.0, least: float = 0.0) -> Iterator[None]:
        """Raise `OutOfTime` inside the block when that share of the time left is over.

        At least so many seconds are given.

        Outside the main thread, where no alarm can be set, only before the block.
        """
        left = max(share * self.left(), least)
        if left <= 0:
            raise OutOfTime
        main = threading.current_thread() is threading.main_thread()
        if left == math.inf or not main or not hasattr(signal, "setitimer"):
            yield
            return

        def over(*_: Any) -> None:
            raise OutOfTime

        before = signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, left)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
