r"""The best cut of a column from its histogram: running sums, then gains of all cuts at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.solvers.trees.compile_numba import inner, sort_by, vector

BINS = 256  # 255 of values, one of NaN
MISSING = 255
GROUP = 4  # columns whose codes share a word
NONE = -1e300  # the gain of no cut; finite, so that ties can be measured against it
TIE = 1e-11  # relative gain below which two cuts are equal and the first one stays
CAT_SMOOTH, CAT_L2, CAT_SMALL, CAT_SIDE, CAT_ONE = 10.0, 10.0, 10.0, 32, 4

# columns of the table of cuts
GAIN, CODE, LEFT_G, LEFT_H, LEFT_W, DIRECTION, SEEN, SIZE = 0, 1, 2, 3, 4, 5, 6, 7


@inner
def line() -> Any:
    """Room for the cuts of one column: codes, running sums of both words, gains."""
    return (
        np.empty(BINS, np.int64), np.empty(BINS, np.int64), np.empty(BINS, np.int64),
        np.empty(BINS),
    )  # fmt: skip


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
    g_sum: Any, p_sum: Any, start: int, stop: int, g_gap: Any, p_gap: Any, g_all: float,
    h_all: float, ug: float, uh: float, bits: Any, l2: float, gains: Any,
) -> None:  # fmt: skip
    """Gains of the cuts start..stop from running sums, without bounds on values."""
    for b in range(np.uint64(start), np.uint64(stop)):
        gl = (g_sum[b] + g_gap) * ug
        hl = ((p_sum[b] + p_gap) >> bits) * uh
        gr, dl, dr = g_all - gl, hl + l2, h_all - hl + l2
        gains[b] = 0.5 * (gl * gl * dr + gr * gr * dl) / (dl * dr)


@vector
def _largest(gains: Any, start: int, stop: int) -> float:
    """The maximum, in four independent chains."""
    a, b, c, d = NONE, NONE, NONE, NONE
    k, end, one = np.uint64(start), np.uint64(stop), np.uint64(1)
    while k + np.uint64(4) <= end:
        a, b = max(a, gains[k]), max(b, gains[k + one])
        c, d = max(c, gains[k + np.uint64(2)]), max(d, gains[k + np.uint64(3)])
        k += np.uint64(4)
    while k < end:
        a = max(a, gains[k])
        k += one
    return max(max(a, b), max(c, d))


@inner
def _enough(p: Any, total: Any, units: Any, rules: Any, right: bool) -> bool:
    """Whether the left side, or the right one, has the least weight and hessian."""
    bits = np.int64(units[3])
    w, h = (p & ((np.int64(1) << bits) - 1)) * units[2], (p >> bits) * units[1]
    if right:
        w, h = total[2] - w, total[1] - h
    return w >= rules[1] and h >= rules[2]


@inner
def numeric_cut(
    m: int, work: Any, g_gap: Any, p_gap: Any, total: Any, units: Any, rules: Any, sign: int,
    box: Any, floor: float, cut: Any,
) -> None:  # fmt: skip
    """Best cut behind one of the m codes that are present; ``g_gap``, ``p_gap`` are sums of NaN.

    ``cut`` keeps gain, code, left sums, the side of NaN and whether there was any. It stays as it
    is where no gain is above ``floor``.

    units: value of one step of gradient, hessian and weight, and the number of weight bits.
    rules: l2, least weight and least hessian of a leaf.
    """
    codes, g_sum, p_sum, gains = work
    bits = np.int64(units[3])
    mask = (np.int64(1) << bits) - 1
    free = sign == 0 and box[0] == -np.inf and box[1] == np.inf
    missing = p_gap != 0
    for side in range(2 if missing else 1):  # 0: NaN goes right, 1: NaN goes left
        g_more, p_more = (g_gap, p_gap) if side == 1 else (np.int64(0), np.int64(0))
        # with NaN on the right, all values may stand together on the left
        stop = m if missing and side == 0 else m - 1
        # sums only grow: the cuts that leave enough on both sides stand together
        start, low = 0, stop
        while start < low and not _enough(p_sum[start] + p_more, total, units, rules, False):
            start += 1
        while start < low and not _enough(p_sum[low - 1] + p_more, total, units, rules, True):
            low -= 1
        if start >= low:
            continue
        if free:
            _free_gains(g_sum, p_sum, start, low, g_more, p_more, total[0], total[1], units[0],
                        units[1], bits, rules[0], gains)  # fmt: skip
        else:
            for b in range(start, low):
                gl = (g_sum[b] + g_more) * units[0]
                hl = ((p_sum[b] + p_more) >> bits) * units[1]
                gain = _gain(gl, hl, total[0] - gl, total[1] - hl, rules, sign, box)
                gains[b] = max(gain, NONE)
        best = _largest(gains, start, low)
        if best <= floor or best <= cut[GAIN] + TIE * abs(cut[GAIN]):
            continue
        b, near = start, best - TIE * abs(best)
        while b + 8 < low and _largest(gains, b, b + 8) < near:
            b += 8
        while gains[b] < near:
            b += 1
        p = p_sum[b] + p_more
        cut[GAIN], cut[CODE], cut[DIRECTION] = gains[b], codes[b], side
        cut[SEEN] = missing
        cut[LEFT_G], cut[LEFT_H] = (g_sum[b] + g_more) * units[0], (p >> bits) * units[1]
        cut[LEFT_W] = (p & mask) * units[2]


@inner
def _running(hist: Any, n_bins: int, work: Any) -> Any:
    """Running sums behind every bin that is not empty; returns how many there are."""
    codes, g_sum, p_sum, _ = work
    g, p, m = np.int64(0), np.int64(0), np.uint64(0)
    for b in range(np.uint64(n_bins)):
        here = hist[np.uint64(2) * b + np.uint64(1)]
        g += hist[np.uint64(2) * b]
        p += here
        g_sum[m], p_sum[m], codes[m] = g, p, b
        m += np.uint64(here != 0)
    return np.int64(m)


@inner
def scan_categories(
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
                cut[SEEN] = hist[2 * MISSING + 1] != 0
    if found >= 0:
        for k in range(BINS):
            chosen[k] = False
        for k in range(found if alone else 0, found + 1):
            chosen[used[order[m - 1 - k if backward else k]]] = True


@inner
def column_cuts(
    group: int, hist: Any, table: Any, total: Any, units: Any, rules: Any, box: Any, allowed: Any,
    cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """Best cut of each column of a group; one that cannot win against its left neighbours stays."""
    n_bins, categories, signs = table
    work, floor = line(), NONE
    for k in range(GROUP):
        j = group * GROUP + k
        if j >= len(n_bins):
            return
        cuts[j, GAIN] = NONE
        if not allowed[j]:
            continue
        part = hist[k * BINS * 2 : (k + 1) * BINS * 2]
        if categories[j]:
            scan_categories(part, n_bins[j], total, units, rules, box, cuts[j], chosen[j])
        else:
            m = _running(part, n_bins[j], work)
            numeric_cut(m, work, part[2 * MISSING], part[2 * MISSING + 1], total, units, rules,
                        signs[j], box, floor, cuts[j])  # fmt: skip
        floor = max(floor, cuts[j, GAIN])


__all__ = ["BINS", "CODE", "DIRECTION", "GAIN", "GROUP", "LEFT_G", "LEFT_H", "LEFT_W", "MISSING",
           "NONE", "SEEN", "SIZE", "TIE", "column_cuts", "line", "numeric_cut",
           "scan_categories"]  # fmt: skip
