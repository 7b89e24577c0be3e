"""Random cuts, as extremely random trees take them: a number between the ends of a column.

They need no order, so they are taken on the values themselves. The rows of a small node lie apart
in a table; it is copied into a block that stays in the cache while the branch below it grows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from groundstate.learn.solvers.trees.compile_numba import inner
from groundstate.learn.solvers.trees.impurity_numba import (
    ENTROPY,
    GINI,
    NONE,
    TIE,
    Columns,
    Cut,
    Rule,
    Work,
    both,
    column,
    drawn,
    mix,
    weight_of,
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
def hold(values: Values, rows: Any, lo: int, hi: int) -> bool:
    """Whether rows lo to hi are in the block, which takes them where they fit."""
    held, block = values.held, values.block
    if held[0] <= lo and hi <= held[1]:
        return True
    d, many = block.shape
    if hi - lo > many:
        return False
    for u in range(_U(hi - lo)):
        values.local[_U(lo) + u] = u
        line: Any = values.table[rows[_U(lo) + u]]
        for j in range(_U(d)):
            block[j, u] = line[j]
    held[0], held[1] = lo, hi
    return True


@inner
def random_part(values: Values, rows: Any, spare: Any, lo: int, hi: int, cut: Cut) -> Any:
    """Bring the rows on the left of a cut to the front; returns where the right side begins."""
    inside, local = hold(values, rows, lo, hi), values.local
    j, threshold, nan_left = cut.place[0], cut.number[1], cut.place[3] > 0
    column: Any = values.block[j] if inside else values.columns[j]
    at, other, half = _U(lo), _U(0), _U(hi - lo)
    for i in range(_U(lo), _U(hi)):
        r, u = rows[i], local[i]
        v = column[u if inside else r]
        go = _U(v <= threshold or (nan_left and v != v))
        rows[at], local[at] = r, u
        spare[other] = r
        spare[half + other] = u
        at += go
        other += _U(1) - go
    for i in range(other):
        rows[at + i], local[at + i] = spare[i], spare[half + i]
    return np.int64(at)


@inner
def _ends(table: Any, j: int, at: Any, lo: int, hi: int, own: Any) -> Any:
    """Smallest and largest value of a node, and whether there is NaN; ``own`` takes the values."""
    low, high, gaps = np.inf, -np.inf, False
    for u in range(_U(hi - lo)):
        v = table[_U(j), at[_U(lo) + u]]
        own[u] = v
        low = v if v < low else low
        high = v if v > high else high
        gaps |= v != v
    return low, high, gaps


@inner
def _pair(own: Any, n: int, threshold: float, nan_left: bool, pairs: Any) -> Any:
    """Two sums of the left side; a side is a factor, since half of the branches would be wrong."""
    w, b = 0.0, 0.0
    for u in range(_U(n)):
        goes = 1.0 if own[u] <= threshold or (nan_left and own[u] != own[u]) else 0.0
        w += goes * pairs[u, _U(0)]
        b += goes * pairs[u, _U(1)]
    return w, b


@inner
def _many(
    own: Any, n: int, threshold: float, nan_left: bool, size: int, classes: bool, label: Any,
    stats: Any, side: Any,
) -> None:  # fmt: skip
    """The sums of the left side."""
    for k in range(size):
        side[k] = 0.0
    for u in range(_U(n)):
        goes = 1.0 if own[u] <= threshold or (nan_left and own[u] != own[u]) else 0.0
        if classes:
            side[label[u]] += goes * stats[u, _U(0)]
        else:
            for k in range(size):
                side[k] += goes * stats[u, k]


@inner
def random_cuts(
    values: Values, cols: Columns, rule: Rule, rows: Any, lo: int, hi: int, work: Work, seed: Any,
    cut: Cut,
) -> None:  # fmt: skip
    """One cut per column, uniform between its smallest and largest value in the node.

    Arrays are named before the loop: what is passed within it is counted for each column.
    """
    inside = hold(values, rows, lo, hi)
    table = values.block if inside else values.columns
    at = values.local if inside else rows
    own, n, order, stats, label, side = (
        values.own,
        hi - lo,
        work.order,
        work.stats,
        work.label,
        work.side,
    )
    categories, number, place, fast, least = (
        cols.categories,
        cut.number,
        cut.place,
        rule.fast,
        rule.least,
    )
    classes = rule.kind == GINI or rule.kind == ENTROPY
    w_all, b_all = weight_of(rule.kind, work.total), work.total[1]
    right, tried, size = np.empty(rule.size), 0, rule.size
    for t in range(len(order)):
        j = drawn(rule.columns, order, t, seed)
        if categories[j]:
            tried += column(cols, rule, j, rows, lo, hi, work, right, cut)
            continue
        low, high, gaps = _ends(table, j, at, lo, hi, own)
        if low > high or (low == high and not gaps):
            continue
        word = seed ^ mix(_U(j + 1))
        share = (mix(word) >> _U(11)) * 2.0**-53
        nan_left = gaps and mix(word ^ _U(0xD1B54A32D192ED03)) & _U(1) > 0
        if low == high and nan_left:
            continue
        threshold = own.dtype.type((1.0 - share) * low + share * high)
        if not low <= threshold < high:
            threshold = low
        tried += 1
        value = NONE
        if fast:
            wl, bl = _pair(own, n, threshold, nan_left, stats)
            wr, br = w_all - wl, b_all - bl
            if wl >= least and wr >= least and wl > 0 and wr > 0:
                value = bl * bl / wl + br * br / wr
        else:
            _many(own, n, threshold, nan_left, size, classes, label, stats, side)
            value = both(rule, work.total, side, right, cols.signs[j])
        if value > number[0] + TIE * abs(number[0]):
            number[0], number[1] = value, threshold
            place[0], place[1], place[2], place[3] = j, 0, 1, nan_left
        if tried >= rule.columns or (n == 2 and place[0] >= 0):
            return  # any column that parts two rows parts them as well as the next


__all__ = ["Values", "random_cuts", "random_part", "values_of"]
