r"""The best cut of a column from its histogram: running sums, then gains of all cuts at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.foreign.numba import trailing_zeros
from groundstate.compute.kernels.compile_numba import inner, vector
from groundstate.compute.kernels.order_numba import sort_by

BINS = 256  # 255 of values, one of NaN
MISSING = 255
GROUP = 4  # columns whose codes share a word
NONE = -1e300  # the gain of no cut; finite, so that ties can be measured against it
TIE = 1e-11  # relative gain below which two cuts are equal and the first one stays
CAT_SMOOTH, CAT_L2, CAT_SMALL, CAT_SIDE, CAT_ONE = 10.0, 10.0, 10.0, 32, 4

# columns of the table of cuts
GAIN, CODE, LEFT_G, LEFT_H, LEFT_W, DIRECTION, SEEN, SIZE = 0, 1, 2, 3, 4, 5, 6, 7
# what is real of a node: sums, bounds of its value, gain of its cut, value
SUM_G, SUM_H, SUM_W, LOWER, UPPER, WIN, VALUE, REAL = 0, 1, 2, 3, 4, 5, 6, 7
# value of one step of gradient, hessian and weight, the number of weight bits, and the rules: l2,
# least weight and least hessian of a leaf
STEP_G, STEP_H, STEP_W, BITS, L2, LEAST_W, LEAST_H, UNITS = 0, 1, 2, 3, 4, 5, 6, 7
_U = np.uint64


@inner
def _value(g: float, h: float, l2: float, low: float, high: float) -> float:
    v = -g / (h + l2)
    return min(max(v, low), high)


@inner
def _drop(g: float, h: float, l2: float, v: float) -> float:
    """How much the second-order loss falls at value v; g²/2(h+l2) where v is free."""
    return -(g * v + 0.5 * (h + l2) * v * v)


@inner
def _gain(gl: float, hl: float, node: Any, l2: float, sign: int) -> float:
    gr, hr, low, high = node[SUM_G] - gl, node[SUM_H] - hl, node[LOWER], node[UPPER]
    if low == -np.inf and high == np.inf and sign == 0:
        dl, dr = hl + l2, hr + l2
        return 0.5 * (gl * gl * dr + gr * gr * dl) / (dl * dr)
    vl, vr = _value(gl, hl, l2, low, high), _value(gr, hr, l2, low, high)
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
def _enough(p: Any, node: Any, units: Any, right: bool) -> bool:
    """Whether the left side, or the right one, has the least weight and hessian."""
    bits = np.int64(units[BITS])
    w, h = (p & ((np.int64(1) << bits) - 1)) * units[STEP_W], (p >> bits) * units[STEP_H]
    if right:
        w, h = node[SUM_W] - w, node[SUM_H] - h
    return w >= units[LEAST_W] and h >= units[LEAST_H]


@inner
def numeric_cut(
    m: int, run: Any, gains: Any, g_gap: Any, p_gap: Any, node: Any, units: Any, signs: Any, j: int,
    floor: float, cut: Any,
) -> None:  # fmt: skip
    """Best cut behind one of the m codes that are present; ``g_gap``, ``p_gap`` are sums of NaN.

    ``run`` has codes and running sums of both words. ``cut`` keeps gain, code, left sums, the side
    of NaN and whether there was any. It stays as it is where no gain is above ``floor``.
    """
    g_sum, p_sum = run[1], run[2]
    bits = np.int64(units[BITS])
    mask = (np.int64(1) << bits) - 1
    free = True
    if signs is not None:
        free = signs[j] == 0 and node[LOWER] == -np.inf and node[UPPER] == np.inf
    missing = p_gap != 0
    for side in range(2 if missing else 1):  # 0: NaN goes right, 1: NaN goes left
        g_more, p_more = (g_gap, p_gap) if side == 1 else (np.int64(0), np.int64(0))
        # with NaN on the right, all values may stand together on the left
        stop = m if missing and side == 0 else m - 1
        # sums only grow: the cuts that leave enough on both sides stand together
        start, low = 0, stop
        while start < low and not _enough(p_sum[start] + p_more, node, units, False):
            start += 1
        while start < low and not _enough(p_sum[low - 1] + p_more, node, units, True):
            low -= 1
        if start >= low:
            continue
        if free:
            _free_gains(g_sum, p_sum, start, low, g_more, p_more, node[SUM_G], node[SUM_H],
                        units[STEP_G], units[STEP_H], bits, units[L2], gains)  # fmt: skip
        if signs is not None and not free:
            for b in range(start, low):
                gl = (g_sum[b] + g_more) * units[STEP_G]
                hl = ((p_sum[b] + p_more) >> bits) * units[STEP_H]
                gains[b] = max(_gain(gl, hl, node, units[L2], signs[j]), NONE)
        best = _largest(gains, start, low)
        if best <= floor or best <= cut[GAIN] + TIE * abs(cut[GAIN]):
            continue
        b, near = start, best - TIE * abs(best)
        while b + 8 < low and _largest(gains, b, b + 8) < near:
            b += 8
        while gains[b] < near:
            b += 1
        p = p_sum[b] + p_more
        cut[GAIN], cut[CODE], cut[DIRECTION], cut[SEEN] = gains[b], run[0, b], side, missing
        cut[LEFT_G], cut[LEFT_H] = (g_sum[b] + g_more) * units[STEP_G], (p >> bits) * units[STEP_H]
        cut[LEFT_W] = (p & mask) * units[STEP_W]


@inner
def scan_categories(
    hist: Any, at: int, n_bins: int, node: Any, units: Any, cut: Any, chosen: Any
) -> None:
    r"""Best set of categories to send left, among prefixes of the order of :math:`G/(H+10)`.

    Up to four categories are tried one against the rest. Light ones, below ten rows, stay right
    with NaN. ``chosen`` (BINS,) marks the left ones; ``hist`` begins at ``at``.
    """
    bits = np.int64(units[BITS])
    mask = (np.int64(1) << bits) - 1
    least, least_h = units[LEAST_W], units[LEAST_H]
    used, order = np.empty(BINS, np.int64), np.empty(BINS, np.int64)
    key = np.empty(BINS)
    m, present = 0, 0
    for b in range(n_bins):
        g, p = hist[at + 2 * b], hist[at + 2 * b + 1]
        w = (p & mask) * units[STEP_W]
        present += p != 0
        used[m], order[m] = b, m
        key[m] = g * units[STEP_G] / ((p >> bits) * units[STEP_H] + CAT_SMOOTH)
        m += w > 0 and (w >= CAT_SMALL or n_bins <= CAT_ONE)
    if m == 0:
        return
    alone = present <= CAT_ONE
    l2 = units[L2] + (0.0 if alone else CAT_L2)
    sort_by(key, order, m)
    best, found, backward = cut[GAIN], -1, False
    for turn in range(1 if alone else 2):
        g_int, p_int = np.int64(0), np.int64(0)
        for k in range(m if alone else min(m, CAT_SIDE)):
            b = used[order[k if turn == 0 else m - 1 - k]]
            if alone:
                g_int, p_int = np.int64(0), np.int64(0)
            g_int += hist[at + 2 * b]
            p_int += hist[at + 2 * b + 1]
            wl = (p_int & mask) * units[STEP_W]
            hl = (p_int >> bits) * units[STEP_H]
            gl = g_int * units[STEP_G]
            wr, hr = node[SUM_W] - wl, node[SUM_H] - hl
            if wl < least or wr < least or wr <= 0.0 or hl < least_h or hr < least_h:
                continue
            gain = _gain(gl, hl, node, l2, 0)
            if gain > best + TIE * abs(best):
                best, found, backward = gain, k, turn == 1
                cut[GAIN], cut[CODE] = gain, -1.0
                cut[LEFT_G], cut[LEFT_H], cut[LEFT_W], cut[DIRECTION] = gl, hl, wl, 0.0
                cut[SEEN] = hist[at + 2 * MISSING + 1] != 0
    if found >= 0:
        for k in range(BINS):
            chosen[k] = False
        for k in range(found if alone else 0, found + 1):
            chosen[used[order[m - 1 - k if backward else k]]] = True


@inner
def _running(hist: Any, at: Any, n_bins: int, run: Any) -> Any:
    """Running sums behind every bin that is not empty; how many there are, and the sums of NaN."""
    g, p, m = np.int64(0), np.int64(0), _U(0)
    for b in range(_U(n_bins)):
        here = hist[at + _U(2) * b + _U(1)]
        g += hist[at + _U(2) * b]
        p += here
        run[_U(0), m], run[_U(1), m], run[_U(2), m] = b, g, p
        m += _U(here != 0)
    last = at + _U(2 * MISSING)
    return np.int64(m), hist[last], hist[last + _U(1)]


@inner
def _occurring(hist: Any, at: Any, seen: Any, k: int, run: Any) -> Any:
    """`_running` over the codes of column k that ``seen`` marks; empties both."""
    g, p, m = np.int64(0), np.int64(0), _U(0)
    g_gap, p_gap = np.int64(0), np.int64(0)
    for part in range(4):
        left = seen[4 * k + part]
        seen[4 * k + part] = _U(0)
        while left != _U(0):
            b = _U(64 * part) + _U(trailing_zeros(left))
            left &= left - _U(1)
            here = at + _U(2) * b
            here_g, here_p = hist[here], hist[here + _U(1)]
            hist[here], hist[here + _U(1)] = 0, 0
            if b == _U(MISSING):
                g_gap, p_gap = here_g, here_p
                continue
            g += here_g
            p += here_p
            run[_U(0), m], run[_U(1), m], run[_U(2), m] = b, g, p
            m += _U(1)
    return np.int64(m), g_gap, p_gap


@inner
def column_cuts(
    group: int, hist: Any, seen: Any, dense: Any, n_bins: Any, categories: Any, signs: Any,
    node: Any, units: Any, allowed: Any, cuts: Any, chosen: Any, side: int, run: Any, gains: Any,
) -> None:  # fmt: skip
    """Best cut of each column of a group; one that cannot win against its left neighbours stays.

    ``chosen`` are sets of categories, (2, d, BINS), of which the node is the first or the second,
    or None. Of ``seen`` (marks of the codes that occur: few rows) and ``dense`` one is None.
    """
    floor = NONE
    for k in range(GROUP):
        j, at = group * GROUP + k, _U(k * BINS * 2)
        asked = j < len(n_bins)
        if asked:
            cuts[j, GAIN] = NONE
            asked = allowed[j]
        if chosen is not None and asked and categories[j]:
            scan_categories(hist, np.int64(at), n_bins[j], node, units, cuts[j], chosen[side, j])
            floor, asked = max(floor, cuts[j, GAIN]), False
        if seen is not None:
            m, g_gap, p_gap = _occurring(hist, at, seen, k, run)
        if dense is not None:
            m, g_gap, p_gap = _running(hist, at, n_bins[j] if asked else 0, run)
        if asked:
            numeric_cut(m, run, gains, g_gap, p_gap, node, units, signs, j, floor, cuts[j])
            floor = max(floor, cuts[j, GAIN])
