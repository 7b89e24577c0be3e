"""Cuts of a column by sorting: for nodes whose rows are few beside the codes of the column."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.tree_jit import inner
from groundstate.learn.tree_kernels import (
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


@inner
def _keys(codes: Any, missing: int, rows: Any, lo: int, hi: int, bins: int, keys: Any) -> int:
    """Codes with places of rows lo to hi, ascending, in one of two rows of keys; −1 where there is NaN.

    A key is the code times 2³² plus the place. Returns which of the two rows of ``keys`` has them.
    """
    n = hi - lo
    for u in range(_U(n)):
        c = np.int64(codes[rows[_U(lo) + u]])
        if c == missing:
            return -1
        keys[0, u] = (_U(c) << _U(32)) | u
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
    while (bins - 1) >> np.int64(shift - _U(32)) > 0:
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
def sorted_column(
    cols: Columns, rule: Rule, j: int, rows: Any, lo: int, hi: int, work: Work, right: Any, cut: Cut
) -> int:
    """`column` for numbers of few rows, which are sorted; −1 where NaN is among them."""
    size, n, side, group = rule.size, hi - lo, work.side, work.gap
    here = _keys(cols.codes[j], cols.missing, rows, lo, hi, cols.n_bins[j], work.keys)
    if here < 0:
        return -1
    keys = work.keys[here]
    if keys[0] >> _U(32) == keys[n - 1] >> _U(32):
        return 0
    plain = rule.kind == SQUARED and size == 2 and cols.signs[j] == 0
    for k in range(size):
        side[k] = 0.0
    at = 0
    while True:
        c = keys[at] >> _U(32)
        for k in range(size):
            group[k] = 0.0
        while at < n and keys[at] >> _U(32) == c:
            r = keys[at] & _U(0xFFFFFFFF)
            if rule.kind == GINI or rule.kind == ENTROPY:
                group[work.label[r]] += work.stats[r, 0]
            else:
                for k in range(size):
                    group[k] += work.stats[r, k]
            at += 1
        if at == n:
            return 1
        for k in range(size):
            side[k] += group[k]
        if plain:
            wl, sl = side[0], side[1]
            wr, sr = work.total[0] - wl, work.total[1] - sl
            if wl < rule.least or wr < rule.least or wl <= 0 or wr <= 0:
                continue
            value = sl * sl / wl + sr * sr / wr
        else:
            value = both(rule, work.total, side, right, cols.signs[j])
        if value > cut.number[0] + TIE * abs(cut.number[0]):
            cut.number[0], cut.number[1] = value, np.nan
            cut.place[0], cut.place[1] = j, np.int64(c)
            cut.place[2], cut.place[3] = np.int64(keys[at] >> _U(32)), 0
            for k in range(size):
                cut.left[k] = side[k]


__all__ = ["sorted_column"]
