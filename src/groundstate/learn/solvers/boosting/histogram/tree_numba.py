r"""One boosted tree, grown on codes: split the leaf of largest gain until none is left.

With sums of gradients G and hessians H over the rows of a node, a cut gains

.. math:: \tfrac12\Bigl(\frac{G_L^2}{H_L+\lambda} + \frac{G_R^2}{H_R+\lambda}
          - \frac{G^2}{H+\lambda}\Bigr), \qquad \text{leaf value } -\frac{G}{H+\lambda} .
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from groundstate.learn.solvers.boosting.histogram.cuts_numba import (
    BINS,
    CODE,
    DIRECTION,
    GAIN,
    GROUP,
    LEFT_G,
    LEFT_H,
    LEFT_W,
    MISSING,
    NONE,
    SEEN,
    SIZE,
)
from groundstate.learn.solvers.boosting.histogram.fill_numba import best_cuts, best_cuts_threads
from groundstate.learn.solvers.boosting.histogram.small_numba import scratch, small_cuts
from groundstate.learn.solvers.trees.compile_numba import inner, outer, sort_by

_U = np.uint64
_FEW = 512  # rows of a parent up to which its children need no histograms


class Table(NamedTuple):
    """The rows of a fit as the compiled loops see them."""

    words: Any  # (groups, n) uint32, codes of four columns each
    codes: Any  # (groups, n, 4) uint8, the same memory
    n_bins: Any  # (d,)
    categories: Any  # (d,), 0 for numbers
    signs: Any  # (d,), +1 rising, −1 falling, 0 free
    groups: Any  # (interaction groups, d) bool


class Settings(NamedTuple):
    """Limits of one tree."""

    rules: Any  # l2, least weight and least hessian of a leaf
    max_leaves: int  # 0: any number
    max_depth: int
    columns: int  # columns tried per node
    many: int  # entries (rows × columns) of a node from which threads pay


class Nodes(NamedTuple):
    """A tree while it grows; a leaf has column −1."""

    column: Any
    left: Any  # the right child is the next one
    code: Any  # −1: a set of categories
    missing_left: Any
    gain: Any
    total: Any  # (nodes, 3): G, H, weight
    value: Any
    lo: Any  # rows of a node are rows[lo:hi]
    hi: Any
    depth: Any
    box: Any  # (nodes, 2) bounds of the value
    path: Any  # identity of the node, for random columns
    alive: Any  # (nodes, interaction groups)
    slot: Any  # histograms in the pool
    best: Any  # (nodes, SIZE), the best cut found
    sets: Any  # (nodes, BINS) bool, categories that go left


@inner
def mix(word: Any) -> Any:
    """The finaliser of SplitMix64."""
    w = (word ^ (word >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    w = (w ^ (w >> _U(27))) * _U(0x94D049BB133111EB)
    return w ^ (w >> _U(31))


def empty_nodes(capacity: int, with_sets: bool, n_groups: int) -> Nodes:
    """Room for the nodes of one tree, which `grow` empties."""
    return Nodes(
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.bool_),
        np.empty(capacity),
        np.empty((capacity, 3)),
        np.empty(capacity),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty((capacity, 2)),
        np.empty(capacity, np.uint64),
        np.empty((capacity, n_groups), np.bool_),
        np.empty(capacity, np.int64),
        np.empty((capacity, SIZE)),
        np.empty((capacity if with_sets else 1, BINS), np.bool_),
    )


@inner
def _empty(node: Nodes) -> None:
    """Forget the last tree."""
    for v in range(len(node.column)):
        node.column[v] = node.left[v] = node.slot[v] = -1
        node.code[v] = node.lo[v] = node.hi[v] = node.depth[v] = 0
        node.missing_left[v] = False
        node.gain[v] = node.value[v] = 0.0
        for i in range(3):
            node.total[v, i] = 0.0
        node.box[v, 0], node.box[v, 1] = -np.inf, np.inf
        node.path[v] = _U(0)
        for k in range(node.alive.shape[1]):
            node.alive[v, k] = True
    for v in range(len(node.sets)):
        for b in range(BINS):
            node.sets[v, b] = False


@inner
def _choose(table: Table, node: Nodes, v: int, columns: int, allowed: Any) -> None:
    """Which columns a node may cut: those of its live interaction groups, some at random."""
    d = len(allowed)
    for j in range(d):
        allowed[j] = len(table.groups) == 0
        for k in range(len(table.groups)):
            allowed[j] = allowed[j] or (node.alive[v, k] and table.groups[k, j])
    if columns >= d:
        return
    key = np.empty(d, np.uint64)
    for j in range(d):
        key[j] = mix(node.path[v] ^ mix(_U(j + 1))) >> _U(1)
        if not allowed[j]:
            key[j] |= _U(1) << _U(63)
    order = np.arange(d)
    sort_by(key, order, d)
    for k in range(columns, d):
        allowed[order[k]] = False


@inner
def _partition(codes: Any, rows: Any, spare: Any, node: Nodes, v: int, chosen: Any) -> Any:
    """Rows that go left first, both sides in their old order; returns where the right begins."""
    left = np.empty(BINS, np.uint64)
    for b in range(BINS):
        left[b] = _U(chosen[b] if node.code[v] < 0 else b <= node.code[v])
    left[MISSING] = _U(node.best[v, DIRECTION])
    lo, hi = _U(node.lo[v]), _U(node.hi[v])
    at, other = lo, _U(0)
    for i in range(lo, hi):
        r = rows[i]
        go = left[codes[r]]
        rows[at] = r
        spare[other] = r
        at += go
        other += _U(1) - go
    for i in range(other):
        rows[at + i] = spare[i]
    return np.int64(at)


@inner
def _gather(rows: Any, lo: int, hi: int, pairs: Any, ordered: Any) -> None:
    """The pairs of rows[lo:hi], one after the other."""
    first = _U(lo)
    for i in range(_U(hi - lo)):
        r = rows[first + i]
        ordered[i, 0] = pairs[r, 0]
        ordered[i, 1] = pairs[r, 1]


@inner
def _evaluate(
    table: Table, settings: Settings, node: Nodes, first: int, second: int, rows: Any, pairs: Any,
    pool: Any, units: Any, work: Any,
) -> None:  # fmt: skip
    """Find the best cut of a node, or of two siblings; column −2 marks those that have one."""
    ordered, cuts, chosen, allowed, room = work
    rules = settings.rules
    d = len(table.n_bins)
    two = second >= 0
    totals, boxes = np.empty((2, 3)), np.empty((2, 2))
    for k in range(2 if two else 1):
        v = first if k == 0 else second
        for i in range(3):
            totals[k, i] = node.total[v, i]
        boxes[k, 0], boxes[k, 1] = node.box[v, 0], node.box[v, 1]
        _choose(table, node, v, settings.columns, allowed[k])
    columns = (table.n_bins, table.categories, table.signs)
    lo, hi = node.lo[first], node.hi[first]
    if node.slot[first] < 0:
        for k in range(2 if two else 1):
            v = first if k == 0 else second
            if node.depth[v] >= settings.max_depth or totals[k, 2] < 2 * rules[1]:
                for j in range(d):
                    cuts[k, j, GAIN] = NONE
                continue
            lo, hi = node.lo[v], node.hi[v]
            _gather(rows, lo, hi, pairs, ordered)
            small_cuts(table.words, rows, lo, hi, ordered, room, columns, totals[k], units, rules,
                       boxes[k], allowed[k], cuts[k], chosen[k])  # fmt: skip
    else:
        small, large = pool[node.slot[first]], pool[node.slot[second if two else first]]
        whole = hi - lo == table.words.shape[1]
        _gather(rows, lo, hi, pairs, ordered)
        if (hi - lo) * d >= settings.many:
            best_cuts_threads(table.words, rows, lo, hi, ordered, whole, small, large,
                              two, columns, totals, units, rules, boxes, allowed, cuts, chosen)  # fmt: skip
        else:
            best_cuts(table.words, rows, lo, hi, ordered, whole, small, large, two,
                      columns, totals, units, rules, boxes, allowed, cuts, chosen)  # fmt: skip
    for k in range(2 if two else 1):
        v = first if k == 0 else second
        t = node.total[v]
        value = min(max(-t[0] / (t[1] + rules[0]), node.box[v, 0]), node.box[v, 1])
        own = -(t[0] * value + 0.5 * (t[1] + rules[0]) * value * value)
        at, gain = -1, own + 1e-10 * abs(own)
        for j in range(d):
            if cuts[k, j, GAIN] > gain:
                at, gain = j, cuts[k, j, GAIN] * (1 + 1e-11)
        if at < 0 or node.depth[v] >= settings.max_depth or t[2] < 2 * rules[1]:
            continue
        for i in range(SIZE):
            node.best[v, i] = cuts[k, at, i]
        node.code[v] = at
        node.gain[v] = cuts[k, at, GAIN] - own
        node.column[v] = -2
        if table.categories[at]:
            for i in range(BINS):
                node.sets[v, i] = chosen[k, at, i]


@inner
def _split(
    table: Table, settings: Settings, node: Nodes, v: int, l: int, rows: Any, spare: Any
) -> None:
    """Turn a node with a known cut into an inner node with the children l and l + 1."""
    r, j, cut = l + 1, node.code[v], node.best[v]
    node.column[v], node.left[v], node.code[v] = j, l, np.int64(cut[CODE])
    chosen = node.sets[v if node.code[v] < 0 else 0]
    middle = _partition(table.codes[j // GROUP, :, j % GROUP], rows, spare, node, v, chosen)
    node.lo[l], node.hi[l], node.lo[r], node.hi[r] = node.lo[v], middle, middle, node.hi[v]
    node.total[l, 0], node.total[l, 1], node.total[l, 2] = cut[LEFT_G], cut[LEFT_H], cut[LEFT_W]
    for i in range(3):
        node.total[r, i] = node.total[v, i] - node.total[l, i]
    node.path[l] = mix(node.path[v] ^ _U(0x5851F42D4C957F2D))
    node.path[r] = mix(node.path[v] ^ _U(0x14057B7EF767814F))
    node.depth[l] = node.depth[r] = node.depth[v] + 1
    for k in range(len(table.groups)):
        node.alive[l, k] = node.alive[r, k] = node.alive[v, k] and table.groups[k, j]
    seen = cut[SEEN] != 0
    # NaN that was not seen in training goes to the larger side
    node.missing_left[v] = (
        cut[DIRECTION] > 0 if seen else node.total[l, 2] >= node.total[r, 2] and node.code[v] >= 0
    )
    for i in range(2):
        node.box[l, i] = node.box[r, i] = node.box[v, i]
    if table.signs[j] != 0:
        l2, low, high = settings.rules[0], node.box[v, 0], node.box[v, 1]
        vl = min(max(-node.total[l, 0] / (node.total[l, 1] + l2), low), high)
        vr = min(max(-node.total[r, 0] / (node.total[r, 1] + l2), low), high)
        below, above = (l, r) if table.signs[j] > 0 else (r, l)
        node.box[below, 1] = node.box[above, 0] = (vl + vr) / 2


@outer
def grow(
    table: Table, settings: Settings, node: Nodes, rows: Any, pairs: Any, units: Any, g: Any,
    h: Any, pool: Any, work: Any, seed: Any,
) -> int:  # fmt: skip
    """Grow one tree on the listed rows, which it reorders; returns how many nodes it has.

    ``pairs`` are the whole-number gradients of `histogram_kernels`, ``g`` and ``h`` the real ones;
    ``work`` is memory for rows, spare rows, cuts, sets, columns, free slots and waiting nodes.
    """
    n = len(rows)
    _empty(node)
    ordered, spare, cuts, chosen, allowed, free, pending = work
    inside = (ordered, cuts, chosen, allowed, scratch())
    for i in range(len(pool)):
        free[i] = i
    n_free = len(pool) - 1
    bits = np.int64(units[3])
    g_sum, p_sum = np.int64(0), np.int64(0)
    for i in range(n):
        g_sum += pairs[rows[i], 0]
        p_sum += pairs[rows[i], 1]
    node.total[0, 0], node.total[0, 1] = g_sum * units[0], (p_sum >> bits) * units[1]
    node.total[0, 2] = (p_sum & ((np.int64(1) << bits) - 1)) * units[2]
    node.hi[0], node.path[0] = n, seed
    if n > _FEW:
        node.slot[0] = free[n_free]
    _evaluate(table, settings, node, 0, -1, rows, pairs, pool, units, inside)
    pending[0], n_pending = 0, 1 if node.column[0] == -2 else 0
    n_nodes, n_leaves = 1, 1
    while n_pending > 0 and (settings.max_leaves == 0 or n_leaves < settings.max_leaves):
        pick = n_pending - 1
        if settings.max_leaves > 0:
            pick = 0
            for k in range(1, n_pending):
                if node.gain[pending[k]] > node.gain[pending[pick]] * (1 + 1e-11):
                    pick = k
        v = pending[pick]
        for k in range(pick, n_pending - 1):
            pending[k] = pending[k + 1]
        n_pending -= 1
        l = n_nodes
        n_nodes += 2
        n_leaves += 1
        _split(table, settings, node, v, l, rows, spare)
        if settings.max_leaves > 0 and n_leaves >= settings.max_leaves:
            break
        smaller = node.hi[l] - node.lo[l] <= node.hi[l + 1] - node.lo[l + 1]
        small, large = (l, l + 1) if smaller else (l + 1, l)
        if node.slot[v] >= 0 and node.hi[v] - node.lo[v] > _FEW:
            n_free -= 1
            node.slot[small], node.slot[large] = free[n_free], node.slot[v]
        elif node.slot[v] >= 0:
            free[n_free] = node.slot[v]
            n_free += 1
        _evaluate(table, settings, node, small, large, rows, pairs, pool, units, inside)
        # the smaller one on top: without a limit of leaves, few wait at any time
        for u in (large, small):
            if node.column[u] == -2:
                pending[n_pending] = u
                n_pending += 1
            elif node.slot[u] >= 0:
                free[n_free] = node.slot[u]
                n_free += 1
    for v in range(n_nodes):
        if node.column[v] == -2:
            node.column[v], node.gain[v] = -1, 0.0
        if node.column[v] < 0:
            a, b = 0.0, settings.rules[0]
            for i in range(node.lo[v], node.hi[v]):
                a += g[rows[i]]
                b += h[rows[i]]
            value = -a / b if b > 0 else 0.0
            node.value[v] = min(max(value, node.box[v, 0]), node.box[v, 1])
    return n_nodes


@outer
def laid_out(node: Nodes, size: int, edges: Any, start: Any) -> Any:
    """The columns of a `Tree` of this many nodes, and for each leaf (node, lo, hi).

    ``edges[start[j]:start[j + 1]]`` are the edges of column j with infinity behind them.
    """
    feature, left, right = np.empty(size, np.int64), np.empty(size, np.int64), np.full(size, -1)
    threshold, nan_left, value = np.zeros(size), np.empty(size, np.bool_), np.empty((size, 1))
    weight, gain, count = np.empty(size), np.empty(size), np.empty(size, np.int64)
    spans, leaves = np.empty((size // 2 + 1, 3), np.int64), 0
    for v in range(size):
        j, lo, hi = node.column[v], node.lo[v], node.hi[v]
        feature[v], left[v], nan_left[v] = j, node.left[v], node.missing_left[v]
        value[v, 0], weight[v], gain[v], count[v] = (
            node.value[v], node.total[v, 2], node.gain[v], hi - lo
        )  # fmt: skip
        if j < 0:
            spans[leaves, 0], spans[leaves, 1], spans[leaves, 2] = v, lo, hi
            leaves += 1
            continue
        right[v] = left[v] + 1
        if node.code[v] >= 0:
            threshold[v] = edges[start[j] + node.code[v]]
    return spans, feature, threshold, left, right, nan_left, value, weight, gain, count


__all__ = ["Nodes", "Settings", "Table", "empty_nodes", "grow", "laid_out", "mix"]
