r"""Cuts by absolute error, :math:`\min_c \sum_i w_i |y_i - c|` on each side, by running medians."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner
from groundstate.compute.kernels.order_numba import sort_by
from groundstate.learn.solvers.trees.impurity_numba import Rule, drawn, keep


@inner
def _push(tree: Any, rank: int, w: float, wy: float) -> None:
    """Add to a Fenwick tree of weights and weighted values, by rank of y."""
    k = rank + 1
    while k < len(tree):
        tree[k, 0] += w
        tree[k, 1] += wy
        k += k & -k


@inner
def _error(tree: Any, ordered: Any, w: float, wy: float) -> float:
    """Σ w|y − median| of what is in the tree, whose totals are w and wy."""
    n = len(tree) - 1
    at, below, total, step = 0, 0.0, 0.0, 1
    while step * 2 <= n:
        step *= 2
    while step > 0:
        k = at + step
        if k <= n and below + tree[k, 0] < 0.5 * w:
            at = k
            below += tree[k, 0]
            total += tree[k, 1]
        step //= 2
    median = ordered[min(at, n - 1)]
    return max(median * below - total + (wy - total) - median * (w - below), 0.0)


@inner
def absolute_impurity(rows: Any, lo: int, hi: int, y: Any, stats: Any) -> float:
    """Mean absolute deviation from the weighted median."""
    n, total, below = hi - lo, 0.0, 0.0
    values, order = np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        values[i], order[i] = y[rows[lo + i], 0], i
        total += stats[i, 0]
    sort_by(values, order, n)
    median = values[order[n - 1]]
    for i in range(n):
        below += stats[order[i], 0]
        if below >= 0.5 * total:
            median = values[order[i]]
            break
    error = 0.0
    for i in range(n):
        error += abs(values[i] - median) * stats[i, 0]
    return error / total


@inner
def absolute_cut(
    codes: Any, categories: Any, missing: int, rule: Rule, rows: Any, lo: int, hi: int, y: Any,
    stats: Any, seed: Any, order: Any, cut: Any,
) -> None:  # fmt: skip
    """The cut of lowest summed absolute error over columns; the score is minus that error."""
    n, d = hi - lo, len(order)
    values, ordered = np.empty(n), np.empty(n)
    rank, line, own = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    error, mass, tree = np.empty(n + 1), np.empty(n + 1), np.empty((n + 1, 2))
    for i in range(n):
        values[i], line[i] = y[rows[lo + i], 0], i
    sort_by(values, line, n)
    for i in range(n):
        rank[line[i]], ordered[i] = i, values[line[i]]
    tried = 0
    for t in range(d):
        j = drawn(rule.columns, order, t, seed)
        if categories[j]:
            continue
        gaps, different = 0, False
        for i in range(n):
            own[i] = codes[j, rows[lo + i]]
            gaps += own[i] == missing
        for nan_left in range(2 if gaps else 1):
            for i in range(n):
                line[i] = i
                own[i] = -1 if nan_left and own[i] == missing else own[i]
            sort_by(own, line, n)
            if own[line[0]] == own[line[n - 1]]:
                continue
            different = True
            for turn in range(2):  # from the left, then from the right
                for k in range(n + 1):
                    tree[k, 0] = tree[k, 1] = 0.0
                a, b = 0.0, 0.0
                for k in range(n):
                    i = line[n - 1 - k if turn else k]
                    weight = stats[i, 0]
                    _push(tree, rank[i], weight, weight * values[i])
                    a += weight
                    b += weight * values[i]
                    if not turn:
                        error[k + 1], mass[k + 1] = _error(tree, ordered, a, b), a
                        continue
                    m = n - 1 - k  # rows before m are on the left
                    if m == 0 or own[line[m - 1]] == own[line[m]]:
                        continue
                    if mass[m] < rule.least or a < rule.least or own[line[m - 1]] < 0:
                        continue
                    value = -(error[m] + _error(tree, ordered, a, b))
                    above = own[line[m]]
                    high = -1 if above == missing else above
                    keep(cut, value, j, own[line[m - 1]], high, nan_left)
        tried += different
        if tried >= rule.columns:
            return
