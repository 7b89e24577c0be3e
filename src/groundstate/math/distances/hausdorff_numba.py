"""The point that is farthest from a set, with an end to every search that cannot change the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer, vector

TRIES = 12


@vector
def _square(a: Any, b: Any) -> float:
    total = 0.0
    for k in range(len(a)):
        gap = a[k] - b[k]
        total += gap * gap
    return total


@inner
def _nearest(row: Any, key: float, high: int, y: Any, axis: int, worst: float) -> Any:
    """The nearest row of y and its squared distance, or some row at ``worst`` at most.

    y is sorted by column ``axis``, and ``high`` is where the row would stand: the search goes outwards
    from there.
    """
    m, low = len(y), high - 1
    best, found = np.inf, -1
    while low >= 0 or high < m:
        below = key - y[low, axis] if low >= 0 else np.inf
        above = y[high, axis] - key if high < m else np.inf
        if below < above:
            gap, j = below, low
            low -= 1
        else:
            gap, j = above, high
            high += 1
        if gap * gap >= best:
            break
        square = _square(row, y[j])
        if square < best:
            best, found = square, j
            if best <= worst:
                break
    return best, found


@outer
def unsettled(x: Any, y: Any, worst: float, left: Any) -> int:
    """Which rows of x have none of a few rows of y within ``worst``; how many, and their numbers in
    ``left``."""
    n, m, count, last = len(x), len(y), 0, 0
    stride = max(1, (m * 618) // 1000)
    for i in range(n):
        j, near = last, False
        for t in range(TRIES):
            if _square(x[i], y[j]) <= worst:
                near, last = True, j
                break
            j = (j + 1 if t == 0 else j + stride) % m
        if not near:
            left[count] = i
            count += 1
    return count


@outer
def farthest(x: Any, y: Any, rows: Any, axis: int, worst: float) -> Any:
    """Largest squared distance above ``worst`` of some rows of x to their nearest row of y, with both.

    y is sorted by column ``axis``. Row −1 says that no row is farther than ``worst``.
    """
    found_i, found_j = -1, -1
    for i in rows:
        high, end, key = 0, len(y), x[i, axis]
        while high < end:
            middle = (high + end) // 2
            if y[middle, axis] < key:
                high = middle + 1
            else:
                end = middle
        best, j = _nearest(x[i], key, high, y, axis, worst)
        if best > worst:
            worst, found_i, found_j = best, i, j
    return worst, found_i, found_j
