"""CLI: the command line, ``groundstate fit | assess | predict | ...``."""

from __future__ import annotations

INTERRUPTED = 130  # the exit code that shells give to Ctrl-C
begun: float | None = None  # when the process began, on the scale of `time.monotonic`


def main() -> None:
    """Run the command line and leave with its exit code: 0 fine, 1 a claim failed, 2 bad input.

    ``fit`` and ``assess`` add 3, not better than a constant answer, and 4, a leak with --strict.
    """
    global begun
    begun = _process_began()
    try:
        from groundstate.cli.app import app

        app(prog_name="groundstate")
    except KeyboardInterrupt:  # while it loads; later the boundary of the commands hears it
        import sys

        sys.stderr.write("error: stopped before anything was done\n")
        sys.exit(INTERRUPTED)


def _process_began() -> float:
    """When this process was started: loading takes seconds that a budget has to pay too."""
    import os
    import time

    now = time.monotonic()
    try:
        with open("/proc/self/stat", encoding="ascii") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        up = time.clock_gettime(time.CLOCK_BOOTTIME)
        return now - (up - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):  # not Linux: from here on
        return now


__all__ = ["main"]
