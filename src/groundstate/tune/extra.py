"""The optional dependency of this room."""

from __future__ import annotations

import warnings
from typing import Any

from groundstate.errors import Unsupported

MISSING = (
    "studies and samplers need optuna, which is not installed; "
    "install it with: pip install 'groundstate[tune]'"
)


def optuna_module() -> Any:
    """Optuna, or an error that says what to install."""
    try:
        with warnings.catch_warnings():  # a notebook has bars of its own only with ipywidgets
            warnings.filterwarnings("ignore", "IProgress not found")
            import optuna
    except ImportError as error:
        raise Unsupported(MISSING) from error
    return optuna
