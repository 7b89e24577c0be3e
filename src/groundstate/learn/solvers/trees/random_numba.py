"""Random cuts, as extremely random trees take them: a number between the ends of a column.

They need no order, so they are taken on the values themselves. The rows of a small node lie apart
in a table; it is copied into a block that stays in the cache while the branch below it grows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from groundstate.compute.kernels.compile_numba import inner
from groundstate.learn.solvers.trees.impurity_numba import (
    COLUMN,
    HIGH,
    LOW,
    NAN_LEFT,
    NONE,
    SCORE,
    SIDE,
    THRESHOLD,
    TIE,
    Rule,
    add,
    both,
    mix,
)

_U = np.uint64
BLOCK = 1 << 14  # numbers of a block


class Values(NamedTuple):
    """A table for random cuts, and a block of some of its rows."""

    table: Any  # (n, d)
    columns: Any  # (d, n)
    block: Any  # (d, rows)
    local: Any  # (n,) where rows lie in the block, in the order of the rows of the tree
    held: Any  # (2,) first and last + 1 of the rows of the tree that are in the block
    own: Any  # (n,) a column of a node


def values_of(table: Any, columns: Any, rows: int) -> Values:
    """Room for one tree of so many rows."""
    d = len(columns)
    wide = min(max(BLOCK // max(d, 1), 16), max(rows, 1))
    return Values(
        table, columns, np.empty((d, wide), table.dtype), np.empty(rows, np.uint32),
        np.zeros(2, np.int64), np.empty(rows, table.dtype),
    )  # fmt: skip


@inner
def hold(table: Any, block: Any, local: Any, held: Any, rows: Any, lo: int, hi: int) -> bool:
    """Whether rows lo to hi are in the block, which takes them where they fit."""
    if held[0] <= lo and hi <= held[1]:
        return True
    d, many = block.shape
    if hi - lo > many:
        return False
    for u in range(_U(hi - lo)):
        r = rows[_U(lo) + u]
        local[_U(lo) + u] = u
        for j in range(_U(d)):
            block[j, u] = table[r, j]
    held[0], held[1] = lo, hi
    return True


@inner
def random_part(
    column: Any, at: Any, threshold: float, nan_left: bool, rows: Any, local: Any, spare: Any,
    lo: int, hi: int,
) -> Any:  # fmt: skip
    """Bring the rows on the left of a cut to the front; returns where the right side begins.

    ``at`` are places of the rows in the column.
    """
    front, other, half = _U(lo), _U(0), _U(hi - lo)
    for i in range(_U(lo), _U(hi)):
        r, u = rows[i], local[i]
        v = column[at[i]]
        go = _U(v <= threshold or (nan_left and v != v))
        rows[front], local[front] = r, u
        spare[other] = r
        spare[half + other] = u
        front += go
        other += _U(1) - go
    for i in range(other):
        rows[front + i], local[front + i] = spare[i], spare[half + i]
    return np.int64(front)


@inner
def random_column(
    column: Any, at: Any, lo: int, hi: int, own: Any, j: int, sign: int, seed: Any, rule: Rule,
    w_all: float, b_all: float, stats: Any, sums: Any, run: Any, many: Any,
    cut: Any,
) -> bool:  # fmt: skip
    """One cut, uniform between the smallest and largest value in the node; False: it is constant.

    A side is a factor of the sums, since half of the branches would be wrong.
    """
    low, high, gaps = np.inf, -np.inf, False
    n = _U(hi - lo)
    for u in range(n):
        v = column[at[_U(lo) + u]]
        own[u] = v
        low = v if v < low else low
        high = v if v > high else high
        gaps |= v != v
    if low > high or (low == high and not gaps):
        return False
    word = seed ^ mix(_U(j + 1))
    share = (mix(word) >> _U(11)) * 2.0**-53
    nan_left = gaps and mix(word ^ _U(0xD1B54A32D192ED03)) & _U(1) > 0
    if low == high and nan_left:
        return False
    threshold = own.dtype.type((1.0 - share) * low + share * high)
    if not low <= threshold < high:
        threshold = low
    value = NONE
    if run is not None:
        wl, bl = 0.0, 0.0
        for u in range(n):
            goes = 1.0 if own[u] <= threshold or (nan_left and own[u] != own[u]) else 0.0
            wl += goes * stats[u, _U(0)]
            bl += goes * stats[u, _U(1)]
        wr, br = w_all - wl, b_all - bl
        if wl >= rule.least and wr >= rule.least and wl > 0 and wr > 0:
            value = bl * bl / wl + br * br / wr
    if many is not None:
        for k in range(rule.size):
            sums[SIDE, k] = 0.0
        for u in range(n):
            goes = 1.0 if own[u] <= threshold or (nan_left and own[u] != own[u]) else 0.0
            add(rule, stats, u, goes, sums, SIDE)
        value = both(rule, sums, sign)
    if value > cut[SCORE] + TIE * abs(cut[SCORE]):
        cut[SCORE], cut[THRESHOLD], cut[COLUMN] = value, threshold, j
        cut[LOW], cut[HIGH], cut[NAN_LEFT] = 0, 1, nan_left
    return True
