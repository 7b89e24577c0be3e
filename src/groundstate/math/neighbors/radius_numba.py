"""Rows within a radius, compiled: a tree of boxes, and scans of blocks of scores.

Results of unknown number go into arrays that double when they are full. Every pair that is kept was
measured by its differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.compute.kernels.order_numba import select_by
from groundstate.math.neighbors.nearest_numba import square

STRIDE = 16
LEAF = 24  # rows of a box that is not divided
SHORT = 24  # results that are sorted by insertion
_U = np.uint64


@outer
def boxes(rows: Any) -> Any:
    """Divide rows ``(n, d)`` at medians of their widest column until few are left.

    Gives the order of the rows, for every box its first and last row in that order and the box to
    its right (−1: not divided; the left one is the next), and its corners ``(m, 2, d)``.
    """
    n, d = rows.shape
    most = 4 * (n // LEAF) + 3
    order = np.arange(n)
    place, corner = np.empty((most, 3), np.int64), np.empty((most, 2, d))
    stack = np.empty((128, 2), np.int64)  # box whose right side waits, and where that ends
    used, top, lo, hi = 0, 0, 0, n
    while True:
        at = used
        used += 1
        place[at, 0], place[at, 1], place[at, 2] = lo, hi, -1
        wide, j = 0.0, -1
        for c in range(d):
            low = high = np.float64(rows[order[lo], c])
            for i in range(lo + 1, hi):
                v = np.float64(rows[order[i], c])
                low, high = min(low, v), max(high, v)
            corner[at, 0, c], corner[at, 1, c] = low, high
            if high - low > wide:
                wide, j = high - low, c
        if hi - lo > LEAF and j >= 0:
            select_by(rows[:, j], order, lo, hi, (lo + hi) // 2)
            stack[top, 0], stack[top, 1] = at, hi
            top += 1
            hi = (lo + hi) // 2
            continue
        if top == 0:
            break
        top -= 1
        above = stack[top, 0]
        place[above, 2] = used
        lo, hi = (place[above, 0] + place[above, 1]) // 2, stack[top, 1]
    return order, place[:used].copy(), corner[:used].copy()


@inner
def _grown(index: Any, distance: Any, used: int, more: int) -> Any:
    size = max(2 * len(index), used + more)
    wider, farther = np.empty(size, np.int64), np.empty(size)
    wider[:used], farther[:used] = index[:used], distance[:used]
    return wider, farther


@inner
def _in_order(index: Any, distance: Any, lo: int, hi: int, bits: Any, table: Any) -> None:
    """Sort by index: few by insertion, many by marking them on a line of bits."""
    if hi - lo <= SHORT:
        for a in range(lo + 1, hi):
            i, v, b = index[a], distance[a], a - 1
            while b >= lo and index[b] > i:
                index[b + 1], distance[b + 1] = index[b], distance[b]
                b -= 1
            index[b + 1], distance[b + 1] = i, v
        return
    for a in range(lo, hi):
        i = index[a]
        bits[i >> 6] |= _U(1) << _U(i & 63)
        table[i] = distance[a]
    at = lo
    for word in range(len(bits)):
        left = bits[word]
        while left != _U(0):
            low = left & (~left + _U(1))
            exponent = np.float64(low).view(np.uint64) >> _U(52)  # of a power of two
            i = (word << 6) + np.int64(exponent) - 1023
            index[at], distance[at] = i, table[i]
            at += 1
            left ^= low
        bits[word] = _U(0)


@outer
def ball(queries: Any, rows: Any, order: Any, place: Any, corner: Any, radius: float) -> Any:
    """For each query the rows, given in the order of the boxes, at most ``radius`` away.

    Gives their number per query, and indices and distances one query after the other.
    """
    d = rows.shape[1]
    wide = radius * radius * (1 + 1e-9)  # the differences decide at the edge
    count = np.zeros(len(queries), np.int64)
    index, distance, used = np.empty(16 * len(queries), np.int64), np.empty(16 * len(queries)), 0
    bits, table = np.zeros((len(rows) >> 6) + 1, np.uint64), np.empty(len(rows))
    stack = np.empty(128, np.int64)
    for q in range(len(queries)):
        x, first, top = queries[q], used, 1
        stack[0] = 0
        while top > 0:
            top -= 1
            at = stack[top]
            gap = 0.0
            for j in range(d):
                v = np.float64(x[j])
                u = max(corner[at, 0, j] - v, v - corner[at, 1, j], 0.0)
                gap += u * u
            if gap > wide:
                continue
            if place[at, 2] >= 0:
                stack[top], stack[top + 1] = place[at, 2], at + 1
                top += 2
                continue
            lo, hi = place[at, 0], place[at, 1]
            if used + hi - lo > len(index):
                index, distance = _grown(index, distance, used, hi - lo)
            for i in range(lo, hi):
                far = np.sqrt(square(x, rows[i]))
                index[used], distance[used] = order[i], far
                used += far <= radius
        count[q] = used - first
        _in_order(index, distance, first, used, bits, table)
    return count, index[:used], distance[:used]


@inner(fastmath={"nnan", "reassoc", "nsz"})
def _least(row: Any, at: int) -> Any:
    low = row[at]
    for j in range(1, STRIDE):
        low = min(low, row[at + j])
    return low


@outer
def scan(
    scores: Any, n: int, start: int, limit: Any, queries: Any, rows: Any, radius: float,
    count: Any, index: Any, distance: Any, used: int,
) -> Any:  # fmt: skip
    """Measure the columns of ``scores`` (q, n), rows ``start..``, that are not above the limit."""
    whole = n // STRIDE * STRIDE
    for q in range(len(queries)):
        row, most, x, first = scores[q], limit[q], queries[q], used
        sure = most < np.inf  # else scores may be no numbers, and every row is measured
        if used + n > len(index):
            index, distance = _grown(index, distance, used, n)
        for at in range(0, n, STRIDE):
            if sure and at < whole and _least(row, at) > most:
                continue
            for j in range(at, min(at + STRIDE, n)):
                if not row[j] > most:
                    far = np.sqrt(square(x, rows[start + j]))
                    index[used], distance[used] = start + j, far
                    used += far <= radius
        count[q] = used - first
    return index, distance, used


@outer
def by_query(count: Any, index: Any, distance: Any, to: Any, far: Any) -> None:
    """From pieces by tile and query, counted ``(tiles, q)``, to pieces by query and tile."""
    tiles, q = count.shape
    at = np.zeros(q, np.int64)
    for k in range(1, q):
        at[k] = at[k - 1] + count[:, k - 1].sum()
    a = 0
    for t in range(tiles):
        for k in range(q):
            for _ in range(count[t, k]):
                to[at[k]], far[at[k]] = index[a], distance[a]
                at[k] += 1
                a += 1
