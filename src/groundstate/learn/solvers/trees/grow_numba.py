"""One tree by recursive partition: take a node, find its best cut, split it, go on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from groundstate.learn.solvers.trees.absolute_numba import absolute_cut, absolute_impurity
from groundstate.learn.solvers.trees.compile_numba import inner, outer
from groundstate.learn.solvers.trees.cut_numba import best_cut
from groundstate.learn.solvers.trees.fast_numba import BINS, room
from groundstate.learn.solvers.trees.impurity_numba import (
    ABSOLUTE,
    ENTROPY,
    GINI,
    SQUARED,
    Columns,
    Cut,
    Rule,
    Work,
    mix,
    score,
    weight_of,
)
from groundstate.learn.solvers.trees.presort_numba import mark, part
from groundstate.learn.solvers.trees.random_numba import random_part

_U = np.uint64


class Stop(NamedTuple):
    """When a node stays a leaf."""

    max_depth: int
    max_leaves: int  # 0: any number, and nodes are split in depth-first order
    min_split: float  # weight of a node that may be split
    min_decrease: float  # of impurity, times the node's share of the weight


class Grown(NamedTuple):
    """A tree as columns of its nodes; a leaf has feature −1."""

    feature: Any
    low: Any  # last code on the left, −1: a set of categories
    high: Any  # first code on the right, −1: only NaN goes right
    threshold: Any  # of random cuts, else NaN
    nan_left: Any
    left: Any
    right: Any
    value: Any  # (N, size) class shares or means
    weight: Any
    impurity: Any
    lo: Any
    hi: Any
    sets: Any
    gain: Any
    depth: Any
    path: Any  # identity of a node, for random columns
    pending: Any  # nodes that can be split


@inner
def _add_up(rule: Rule, rows: Any, lo: int, hi: int, work: Work) -> None:
    """Sums of a node from labels and sums of all rows."""
    for k in range(rule.size):
        work.total[k] = 0.0
    for u in range(_U(lo), _U(hi)):
        r = rows[u]
        if not rule.fast and (rule.kind == GINI or rule.kind == ENTROPY):
            work.total[work.label[r]] += work.stats[r, 0]
        else:
            for k in range(rule.size):
                work.total[k] += work.stats[r, k]
    if rule.fast and rule.kind == GINI:
        work.total[0] -= work.total[1]


@inner
def _load(rule: Rule, rows: Any, lo: int, hi: int, label: Any, y: Any, w: Any, work: Work) -> None:
    """Bring labels and sums of the rows of a node together."""
    for k in range(rule.size):
        work.total[k] = 0.0
    if rule.fast:
        for u in range(_U(lo), _U(hi)):
            r, at = rows[u], u - _U(lo)
            value = w[r] * (label[r] if rule.kind == GINI else y[r, 0])
            work.stats[at, 0], work.stats[at, 1] = w[r], value
            work.total[0] += w[r]
            work.total[1] += value
        if rule.kind == GINI:
            work.total[0] -= work.total[1]
        return
    for i in range(lo, hi):
        r, k = rows[i], i - lo
        if rule.kind == GINI or rule.kind == ENTROPY:
            work.label[k] = label[r]
            work.stats[k, 0] = w[r]
            work.total[label[r]] += w[r]
        else:
            work.stats[k, 0] = w[r]
            work.total[0] += w[r]
            for m in range(rule.size - 1):
                work.stats[k, m + 1] = w[r] * y[r, m]
                work.total[m + 1] += w[r] * y[r, m]


@inner
def _impurity(rule: Rule, rows: Any, lo: int, hi: int, y: Any, w: Any, total: Any) -> float:
    """The impurity of a node as scikit-learn reports it."""
    weight = weight_of(rule.kind, total)
    if rule.kind == GINI:
        return 1.0 - score(GINI, total) / weight
    if rule.kind == ENTROPY:
        return max(-score(ENTROPY, total) / weight / np.log(2.0), 0.0)
    if rule.kind == ABSOLUTE:
        return absolute_impurity(rows, lo, hi, y, w)
    outputs = rule.size - 1
    out = 0.0
    for m in range(outputs):
        mean = total[m + 1] / weight
        for i in range(lo, hi):
            v = y[rows[i], m]
            if rule.kind == SQUARED:
                out += w[rows[i]] * (v - mean) * (v - mean)
            elif v > 0:
                out += w[rows[i]] * v * np.log(v / mean)
    return out / weight / outputs


@inner
def _mark(cols: Columns, rows: Any, lo: int, hi: int, cut: Cut, left: Any) -> None:
    """left[row] = 1 for the rows of a node on the left of a cut."""
    j, last, nan_left = cut.place[0], cut.place[1], cut.place[3]
    codes = cols.codes[j]
    for i in range(_U(lo), _U(hi)):
        r = rows[i]
        c = np.int64(codes[r])
        if c == cols.missing:
            left[r] = nan_left
        elif last < 0:
            left[r] = cut.chosen[c]
        else:
            left[r] = c <= last


@inner
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


def empty_nodes(capacity: int, size: int, classes: bool, wide: int, sets: bool) -> Grown:
    """Room for the nodes of one tree."""
    feature, low, high, left, right = np.full((5, capacity), -1)
    lo, hi, depth, pending = np.zeros((4, capacity), np.int64)
    weight, impurity, gain = np.zeros((3, capacity))
    return Grown(
        feature, low, high, np.full(capacity, np.nan), np.zeros(capacity, np.bool_), left, right,
        np.zeros((capacity, size if classes else size - 1)), weight, impurity, lo, hi,
        np.zeros((capacity if sets else 1, wide), np.bool_), gain, depth,
        np.zeros(capacity, np.uint64), pending,
    )  # fmt: skip


def workspace(n: int, d: int, size: int, classes: bool, wide: int, fast: bool) -> tuple[Work, Cut]:
    """Memory for nodes of up to n rows and columns of up to ``wide`` codes."""
    work = Work(
        np.zeros(wide * size), np.zeros(wide, np.int64), np.empty(wide + 1, np.int64),
        np.empty(d, np.int64), np.zeros(size), np.zeros(size), np.zeros(size),
        np.empty(n if classes else 1, np.int64), np.empty((n, 1 if classes and not fast else size)),
        np.empty(2 * n, np.uint32), np.empty((2, 1 if fast else n), np.uint64),
    )  # fmt: skip
    cut = Cut(np.zeros(2), np.zeros(4, np.int64), np.zeros(wide, np.bool_))
    return work, cut


@outer
def grow(
    cols: Columns, rule: Rule, stop: Stop, g: Grown, work: Work, cut: Cut, rows: Any, label: Any,
    y: Any, w: Any, seed: Any, keys: Any, values: Any,
) -> int:  # fmt: skip
    """Grow one tree on the listed rows, which it reorders; returns how many nodes it has.

    With ``keys`` (see `tree_presort`) ``work`` has labels and sums of all rows, by row.
    """
    n, size = len(rows), rule.size
    classes = rule.kind == GINI or rule.kind == ENTROPY
    any_sets = len(g.sets) > 1  # a tree of one node asks nothing
    gain, depth, path, pending, spare = g.gain, g.depth, g.path, g.pending, work.spare
    n_pending, space = 0, room(max(n, BINS))
    side = np.empty(len(w), np.uint8)  # of rows that were parted last
    apart = True
    g.hi[0], path[0] = n, seed
    n_nodes, n_leaves, whole = 1, 1, 0.0
    first, last = 0, 1  # nodes that are new
    while True:
        for v in range(first, last):
            lo, hi = g.lo[v], g.hi[v]
            if keys is None:
                _load(rule, rows, lo, hi, label, y, w, work)
            else:
                _add_up(rule, rows, lo, hi, work)
            weight = weight_of(rule.kind, work.total)
            if v == 0:
                whole = weight
            g.weight[v] = weight
            if classes:
                for c in range(size):
                    g.value[v, c] = work.total[c] / weight
            else:
                for m in range(size - 1):
                    g.value[v, m] = work.total[m + 1] / weight
            g.impurity[v] = _impurity(rule, rows, lo, hi, y, w, work.total)
            scale = 1e-14
            if not classes:
                for m in range(size - 1):
                    scale = max(scale, 1e-14 * abs(g.value[v, m]))
            if (
                hi - lo < 2 or depth[v] >= stop.max_depth or weight < stop.min_split
                or weight < 2 * rule.least or g.impurity[v] <= scale
            ):  # fmt: skip
                continue
            if rule.kind == ABSOLUTE:
                absolute_cut(cols, rule, rows, lo, hi, y, w, path[v], work, cut)
                own = -g.impurity[v] * weight
            else:
                if keys is not None and not apart:
                    part(keys, g.lo[first], g.hi[last - 1], side, work.keys[0])
                    apart = True
                best_cut(cols, rule, rows, lo, hi, path[v], work, space, keys, values, cut)
                own = score(rule.kind, work.total)
            if cut.place[0] < 0:
                continue
            unit = 1.0 if classes else size - 1.0
            if rule.kind == ENTROPY:
                unit = np.log(2.0)
            gain[v] = (cut.number[0] - own) / unit
            if gain[v] / whole + 2.3e-16 < stop.min_decrease:
                continue
            g.feature[v], g.low[v], g.high[v] = cut.place[0], cut.place[1], cut.place[2]
            g.threshold[v], g.nan_left[v] = cut.number[1], cut.place[3] > 0
            if any_sets:
                for k in range(len(cut.chosen)):
                    g.sets[v, k] = cut.chosen[k]
            pending[n_pending] = v
            n_pending += 1
        if n_pending == 0 or (stop.max_leaves > 0 and n_leaves >= stop.max_leaves):
            break
        pick = n_pending - 1
        if stop.max_leaves > 0:
            pick = 0
            for k in range(1, n_pending):
                if gain[pending[k]] > gain[pending[pick]] * (1 + 1e-11):
                    pick = k
        v = pending[pick]
        for k in range(pick, n_pending - 1):
            pending[k] = pending[k + 1]
        n_pending -= 1
        cut.place[0], cut.place[1] = g.feature[v], g.low[v]
        cut.place[3] = np.int64(g.nan_left[v])
        if any_sets:
            for k in range(len(cut.chosen)):
                cut.chosen[k] = g.sets[v, k]
        lo, hi, apart = g.lo[v], g.hi[v], False
        j, nan = cut.place[0], cut.place[3]
        if keys is not None:
            mark(keys[j], lo, hi, cols.n_bins[j], cut.place[1], nan, side)
            middle = _partition(rows, spare, lo, hi, side)
        elif values is not None and not cols.categories[j]:
            cut.number[1] = g.threshold[v]
            middle = random_part(values, rows, spare, lo, hi, cut)
        else:
            _mark(cols, rows, lo, hi, cut, side)
            middle = _partition(rows, spare, lo, hi, side)
        l, r = n_nodes, n_nodes + 1
        n_nodes += 2
        n_leaves += 1
        g.left[v], g.right[v] = l, r
        g.lo[l], g.hi[l], g.lo[r], g.hi[r] = lo, middle, middle, hi
        depth[l] = depth[r] = depth[v] + 1
        path[l] = mix(path[v] ^ _U(0x5851F42D4C957F2D))
        path[r] = mix(path[v] ^ _U(0x14057B7EF767814F))
        first, last = l, l + 2
    for k in range(n_pending):  # leaves that could have been split
        g.feature[pending[k]] = -1
    return n_nodes


@outer
def preorder(feature: Any, left: Any, right: Any) -> Any:
    """Nodes in the order root, left branch, right branch."""
    n = len(feature)
    out, stack = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    stack[0], top, k = 0, 1, 0
    while top > 0:
        top -= 1
        v = stack[top]
        out[k] = v
        k += 1
        if feature[v] >= 0:
            stack[top], stack[top + 1] = right[v], left[v]
            top += 2
    return out


@inner
def _threshold(g: Grown, v: int, cols: Columns, exact: bool, single: bool) -> float:
    """A number that the type of the rows can hold, not below the left side and below the right."""
    j, low, high = g.feature[v], max(g.low[v], 0), g.high[v]
    start = cols.start[j]
    if not np.isnan(g.threshold[v]):
        return float(g.threshold[v])
    if high < 0:
        return np.inf
    if not exact:  # the edge behind code c is the first value of code c + 1
        return float(cols.levels[start + min(low + 1, cols.n_bins[j] - 1)])
    a, b = cols.levels[start + low], cols.levels[start + high]
    t = a / 2 + b / 2
    t = t if a <= t < b else a
    if single:
        t = np.float64(np.float32(t))
    return float(t) if a <= t < b else float(a)


@outer
def laid_out(g: Grown, n: int, cols: Columns, gaps: Any, exact: bool, single: bool) -> Any:
    """The first n nodes in the order root, left branch, right branch, and that order.

    NaN that a column did not have in training (``gaps``) goes to the larger side.
    """
    order, place = preorder(g.feature[:n], g.left[:n], g.right[:n]), np.empty(n, np.int64)
    k = g.value.shape[1]
    feature, left, right = np.empty(n, np.int64), np.full(n, -1), np.full(n, -1)
    nan_left, value, weight = np.empty(n, np.bool_), np.empty((n, k)), np.empty(n)
    threshold, impurity, rows = np.zeros(n), np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        place[order[i]] = i
    for i in range(n):
        v = order[i]
        j = g.feature[v]
        feature[i], nan_left[i] = j, g.nan_left[v]
        if j >= 0:
            left[i], right[i] = place[g.left[v]], place[g.right[v]]
            threshold[i] = _threshold(g, v, cols, exact, single)
            if not gaps[j]:
                nan_left[i] = g.weight[g.left[v]] > g.weight[g.right[v]]
        for m in range(k):
            value[i, m] = g.value[v, m]
        weight[i], impurity[i], rows[i] = g.weight[v], g.impurity[v], g.hi[v] - g.lo[v]
    return order, feature, threshold, left, right, nan_left, value, weight, impurity, rows


__all__ = [
    "Grown",
    "Stop",
    "empty_nodes",
    "grow",
    "laid_out",
    "preorder",
    "workspace",
]
