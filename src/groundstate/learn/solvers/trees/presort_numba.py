r"""Columns sorted once for a whole tree.

A key is the rank of a value among the distinct values of its column, times :math:`2^{32}`, plus
its row; NaN has the rank behind the last. The rows of a node are the same stretch of keys in every
column, ascending, and a cut parts each stretch in two without sorting anything again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.learn.solvers.trees.compile_numba import inner, outer

_U = np.uint64
_ROW = _U(0xFFFFFFFF)


@inner
def _radix(words: Any, place: Any, n: int, count: Any) -> int:
    """Sort (2, n) words with their places by bytes; returns which of the two rows has them."""
    count[:] = 0
    for i in range(n):
        for byte in range(8):
            count[byte, (words[0, i] >> _U(8 * byte)) & _U(255)] += 1
    here = 0
    for byte in range(8):
        first = (words[here, 0] >> _U(8 * byte)) & _U(255)
        if count[byte, first] == n:  # all the same
            continue
        at = 0
        for b in range(256):
            many = count[byte, b]
            count[byte, b] = at
            at += many
        for i in range(n):
            word = words[here, i]
            b = (word >> _U(8 * byte)) & _U(255)
            to = count[byte, b]
            words[1 - here, to], place[1 - here, to] = word, place[here, i]
            count[byte, b] = to + 1
        here = 1 - here
    return here


@outer
def _sort(X: Any, column: Any, bits: Any, keys: Any, levels: Any, start: Any, gaps: Any) -> None:
    """Keys (d, n), the distinct values column after column, where each begins, which have NaN.

    ``bits`` are those of ``column``; turned so that they ascend with the values.
    """
    n, d = X.shape
    words, place = np.empty((2, n), np.uint64), np.empty((2, n), np.uint32)
    count, at = np.empty((8, 256), np.int64), 0
    wide = _U(8 * bits.itemsize)
    sign, ones, up = _U(1) << (wide - _U(1)), ~_U(0) >> (_U(64) - wide), _U(64) - wide
    for j in range(d):
        for i in range(n):
            column[i] = X[i, j]
        for i in range(n):
            word = _U(bits[i])
            if np.isnan(column[i]):
                word = ones
            elif word & sign:
                word = ones ^ word
            else:
                word |= sign
            words[0, i], place[0, i] = word << up, i
        here = _radix(words, place, n, count)
        begin, rank = at, -1
        for i in range(n):
            r = place[here, i]
            v = column[r]
            if np.isnan(v):
                gaps[j] = True
                rank += rank < 0  # a column of NaN alone has the value 0
                for k in range(i, n):
                    keys[j, k] = (_U(rank + 1) << _U(32)) | _U(place[here, k])
                break
            if rank < 0 or v != levels[at - 1]:
                levels[at] = v
                at += 1
                rank += 1
            keys[j, i] = (_U(rank) << _U(32)) | _U(r)
        if at == begin:
            levels[at] = 0.0
            at += 1
        start[j + 1] = at


def presort(X: NDArray[Any]) -> tuple[Any, Any, Any, Any]:
    """Keys of the columns (d, n), distinct values, where they begin (d + 1,), and NaN (d,)."""
    n, d = X.shape
    column = np.empty(n, X.dtype)
    bits = column.view(np.uint32 if X.dtype == np.float32 else np.uint64)
    keys, levels = np.empty((d, n), np.uint64), np.empty(d * max(n, 1))
    start, gaps = np.zeros(d + 1, np.int64), np.zeros(d, np.bool_)
    _sort(X, column, bits, keys, levels, start, gaps)
    return keys, levels[: start[-1]].copy(), start, gaps


@outer
def ranks(keys: Any, n_bins: Any, missing: int, codes: Any) -> None:
    """codes[j, row] = rank of the row in column j, ``missing`` for NaN."""
    for j in range(len(keys)):
        for key in keys[j]:
            code = np.int64(key >> _U(32))
            codes[j, key & _ROW] = missing if code >= n_bins[j] else code


@outer
def kept(keys: Any, weight: Any, n: int) -> Any:
    """The keys of the n rows whose weight is positive."""
    d, out = len(keys), np.empty((len(keys), n + 1), np.uint64)  # room for one that is not kept
    for j in range(d):
        at = 0
        for key in keys[j]:
            out[j, at] = key
            at += weight[key & _ROW] > 0
    return out


@inner
def mark(keys: Any, lo: int, hi: int, bins: int, last: int, nan_left: int, left: Any) -> None:
    """left[row] = 1 for the rows of a node on the left of a cut behind code ``last``."""
    for i in range(_U(lo), _U(hi)):
        code = np.int64(keys[i] >> _U(32))
        left[keys[i] & _ROW] = nan_left if code >= bins else code <= last


@inner
def part(keys: Any, lo: int, hi: int, left: Any, spare: Any) -> None:
    """Bring the marked rows of a node to the front of its stretch, in every column."""
    for j in range(len(keys)):
        line: Any = keys[j]
        at, other = _U(lo), _U(0)
        for i in range(_U(lo), _U(hi)):
            key = line[i]
            go = _U(left[key & _ROW])
            line[at] = key
            spare[other] = key
            at += go
            other += _U(1) - go
        for i in range(other):
            line[at + i] = spare[i]


@inner
def ordered_sums(keys: Any, j: int, lo: int, hi: int, bins: int, pairs: Any, space: Any) -> Any:
    """Running sums behind the values of a node; how many values, and the sums of NaN.

    ``pairs`` are by row, as those of `tree_fast`, whose `best_of` goes on from here.
    """
    _, _, present, w_sum, b_sum, _ = space
    own, end, w_gap, b_gap = _U(j), _U(hi), 0.0, 0.0
    while end > _U(lo) and np.int64(keys[own, end - _U(1)] >> _U(32)) >= bins:
        end -= _U(1)
        r = keys[own, end] & _ROW
        w_gap += pairs[r, _U(0)]
        b_gap += pairs[r, _U(1)]
    m, w, b, c = _U(0), 0.0, 0.0, keys[own, _U(lo)] >> _U(32)
    for i in range(_U(lo), end):
        key = keys[own, i]
        m += _U(key >> _U(32) != c)
        r, c = key & _ROW, key >> _U(32)
        w += pairs[r, _U(0)]
        b += pairs[r, _U(1)]
        w_sum[m], b_sum[m], present[m] = w, b, c
    return np.int64(m) + (end > _U(lo)), w_gap, b_gap


__all__ = ["kept", "mark", "ordered_sums", "part", "presort", "ranks"]
