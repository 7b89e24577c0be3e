"""How long a fit takes here, without what is done once for all fits."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from groundstate.compute.foreign.numba import event

_COMPILING = "numba:compile"


class Stopwatch:
    """Seconds of wall time inside a block, less those in which loops were compiled.

    A plan for more fits counts with them: loops are compiled once and kept on disk.

    Examples
    --------
    >>> with Stopwatch() as watch:
    ...     total = sum(range(10))
    >>> 0 <= watch.seconds < 1
    True
    """

    def __enter__(self) -> Stopwatch:
        self._compiling: Any = event.TimingListener()
        event.register(_COMPILING, self._compiling)
        self._start, self._end = time.perf_counter(), 0.0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end = time.perf_counter()
        event.unregister(_COMPILING, self._compiling)

    @property
    def seconds(self) -> float:
        """So far, or of the whole block when it has ended."""
        spent = (self._end or time.perf_counter()) - self._start
        return max(spent - (self._compiling.duration if self._compiling.done else 0.0), 0.0)
