r"""Columns sorted once for a whole tree.

A key is the rank of a value among the distinct values of its column, times :math:`2^{32}`, plus
its row; NaN has the rank behind the last. The rows of a node are the same stretch of keys in every
column, ascending, and a cut parts each stretch in two without sorting anything again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.kernels.compile_numba import inner, outer

_U = np.uint64
_ROW = _U(0xFFFFFFFF)
_SIGN, _LAST = _U(1 << 63), ~_U(0)


@outer
def _sort(
    words: Any, line: Any, place: Any, count: Any, keys: Any, levels: Any, start: Any
) -> None:
    """Sort words (d, n) by their bytes: keys, distinct words column after column, where they begin.

    The largest word, which is that of NaN, is no level.
    """
    d, n = words.shape
    at = 0
    for j in range(d):
        for byte in range(8):
            for b in range(256):
                count[byte, b] = 0
        for i in range(n):
            word = words[j, i]
            line[0, i], place[0, i] = word, i
            for byte in range(8):
                count[byte, (word >> _U(8 * byte)) & _U(255)] += 1
        here = 0
        for byte in range(8):
            shift = _U(8 * byte)
            if count[byte, (line[here, 0] >> shift) & _U(255)] == n:  # all the same
                continue
            begin = 0
            for b in range(256):
                many = count[byte, b]
                count[byte, b] = begin
                begin += many
            for i in range(n):
                word = line[here, i]
                c = (word >> shift) & _U(255)
                to = count[byte, c]
                line[1 - here, to], place[1 - here, to] = word, place[here, i]
                count[byte, c] = to + 1
            here = 1 - here
        for i in range(n):
            word = line[here, i]
            if word != _LAST and (at == start[j] or word != levels[at - 1]):
                levels[at] = word
                at += 1
            rank = at - start[j] - (word != _LAST)
            keys[j, i] = (_U(rank) << _U(32)) | _U(place[here, i])
        if at == start[j]:  # a column of NaN alone has the value 0
            levels[at] = _SIGN
            at += 1
            for i in range(n):
                keys[j, i] |= _U(1) << _U(32)
        start[j + 1] = at


def presort(X: NDArray[Any]) -> tuple[Any, Any, Any, Any]:
    """Keys of the columns (d, n), distinct values, where they begin (d + 1,), and NaN (d,)."""
    n, d = X.shape
    values = np.add(X.T, 0.0, order="C", dtype=np.float64)  # one zero
    gap = np.isnan(values)
    words = values.view(np.uint64)
    words ^= np.where(words >> _U(63), _LAST, _SIGN)  # they ascend with the values
    words[gap] = _LAST
    keys, levels = np.empty((d, n), np.uint64), np.empty(d * max(n, 1), np.uint64)
    start = np.zeros(d + 1, np.int64)
    room = np.empty((2, n), np.uint64), np.empty((2, n), np.uint32), np.empty((8, 256), np.int64)
    _sort(words, *room, keys, levels, start)
    found = levels[: start[-1]].copy()
    found ^= np.where(found >> _U(63), _SIGN, _LAST)
    return keys, found.view(np.float64), start, gap.any(axis=1)


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


@inner(inline="always")
def mark(keys: Any, lo: int, hi: int, bins: int, last: int, nan_left: int, left: Any) -> None:
    """left[row] = 1 for the rows of a node on the left of a cut behind code ``last``."""
    for i in range(_U(lo), _U(hi)):
        code = np.int64(keys[i] >> _U(32))
        left[keys[i] & _ROW] = nan_left if code >= bins else code <= last


@inner(inline="always")
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
