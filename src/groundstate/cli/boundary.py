"""The one place where errors become a sentence and an exit code."""

from __future__ import annotations

import errno
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from groundstate.errors import GroundstateError

# typer carries its own copy of click; this is its class for a wrongly typed command line
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

BAD_INPUT, INTERRUPTED = 2, 130


class Boundary(TyperGroup):
    """Runs commands; what people can put right ends in one sentence, never in a traceback.

    Errors that nobody can put right are bugs and keep their traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                _leave("stopped; nothing half-written is left", INTERRUPTED)
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


def _leave(message: str, code: int) -> None:
    sys.stderr.write(f"error: {message}\n")
    raise typer.Exit(code)


def _sentence(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


_said: set[str] = set()


def _note(message: Any, category: Any, *rest: Any, **more: Any) -> None:
    """A warning as one line, once."""
    text = _sentence(str(message))
    if text not in _said:
        _said.add(text)
        sys.stderr.write(f"note: {text}\n")


__all__ = ["BAD_INPUT", "INTERRUPTED", "Boundary"]
