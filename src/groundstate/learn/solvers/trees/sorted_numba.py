"""Cuts of a column by sorting: for nodes whose rows are few beside the codes of the column."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.solvers.trees.compile_numba import inner
from groundstate.learn.solvers.trees.impurity_numba import (
    ENTROPY,
    GINI,
    SQUARED,
    TIE,
    Columns,
    Cut,
    Rule,
    Work,
    both,
)

_FEW = 40  # rows that are sorted by insertion
_U = np.uint64
_ROW = _U(0xFFFFFFFF)


@inner
def _keys(codes: Any, missing: int, rows: Any, lo: int, hi: int, bins: int, keys: Any) -> int:
    """Codes with places of rows lo to hi, ascending, NaN behind; in one of two rows of keys.

    A key is the code times 2³² plus the place. Returns which of the two rows of ``keys`` has them.
    """
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
        count[:] = 0
        for u in range(_U(n)):
            count[(keys[here, u] >> shift) & _U(255)] += 1
        at = 0
        for b in range(256):
            many = count[b]
            count[b] = at
            at += many
        for u in range(_U(n)):
            key = keys[here, u]
            b = (key >> shift) & _U(255)
            keys[1 - here, _U(count[b])] = key
            count[b] += 1
        here, shift = 1 - here, shift + _U(8)
    return here


@inner
def _add(rule: Rule, work: Work, r: Any, to: Any) -> None:
    if rule.kind == GINI or rule.kind == ENTROPY:
        to[work.label[r]] += work.stats[r, 0]
    else:
        for k in range(rule.size):
            to[k] += work.stats[r, k]


@inner
def ordered_column(
    keys: Any, lo: int, hi: int, bins: int, j: int, sign: int, rule: Rule, work: Work, right: Any,
    cut: Cut,
) -> bool:  # fmt: skip
    """`column` for keys that ascend from lo to hi; labels and sums are at the lower half of a key."""
    size, side = rule.size, work.side
    if keys[lo] >> _U(32) == keys[hi - 1] >> _U(32):
        return False
    plain = rule.kind == SQUARED and size == 2 and sign == 0
    end = hi
    for k in range(size):
        work.gap[k] = 0.0
    while end > lo and np.int64(keys[end - 1] >> _U(32)) >= bins:
        end -= 1
        _add(rule, work, keys[end] & _ROW, work.gap)
    gap = end < hi
    for nan_left in range(2 if gap else 1):
        for k in range(size):
            side[k] = work.gap[k] if nan_left else 0.0
        at = lo
        while at < end:
            c = keys[at] >> _U(32)
            while at < end and keys[at] >> _U(32) == c:
                _add(rule, work, keys[at] & _ROW, side)
                at += 1
            if at == end and (nan_left or not gap):
                break  # with NaN on the right, all values may stand together on the left
            if plain:
                wl, sl = side[0], side[1]
                wr, sr = work.total[0] - wl, work.total[1] - sl
                if wl < rule.least or wr < rule.least or wl <= 0 or wr <= 0:
                    continue
                value = sl * sl / wl + sr * sr / wr
            else:
                value = both(rule, work.total, side, right, sign)
            if value > cut.number[0] + TIE * abs(cut.number[0]):
                cut.number[0], cut.number[1] = value, np.nan
                cut.place[0], cut.place[1] = j, np.int64(c)
                cut.place[2] = np.int64(keys[at] >> _U(32)) if at < end else -1
                cut.place[3] = nan_left
    return True


@inner
def sorted_column(
    cols: Columns, rule: Rule, j: int, rows: Any, lo: int, hi: int, work: Work, right: Any, cut: Cut
) -> bool:
    """`column` for numbers of few rows, which are sorted first."""
    bins = cols.n_bins[j]
    here = _keys(cols.codes[j], cols.missing, rows, lo, hi, bins, work.keys)
    return ordered_column(
        work.keys[here], 0, hi - lo, bins, j, cols.signs[j], rule, work, right, cut
    )


__all__ = ["ordered_column", "sorted_column"]
