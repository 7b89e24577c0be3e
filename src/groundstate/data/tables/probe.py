"""Binary files are first read by a helper process, so that a damaged one cannot end this one.

A few flipped bytes in a Parquet or compressed Arrow file can make a decoder ask for exabytes;
the allocator then ends the whole process, and no exception handler sees it. The helper has a
memory limit, answers each path with one line, and is started again after it dies.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
from typing import Any

from groundstate.errors import DataError

_SECONDS = 30.0
_SECONDS_PER_BYTE = 1e-7


class Probe:
    """A child process that tries to read files and says how it went."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def problem(self, path: str, form: str) -> str:
        """Why `path` cannot be read as `form`; empty when it can."""
        with self._lock:
            child = self._alive()
            if child is None or child.stdin is None or child.stdout is None:
                return ""  # no helper can be started here: the caller reads at its own risk
            try:
                child.stdin.write(json.dumps([path, form]).encode() + b"\n")
                child.stdin.flush()
                limit = _SECONDS + os.path.getsize(path) * _SECONDS_PER_BYTE
                answer = _line(child.stdout, limit)
            except OSError:
                answer = b""
            if answer:
                return str(json.loads(answer))
            self.close()
            return "the file is damaged: decoding it needs too much memory or time"

    def _alive(self) -> subprocess.Popen[bytes] | None:
        if self._child is not None and (
            self._owner != os.getpid() or self._child.poll() is not None
        ):
            if self._owner == os.getpid():
                self.close()
            self._child = None
        if self._child is None and sys.executable and os.name == "posix":
            code = "from groundstate.data.tables.probe import serve; serve()"
            places = [place or os.getcwd() for place in sys.path]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
            environment |= {"RUST_BACKTRACE": "0", "POLARS_MAX_THREADS": "2"}
            try:
                self._child = subprocess.Popen(
                    [sys.executable, "-P", "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                )
            except OSError:
                return None
            self._owner = os.getpid()
        return self._child

    def close(self) -> None:
        """End the helper, if this process started one."""
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        child.wait()


def _line(pipe: Any, seconds: float) -> bytes:
    """One line from a pipe, or nothing when it closes or takes too long."""
    ready, _, _ = select.select([pipe], [], [], seconds)
    return bytes(pipe.readline()) if ready else b""


PROBE = Probe()
atexit.register(PROBE.close)


def check(path: str, form: str) -> None:
    """Raise a `DataError` if the helper cannot read `path`."""
    problem = PROBE.problem(path, form)
    if problem:
        raise DataError(f"{os.path.basename(path)!r} cannot be read as {form}: {problem}")


def serve() -> None:
    """The helper: read paths on standard input until it closes, answer on standard output."""
    from groundstate.data.tables.binary import read_binary
    from groundstate.data.tables.guard import guarded

    _limit_memory()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        path, form = json.loads(line)
        with guarded() as attempt:
            read_binary(path, form)
        answers.write(json.dumps(attempt.problem) + "\n")
        answers.flush()


def _limit_memory() -> None:
    """No more address space than the machine has memory: a larger table could not be used."""
    try:
        import resource

        memory = max(4 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass
