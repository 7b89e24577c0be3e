r"""Cuts by absolute error, :math:`\min_c \sum_i w_i |y_i - c|` on each side, by running medians."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.solvers.trees.compile_numba import inner, sort_by
from groundstate.learn.solvers.trees.impurity_numba import NONE, TIE, Columns, Cut, Rule, Work, mix

_U = np.uint64


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
def absolute_impurity(rows: Any, lo: int, hi: int, y: Any, w: Any) -> float:
    """Mean absolute deviation from the weighted median."""
    n = hi - lo
    values, weights = np.empty(n), np.empty(n)
    for i in range(n):
        values[i], weights[i] = y[rows[lo + i], 0], w[rows[lo + i]]
    order = np.arange(n)
    sort_by(values, order, n)
    total, below, median = weights.sum(), 0.0, values[order[n - 1]]
    for i in range(n):
        below += weights[order[i]]
        if below >= 0.5 * total:
            median = values[order[i]]
            break
    error = 0.0
    for i in range(n):
        error += abs(values[i] - median) * weights[i]
    return error / total


@inner
def absolute_cut(
    cols: Columns, rule: Rule, rows: Any, lo: int, hi: int, y: Any, w: Any, seed: Any, work: Work,
    cut: Cut,
) -> None:  # fmt: skip
    """The cut of lowest summed absolute error over columns; the score is minus that error."""
    n, d = hi - lo, len(cols.n_bins)
    values = np.empty(n)
    for i in range(n):
        values[i] = y[rows[lo + i], 0]
    by_value = np.arange(n)
    sort_by(values, by_value, n)
    rank = np.empty(n, np.int64)
    for i in range(n):
        rank[by_value[i]] = i
    ordered = np.empty(n)
    for i in range(n):
        ordered[i] = values[by_value[i]]
    cut.number[0], cut.place[0] = NONE, -1
    for j in range(d):
        work.order[j] = j
    codes, error, mass = np.empty(n, np.int64), np.empty(n + 1), np.empty(n + 1)
    tried = 0
    for t in range(d):
        if rule.columns < d:
            pick = t + np.int64(mix(seed + _U(t) * _U(0x9E3779B97F4A7C15)) % _U(d - t))
            work.order[t], work.order[pick] = work.order[pick], work.order[t]
        j = work.order[t]
        gaps = 0
        for i in range(n):
            codes[i] = cols.codes[j, rows[lo + i]]
            gaps += codes[i] == cols.missing
        if cols.categories[j]:
            continue
        different = False
        for nan_left in range(2 if gaps else 1):
            if nan_left:
                for i in range(n):
                    codes[i] = -1 if codes[i] == cols.missing else codes[i]
            line = np.arange(n)
            sort_by(codes, line, n)
            if codes[line[0]] == codes[line[n - 1]]:
                continue
            different = True
            for forward in (True, False):
                tree = np.zeros((n + 1, 2))
                a, b = 0.0, 0.0
                for k in range(n):
                    i = line[k if forward else n - 1 - k]
                    weight = w[rows[lo + i]]
                    _push(tree, rank[i], weight, weight * values[i])
                    a += weight
                    b += weight * values[i]
                    if forward:
                        error[k + 1], mass[k + 1] = _error(tree, ordered, a, b), a
                        continue
                    m = n - 1 - k  # rows before m are on the left
                    if m == 0 or codes[line[m - 1]] == codes[line[m]]:
                        continue
                    if mass[m] < rule.least or a < rule.least or codes[line[m - 1]] < 0:
                        continue
                    value = -(error[m] + _error(tree, ordered, a, b))
                    if value > cut.number[0] + TIE * abs(cut.number[0]):
                        cut.number[0], cut.number[1] = value, np.nan
                        cut.place[0], cut.place[1] = j, codes[line[m - 1]]
                        above = codes[line[m]]
                        cut.place[2] = -1 if above == cols.missing else above
                        cut.place[3] = nan_left
        tried += different
        if tried >= rule.columns:
            return


__all__ = ["absolute_cut", "absolute_impurity"]
