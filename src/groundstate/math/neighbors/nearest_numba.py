"""Keeping the k smallest, compiled: scans of blocks of scores, and direct distances.

A heap of size k has its worst entry at the root, so that one comparison rejects a candidate; blocks
of 16 scores are rejected by their minimum alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

STRIDE = 16


@inner
def _sink(value: Any, index: Any, v: float, i: int) -> None:
    """Replace the root of a heap that is ordered by (value, index), largest first."""
    k, at = len(value), 0
    while True:
        child = 2 * at + 1
        if child >= k:
            break
        right = child + 1
        if right < k and (
            value[right] > value[child]
            or (value[right] == value[child] and index[right] > index[child])
        ):
            child = right
        if value[child] < v or (value[child] == v and index[child] < i):
            break
        value[at], index[at] = value[child], index[child]
        at = child
    value[at], index[at] = v, i


@inner(fastmath={"nnan", "ninf", "nsz"})
def _lows(row: Any, groups: int, lows: Any) -> None:
    """The least of each group; group b is every ``groups``-th column from b on: vectors of minima."""
    for b in range(groups):
        lows[b] = row[b]
    for j in range(1, STRIDE):
        start = j * groups
        for b in range(groups):
            lows[b] = min(lows[b], row[start + b])


@inner
def _bound(lows: Any, value: Any, index: Any) -> Any:
    """A score that k columns do not exceed: the k-th least among the least of every group."""
    value[:] = np.inf
    for b in range(len(lows)):
        if lows[b] < value[0]:
            _sink(value, index, lows[b], b)
    return value[0]


@outer
def scan(scores: Any, n: int, start: int, value: Any, index: Any) -> None:
    """Take the columns of ``scores`` (q, n), rows ``start..``, into the heaps ``(q, k)``."""
    groups, k = n // STRIDE, value.shape[1]
    whole = groups * STRIDE
    lows = np.empty(groups, scores.dtype)
    near, place = np.empty(k, scores.dtype), np.zeros(k, np.int64)
    for q in range(len(scores)):
        row, v, i = scores[q], value[q], index[q]
        worst = most = v[0]
        _lows(row, groups, lows)
        if worst == np.inf and groups > 2 * k:  # an empty heap would take in most of what it sees
            most = _bound(lows, near, place)
        for b in range(groups):
            if lows[b] <= most and lows[b] < worst:
                for j in range(b, whole, groups):
                    if row[j] <= most and row[j] < worst:
                        _sink(v, i, row[j], start + j)
                        worst = v[0]
        for j in range(whole, n):
            if row[j] < worst:
                _sink(v, i, row[j], start + j)
                worst = v[0]


@inner
def _sorted(value: Any, index: Any) -> None:
    """Sort by (value, index), the smallest first."""
    for a in range(1, len(value)):
        v, i, b = value[a], index[a], a - 1
        while b >= 0 and (value[b] > v or (value[b] == v and index[b] > i)):
            value[b + 1], index[b + 1] = value[b], index[b]
            b -= 1
        value[b + 1], index[b + 1] = v, i


@inner(fastmath={"contract", "reassoc"})
def square(a: Any, b: Any) -> float:
    s = 0.0
    for j in range(len(a)):
        u = np.float64(a[j]) - np.float64(b[j])
        s += u * u
    return s


@outer
def settle(
    queries: Any, rows: Any, value: Any, index: Any, floor: Any, out: Any, found: Any, open_: Any
) -> None:
    """True squared distances of the candidates, the k best of them, and where more may be hidden.

    ``value`` and ``index`` are heaps ``(q, m)`` of scores; ``floor`` ``(q,)`` is a lower bound of the
    squared distance of every row outside the heap. Where the k-th distance is not below it, the
    query is marked in ``open_``.
    """
    k, m = out.shape[1], value.shape[1]
    for q in range(len(queries)):
        for c in range(m):
            value[q, c] = square(queries[q], rows[index[q, c]])
        _sorted(value[q], index[q])
        for c in range(k):
            out[q, c], found[q, c] = value[q, c], index[q, c]
        open_[q] = not value[q, k - 1] < floor[q]


@outer
def direct(queries: Any, rows: Any, out: Any, found: Any) -> None:
    """The k nearest rows by squared differences, ties to the lower index; slow and exact."""
    for q in range(len(queries)):
        v, i = out[q], found[q]
        v[:] = np.inf
        i[:] = len(rows)
        for r in range(len(rows)):
            s = square(queries[q], rows[r])
            if not s < np.inf:  # beyond the largest number: still a row
                s = np.inf
            if s < v[0] or (s == v[0] and r < i[0]):
                _sink(v, i, s, r)
        _sorted(v, i)
