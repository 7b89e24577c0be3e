"""Trees of random cuts, grown until every row stands alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.learn.solvers.trees.impurity_numba import mix

_U = np.uint64
_GOLD = _U(0x9E3779B97F4A7C15)


@inner
def _share(seed: Any, node: int, what: int) -> float:
    """A number in [0, 1) of a node."""
    word = seed ^ mix(_U(node + 1) * _GOLD + _U(what))
    return (mix(word) >> _U(11)) * 2.0**-53


@inner
def _spread(x: Any, rows: Any, lo: int, hi: int, j: int) -> Any:
    """Least and largest value of a column in a node, and whether some are missing."""
    low, high, gaps = np.inf, -np.inf, False
    for i in range(lo, hi):
        v = x[rows[i], j]
        if v != v:
            gaps = True
        else:
            low, high = min(low, v), max(high, v)
    return low, high, gaps


@inner
def _column(
    x: Any, rows: Any, lo: int, hi: int, columns: Any, left: Any, seed: Any, node: int
) -> int:
    """A random column that is not the same for all rows of a node, −1 where there is none."""
    d = len(columns)
    for k in range(d):
        left[k] = columns[k]
    for k in range(d):
        pick = k + int(_share(seed, node, 3 + k) * (d - k))
        left[k], left[pick] = left[pick], left[k]
        low, high, gaps = _spread(x, rows, lo, hi, left[k])
        if low < high or (gaps and low == high):
            return left[k]
    return -1


@outer
def isolate(
    x: Any, rows: Any, weight: Any, columns: Any, depth: int, seed: Any, feature: Any,
    threshold: Any, left: Any, right: Any, nan_left: Any, total: Any, level: Any,
) -> int:  # fmt: skip
    """Grow one tree of some rows with weights, ``(m,)`` both, into arrays of 2m nodes; how many there
    are."""
    many = len(rows)
    start, end = np.empty(2 * many, np.int64), np.empty(2 * many, np.int64)
    spare, order = np.empty(many, np.int64), np.empty(len(columns), np.int64)
    weights = np.empty(many)
    start[0], end[0], level[0] = 0, many, 0
    nodes, at = 1, 0
    while at < nodes:
        lo, hi = start[at], end[at]
        feature[at], left[at], right[at], threshold[at], nan_left[at] = -1, -1, -1, 0.0, False
        total[at] = 0.0
        for i in range(lo, hi):
            total[at] += weight[i]
        j = -1
        if hi - lo > 1 and level[at] < depth:
            j = _column(x, rows, lo, hi, columns, order, seed, at)
        if j >= 0:
            low, high, gaps = _spread(x, rows, lo, hi, j)
            share = _share(seed, at, 1)
            cut = x.dtype.type((1.0 - share) * low + share * high)
            if not low <= cut < high:
                cut = x.dtype.type(low)
            to_left = gaps and low < high and _share(seed, at, 2) < 0.5
            front, other = lo, 0
            for i in range(lo, hi):
                v = x[rows[i], j]
                if v <= cut or (to_left and v != v):
                    rows[front], weight[front] = rows[i], weight[i]
                    front += 1
                else:
                    spare[other], weights[other] = rows[i], weight[i]
                    other += 1
            for i in range(other):
                rows[front + i], weight[front + i] = spare[i], weights[i]
            feature[at], threshold[at], nan_left[at] = j, cut, to_left
            left[at], right[at] = nodes, nodes + 1
            for side in range(2):
                start[nodes] = lo if side == 0 else front
                end[nodes] = front if side == 0 else hi
                level[nodes] = level[at] + 1
                nodes += 1
        at += 1
    return nodes
