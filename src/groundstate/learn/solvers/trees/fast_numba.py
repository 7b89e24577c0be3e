r"""Cuts for the commonest trees: two sums per side, one byte per code, columns of numbers.

With weights w and values v (targets, or 1 for the second of two classes) the score of a side is
:math:`(\sum w v)^2 / \sum w`. That is the squared error; the gini score of two
classes is twice it, up to terms that no cut changes. Only codes that occur in a node are visited.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.foreign.numba import add_pair, trailing_zeros
from groundstate.compute.kernels.compile_numba import inner, vector
from groundstate.learn.solvers.trees.impurity_numba import NONE, SCORE, TIE, keep

BINS, MISSING, DENSE = 256, 255, 512  # rows from which walking over all codes is cheaper
_U = np.uint64


@vector
def _gains(
    w_sum: Any, b_sum: Any, start: int, stop: int, w_gap: float, b_gap: float, w_all: float,
    b_all: float, gains: Any,
) -> None:  # fmt: skip
    for k in range(_U(start), _U(stop)):
        wl, bl = w_sum[k] + w_gap, b_sum[k] + b_gap
        wr, br = w_all - wl, b_all - bl
        gains[k] = (bl * bl * wr + br * br * wl) / (wl * wr)


@vector
def _largest(gains: Any, start: int, stop: int) -> float:
    a, b = NONE, NONE
    k, end = _U(start), _U(stop)
    while k + _U(2) <= end:
        a, b = max(a, gains[k]), max(b, gains[k + _U(1)])
        k += _U(2)
    return max(max(a, b), gains[k] if k < end else NONE)


@inner
def coded_sums(
    codes: Any, n_bins: int, rows: Any, lo: int, hi: int, pairs: Any, hist: Any, seen: Any, run: Any
) -> Any:
    """Running sums behind the codes of a node that occur; how many, and the sums of NaN.

    ``hist`` and ``seen``, sums and marks of codes, are left empty.
    """
    first: Any = _U(lo)
    m: Any = _U(0)
    c: Any
    w, b = 0.0, 0.0
    if hi - lo >= DENSE:
        for i in range(_U(hi - lo)):
            add_pair(hist, np.int64(codes[rows[first + i]]) * 2, pairs, np.int64(i))
        for c in range(_U(n_bins)):
            here = hist[_U(2) * c]
            w += here
            b += hist[_U(2) * c + _U(1)]
            run[_U(0), m], run[_U(1), m], run[_U(2), m] = c, w, b
            m += _U(here != 0)
        w_gap, b_gap = hist[2 * MISSING], hist[2 * MISSING + 1]
        for k in range(len(hist)):
            hist[k] = 0.0
        return np.int64(m), w_gap, b_gap
    for i in range(_U(hi - lo)):
        c = _U(codes[rows[first + i]])
        seen[c >> _U(6)] |= _U(1) << (c & _U(63))
        add_pair(hist, np.int64(c) * 2, pairs, np.int64(i))
    w_gap, b_gap = hist[2 * MISSING], hist[2 * MISSING + 1]
    hist[2 * MISSING], hist[2 * MISSING + 1] = 0.0, 0.0
    seen[3] &= ~(_U(1) << _U(63))
    for part in range(4):
        left = seen[part]
        seen[part] = _U(0)
        while left != _U(0):
            c = _U(64 * part) + _U(trailing_zeros(left))
            left &= left - _U(1)
            w += hist[_U(2) * c]
            b += hist[_U(2) * c + _U(1)]
            hist[_U(2) * c], hist[_U(2) * c + _U(1)] = 0.0, 0.0
            run[_U(0), m], run[_U(1), m], run[_U(2), m] = c, w, b
            m += _U(1)
    return np.int64(m), w_gap, b_gap


@inner
def best_of(
    j: int, m: int, w_gap: float, b_gap: float, w_all: float, b_all: float, least: float, run: Any,
    cut: Any,
) -> bool:  # fmt: skip
    """The best cut behind one of m running sums; False when there is only one value.

    ``run`` has codes, sums of weights, sums of weighted values, and room for gains.
    """
    w_sum, b_sum, gains = run[1], run[2], run[3]
    gap = w_gap > 0
    if m + gap <= 1:
        return False
    least = max(least, 1e-300)
    for nan_left in range(2 if gap else 1):
        w_more, b_more = (w_gap, b_gap) if nan_left else (0.0, 0.0)
        # with NaN on the right, all values may stand together on the left
        start, stop = 0, m if gap and not nan_left else m - 1
        while start < stop and w_sum[start] + w_more < least:
            start += 1
        while start < stop and w_all - w_sum[stop - 1] - w_more < least:
            stop -= 1
        if start >= stop:
            continue
        _gains(w_sum, b_sum, start, stop, w_more, b_more, w_all, b_all, gains)
        best = _largest(gains, start, stop)
        if best <= cut[SCORE] + TIE * abs(cut[SCORE]):
            continue
        i, near = start, best - TIE * abs(best)
        while gains[i] < near:
            i += 1
        cut[SCORE] = NONE
        keep(cut, gains[i], j, run[0, i], run[0, i + 1] if i + 1 < m else -1.0, nan_left)
    return True
