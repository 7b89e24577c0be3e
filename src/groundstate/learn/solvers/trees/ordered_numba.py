"""Cuts of a column whose values are in order, from sorted keys of the rows of a node.

A key is the rank of a value times :math:`2^{32}` plus where the sums of its row are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner
from groundstate.learn.solvers.trees.fast_numba import best_of
from groundstate.learn.solvers.trees.impurity_numba import GAP, SIDE, Rule, add, both, keep

_FEW = 40  # rows that are sorted by insertion
_U = np.uint64
_ROW = _U(0xFFFFFFFF)


@inner(inline="always")
def sorted_keys(codes: Any, missing: int, rows: Any, lo: int, hi: int, bins: int, keys: Any) -> int:
    """Keys of rows lo to hi of codes, ascending, NaN behind; which of two rows of keys has them."""
    n = hi - lo
    for u in range(_U(n)):
        c = np.int64(codes[rows[_U(lo) + u]])
        keys[0, u] = (_U(bins if c == missing else c) << _U(32)) | u
    if n <= _FEW:
        for i in range(1, n):
            key, k = keys[0, i], i
            while k > 0 and keys[0, k - 1] > key:
                keys[0, k] = keys[0, k - 1]
                k -= 1
            keys[0, k] = key
        return 0
    here, shift = 0, _U(32)
    count = np.empty(256, np.int64)
    while bins >> np.int64(shift - _U(32)) > 0:
        for b in range(256):
            count[b] = 0
        for u in range(_U(n)):
            count[(keys[here, u] >> shift) & _U(255)] += 1
        at = 0
        for b in range(256):
            many = count[b]
            count[b] = at
            at += many
        for u in range(_U(n)):
            key = keys[here, u]
            place = (key >> shift) & _U(255)
            keys[1 - here, _U(count[place])] = key
            count[place] += 1
        here, shift = 1 - here, shift + _U(8)
    return here


@inner
def _each(
    keys: Any, lo: int, hi: int, bins: int, j: int, sign: int, rule: Rule, stats: Any, sums: Any,
    cut: Any,
) -> None:  # fmt: skip
    """Try all cuts between keys that ascend from lo to hi."""
    end = hi
    for k in range(rule.size):
        sums[GAP, k] = 0.0
    while end > lo and np.int64(keys[end - 1] >> _U(32)) >= bins:
        end -= 1
        add(rule, stats, keys[end] & _ROW, 1.0, sums, GAP)
    gap = end < hi
    for nan_left in range(2 if gap else 1):
        for k in range(rule.size):
            sums[SIDE, k] = sums[GAP, k] if nan_left else 0.0
        at = lo
        while at < end:
            c = keys[at] >> _U(32)
            while at < end and keys[at] >> _U(32) == c:
                add(rule, stats, keys[at] & _ROW, 1.0, sums, SIDE)
                at += 1
            if at == end and (nan_left or not gap):
                break  # with NaN on the right, all values may stand together on the left
            high = np.int64(keys[at] >> _U(32)) if at < end else -1
            keep(cut, both(rule, sums, sign), j, c, high, nan_left)


@inner(inline="always")
def _running(keys: Any, lo: int, hi: int, bins: int, pairs: Any, run: Any) -> Any:
    """Running sums behind the values of a node; how many values, and the sums of NaN."""
    end, w_gap, b_gap = _U(hi), 0.0, 0.0
    while end > _U(lo) and np.int64(keys[end - _U(1)] >> _U(32)) >= bins:
        end -= _U(1)
        r = keys[end] & _ROW
        w_gap += pairs[r, _U(0)]
        b_gap += pairs[r, _U(1)]
    m, w, b, c = _U(0), 0.0, 0.0, keys[_U(lo)] >> _U(32)
    for i in range(_U(lo), end):
        key = keys[i]
        m += _U(key >> _U(32) != c)
        r, c = key & _ROW, key >> _U(32)
        w += pairs[r, _U(0)]
        b += pairs[r, _U(1)]
        run[_U(0), m], run[_U(1), m], run[_U(2), m] = c, w, b
    return np.int64(m) + (end > _U(lo)), w_gap, b_gap


@inner
def ordered_cuts(
    keys: Any, lo: int, hi: int, bins: int, j: int, sign: int, rule: Rule, w_all: float,
    b_all: float, stats: Any, sums: Any, run: Any, many: Any, cut: Any,
) -> bool:  # fmt: skip
    """Try all cuts between keys that ascend from lo to hi; False when the column is constant."""
    if keys[lo] >> _U(32) == keys[hi - 1] >> _U(32):
        return False
    if run is not None:
        m, w_gap, b_gap = _running(keys, lo, hi, bins, stats, run)
        best_of(j, m, w_gap, b_gap, w_all, b_all, rule.least, run, cut)
    if many is not None:
        _each(keys, lo, hi, bins, j, sign, rule, stats, sums, cut)
    return True
