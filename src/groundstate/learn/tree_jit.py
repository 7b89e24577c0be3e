"""How the loops of trees are compiled."""

from __future__ import annotations

from typing import Any

import numba

_njit: Any = numba.njit


def inner(function: Any) -> Any:
    """A loop that compiled code alone calls: no wrappers, and its caller's cache holds it."""
    return _njit(nogil=True, error_model="numpy", no_cpython_wrapper=True)(function)


def vector(function: Any) -> Any:
    """`inner`, with the freedom that vector instructions need."""
    fast = {"nnan", "nsz", "contract"}
    return _njit(nogil=True, error_model="numpy", fastmath=fast, no_cpython_wrapper=True)(function)


def threads(function: Any) -> Any:
    """A loop with a parallel range."""
    return _njit(nogil=True, parallel=True, error_model="numpy")(function)


def outer(function: Any) -> Any:
    """A function that Python calls, kept on disk."""
    return _njit(cache=True, nogil=True, error_model="numpy")(function)


__all__ = ["inner", "outer", "threads", "vector"]
