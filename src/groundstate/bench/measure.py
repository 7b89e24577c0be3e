"""Wall time and peak memory of a call, native allocations included."""

from __future__ import annotations

import ctypes
import gc
import math
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_MIB = 1024 * 1024
_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def busy_seconds(run: Callable[[], Any], calls: int = 3, enough: float = 0.1) -> float:
    """Return the least processor time of some calls, which other programs hardly change.

    A call that waits, for a device or another process, counts with a tenth of its wall time.
    """
    least = math.inf
    for _ in range(calls):
        wall, busy = timed(run, 1)
        least = min(least, max(busy, wall / 10))
        if least > enough:
            break
    return least


def timed(run: Callable[[], Any], number: int) -> tuple[float, float]:
    """Return the mean wall time and the mean processor time of one of ``number`` calls in a row."""
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()  # a collection in the middle would be charged to one contestant
    try:
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(number):
            run()
        synchronise()
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        return wall / number, cpu / number
    finally:
        if collecting:
            gc.enable()


def calls_per_timing(once: float, shortest: float = 0.02, most: int = 1000) -> int:
    """Return how many calls make a timing of at least ``shortest`` seconds."""
    return max(1, min(most, math.ceil(shortest / max(once, 1e-9))))


def peak_mib(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a call, and how far host and device memory rose during it, in MiB.

    tracemalloc does not see what torch, NumPy's BLAS or numba allocate, and a forked child may
    deadlock in their thread pools; so the kernel's own high-water mark is reset before the call and
    read after it. Where it cannot be reset, a thread samples the resident size every millisecond.
    """
    gc.collect()
    _trim()
    cuda = _cuda()
    if cuda is not None:
        cuda.reset_peak_memory_stats()
        device_start = cuda.memory_allocated()
    start = _resident("VmRSS")
    if _reset_high_water():
        result = run()
        synchronise()
        peak = _resident("VmHWM")
    else:
        result, peak = _sampled(run)
    device = 0.0 if cuda is None else (cuda.max_memory_allocated() - device_start) / _MIB
    return result, max(0.0, (peak - start) / _MIB), device


def synchronise() -> None:
    """Wait for the accelerator, if one is in use."""
    cuda = _cuda()
    if cuda is not None:
        cuda.synchronize()


def _cuda() -> Any:
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def _reset_high_water() -> bool:
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def _resident(key: str) -> float:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(key):
                return float(line.split()[1]) * 1024
    except OSError:
        import resource  # no /proc: only the peak of the whole process is known

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(peak if sys.platform == "darwin" else peak * 1024)
    return 0.0


def _sampled(run: Callable[[], Any]) -> tuple[Any, float]:
    peak, done = [_resident("VmRSS")], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], _resident("VmRSS"))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        result = run()
        synchronise()
    finally:
        peak[0] = max(peak[0], _resident("VmRSS"))
        done.set()
        thread.join()
    return result, peak[0]


def _trim() -> None:
    # Freed memory that malloc keeps would hide what the next contestant allocates.
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
