r"""Histograms of gradients: the compiled inner loops of boosting.

Gradients, hessians and weights are whole numbers in fixed units, so sums do not depend on the order
of the rows or the number of threads, and the difference parent − child is exact. One row adds two
words to a bin: the gradient, and the hessian with the weight in its lowest bits. Codes of four
columns stand together as one 32-bit word, so their histograms stay in the first-level cache.
Indices are unsigned: compiled code then need not ask whether they count from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from groundstate.compute.foreign.numba import add_pair_at_four
from groundstate.learn.solvers.boosting.histogram.cuts_numba import column_cuts
from groundstate.learn.solvers.trees.compile_numba import inner, threads

_U = np.uint64


@inner
def fill(words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool, hist: Any) -> None:
    """Add the pairs of rows[lo:hi] to the histograms ``(GROUP * BINS * 2,)`` of one group."""
    for k in range(len(hist)):
        hist[k] = 0
    first = _U(lo)
    for k in range(_U(hi - lo)):
        word = words[first + k] if whole else words[rows[first + k]]
        a = np.int64(word & np.uint32(255)) * 2
        b = np.int64((word >> np.uint32(8)) & np.uint32(255)) * 2 + 512
        c = np.int64((word >> np.uint32(16)) & np.uint32(255)) * 2 + 1024
        d = np.int64(word >> np.uint32(24)) * 2 + 1536
        add_pair_at_four(hist, a, b, c, d, pairs, np.int64(k))


@inner
def _group(
    q: int, words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool,
    small: Any, large: Any, two: bool, table: Any, totals: Any, units: Any, rules: Any, boxes: Any,
    allowed: Any, cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """Fill the smaller node's histograms, subtract for the sibling, and find the cuts of both."""
    fill(words[q], rows, lo, hi, pairs, whole, small[q])
    column_cuts(
        q, small[q], table, totals[0], units, rules, boxes[0], allowed[0], cuts[0], chosen[0]
    )
    if two:
        s, l = small[q], large[q]
        for i in range(len(s)):
            l[i] -= s[i]
        column_cuts(q, l, table, totals[1], units, rules, boxes[1], allowed[1], cuts[1], chosen[1])


@inner
def best_cuts(
    words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool, small: Any,
    large: Any, two: bool, table: Any, totals: Any, units: Any, rules: Any, boxes: Any, allowed: Any,
    cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """`_group` for all groups of columns, one after the other."""
    for q in range(len(words)):
        _group(q, words, rows, lo, hi, pairs, whole, small, large, two, table, totals,
               units, rules, boxes, allowed, cuts, chosen)  # fmt: skip


@threads
def best_cuts_threads(
    words: Any, rows: Any, lo: int, hi: int, pairs: Any, whole: bool, small: Any,
    large: Any, two: bool, table: Any, totals: Any, units: Any, rules: Any, boxes: Any, allowed: Any,
    cuts: Any, chosen: Any,
) -> None:  # fmt: skip
    """`_group` for all groups of columns, at the same time."""
    for q in prange(len(words)):
        _group(q, words, rows, lo, hi, pairs, whole, small, large, two, table, totals,
               units, rules, boxes, allowed, cuts, chosen)  # fmt: skip


__all__ = ["best_cuts", "best_cuts_threads", "fill"]
