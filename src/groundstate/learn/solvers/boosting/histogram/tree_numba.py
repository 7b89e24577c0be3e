r"""One boosted tree, grown on codes: split the leaf of largest gain until none is left.

With sums of gradients G and hessians H over the rows of a node, a cut gains

.. math:: \tfrac12\Bigl(\frac{G_L^2}{H_L+\lambda} + \frac{G_R^2}{H_R+\lambda}
          - \frac{G^2}{H+\lambda}\Bigr), \qquad \text{leaf value } -\frac{G}{H+\lambda} .

What a tree does not need is None, and what asks for it is then not compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.compute.kernels.order_numba import sort_by
from groundstate.learn.solvers.boosting.histogram.cuts_numba import (
    BINS,
    BITS,
    CODE,
    DIRECTION,
    GAIN,
    GROUP,
    L2,
    LEAST_W,
    LEFT_G,
    LOWER,
    MISSING,
    REAL,
    SEEN,
    SIZE,
    STEP_G,
    STEP_H,
    STEP_W,
    SUM_G,
    SUM_H,
    SUM_W,
    UPPER,
    VALUE,
    WIN,
    column_cuts,
)
from groundstate.learn.solvers.boosting.histogram.fill_numba import (
    fill_few,
    siblings,
    siblings_threads,
)
from groundstate.learn.solvers.trees.impurity_numba import mix

_U = np.uint64
FEW = 512  # rows of a parent up to which its children need no histograms
# what is whole of a node: column (−1: a leaf, −2: a leaf with a cut), left child (the right one is
# the next), code (−1: a set of categories) or while it waits the column of its cut, whether NaN
# goes left, its rows, its depth, its histograms in the pool
COLUMN, LEFT, LAST_CODE, NAN_LEFT, LO, HI, DEPTH, SLOT, WHOLE = 0, 1, 2, 3, 4, 5, 6, 7, 8


class Table(NamedTuple):
    """The rows of a fit as the compiled loops see them."""

    words: Any  # (groups, n) uint32, codes of four columns each
    codes: Any  # (groups, n, 4) uint8, the same memory
    n_bins: Any  # (d,)
    categories: Any  # (d,), 0 for numbers
    signs: Any  # (d,), +1 rising, −1 falling, 0 free, or None


class Settings(NamedTuple):
    """Limits of one tree."""

    max_leaves: int  # 0: any number
    max_depth: int
    columns: int  # columns tried per node
    many: int  # entries (rows × columns) of a node from which threads pay


class Nodes(NamedTuple):
    """A tree while it grows."""

    whole: Any  # (nodes, WHOLE)
    real: Any  # (nodes, REAL)
    best: Any  # (nodes, SIZE), the best cut found
    path: Any  # (nodes,) identity of the node, for random columns


class Work(NamedTuple):
    """Memory that lives as long as a fit: to allocate it here is quicker to compile."""

    ordered: Any  # (n, 2) pairs of the rows of a node
    spare: Any  # (n,) rows
    cuts: Any  # (2, d, SIZE)
    allowed: Any  # (2, d)
    free: Any  # (slots,)
    pending: Any  # (nodes,)
    few: Any  # (GROUP * BINS * 2,) sums that are found and left empty
    seen: Any  # (GROUP * 4,) marks of codes, likewise
    run: Any  # (groups, 3, BINS)
    gains: Any  # (groups, BINS)
    left: Any  # (BINS,) which codes go left


def empty_nodes(capacity: int) -> Nodes:
    """Room for the nodes of one tree."""
    return Nodes(
        np.empty((capacity, WHOLE), np.int64), np.empty((capacity, REAL)),
        np.empty((capacity, SIZE)), np.empty(capacity, np.uint64),
    )  # fmt: skip


def workspace(n: int, d: int, slots: int, capacity: int) -> Work:
    """For so many rows, columns, histograms and nodes."""
    groups = -(-d // GROUP)
    return Work(
        np.empty((n, 2), np.int64), np.empty(n, np.uint32), np.empty((2, d, SIZE)),
        np.ones((2, d), np.bool_), np.empty(slots, np.int64), np.empty(capacity, np.int64),
        np.zeros(GROUP * BINS * 2, np.int64), np.zeros(GROUP * 4, np.uint64),
        np.empty((groups, 3, BINS), np.int64), np.empty((groups, BINS)), np.empty(BINS, np.uint64),
    )  # fmt: skip


@inner
def _choose(
    v: int, path: Any, columns: int, alive: Any, groups: Any, keyed: Any, allowed: Any
) -> None:
    """Which columns a node may cut: those of its live interaction groups, some at random."""
    d = len(allowed)
    for j in range(d):
        allowed[j] = True
        if groups is not None:
            allowed[j] = False
            for k in range(len(groups)):
                allowed[j] |= alive[v, k] and groups[k, j]
    if keyed is not None:
        order = np.empty(d, np.int64)
        for j in range(d):
            order[j] = j
            keyed[j] = mix(path ^ mix(_U(j + 1))) >> _U(1)
            if not allowed[j]:
                keyed[j] |= _U(1) << _U(63)
        sort_by(keyed, order, d)
        for k in range(columns, d):
            allowed[order[k]] = False


@inner
def _partition(
    codes: Any, j: int, rows: Any, spare: Any, lo: int, hi: int, code: int, missing: Any, left: Any,
    sets: Any, v: int,
) -> Any:  # fmt: skip
    """Rows that go left first, both sides in their old order; returns where the right begins."""
    for b in range(BINS):
        left[b] = _U(b <= code)
        if sets is not None and code < 0:
            left[b] = _U(sets[v, b])
    left[MISSING] = missing
    at, other, group, k = _U(lo), _U(0), _U(j // GROUP), _U(j % GROUP)
    for i in range(_U(lo), _U(hi)):
        r = rows[i]
        go = left[codes[group, r, k]]
        rows[at] = r
        spare[other] = r
        at += go
        other += _U(1) - go
    for i in range(other):
        rows[at + i] = spare[i]
    return np.int64(at)


@inner(inline="always")
def _gather(rows: Any, lo: int, hi: int, pairs: Any, ordered: Any) -> None:
    """The pairs of rows[lo:hi], one after the other."""
    first = _U(lo)
    for i in range(_U(hi - lo)):
        r = rows[first + i]
        ordered[i, 0] = pairs[r, 0]
        ordered[i, 1] = pairs[r, 1]


@inner
def _divide(
    v: int, l: int, j: int, code: int, middle: int, whole: Any, real: Any, best: Any, path: Any,
    signs: Any, l2: float, alive: Any, groups: Any,
) -> None:  # fmt: skip
    """The children l and l + 1 of a node that is cut, whose left rows end at ``middle``."""
    r = l + 1
    whole[v, COLUMN], whole[v, LEFT], whole[v, LAST_CODE] = j, l, code
    for u in range(l, l + 2):
        whole[u, COLUMN], whole[u, LEFT], whole[u, SLOT] = -1, -1, -1
        whole[u, LAST_CODE], whole[u, NAN_LEFT] = 0, 0
        whole[u, LO] = whole[v, LO] if u == l else middle
        whole[u, HI] = middle if u == l else whole[v, HI]
        whole[u, DEPTH] = whole[v, DEPTH] + 1
        real[u, LOWER], real[u, UPPER] = real[v, LOWER], real[v, UPPER]
        real[u, WIN] = real[u, VALUE] = 0.0
        if groups is not None:
            for k in range(len(groups)):
                alive[u, k] = alive[v, k] and groups[k, j]
    for i in range(3):
        real[l, SUM_G + i] = best[v, LEFT_G + i]
        real[r, SUM_G + i] = real[v, SUM_G + i] - real[l, SUM_G + i]
    path[l] = mix(path[v] ^ _U(0x5851F42D4C957F2D))
    path[r] = mix(path[v] ^ _U(0x14057B7EF767814F))
    # NaN that was not seen in training goes to the larger side
    larger = real[l, SUM_W] >= real[r, SUM_W] and code >= 0
    whole[v, NAN_LEFT] = best[v, DIRECTION] > 0 if best[v, SEEN] != 0 else larger
    if signs is not None and signs[j] != 0:
        low, high = real[v, LOWER], real[v, UPPER]
        vl = min(max(-real[l, SUM_G] / (real[l, SUM_H] + l2), low), high)
        vr = min(max(-real[r, SUM_G] / (real[r, SUM_H] + l2), low), high)
        below, above = (l, r) if signs[j] > 0 else (r, l)
        real[below, UPPER] = real[above, LOWER] = (vl + vr) / 2


@outer
def grow(
    table: Table, settings: Settings, node: Nodes, work: Work, rows: Any, pairs: Any, units: Any,
    g: Any, h: Any, pool: Any, seed: Any, sets: Any, chosen: Any, alive: Any, groups: Any,
    keyed: Any, threads: Any,
) -> int:  # fmt: skip
    """Grow one tree on the listed rows, which it reorders; returns how many nodes it has.

    Parameters
    ----------
    pairs : (n, 2) whole-number gradients of `fill_numba`; ``g``, ``h`` the real ones
    pool : (slots, groups, GROUP * BINS * 2) room for histograms; None: there are few rows
    sets, chosen : (nodes, BINS) and (2, d, BINS) sets of categories, or None
    alive, groups : (nodes, k) and (k, d) groups of columns that may meet on one path, or None
    keyed : (d,) room where columns are drawn, or None
    threads : 0 where several threads may work on one node, or None
    """
    words, codes, n_bins, categories, signs = table
    whole, real, best, path = node
    ordered, spare, cuts, allowed, free, pending, few, seen, run, gains, left = work
    d, bits = len(n_bins), np.int64(units[BITS])
    for i in range(len(free)):
        free[i] = i
    n_free = len(free) - 1
    g_sum, p_sum = np.int64(0), np.int64(0)
    for i in range(len(rows)):
        g_sum += pairs[rows[i], 0]
        p_sum += pairs[rows[i], 1]
    real[0, SUM_G], real[0, SUM_H] = g_sum * units[STEP_G], (p_sum >> bits) * units[STEP_H]
    real[0, SUM_W] = (p_sum & ((np.int64(1) << bits) - 1)) * units[STEP_W]
    real[0, LOWER], real[0, UPPER] = -np.inf, np.inf
    real[0, WIN] = real[0, VALUE] = 0.0
    for i in range(WHOLE):
        whole[0, i] = 0
    whole[0, COLUMN] = whole[0, LEFT] = whole[0, SLOT] = -1
    whole[0, HI], path[0] = len(rows), seed
    if alive is not None:
        for k in range(alive.shape[1]):
            alive[0, k] = True
    if pool is not None and len(rows) > FEW:
        whole[0, SLOT] = free[n_free]
    n_nodes, n_leaves, n_pending, small, large = 1, 1, 0, 0, -1
    while True:
        first, second, slot = small, large, whole[small, SLOT]  # find their best cuts
        for k in range(1 if second < 0 else 2):
            v = second if k else first
            _choose(v, path[v], settings.columns, alive, groups, keyed, allowed[k])
            leaf = whole[v, DEPTH] >= settings.max_depth or real[v, SUM_W] < 2 * units[LEAST_W]
            if slot < 0 and not leaf:
                lo, hi = whole[v, LO], whole[v, HI]
                _gather(rows, lo, hi, pairs, ordered)
                for q in range(len(words)):
                    fill_few(words[q], rows, lo, hi, ordered, few, seen)
                    column_cuts(q, few, seen, None, n_bins, categories, signs, real[v], units,
                                allowed[k], cuts[k], chosen, k, run[q], gains[q])  # fmt: skip
        if pool is not None and slot >= 0:
            lo, hi = whole[first, LO], whole[first, HI]
            other = slot if second < 0 else whole[second, SLOT]
            _gather(rows, lo, hi, pairs, ordered)
            alone = True
            if threads is not None:
                alone = (hi - lo) * d < settings.many
                if not alone:
                    siblings_threads(words, rows, lo, hi, ordered, pool, slot, other, n_bins,
                                     categories, signs, real, first, second, units, allowed, cuts,
                                     chosen, run, gains)  # fmt: skip
            for q in range(len(words) if alone else 0):
                siblings(q, words, rows, lo, hi, ordered, pool, slot, other, n_bins, categories, signs,
                         real, first, second, units, allowed, cuts, chosen, run, gains)  # fmt: skip
        for k in range(1 if second < 0 else 2):
            v = second if k else first
            if whole[v, DEPTH] >= settings.max_depth or real[v, SUM_W] < 2 * units[LEAST_W]:
                continue
            slope, curve = real[v, SUM_G], real[v, SUM_H] + units[L2]
            value = min(max(-slope / curve, real[v, LOWER]), real[v, UPPER])
            own_gain = -(slope * value + 0.5 * curve * value * value)
            at, gain = -1, own_gain + 1e-10 * abs(own_gain)
            for j in range(d):
                if cuts[k, j, GAIN] > gain:
                    at, gain = j, cuts[k, j, GAIN] * (1 + 1e-11)
            if at < 0:
                continue
            for i in range(SIZE):
                best[v, i] = cuts[k, at, i]
            whole[v, LAST_CODE], whole[v, COLUMN] = at, -2
            real[v, WIN] = cuts[k, at, GAIN] - own_gain
            if sets is not None and categories[at]:
                for i in range(BINS):
                    sets[v, i] = chosen[k, at, i]
        # the smaller one on top: without a limit of leaves, few wait at any time
        for turn in range(2):
            u = small if turn else large
            if u >= 0 and whole[u, COLUMN] == -2:
                pending[n_pending] = u
                n_pending += 1
            elif u > 0 and whole[u, SLOT] >= 0:
                free[n_free] = whole[u, SLOT]
                n_free += 1
        if n_pending == 0:
            break
        pick = n_pending - 1
        if settings.max_leaves > 0:
            pick = 0
            for k in range(1, n_pending):
                if real[pending[k], WIN] > real[pending[pick], WIN] * (1 + 1e-11):
                    pick = k
            if n_leaves >= settings.max_leaves:
                break
        v = pending[pick]
        for k in range(pick, n_pending - 1):
            pending[k] = pending[k + 1]
        n_pending -= 1
        l = n_nodes
        n_nodes += 2
        n_leaves += 1
        j, code, lo, hi = whole[v, LAST_CODE], np.int64(best[v, CODE]), whole[v, LO], whole[v, HI]
        middle = _partition(codes, j, rows, spare, lo, hi, code, _U(best[v, DIRECTION]), left, sets,
                            v)  # fmt: skip
        _divide(v, l, j, code, middle, whole, real, best, path, signs, units[L2], alive, groups)
        if settings.max_leaves > 0 and n_leaves >= settings.max_leaves:
            break
        small = l if 2 * middle <= lo + hi else l + 1
        large = 2 * l + 1 - small
        if whole[v, SLOT] >= 0 and hi - lo > FEW:
            n_free -= 1
            whole[small, SLOT], whole[large, SLOT] = free[n_free], whole[v, SLOT]
        elif whole[v, SLOT] >= 0:
            free[n_free] = whole[v, SLOT]
            n_free += 1
    for v in range(n_nodes):
        if whole[v, COLUMN] == -2:
            whole[v, COLUMN], real[v, WIN] = -1, 0.0
        if whole[v, COLUMN] < 0:
            a, b = 0.0, units[L2]
            for i in range(whole[v, LO], whole[v, HI]):
                a += g[rows[i]]
                b += h[rows[i]]
            value = -a / b if b > 0 else 0.0
            real[v, VALUE] = min(max(value, real[v, LOWER]), real[v, UPPER])
    return n_nodes
