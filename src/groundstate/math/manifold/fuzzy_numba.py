"""Stochastic steps of a fuzzy map, compiled: edges pull when they are due, random rows push."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

FREE = {"nnan", "ninf", "nsz", "contract", "reassoc", "arcp"}
CLIP = np.float32(4.0)  # the longest step of one pull or push in a coordinate
SOFT = np.float32(1e-3)  # added to squared distances of pushes
CELLS, REACH = np.float32(64.0), 64  # entries of the table for a unit of distance, and its end


@inner(fastmath=FREE)
def _clipped(value: Any) -> Any:
    return min(max(value, -CLIP), CLIP)


@inner(fastmath=FREE)
def _drawn(state: Any, n: int) -> Any:
    """The next row, by a generator of 64 bits (xorshift)."""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return np.int64(((s >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@inner(fastmath=FREE)
def _tail(s: Any, table: Any, a: Any, b: Any) -> Any:
    """1 + a s^b of a squared distance, between two entries of a table where it has them."""
    at = CELLS * np.sqrt(s)
    if at < np.float32(len(table) - 2):
        k = np.int32(at)
        return table[k] + (at - np.float32(k)) * (table[k + 1] - table[k])
    return np.float32(1.0) + a * s**b


@inner(fastmath=FREE)
def _pull(s: Any, a: Any, b: Any) -> Any:
    if s == 0:
        return np.float32(0.0)
    power = s**b
    return np.float32(-2.0) * a * b * power / (s * (np.float32(1.0) + a * power))


@inner(fastmath=FREE)
def _edge(Y: Any, i: int, j: int, pushes: int, table: Any, a: Any, b: Any, gamma: Any, rate: Any,
          state: Any, moved: Any) -> None:  # fmt: skip
    """One pull of a pair towards each other, and pushes of random rows against the first."""
    n, p = Y.shape
    s = np.float32(0.0)
    for c in range(p):
        s += (Y[i, c] - Y[j, c]) ** 2
    pull = _pull(s, a, b)
    for c in range(p):
        step = rate * _clipped(pull * (Y[i, c] - Y[j, c]))
        Y[i, c] += step
        Y[j, c] -= step
        moved[c] = 0.0
    for _ in range(pushes):
        k = _drawn(state, n)
        s = np.float32(0.0)
        for c in range(p):
            s += (Y[i, c] - Y[k, c]) ** 2
        push = np.float32(2.0) * gamma * b / ((SOFT + s) * _tail(s, table, a, b))
        for c in range(p):
            moved[c] += _clipped(push * (Y[i, c] - Y[k, c]))
    for c in range(p):
        Y[i, c] += rate * moved[c]


@inner(fastmath=FREE)
def _edge2(Y: Any, i: int, j: int, pushes: int, table: Any, a: Any, b: Any, gamma: Any, rate: Any,
           state: Any) -> None:  # fmt: skip
    """The same in two dimensions."""
    n = len(Y)
    y0, y1 = Y[i, 0], Y[i, 1]
    u, v = y0 - Y[j, 0], y1 - Y[j, 1]
    pull = _pull(u * u + v * v, a, b)
    u, v = rate * _clipped(pull * u), rate * _clipped(pull * v)
    y0 += u
    y1 += v
    Y[j, 0] -= u
    Y[j, 1] -= v
    m0 = m1 = np.float32(0.0)
    for _ in range(pushes):
        k = _drawn(state, n)
        u, v = y0 - Y[k, 0], y1 - Y[k, 1]
        s = u * u + v * v
        push = np.float32(2.0) * gamma * b / ((SOFT + s) * _tail(s, table, a, b))
        m0 += _clipped(push * u)
        m1 += _clipped(push * v)
    Y[i, 0], Y[i, 1] = y0 + rate * m0, y1 + rate * m1


@outer
def epochs(
    Y: Any, starts: Any, ends: Any, every: Any, due: Any, due_push: Any, first: int, last: int,
    total: int, a: Any, b: Any, gamma: Any, rate: Any, pushes: Any, state: Any,
) -> None:  # fmt: skip
    """Epochs ``first..last`` of ``total``, in place.

    Parameters
    ----------
    Y : places ``(n, p)``, float32
    starts, ends : the graph in CSR form
    every : epochs between two pulls of an edge
    due, due_push : when an edge pulls next, and up to when it has pushed
    rate : of the first epoch; it falls to zero in a line
    pushes : random rows for each pull
    state : of the generator, one word
    """
    flat = Y.shape[1] == 2
    table, moved = np.empty(np.int64(CELLS) * REACH, np.float32), np.empty(Y.shape[1], np.float32)
    for k in range(len(table)):
        table[k] = 1.0 + a * (k / CELLS) ** (2.0 * b)
    for epoch in range(first, last):
        step = np.float32(rate * (1.0 - epoch / total) ** 2)
        for i in range(len(starts) - 1):
            for e in range(starts[i], starts[i + 1]):
                if due[e] > epoch:
                    continue
                due[e] += every[e]
                apart = every[e] / pushes
                count = max(np.int64((epoch - due_push[e]) / apart), 0)
                due_push[e] += np.float32(count * apart)
                if flat:
                    _edge2(Y, i, ends[e], count, table, a, b, gamma, step, state)
                else:
                    _edge(Y, i, ends[e], count, table, a, b, gamma, step, state, moved)
