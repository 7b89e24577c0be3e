"""The best cut of a node over its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.tree_fast import fast_column
from groundstate.learn.tree_jit import inner
from groundstate.learn.tree_kernels import (
    GINI,
    NONE,
    Columns,
    Cut,
    Rule,
    Work,
    column,
    mix,
    weight_of,
)
from groundstate.learn.tree_random import random_column
from groundstate.learn.tree_sorted import sorted_column

_U = np.uint64


@inner
def best_cut(
    cols: Columns, rule: Rule, rows: Any, lo: int, hi: int, seed: Any, work: Work, space: Any,
    cut: Cut,
) -> None:  # fmt: skip
    """The best cut over columns, all of them in order or some in random order.

    A column that is constant in the node does not count as tried.
    """
    d = len(cols.n_bins)
    cut.number[0], cut.place[0] = NONE, -1
    order, tried = work.order, 0
    for j in range(d):
        order[j] = j
    if rule.fast:
        w_all, b_all = weight_of(rule.kind, work.total), work.total[1]
        for t in range(d):
            j = _drawn(rule, order, t, seed)
            if hi - lo == 2 and cols.codes[j][rows[lo]] == cols.codes[j][rows[lo + 1]]:
                continue  # two equal rows
            tried += fast_column(cols.codes[j], j, cols.n_bins[j], rows, lo, hi, work.stats, w_all,
                                 b_all, rule.least, space, cut)  # fmt: skip
            if tried >= rule.columns or (tried and hi - lo == 2):
                break  # any column that parts two rows parts them as well as the next
        if rule.kind == GINI and cut.place[0] >= 0:
            cut.number[0] = 2 * cut.number[0] - 2 * b_all + w_all
        return
    right = np.empty(rule.size)
    for t in range(d):
        j = _drawn(rule, order, t, seed)
        if rule.random and not cols.categories[j]:
            tried += random_column(cols, rule, j, rows, lo, hi, work, right, seed, cut)
        else:
            seen = -1
            if not cols.categories[j] and (hi - lo) * 6 <= cols.n_bins[j]:
                seen = sorted_column(cols, rule, j, rows, lo, hi, work, right, cut)
            if seen < 0:
                seen = int(column(cols, rule, j, rows, lo, hi, work, right, cut))
            tried += seen
        if tried >= rule.columns or (hi - lo == 2 and cut.place[0] >= 0):
            return  # any column that parts two rows parts them as well as the next


@inner
def _drawn(rule: Rule, order: Any, t: int, seed: Any) -> Any:
    """The column that comes at place t: all in order, or by a shuffle that goes as far as asked."""
    d = len(order)
    if rule.columns < d:
        pick = t + np.int64(mix(seed + _U(t) * _U(0x9E3779B97F4A7C15)) % _U(d - t))
        order[t], order[pick] = order[pick], order[t]
    return np.int64(order[t])


__all__ = ["best_cut"]
