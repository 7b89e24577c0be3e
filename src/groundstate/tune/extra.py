"""The optional dependency of this room."""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported

MISSING = (
    "studies and samplers need optuna, which is not installed; "
    "install it with: pip install 'groundstate[tune]'"
)


def optuna_module() -> Any:
    """Optuna, or an error that says what to install."""
    try:
        import optuna
    except ImportError as error:
        raise Unsupported(MISSING) from error
    return optuna
