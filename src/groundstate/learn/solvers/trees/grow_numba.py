"""One tree by recursive partition: take a node, find its best cut, split it, go on.

What a tree does not need is None, and what asks for it is then not compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.learn.solvers.trees.absolute_numba import absolute_cut, absolute_impurity
from groundstate.learn.solvers.trees.coded_numba import coded_column
from groundstate.learn.solvers.trees.fast_numba import best_of, coded_sums
from groundstate.learn.solvers.trees.impurity_numba import (
    COLUMN,
    CUT,
    ENTROPY,
    GINI,
    HIGH,
    LOW,
    NAN_LEFT,
    NONE,
    SCORE,
    SQUARED,
    THRESHOLD,
    TOTAL,
    Rule,
    add,
    drawn,
    mix,
    score,
    weight_of,
)
from groundstate.learn.solvers.trees.ordered_numba import ordered_cuts, sorted_keys
from groundstate.learn.solvers.trees.presort_numba import mark, part
from groundstate.learn.solvers.trees.random_numba import hold, random_column, random_part

_U = np.uint64
# of a node, whole numbers and real ones
FEATURE, CODE, NEXT, NAN, LEFT, RIGHT, FIRST, LAST, DEPTH, WHOLE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
CUT_AT, WEIGHT, IMPURITY, GAIN, REAL = 0, 1, 2, 3, 4


class Stop(NamedTuple):
    """When a node stays a leaf."""

    max_depth: int
    max_leaves: int  # 0: any number, and nodes are split in depth-first order
    min_split: float  # weight of a node that may be split
    min_decrease: float  # of impurity, times the node's share of the weight


class Columns(NamedTuple):
    """The table as the compiled loops see it."""

    codes: Any  # (d, n)
    n_bins: Any  # (d,)
    categories: Any  # (d,), 0 for numbers
    signs: Any  # (d,), +1 rising, −1 falling, 0 free
    missing: int  # code of NaN


class Grown(NamedTuple):
    """A tree as tables of its nodes; a leaf has feature −1."""

    whole: Any  # (N, WHOLE)
    real: Any  # (N, REAL)
    value: Any  # (N, classes or targets) class shares or means
    order: Any  # (N,) nodes in the order root, left branch, right branch


class Work(NamedTuple):
    """Memory that lives as long as a tree grows: to allocate it here is quicker to compile."""

    sums: Any  # (4, size)
    cut: Any  # (CUT,)
    columns: Any  # (d,) in the order in which they are tried
    pending: Any  # (N + 1,) nodes that can be split
    path: Any  # (N,) identities of nodes, for random columns
    marks: Any  # (4,) codes that occur, as bits
    spare: Any  # (2 n,) rows
    side: Any  # (n,) of rows that were parted last
    present: Any  # (codes + 1,)
    chosen: Any  # (codes,) categories that go left
    line: Any  # (n,) a part of a sorted column


def workspace(capacity: int, n: int, d: int, size: int, rows: int, codes: int, line: int) -> Work:
    """For so many nodes, rows of the tree, columns, sums, rows of the table, codes, sorted keys."""
    return Work(
        np.zeros((4, size)), np.empty(CUT), np.empty(d, np.int64), np.empty(capacity + 1, np.int64),
        np.empty(capacity, np.uint64), np.zeros(4, np.uint64), np.empty(2 * n, np.uint32),
        np.empty(rows, np.uint8), np.empty(codes + 1, np.int64), np.zeros(codes, np.bool_),
        np.empty(line, np.uint64),
    )  # fmt: skip


def empty_nodes(capacity: int, outputs: int) -> Grown:
    """Room for the nodes of one tree."""
    whole = np.zeros((capacity, WHOLE), np.int64)
    whole[:, FEATURE] = -1
    real, value = np.zeros((capacity, REAL)), np.zeros((capacity, outputs))
    return Grown(whole, real, value, np.empty(capacity, np.int64))


@inner
def _load(
    rule: Rule, rows: Any, lo: int, hi: int, given: Any, copy: Any, run: Any, many: Any, sums: Any
) -> None:
    """The sums of a node; ``copy`` takes what is given of its rows."""
    for k in range(rule.size):
        sums[TOTAL, k] = 0.0
    for u in range(_U(lo), _U(hi)):
        r: Any = _U(rows[u])
        if copy is not None:
            at = u - _U(lo)
            for k in range(_U(given.shape[1])):
                copy[at, k] = given[r, k]
        if run is not None:
            sums[TOTAL, 0] += given[r, _U(0)]
            sums[TOTAL, 1] += given[r, _U(1)]
        if many is not None:
            add(rule, given, r, 1.0, sums, TOTAL)
    if run is not None and rule.kind == GINI:  # of the first class, as where there are more
        sums[TOTAL, 0] -= sums[TOTAL, 1]


@inner(inline="always")
def _impurity(rule: Rule, rows: Any, lo: int, hi: int, y: Any, given: Any, sums: Any) -> float:
    """The impurity of a node as scikit-learn reports it."""
    weight = weight_of(rule.kind, sums, TOTAL)
    if rule.kind == GINI:
        return 1.0 - score(GINI, sums, TOTAL) / weight
    if rule.kind == ENTROPY:
        return max(-score(ENTROPY, sums, TOTAL) / weight / np.log(2.0), 0.0)
    outputs = rule.size - 1
    out = 0.0
    for m in range(outputs):
        mean = sums[TOTAL, m + 1] / weight
        for i in range(lo, hi):
            r = rows[i]
            v, w = y[r, m], given[r, 0]
            if rule.kind == SQUARED:
                out += w * (v - mean) * (v - mean)
            elif v > 0:
                out += w * v * np.log(v / mean)
    return out / weight / outputs


@inner(inline="always")
def _partition(rows: Any, spare: Any, lo: int, hi: int, left: Any) -> Any:
    """Bring the marked rows of a node to the front; returns where the others begin."""
    at, other = _U(lo), _U(0)
    for i in range(_U(lo), _U(hi)):
        r = rows[i]
        go = _U(left[r])
        rows[at] = r
        spare[other] = r
        at += go
        other += _U(1) - go
    for i in range(other):
        rows[at + i] = spare[i]
    return np.int64(at)


@inner(inline="always")
def _preorder(whole: Any, out: Any, stack: Any) -> None:
    """Nodes in the order root, left branch, right branch."""
    stack[0], top, k = 0, 1, 0
    while top > 0:
        top -= 1
        v = stack[top]
        out[k] = v
        k += 1
        if whole[v, FEATURE] >= 0:
            stack[top], stack[top + 1] = whole[v, RIGHT], whole[v, LEFT]
            top += 2


@outer
def grow(
    cols: Columns, rule: Rule, stop: Stop, tree: Grown, work: Work, rows: Any, given: Any, y: Any,
    seed: Any, copy: Any, keys: Any, local: Any, values: Any, bins: Any, hist: Any,
    sets: Any, run: Any, many: Any, median: Any,
) -> int:  # fmt: skip
    """Grow one tree on the listed rows, which it reorders; returns how many nodes it has.

    Parameters
    ----------
    given : what is summed over rows: weight and class, or weight and weighted targets
    y : (n, targets), which impurities are reported of
    copy : room for those of the rows of a node, or None with ``keys``
    keys : columns that stay sorted (see `presort_numba`); one of five ways to find cuts
    local : room for columns that are sorted in a node, (2, n)
    values : a table for random cuts
    bins : room for pairs of sums per code, (2 BINS,)
    hist : room for sums per code (codes, size + 1)
    sets : categories that go left (N, codes)
    run : room for running sums (4, n), where there are two: two classes or one target
    many : 0 where there are more
    median : 0 where the error is absolute, which is the sixth way
    """
    codes, n_bins, categories, signs, missing = cols
    whole, real, value, order = tree
    size, kind, d = rule.size, rule.kind, len(n_bins)
    classes = kind <= ENTROPY
    sums, cut, columns, pending, path, marks, spare, side, present, chosen, line = work
    stats = given
    if copy is not None:
        stats = copy
    n_pending, n_nodes, n_leaves, everything, apart = 0, 1, 1, 0.0, True
    whole[0, LAST], path[0] = len(rows), seed
    first, last = 0, 1  # nodes that are new
    while True:
        for v in range(first, last):
            lo, hi = whole[v, FIRST], whole[v, LAST]
            _load(rule, rows, lo, hi, given, copy, run, many, sums)
            weight = weight_of(kind, sums, TOTAL)
            if v == 0:
                everything = weight
            scale, shift = 1e-14, 0 if classes else 1
            for m in range(size - shift):
                value[v, m] = sums[TOTAL, m + shift] / weight
                if not classes:
                    scale = max(scale, 1e-14 * abs(value[v, m]))
            if median is not None:
                impurity = absolute_impurity(rows, lo, hi, y, stats)
            else:
                impurity = _impurity(rule, rows, lo, hi, y, given, sums)
            real[v, WEIGHT], real[v, IMPURITY] = weight, impurity
            if (
                hi - lo < 2 or whole[v, DEPTH] >= stop.max_depth or weight < stop.min_split
                or weight < 2 * rule.least or impurity <= scale
            ):  # fmt: skip
                continue
            cut[SCORE], cut[COLUMN] = NONE, -1
            for j in range(d):
                columns[j] = j
            if median is not None:
                absolute_cut(codes, categories, missing, rule, rows, lo, hi, y, stats, path[v],
                             columns, cut)  # fmt: skip
                own = -impurity * weight
            else:
                if keys is not None and not apart:
                    part(keys, whole[first, FIRST], whole[last - 1, LAST], side, line)
                    apart = True
                own, b_all, tried = score(kind, sums, TOTAL), sums[TOTAL, 1], 0
                inside = False
                if values is not None:
                    inside = hold(
                        values.table, values.block, values.local, values.held, rows, lo, hi
                    )
                for t in range(d):
                    j = drawn(rule.columns, columns, t, path[v])
                    # a column that is constant in the node does not count as tried
                    if sets is not None and categories[j]:
                        tried += coded_column(codes[j], n_bins[j], missing, j, signs[j], rule, rows, lo,
                                              hi, stats, hist, present, sums, chosen, cut)  # fmt: skip
                    elif values is not None:
                        tried += random_column(
                            values.block[j] if inside else values.columns[j],
                            values.local if inside else rows, lo, hi, values.own, j, signs[j],
                            path[v], rule, weight, b_all, stats, sums, run, many, cut,
                        )  # fmt: skip
                    elif keys is not None:
                        tried += ordered_cuts(keys[j], lo, hi, n_bins[j], j, signs[j], rule, weight,
                                              b_all, stats, sums, run, many, cut)  # fmt: skip
                    elif local is not None:
                        here = sorted_keys(codes[j], missing, rows, lo, hi, n_bins[j], local)
                        tried += ordered_cuts(local[here], 0, hi - lo, n_bins[j], j, signs[j], rule,
                                              weight, b_all, stats, sums, run, many, cut)  # fmt: skip
                    elif bins is not None:
                        if hi - lo == 2 and codes[j, rows[lo]] == codes[j, rows[lo + 1]]:
                            continue  # two equal rows
                        m, w_gap, b_gap = coded_sums(
                            codes[j], n_bins[j], rows, lo, hi, stats, bins, marks, run
                        )
                        tried += best_of(j, m, w_gap, b_gap, weight, b_all, rule.least, run, cut)
                    elif hist is not None:
                        tried += coded_column(codes[j], n_bins[j], missing, j, signs[j], rule, rows, lo,
                                              hi, stats, hist, present, sums, None, cut)  # fmt: skip
                    if tried >= rule.columns or (hi - lo == 2 and cut[COLUMN] >= 0):
                        break  # any column that parts two rows parts them as well as the next
                if run is not None and kind == GINI and cut[COLUMN] >= 0:
                    cut[SCORE] = 2 * cut[SCORE] - 2 * b_all + weight
            if cut[COLUMN] < 0:
                continue
            unit = np.log(2.0) if kind == ENTROPY else (1.0 if classes else size - 1.0)
            real[v, GAIN] = (cut[SCORE] - own) / unit
            if real[v, GAIN] / everything + 2.3e-16 < stop.min_decrease:
                continue
            real[v, CUT_AT], whole[v, FEATURE] = cut[THRESHOLD], np.int64(cut[COLUMN])
            whole[v, CODE], whole[v, NEXT] = np.int64(cut[LOW]), np.int64(cut[HIGH])
            whole[v, NAN] = np.int64(cut[NAN_LEFT])
            if sets is not None:
                for k in range(len(chosen)):
                    sets[v, k] = chosen[k]
            pending[n_pending] = v
            n_pending += 1
        if n_pending == 0 or (stop.max_leaves > 0 and n_leaves >= stop.max_leaves):
            break
        pick = n_pending - 1
        if stop.max_leaves > 0:
            pick = 0
            for k in range(1, n_pending):
                if real[pending[k], GAIN] > real[pending[pick], GAIN] * (1 + 1e-11):
                    pick = k
        v = pending[pick]
        for k in range(pick, n_pending - 1):
            pending[k] = pending[k + 1]
        n_pending -= 1
        lo, hi, apart = whole[v, FIRST], whole[v, LAST], False
        j, nan, low = whole[v, FEATURE], whole[v, NAN], whole[v, CODE]
        if values is not None and not categories[j]:
            inside = hold(values.table, values.block, values.local, values.held, rows, lo, hi)
            middle = random_part(
                values.block[j] if inside else values.columns[j],
                values.local if inside else rows, real[v, CUT_AT], nan > 0, rows, values.local,
                spare, lo, hi,
            )  # fmt: skip
        else:
            if keys is not None:
                mark(keys[j], lo, hi, n_bins[j], low, nan, side)
            else:
                for i in range(_U(lo), _U(hi)):
                    r = rows[i]
                    c = np.int64(codes[j, r])
                    if c == missing:
                        side[r] = nan
                    elif sets is not None and low < 0:
                        side[r] = sets[v, c]
                    else:
                        side[r] = c <= low
            middle = _partition(rows, spare, lo, hi, side)
        l, r = n_nodes, n_nodes + 1
        n_nodes += 2
        n_leaves += 1
        whole[v, LEFT], whole[v, RIGHT] = l, r
        whole[l, FIRST], whole[l, LAST] = lo, middle
        whole[r, FIRST], whole[r, LAST] = middle, hi
        whole[l, DEPTH] = whole[r, DEPTH] = whole[v, DEPTH] + 1
        path[l] = mix(path[v] ^ _U(0x5851F42D4C957F2D))
        path[r] = mix(path[v] ^ _U(0x14057B7EF767814F))
        first, last = l, l + 2
    for k in range(n_pending):  # leaves that could have been split
        whole[pending[k], FEATURE] = -1
    _preorder(whole, order, pending)
    return n_nodes
