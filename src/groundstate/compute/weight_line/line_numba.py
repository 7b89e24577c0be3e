"""Compiled loops of the weight line; `reference` says the same in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from groundstate.compute.random import U64

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_U = np.uint64
_GOLDEN = _U(0x9E3779B97F4A7C15)
_M1, _M2 = _U(0xBF58476D1CE4E5B9), _U(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = _U(27), _U(30), _U(31), _U(32)
_LOW32 = _U(0xFFFFFFFF)
_ABS, _INF, _NAN = _U(0x7FFFFFFFFFFFFFFF), _U(0x7FF0000000000000), _U(0x7FF8000000000000)
_DIGIT = 11


def _jit(function: Any) -> Any:
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to write the cache: compile in every process
        return njit(nogil=True)(function)


@_jit
def _mix(w: Any) -> Any:
    w = (w ^ (w >> _S30)) * _M1
    w = (w ^ (w >> _S27)) * _M2
    return w ^ (w >> _S31)


@_jit
def sum_floats(values: Any, keys: U64, out: U64) -> None:
    """`sum_words` of the entries as float64, converted in registers."""
    n, d = values.shape
    for i in range(n):
        total = _U(0)
        for j in range(d):
            w = np.float64(values[i, j]).view(np.uint64)
            size = w & _ABS
            w = _U(0) if size == _U(0) else w
            w = _NAN if size > _INF else w
            total += _mix(w ^ keys[j])
        out[i] = total


@_jit
def sum_words(words: U64, keys: U64, out: U64) -> None:
    """out[i] = Σ_j mix(words[i, j] ^ keys[j]), with one zero and one NaN."""
    n, d = words.shape
    for i in range(n):
        total = _U(0)
        for j in range(d):
            w = words[i, j]
            size = w & _ABS
            w = _U(0) if size == _U(0) else w
            w = _NAN if size > _INF else w
            total += _mix(w ^ keys[j])
        out[i] = total


@_jit
def _sort_packed(keys: U64, digit: int, passes: int) -> U64:
    """Sort well-mixed words: counting passes on the leading bits, then insertion for the rest."""
    n = len(keys)
    spare = np.empty(n, dtype=np.uint64)
    mask = _U((1 << digit) - 1)
    for p in range(passes):
        shift = _U(64 - digit * (passes - p))
        count = np.zeros(1 << digit, dtype=np.int64)
        for i in range(n):
            count[(keys[i] >> shift) & mask] += 1
        place = 0
        for b in range(len(count)):
            size = count[b]
            count[b] = place
            place += size
        for i in range(n):
            k = keys[i]
            b = (k >> shift) & mask
            at = count[b]
            count[b] = at + 1
            spare[at] = k
        keys, spare = spare, keys
    for i in range(1, n):
        k = keys[i]
        j = i
        while j > 0 and keys[j - 1] > k:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = k
    return keys


@_jit
def _passes(bits: int) -> int:
    return max(1, -(-bits // _DIGIT))


@_jit
def keyed_order(words: U64, word: Any, bits: int) -> I64:
    """Order of mix(words ^ word) down to its last `bits` bits, where the position decides."""
    n = len(words)
    low = (_U(1) << _U(bits)) - _U(1)
    keys = np.empty(n, dtype=np.uint64)
    for i in range(n):
        keys[i] = (_mix(words[i] ^ word) & ~low) | _U(i)
    keys = _sort_packed(keys, _DIGIT, _passes(bits))
    out = np.empty(n, dtype=np.int64)
    for i in range(n):
        out[i] = keys[i] & low
    return out


@_jit
def stable_order(words: U64, bits: int) -> I64:
    """Stable order of well-mixed words, all 64 bits of them."""
    n = len(words)
    low = (_U(1) << _U(bits)) - _U(1)
    keys = np.empty(n, dtype=np.uint64)
    for i in range(n):
        keys[i] = (words[i] & ~low) | _U(i)
    keys = _sort_packed(keys, _DIGIT, _passes(bits))
    out = np.empty(n, dtype=np.int64)
    for i in range(n):
        at = np.int64(keys[i] & low)
        j = i
        # Positions stand in the low bits, so words that differ only there are still to be sorted.
        while (
            j > 0
            and (keys[i] & ~low) == (words[out[j - 1]] & ~low)
            and words[out[j - 1]] > words[at]
        ):
            out[j] = out[j - 1]
            j -= 1
        out[j] = at
    return out


@_jit
def cut_pieces(
    order: I64, table: I64, full: F64, step: int, n_cells: int, unit: float
) -> tuple[I64, F64, I64]:
    """Cut intervals laid end to end in `order` into cells; the last cell takes the rest."""
    n = len(order)
    rows = np.empty(n + n_cells, dtype=np.int64)
    weights = np.empty(n + n_cells, dtype=np.float64)
    offsets = np.zeros(n_cells + 1, dtype=np.int64)
    exact = len(full) == 0
    m, cell, room = 0, 0, step
    for i in range(n):
        g = order[i]
        length, row = table[g, 0], table[g, 1]
        left = length
        while left > 0:
            take = left if cell == n_cells - 1 else min(left, room)
            rows[m] = row
            weights[m] = take * unit if exact or take < length else full[g]
            m += 1
            left -= take
            room -= take
            if room <= 0 and cell < n_cells - 1:
                cell += 1
                offsets[cell] = m
                room = step
    for c in range(cell + 1, n_cells + 1):
        offsets[c] = m
    return rows[:m], weights[:m], offsets


@_jit
def _high(a: Any, b: Any) -> Any:
    """The upper 64 bits of the product of two unsigned words."""
    a0, a1, b0, b1 = a & _LOW32, a >> _S32, b & _LOW32, b >> _S32
    middle = a1 * b0 + ((a0 * b0) >> _S32)
    return a1 * b1 + (middle >> _S32) + ((a0 * b1 + (middle & _LOW32)) >> _S32)


@_jit
def locate(points: U64, ends: I64) -> I64:
    """The interval that holds each point ``⌊u · total / 2^64⌋``, by a guide table."""
    n = len(ends)
    total = _U(ends[n - 1])
    bits = 1
    while (1 << bits) < n:
        bits += 1
    shift = _U(64 - bits)
    guide = np.empty(1 << bits, dtype=np.int64)
    at = 0
    for b in range(len(guide)):
        lowest = _high(_U(b) << shift, total)
        while _U(ends[at]) <= lowest:
            at += 1
        guide[b] = at
    out = np.empty(len(points), dtype=np.int64)
    for i in range(len(points)):
        place = _high(points[i], total)
        at = guide[points[i] >> shift]
        while _U(ends[at]) <= place:
            at += 1
        out[i] = at
    return out


@_jit
def key_words(high: Any, low: Any, n: int) -> U64:
    """`Key.words`."""
    out = np.empty(n, dtype=np.uint64)
    counter = high
    for i in range(n):
        counter += _GOLDEN
        out[i] = _mix(_mix(counter) ^ low)
    return out


@_jit
def scaled(points: U64, total: int) -> I64:
    """The places ⌊u · total / 2^64⌋."""
    out = np.empty(len(points), dtype=np.int64)
    for i in range(len(points)):
        out[i] = _high(points[i], _U(total))
    return out
