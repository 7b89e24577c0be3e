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
from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.learn.solvers.boosting.histogram.cuts_numba import column_cuts

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
def fill_few(words: Any, rows: Any, lo: int, hi: int, pairs: Any, hist: Any, seen: Any) -> None:
    """`fill` for few rows: the histograms are empty, and ``seen`` marks the codes that occur."""
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
def siblings(
    q: int, words: Any, rows: Any, lo: int, hi: int, pairs: Any, pool: Any, a: int, b: int,
    n_bins: Any, categories: Any, signs: Any, real: Any, first: int, second: int, units: Any,
    allowed: Any, cuts: Any, chosen: Any, run: Any, gains: Any,
) -> None:  # fmt: skip
    """Cuts of one group of columns, of a node and its sibling (or −1), whose rows are more.

    Fill the histograms of the smaller, in slot ``a`` of the pool, and subtract from those in ``b``.
    """
    for turn in range(1 if second < 0 else 2):
        hist = pool[a if turn == 0 else b, q]
        if turn == 0:
            fill(words[q], rows, lo, hi, pairs, hi - lo == words.shape[1], hist)
        else:
            other = pool[a, q]
            for i in range(len(hist)):
                hist[i] -= other[i]
        column_cuts(q, hist, None, 0, n_bins, categories, signs, real[second if turn else first],
                    units, allowed[turn], cuts[turn], chosen, turn, run[q],
                    gains[q])  # fmt: skip


@outer(parallel=True)
def siblings_threads(
    words: Any, rows: Any, lo: int, hi: int, pairs: Any, pool: Any, a: int, b: int, n_bins: Any,
    categories: Any, signs: Any, real: Any, first: int, second: int, units: Any, allowed: Any,
    cuts: Any, chosen: Any, run: Any, gains: Any,
) -> None:  # fmt: skip
    """`siblings` for all groups of columns at the same time."""
    for q in prange(len(words)):
        siblings(q, words, rows, lo, hi, pairs, pool, a, b, n_bins, categories, signs, real, first,
                 second, units, allowed, cuts, chosen, run, gains)  # fmt: skip
