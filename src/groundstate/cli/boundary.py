"""The one place where errors become a sentence and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from groundstate.cli import INTERRUPTED
from groundstate.errors import GroundstateError

# typer carries its own copy of click; this is its class for a wrongly typed command line
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

BAD_INPUT, TERMINATED = 2, 143


class Terminated(BaseException):
    """Somebody asked this process to end, a time limit for instance."""


class Boundary(TyperGroup):
    """Runs commands; what people can put right ends in one sentence, never in a traceback.

    Errors that nobody can put right are bugs and keep their traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        with _terminable(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                _leave("stopped; nothing half-written is left", INTERRUPTED)
            except Terminated:
                _leave("stopped; nothing half-written is left", TERMINATED)
            except UsageError as error:
                path = getattr(getattr(error, "ctx", None), "command_path", ctx.command_path)
                hint = f"see {path} --help"
                message = getattr(error, "format_message", error.__str__)()
                _leave(f"{_sentence(message)}; {hint}", BAD_INPUT)
            except MemoryError:
                _leave("there is not enough memory for this table; try fewer rows", BAD_INPUT)
            except OSError as error:
                if error.errno == errno.EPIPE:  # the reader of our pipe has gone
                    raise
                where = f" {error.filename!r}" if error.filename else ""
                _leave(f"cannot use{where or ' a file'}: {error.strerror or error}", BAD_INPUT)
            except (GroundstateError, ArithmeticError) as error:
                _leave(_sentence(str(error)), BAD_INPUT)


@contextmanager
def _terminable() -> Iterator[None]:
    """A request to end unwinds as an interrupt does, so that unfinished folders are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return
    own = os.getpid()

    def end(*_: Any) -> NoReturn:
        if os.getpid() != own:  # a forked worker ends at once
            os._exit(TERMINATED)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _leave(message: str, code: int) -> None:
    sys.stderr.write(f"error: {message}\n")
    raise typer.Exit(code)


def _sentence(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


_shown: set[str] = set()


def _note(message: Any, category: Any, *rest: Any, **more: Any) -> None:
    """A warning as one line, once."""
    text = _sentence(str(message))
    if text not in _shown:
        _shown.add(text)
        sys.stderr.write(f"note: {text}\n")
