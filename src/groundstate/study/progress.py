"""What is going on, and how long it took."""

from __future__ import annotations

import time as clocks
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str], None]


class Watch:
    """Says what starts and remembers how long it took."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(stage)
        start = clocks.perf_counter()
        yield
        self.seconds[stage] = clocks.perf_counter() - start
