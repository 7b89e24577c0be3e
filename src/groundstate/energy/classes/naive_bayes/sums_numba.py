"""Sums of rows per class, compiled: one pass over the rows, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"contract"})
def class_sums(x: Any, y: Any, w: Any, origin: Any, squares: bool) -> Any:
    """Weights ``(k,)``, sums and sums of squares ``(k, d)`` of rows about the origin of their class.

    ``w`` of length zero stands for ones.
    """
    k, d = origin.shape
    n, first = np.zeros(k), np.zeros((k, d))
    second = np.zeros((k if squares else 0, d))
    for i in range(len(x)):
        c = y[i]
        v = w[i] if w.size else 1.0
        n[c] += v
        if squares:
            for j in range(d):
                u = x[i, j] - origin[c, j]
                first[c, j] += v * u
                second[c, j] += v * u * u
        else:
            for j in range(d):
                first[c, j] += v * (x[i, j] - origin[c, j])
    return n, first, second


@njit(cache=True, nogil=True, fastmath={"contract"})
def observed_class_sums(x: Any, y: Any, w: Any, origin: Any, squares: bool) -> Any:
    """``class_sums`` without the entries that are NaN, and the weight of the others ``(k, d)``."""
    k, d = origin.shape
    n, seen, first = np.zeros(k), np.zeros((k, d)), np.zeros((k, d))
    second = np.zeros((k if squares else 0, d))
    for i in range(len(x)):
        c = y[i]
        v = w[i] if w.size else 1.0
        n[c] += v
        for j in range(d):
            u = x[i, j] - origin[c, j]
            if u == u:
                seen[c, j] += v
                first[c, j] += v * u
                if squares:
                    second[c, j] += v * u * u
    return n, seen, first, second
