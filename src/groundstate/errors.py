"""The errors groundstate raises on purpose; each message names what was passed and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

    class NotConverged(ConvergenceWarning):
        """An iteration stopped at its limit before it reached its tolerance."""

    class SeparationWarning(NotConverged):
        """Classes without mistakes on one side each: unpenalised weights grow for ever."""


class GroundstateError(Exception):
    """Base of every error that groundstate raises on purpose."""


class Unsupported(GroundstateError, TypeError):
    """An energy, rule, solver or method cannot be combined as asked; the message says what would."""


class NotApplicable(GroundstateError):
    """A fast path cannot take this case; the message says why.

    The only exception after which another path may be tried: every other one is a defect that must
    be seen.
    """


class ShapeError(GroundstateError, ValueError):
    """Arguments whose leading batch axis or event shape do not agree."""


class DataError(GroundstateError, ValueError):
    """A table or array that cannot be read or used as asked."""


class StoreError(GroundstateError, ValueError):
    """A stored file that is truncated, foreign, from the future, or altered."""


class NotStorableError(StoreError):
    """An object whose class the store has no form for, such as another library's model."""


class NotSeparableError(GroundstateError, ValueError):
    """Classes that no surface of the asked form separates without mistakes."""


class OnCPU(UserWarning):
    """Data on a GPU is fitted on the CPU, because there is no solver for the GPU yet."""


class Unreliable(UserWarning):
    """An estimate whose own diagnostics say that it cannot be trusted."""


DEFECTS = (
    AssertionError, AttributeError, ImportError, LookupError, NameError, NotImplementedError, TypeError,
)  # fmt: skip


def failure(error: Exception, whose: str) -> str:
    """One line on why a candidate failed on its data, for the result in which the others go on.

    A mistake in a program (a wrong name, type or key) is no property of the data: it is raised, with
    a note that says whose it is. What groundstate raises on purpose never counts as one.

    >>> failure(ValueError("all rows are equal"), "KMeans")
    'ValueError: all rows are equal'
    """
    if isinstance(error, DEFECTS) and not isinstance(error, GroundstateError):
        error.add_note(f"raised by {whose}, which is a mistake in its program, not in the data")
        raise error
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def __getattr__(name: str) -> Any:
    """The warnings about iterations, made on first use: scikit-learn's are their base."""
    if name not in ("NotConverged", "SeparationWarning"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    about = {
        "NotConverged": "An iteration stopped at its limit before it reached its tolerance.",
        "SeparationWarning": "Classes without mistakes on one side each: unpenalised weights grow "
        "for ever.",
    }
    base = ConvergenceWarning
    for own, doc in about.items():
        made = type(own, (base,), {"__doc__": doc, "__module__": __name__})
        base = globals().setdefault(own, made)
    return globals()[name]
