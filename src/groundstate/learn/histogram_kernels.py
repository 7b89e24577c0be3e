r"""Histograms of gradients, and the best cut of each: the compiled inner loops of boosting.

Gradients, hessians and weights are whole numbers in fixed units, so sums do not depend on the order
of the rows or the number of threads, and the difference parent − child is exact. One row adds two
words to a bin: the gradient, and the hessian with the weight in its lowest bits. Codes of four
columns stand together as one 32-bit word, so their histograms stay in the first-level cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import prange, types
from numba.extending import intrinsic

from groundstate.learn.tree_jit import inner, sort_by, threads, vector

BINS = 256  # 255 of values, one of NaN
MISSING = 255
GROUP = 4  # columns whose codes share a word
NONE = -1e300  # the gain of no cut; finite, so that ties can be measured against it
TIE = 1e-11  # relative gain below which two cuts are equal and the first one stays
CAT_SMOOTH, CAT_L2, CAT_SMALL, CAT_SIDE, CAT_ONE = 10.0, 10.0, 10.0, 32, 4

# columns of the table of cuts
GAIN, CODE, LEFT_G, LEFT_H, LEFT_W, DIRECTION, SIZE = 0, 1, 2, 3, 4, 5, 6


_intrinsic: Any = intrinsic  # it adds the typing context by itself


@_intrinsic
def _add_pair(typingctx: Any, hist: Any, a: Any, b: Any, c: Any, d: Any, pairs: Any, k: Any) -> Any:
    """Add the two words ``pairs[k]`` to ``hist`` at four places, two words at a time."""
    word = types.int64
    signature = types.void(hist, word, word, word, word, pairs, word)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        two = ir.VectorType(i64, 2)
        bins = context.make_array(signature.args[0])(context, builder, args[0]).data
        rows = context.make_array(signature.args[5])(context, builder, args[5]).data

        def at(base: Any, index: Any) -> Any:
            return builder.bitcast(builder.gep(base, [index]), two.as_pointer())

        pair = builder.load(at(rows, builder.shl(args[6], ir.Constant(i64, 1))), align=8)
        for index in args[1:5]:
            place = at(bins, index)
            builder.store(builder.add(builder.load(place, align=8), pair), place, align=8)
        return context.get_dummy_value()

    return signature, codegen


@inner
def fill(words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool, hist: Any) -> None:
    """Add the pairs of rows[lo:hi] to the histograms ``(GROUP * BINS * 2,)`` of one group."""
    for k in range(len(hist)):
        hist[k] = 0
    for k in range(hi - lo):
        word = words[lo + k] if whole else words[rows[lo + k]]
        a = np.int64(word & np.uint32(255)) * 2
        b = np.int64((word >> np.uint32(8)) & np.uint32(255)) * 2 + 512
        c = np.int64((word >> np.uint32(16)) & np.uint32(255)) * 2 + 1024
        d = np.int64(word >> np.uint32(24)) * 2 + 1536
        _add_pair(hist, a, b, c, d, pairs, k)


@inner
def _value(g: float, h: float, l2: float, low: float, high: float) -> float:
    v = -g / (h + l2)
    return min(max(v, low), high)


@inner
def _drop(g: float, h: float, l2: float, v: float) -> float:
    """How much the second-order loss falls at value v; g²/2(h+l2) where v is free."""
    return -(g * v + 0.5 * (h + l2) * v * v)


@inner
def _gain(gl: float, hl: float, gr: float, hr: float, rules: Any, sign: int, box: Any) -> float:
    l2 = rules[0]
    if box[0] == -np.inf and box[1] == np.inf and sign == 0:
        dl, dr = hl + l2, hr + l2
        return 0.5 * (gl * gl * dr + gr * gr * dl) / (dl * dr)
    vl, vr = _value(gl, hl, l2, box[0], box[1]), _value(gr, hr, l2, box[0], box[1])
    if (sign > 0 and vl > vr) or (sign < 0 and vl < vr):
        return -np.inf
    return _drop(gl, hl, l2, vl) + _drop(gr, hr, l2, vr)


@vector
def _free_gains(
    g_int: Any, p_int: Any, start: int, stop: int, total: Any, units: Any, rules: Any, gains: Any
) -> float:
    """Gains of the cuts behind bins start..stop from running sums, no bounds; the largest."""
    bits = np.int64(units[3])
    mask = (np.int64(1) << bits) - 1
    l2, least, least_h = rules[0], rules[1], rules[2]
    g_all, h_all, w_all = total[0], total[1], total[2]
    ug, uh, uw = units[0], units[1], units[2]
    for b in range(start, stop):
        p = p_int[b]
        gl, hl, wl = g_int[b] * ug, (p >> bits) * uh, (p & mask) * uw
        gr, hr, wr = g_all - gl, h_all - hl, w_all - wl
        dl, dr = hl + l2, hr + l2
        ok = (wl >= least) & (wr >= least) & (hl >= least_h) & (hr >= least_h)
        bottom = dl * dr if ok else 1.0
        gain = 0.5 * (gl * gl * dr + gr * gr * dl) / bottom
        gains[b] = gain if ok else NONE
    best = NONE
    for b in range(start, stop):
        best = max(best, gains[b])
    return best


@inner
def _bound_gains(
    g_int: Any, p_int: Any, start: int, stop: int, total: Any, units: Any, rules: Any, sign: int,
    box: Any, gains: Any,
) -> float:  # fmt: skip
    """`_free_gains` for values between bounds, rising or falling with the column."""
    bits = np.int64(units[3])
    mask = (np.int64(1) << bits) - 1
    best = NONE
    for b in range(start, stop):
        p = p_int[b]
        gl, hl, wl = g_int[b] * units[0], (p >> bits) * units[1], (p & mask) * units[2]
        gr, hr, wr = total[0] - gl, total[1] - hl, total[2] - wl
        gains[b] = NONE
        if min(wl, wr) >= rules[1] and min(hl, hr) >= rules[2]:
            gains[b] = max(_gain(gl, hl, gr, hr, rules, sign, box), NONE)
        best = max(best, gains[b])
    return best


@inner
def _scan(
    hist: Any, n_bins: int, total: Any, units: Any, rules: Any, sign: int, box: Any, cut: Any
) -> None:
    """Best cut of a numeric column; ``cut`` keeps gain, code, left sums and the side of NaN.

    units: value of one step of gradient, hessian and weight, and the number of weight bits.
    rules: l2, least weight and least hessian of a leaf.
    """
    bits = np.int64(units[3])
    mask = (np.int64(1) << bits) - 1
    g_int, p_int, gains = np.empty(BINS, np.int64), np.empty(BINS, np.int64), np.empty(BINS)
    free = sign == 0 and box[0] == -np.inf and box[1] == np.inf
    missing = hist[2 * MISSING + 1] != 0
    for side in range(2 if missing else 1):  # 0: NaN goes right, 1: NaN goes left
        g = hist[2 * MISSING] if side == 1 else np.int64(0)
        p = hist[2 * MISSING + 1] if side == 1 else np.int64(0)
        # with NaN on the right, all values may stand together on the left
        stop = n_bins if missing and side == 0 else n_bins - 1
        for b in range(stop):
            g += hist[2 * b]
            p += hist[2 * b + 1]
            g_int[b] = g
            p_int[b] = p
        # both sides need the least weight: leave out the ends
        start, high = 0, stop
        while start < high:
            b = (start + high) // 2
            start, high = (start, b) if (p_int[b] & mask) * units[2] >= rules[1] else (b + 1, high)
        high, low = stop, start
        while low < high:
            b = (low + high) // 2
            enough = total[2] - (p_int[b] & mask) * units[2] >= rules[1]
            low, high = (b + 1, high) if enough else (low, b)
        if start >= low:
            continue
        if free:
            best = _free_gains(g_int, p_int, start, low, total, units, rules, gains)
        else:
            best = _bound_gains(g_int, p_int, start, low, total, units, rules, sign, box, gains)
        if best <= NONE or best <= cut[GAIN] + TIE * abs(cut[GAIN]):
            continue
        b = start
        while gains[b] < best - TIE * abs(best):
            b += 1
        cut[GAIN], cut[CODE], cut[DIRECTION] = gains[b], b, side
        cut[LEFT_G], cut[LEFT_H] = g_int[b] * units[0], (p_int[b] >> bits) * units[1]
        cut[LEFT_W] = (p_int[b] & mask) * units[2]


@inner
def _scan_categories(
    hist: Any, n_bins: int, total: Any, units: Any, rules: Any, box: Any, cut: Any, chosen: Any
) -> None:
    r"""Best set of categories to send left, among prefixes of the order of :math:`G/(H+10)`.

    Up to four categories are tried one against the rest. Light ones, below ten rows, stay right
    with NaN. ``chosen`` (BINS,) marks the left ones.
    """
    bits = np.int64(units[3])
    mask = (np.int64(1) << bits) - 1
    least, least_h = rules[1], rules[2]
    strict = np.empty(3)
    strict[0], strict[1], strict[2] = rules[0] + CAT_L2, least, least_h
    used = np.empty(BINS, np.int64)
    key = np.empty(BINS)
    m, present = 0, 0
    for b in range(n_bins):
        w = (hist[2 * b + 1] & mask) * units[2]
        present += hist[2 * b + 1] != 0
        used[m] = b
        key[m] = hist[2 * b] * units[0] / ((hist[2 * b + 1] >> bits) * units[1] + CAT_SMOOTH)
        m += w > 0 and (w >= CAT_SMALL or n_bins <= CAT_ONE)
    if m == 0:
        return
    alone = present <= CAT_ONE
    order = np.arange(m)
    sort_by(key, order, m)
    best, found, backward = cut[GAIN], -1, False
    for turn in range(1 if alone else 2):
        g_int, p_int = np.int64(0), np.int64(0)
        for k in range(m if alone else min(m, CAT_SIDE)):
            b = used[order[k if turn == 0 else m - 1 - k]]
            if alone:
                g_int, p_int = np.int64(0), np.int64(0)
            g_int += hist[2 * b]
            p_int += hist[2 * b + 1]
            wl = (p_int & mask) * units[2]
            hl = (p_int >> bits) * units[1]
            gl = g_int * units[0]
            if wl < least or total[2] - wl < least or total[2] - wl <= 0.0:
                continue
            if hl < least_h or total[1] - hl < least_h:
                continue
            gain = _gain(gl, hl, total[0] - gl, total[1] - hl, rules if alone else strict, 0, box)
            if gain > best + TIE * abs(best):
                best, found, backward = gain, k, turn == 1
                cut[GAIN], cut[CODE] = gain, -1.0
                cut[LEFT_G], cut[LEFT_H], cut[LEFT_W], cut[DIRECTION] = gl, hl, wl, 0.0
    if found >= 0:
        for k in range(BINS):
            chosen[k] = False
        for k in range(found if alone else 0, found + 1):
            chosen[used[order[m - 1 - k if backward else k]]] = True


@inner
def _columns(
    group: int, hist: Any, table: Any, total: Any, units: Any, rules: Any, box: Any, allowed: Any,
    cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """Best cut of each column of a group."""
    n_bins, categories, signs = table
    for k in range(GROUP):
        j = group * GROUP + k
        if j >= len(n_bins):
            return
        cuts[j, GAIN] = NONE
        if not allowed[j]:
            continue
        part = hist[k * BINS * 2 : (k + 1) * BINS * 2]
        if categories[j]:
            _scan_categories(part, n_bins[j], total, units, rules, box, cuts[j], chosen[j])
        else:
            _scan(part, n_bins[j], total, units, rules, signs[j], box, cuts[j])


@inner
def _group(
    q: int, words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool, small: Any,
    large: Any, two: bool, table: Any, totals: Any, units: Any, rules: Any, boxes: Any,
    allowed: Any, cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """Fill the smaller node's histograms, subtract for the sibling, and find the cuts of both."""
    fill(words[q], rows, lo, hi, pairs, whole, small[q])
    _columns(q, small[q], table, totals[0], units, rules, boxes[0], allowed[0], cuts[0], chosen[0])
    if two:
        s, l = small[q], large[q]
        for i in range(len(s)):
            l[i] -= s[i]
        _columns(q, l, table, totals[1], units, rules, boxes[1], allowed[1], cuts[1], chosen[1])


@inner
def best_cuts(
    words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool, small: Any, large: Any,
    two: bool, table: Any, totals: Any, units: Any, rules: Any, boxes: Any, allowed: Any,
    cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """`_group` for all groups of columns, one after the other."""
    for q in range(len(words)):
        _group(q, words, rows, lo, hi, pairs, whole, small, large, two, table, totals, units, rules,
               boxes, allowed, cuts, chosen)  # fmt: skip


@threads
def best_cuts_threads(
    words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool, small: Any, large: Any,
    two: bool, table: Any, totals: Any, units: Any, rules: Any, boxes: Any, allowed: Any,
    cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """`_group` for all groups of columns, at the same time."""
    for q in prange(len(words)):
        _group(q, words, rows, lo, hi, pairs, whole, small, large, two, table, totals, units, rules,
               boxes, allowed, cuts, chosen)  # fmt: skip


__all__ = ["BINS", "GROUP", "MISSING", "best_cuts", "best_cuts_threads"]
