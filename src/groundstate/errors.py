"""The errors groundstate raises on purpose; each message names what was passed and what to do."""

from __future__ import annotations


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


class NotConverged(UserWarning):
    """An iteration stopped at its limit before it reached its tolerance."""


class SeparationWarning(NotConverged):
    """Classes without mistakes on one side each: unpenalised weights grow for ever."""


class Unreliable(UserWarning):
    """An estimate whose own diagnostics say that it cannot be trusted."""
