"""The loops of the weight line in NumPy: what is meant, and what runs on small tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import GOLDEN, U64, mix64

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def keyed_order(words: U64, word: int, bits: int) -> I64:
    """Order of ``mix64(words ^ word)`` down to its last ``bits`` bits, where the position decides.

    The position needs those bits, so one word carries both and only words are sorted.
    """
    low = np.uint64((1 << bits) - 1)
    keys = mix64(words ^ np.uint64(word))
    keys &= ~low
    keys |= np.arange(len(words), dtype=np.uint64)
    keys.sort()
    keys &= low
    return keys.view(np.int64)


def stable_order(words: U64, bits: int) -> I64:
    """Stable order of the words; ``bits`` is not needed here.  # (N,)"""
    return np.argsort(words, kind="stable")


def cut_pieces(
    order: I64, table: I64, full: F64, step: int, n_cells: int, unit: float
) -> tuple[I64, F64, I64]:
    """Cut intervals laid end to end in ``order`` into cells; the last cell takes the rest.

    Parameters
    ----------
    order : array, (G,)
        Which interval comes when.
    table : array, (G, 2)
        Length of each interval in units of ``unit``, and its row.
    full : array, (G,) or (0,)
        The weight of each uncut interval; empty where that is ``length * unit``.
    step, n_cells : int
        Length of a cell, and how many there are.

    Returns
    -------
    rows, weights : array, (M,)
        The pieces in order.
    offsets : array, (n_cells + 1,)
        Where each cell's pieces begin.
    """
    lengths, rows = table[:, 0], table[:, 1]
    full = full if len(full) else (lengths * unit).astype(np.float64)
    order = order[lengths[order] > 0]
    ends = np.cumsum(lengths[order])
    starts = ends - lengths[order]
    first = np.minimum(starts // step, n_cells - 1)
    last = np.minimum((ends - 1) // step, n_cells - 1)
    count = last - first + 1
    which = np.repeat(np.arange(len(order)), count)
    cell = first[which] + np.arange(len(which)) - (np.cumsum(count) - count)[which]
    stop = np.where(cell == n_cells - 1, ends[which], np.minimum(ends[which], (cell + 1) * step))
    piece = stop - np.maximum(starts[which], cell * step)
    g = order[which]
    weights = np.where(piece == lengths[g], full[g], piece * unit)
    return rows[g], weights, np.searchsorted(cell, np.arange(n_cells + 1))


def key_words(high: int, low: int, n: int) -> U64:
    """n uniform words of a key, counted.  # (n,)"""
    counter = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(GOLDEN) + np.uint64(high)
    return mix64(mix64(counter) ^ np.uint64(low))


def scaled(words: U64, total: int) -> I64:
    """``⌊words · total / 2^64⌋`` for a total below 2^63.  # (n,)"""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a0, a1 = words & low, words >> half
    b0, b1 = np.uint64(total & 0xFFFFFFFF), np.uint64(total >> 32)
    middle = a1 * b0 + ((a0 * b0) >> half)
    upper = a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half)
    return upper.astype(np.int64)


def locate(points: U64, ends: I64) -> I64:
    """The interval that holds each point ``⌊u · total / 2^64⌋``.  # (n,)"""
    return np.searchsorted(ends, scaled(points, int(ends[-1])), side="right")
