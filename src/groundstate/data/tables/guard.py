"""Nothing a damaged file does to a parser reaches the user as anything but a `DataError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from groundstate.errors import GroundstateError


class Attempt:
    """What went wrong inside `guarded`, in one line; empty when nothing did."""

    problem: str = ""


@contextmanager
def guarded() -> Iterator[Attempt]:
    """Swallow parser failures, Rust panics included, and keep their first line.

    polars' panics derive from BaseException, so ``except Exception`` would let them through.

    >>> with guarded() as attempt:
    ...     raise RuntimeError("broken page")
    >>> attempt.problem
    'broken page'
    """
    attempt = Attempt()
    try:
        yield attempt
    except GroundstateError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        lines = str(error).strip().splitlines()
        attempt.problem = lines[0][:200] if lines else type(error).__name__
