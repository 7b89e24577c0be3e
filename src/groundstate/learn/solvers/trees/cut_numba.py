"""The best cut of a node over its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.solvers.trees.compile_numba import inner
from groundstate.learn.solvers.trees.fast_numba import best_of, fast_column
from groundstate.learn.solvers.trees.impurity_numba import (
    GINI,
    NONE,
    Columns,
    Cut,
    Rule,
    Work,
    column,
    drawn,
    weight_of,
)
from groundstate.learn.solvers.trees.presort_numba import ordered_sums
from groundstate.learn.solvers.trees.random_numba import random_cuts
from groundstate.learn.solvers.trees.sorted_numba import ordered_column, sorted_column

_U = np.uint64


@inner
def best_cut(
    cols: Columns, rule: Rule, rows: Any, lo: int, hi: int, seed: Any, work: Work, space: Any,
    keys: Any, values: Any, cut: Cut,
) -> None:  # fmt: skip
    """The best cut over columns, all of them in order or some in random order.

    A column that is constant in the node does not count as tried. With ``keys`` columns are sorted
    already, with ``values`` cuts are random; these two may be None, and then are not compiled.
    """
    cut.number[0], cut.place[0] = NONE, -1
    for j in range(len(work.order)):
        work.order[j] = j
    if keys is not None:
        _ordered(keys, cols, rule, lo, hi, work, space, seed, cut)
    elif values is not None:
        random_cuts(values, cols, rule, rows, lo, hi, work, seed, cut)
    else:
        _coded(cols, rule, rows, lo, hi, work, space, seed, cut)
    if rule.fast and rule.kind == GINI and cut.place[0] >= 0:
        cut.number[0] = 2 * cut.number[0] - 2 * work.total[1] + weight_of(GINI, work.total)


@inner
def _ordered(
    keys: Any, cols: Columns, rule: Rule, lo: int, hi: int, work: Work, space: Any, seed: Any,
    cut: Cut,
) -> None:  # fmt: skip
    """Columns that are sorted already."""
    order, stats, n_bins, place, tried = work.order, work.stats, cols.n_bins, cut.place, 0
    w_all, b_all, right = weight_of(rule.kind, work.total), work.total[1], np.empty(rule.size)
    for t in range(len(order)):
        j = drawn(rule.columns, order, t, seed)
        if keys[j, lo] >> _U(32) == keys[j, hi - 1] >> _U(32):
            continue
        tried += 1
        if rule.fast:
            m, w_gap, b_gap = ordered_sums(keys, j, lo, hi, n_bins[j], stats, space)
            best_of(j, m, w_gap, b_gap, w_all, b_all, rule.least, space, cut)
        else:
            ordered_column(keys[j], lo, hi, n_bins[j], j, cols.signs[j], rule, work, right, cut)
        if tried >= rule.columns or (hi - lo == 2 and place[0] >= 0):
            return  # any column that parts two rows parts them as well as the next


@inner
def _coded(
    cols: Columns, rule: Rule, rows: Any, lo: int, hi: int, work: Work, space: Any, seed: Any,
    cut: Cut,
) -> None:  # fmt: skip
    """Columns of codes, by their sums or, where rows are few, by sorting."""
    w_all, b_all, right = weight_of(rule.kind, work.total), work.total[1], np.empty(rule.size)
    tried = 0
    for t in range(len(work.order)):
        j = drawn(rule.columns, work.order, t, seed)
        if rule.fast:
            if hi - lo == 2 and cols.codes[j][rows[lo]] == cols.codes[j][rows[lo + 1]]:
                continue  # two equal rows
            tried += fast_column(cols.codes[j], j, cols.n_bins[j], rows, lo, hi, work.stats, w_all,
                                 b_all, rule.least, space, cut)  # fmt: skip
        elif not cols.categories[j] and (hi - lo) * 6 <= cols.n_bins[j]:
            tried += sorted_column(cols, rule, j, rows, lo, hi, work, right, cut)
        else:
            tried += column(cols, rule, j, rows, lo, hi, work, right, cut)
        if tried >= rule.columns or (hi - lo == 2 and cut.place[0] >= 0):
            return


__all__ = ["best_cut"]
