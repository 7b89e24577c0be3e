"""Cuts of nodes with few rows: no histograms are kept, and only codes that occur are visited."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.foreign.numba import add_pair_at_four, trailing_zeros
from groundstate.learn.solvers.boosting.histogram.cuts_numba import (
    BINS,
    GAIN,
    GROUP,
    MISSING,
    NONE,
    line,
    numeric_cut,
    scan_categories,
)
from groundstate.learn.solvers.trees.compile_numba import inner

_U = np.uint64


@inner
def scratch() -> Any:
    """Room that `small_cuts` finds empty and leaves empty: sums, and which codes occur."""
    return np.zeros(GROUP * BINS * 2, np.int64), np.zeros(GROUP * 4, np.uint64)


@inner
def _fill(words: Any, rows: Any, lo: int, hi: int, pairs: Any, hist: Any, seen: Any) -> None:
    """Add up the pairs of rows[lo:hi] by code, and mark the codes."""
    first = _U(lo)
    low, six = _U(63), _U(6)
    for k in range(_U(hi - lo)):
        word = words[rows[first + k]]
        a, b = _U(word & np.uint32(255)), _U((word >> np.uint32(8)) & np.uint32(255))
        c, d = _U((word >> np.uint32(16)) & np.uint32(255)), _U(word >> np.uint32(24))
        seen[a >> six] |= _U(1) << (a & low)
        seen[_U(4) + (b >> six)] |= _U(1) << (b & low)
        seen[_U(8) + (c >> six)] |= _U(1) << (c & low)
        seen[_U(12) + (d >> six)] |= _U(1) << (d & low)
        add_pair_at_four(hist, np.int64(a) * 2, np.int64(b) * 2 + 512, np.int64(c) * 2 + 1024,
                 np.int64(d) * 2 + 1536, pairs, np.int64(k))  # fmt: skip


@inner
def _running(hist: Any, seen: Any, k: int, work: Any) -> Any:
    """Running sums behind the codes of column k that occur, and the sums of NaN; empties both."""
    codes, g_sum, p_sum, _ = work
    g, p, m = np.int64(0), np.int64(0), _U(0)
    g_gap, p_gap = np.int64(0), np.int64(0)
    for part in range(4):
        left = seen[4 * k + part]
        seen[4 * k + part] = _U(0)
        while left != _U(0):
            b = _U(64 * part) + _U(trailing_zeros(left))
            left &= left - _U(1)
            at = _U(k * BINS * 2) + _U(2) * b
            here_g, here_p = hist[at], hist[at + _U(1)]
            hist[at], hist[at + _U(1)] = 0, 0
            if b == _U(MISSING):
                g_gap, p_gap = here_g, here_p
                continue
            g += here_g
            p += here_p
            g_sum[m], p_sum[m], codes[m] = g, p, b
            m += _U(1)
    return np.int64(m), g_gap, p_gap


@inner
def small_cuts(
    words: Any, rows: Any, lo: int, hi: int, pairs: Any, room: Any, table: Any, total: Any,
    units: Any, rules: Any, box: Any, allowed: Any, cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """Best cut of each column for the node of rows[lo:hi], straight from its rows."""
    n_bins, categories, signs = table
    hist, seen = room
    work, floor = line(), NONE
    for q in range(len(words)):
        _fill(words[q], rows, lo, hi, pairs, hist, seen)
        for k in range(GROUP):
            j = q * GROUP + k
            if j < len(n_bins):
                cuts[j, GAIN] = NONE
                if categories[j] and allowed[j]:
                    part = hist[k * BINS * 2 : (k + 1) * BINS * 2]
                    scan_categories(part, n_bins[j], total, units, rules, box, cuts[j], chosen[j])
            m, g_gap, p_gap = _running(hist, seen, k, work)
            if j < len(n_bins) and allowed[j] and not categories[j]:
                numeric_cut(m, work, g_gap, p_gap, total, units, rules, signs[j], box, floor,
                            cuts[j])  # fmt: skip
            if j < len(n_bins):
                floor = max(floor, cuts[j, GAIN])


__all__ = ["scratch", "small_cuts"]
