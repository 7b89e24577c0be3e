r"""Gaussian classes of few features, compiled: sums over rows, then means and inverse roots.

The same as ``discriminant_moments`` without shrinkage, in two calls; matrices of a few features cost
less than the calls that would hand them on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

TINY = 1e-300


def _jit(function: Any) -> Any:
    return njit(cache=True, nogil=True, fastmath={"contract"})(function)


@_jit
def class_squares(x: Any, y: Any, w: Any, origin: Any, balance: Any, tied: bool) -> Any:
    """Weights ``(k,)``, sums ``(k, d)`` and squares ``(k, d, d)`` of rows about their origin.

    Tied, the squares of all classes, each times its ``balance``, are one matrix ``(d, d)``. ``w``
    of length zero stands for ones.
    """
    k, d = origin.shape
    n, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((1 if tied else k, d, d))
    row = np.empty(d)
    for i in range(len(x)):
        c = y[i]
        v = w[i] if w.size else 1.0
        n[c] += v
        out = second[0 if tied else c]
        for j in range(d):
            row[j] = x[i, j] - origin[c, j]
            first[c, j] += v * row[j]
        v = v * balance[c] if tied else v
        for a in range(d):
            u = v * row[a]
            for b in range(a + 1):
                out[a, b] += u * row[b]
    for c in range(len(second)):
        for a in range(d):
            for b in range(a):
                second[c, b, a] = second[c, a, b]
    return n, first, second


@_jit
def widest(n: Any, first: Any, second: Any, origin: Any) -> float:
    """The largest variance of a feature over all rows, from sums ``(k, d)`` about ``origin``."""
    k, d = first.shape
    whole, most = max(n.sum(), TINY), 0.0
    for j in range(d):
        middle, total = 0.0, 0.0
        for c in range(k):
            middle += n[c] / whole * (first[c, j] / max(n[c], TINY) + origin[c, j])
        for c in range(k):
            shift = first[c, j] / max(n[c], TINY)
            within = max(second[c, j] / max(n[c], TINY) - shift * shift, 0.0)
            apart = shift + origin[c, j] - middle
            total += n[c] / whole * (within + apart * apart)
        most = max(most, total)
    return most


@_jit
def set_diagonal(
    n: Any, first: Any, second: Any, origin: Any, smoothing: float, mu: Any, U: Any
) -> None:
    """Means and inverse deviations ``(k, d)`` of classes whose rows lack nothing."""
    k, d = first.shape
    more = smoothing * widest(n, first, second, origin)
    for c in range(k):
        for j in range(d):
            shift = first[c, j] / max(n[c], TINY)
            variance = max(second[c, j] / max(n[c], TINY) - shift * shift, 0.0) + more
            mu[c, j] = shift + origin[c, j]
            U[c, j] = 1.0 / np.sqrt(variance) if variance > 0 else 1.0


@_jit
def _root(cov: Any, tol: float, U: Any) -> bool:
    """Upper triangular U with UUᵀ = Σ⁻¹, or False where a direction has no variance."""
    d = len(cov)
    unit = np.empty(d)
    for a in range(d):
        unit[a] = np.sqrt(cov[a, a]) if cov[a, a] > 0 else 1.0
    for a in range(d):
        for b in range(d):
            cov[a, b] /= unit[a] * unit[b]
    if not np.linalg.eigvalsh(cov)[0] > tol * tol:
        return False
    lower = np.linalg.cholesky(cov)
    inverse = np.zeros((d, d))
    for j in range(d):
        inverse[j, j] = 1.0 / lower[j, j]
        for a in range(j + 1, d):
            s = 0.0
            for b in range(j, a):
                s += lower[a, b] * inverse[b, j]
            inverse[a, j] = -s / lower[a, a]
    for a in range(d):
        for b in range(d):
            U[a, b] = inverse[b, a] / unit[a]
    return True


@_jit
def set_classes(
    n: Any, first: Any, second: Any, origin: Any, balance: Any, tol: float, mu: Any, U: Any
) -> int:
    """Write means ``(k, d)`` and roots ``(k, d, d)`` or, tied, ``(1, d, d)`` from the sums.

    Returns the first matrix that is not of full rank, -1 where all are.
    """
    k, d = origin.shape
    shift = np.empty((k, d))
    for c in range(k):
        for j in range(d):
            shift[c, j] = first[c, j] / max(n[c], TINY)
            mu[c, j] = shift[c, j] + origin[c, j]
    tied = len(U) < k
    cov = np.empty((d, d))
    total = 0.0
    if tied:
        cov[:] = second[0]
        for c in range(k):
            total += balance[c] * n[c]
    for c in range(k):
        share = balance[c] * n[c] if tied else 1.0
        for a in range(d):
            for b in range(d):
                if tied:
                    cov[a, b] -= share * shift[c, a] * shift[c, b]
                else:
                    cov[a, b] = second[c, a, b] / max(n[c], TINY) - shift[c, a] * shift[c, b]
        if not tied and not _root(cov, tol, U[c]):
            return c
    if tied:
        cov /= max(total, TINY)
        if not _root(cov, tol, U[0]):
            return 0
    return -1
