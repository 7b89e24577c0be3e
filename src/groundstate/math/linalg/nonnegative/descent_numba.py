"""Compiled loops of non-negative factors: many rows side by side, so that rows fill the registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import outer, vector

SIDE = 64  # rows that are handled at once
EPS = float(np.finfo(np.float32).eps)  # what products are at least, before they divide


@vector
def _load(A: Any, lo: int, hi: int, into: Any) -> None:
    for b in range(hi - lo):
        for t in range(into.shape[0]):
            into[t, b] = A[lo + b, t]


@vector
def _store(A: Any, lo: int, hi: int, block: Any) -> None:
    for b in range(hi - lo):
        for t in range(block.shape[0]):
            A[lo + b, t] = block[t, b]


@vector
def _pass(W: Any, G: Any, P: Any, order: Any, live: Any, slope: Any, moved: Any) -> None:
    """One step of every coordinate, for rows side by side; ``moved`` sums projected slopes."""
    for s in range(len(order)):
        t = order[s]
        for b in range(SIDE):
            slope[b] = -P[t, b]
        for r in range(len(order)):
            g = G[t, r]
            for b in range(SIDE):
                slope[b] += g * W[r, b]
        curve = G[t, t]
        if curve <= 0:  # a line: it is lowest at zero, or flat
            for b in range(SIDE):
                moved[b] += slope[b] if W[t, b] > 0 else 0.0
                W[t, b] = 0.0 if slope[b] > 0 and live[b] > 0 else W[t, b]
            continue
        scale = 1.0 / curve
        for b in range(SIDE):
            old = W[t, b]
            away = slope[b] if old > 0 else min(slope[b], 0.0)
            moved[b] += abs(away)
            W[t, b] = max(old - live[b] * scale * slope[b], 0.0)


@outer
def sweep(W: Any, G: Any, P: Any, order: Any, weight: Any, lo: int, hi: int) -> float:
    """One step of every coordinate of rows ``lo..hi``; the weighted sum of projected slopes before."""
    k = W.shape[1]
    rows, given = np.zeros((k, SIDE), W.dtype), np.zeros((k, SIDE), W.dtype)
    slope, moved, live = np.zeros(SIDE, W.dtype), np.zeros(SIDE, W.dtype), np.ones(SIDE, W.dtype)
    total = 0.0
    for at in range(lo, hi, SIDE):
        end = min(at + SIDE, hi)
        _load(W, at, end, rows)
        _load(P, at, end, given)
        for b in range(SIDE):
            moved[b] = 0
        _pass(rows, G, given, order, live, slope, moved)
        _store(W, at, end, rows)
        for b in range(end - at):
            total += moved[b] if len(weight) == 0 else weight[at + b] * moved[b]
    return total


@outer
def codes(W: Any, G: Any, P: Any, order: Any, tol: float, steps: int, lo: int, hi: int) -> float:
    """Sweeps of rows ``lo..hi`` until each has converged by itself; the number of those that did not."""
    k = W.shape[1]
    rows, given = np.zeros((k, SIDE), W.dtype), np.zeros((k, SIDE), W.dtype)
    slope, moved, live = np.zeros(SIDE, W.dtype), np.zeros(SIDE, W.dtype), np.ones(SIDE, W.dtype)
    least = np.zeros(SIDE, W.dtype)
    left = 0
    for at in range(lo, hi, SIDE):
        end = min(at + SIDE, hi)
        _load(W, at, end, rows)
        _load(P, at, end, given)
        for b in range(SIDE):
            least[b], live[b] = 0.0, 1.0 if b < end - at else 0.0
            for t in range(k):
                least[b] += tol * abs(given[t, b])
        open_ = end - at
        for _ in range(steps):
            for b in range(SIDE):
                moved[b] = 0
            _pass(rows, G, given, order, live, slope, moved)
            open_ = 0
            for b in range(SIDE):
                # a row that has converged stays, whatever its neighbours still do
                live[b] = live[b] if moved[b] > least[b] else 0.0
                open_ += live[b] > 0
            if open_ == 0:
                break
        left += open_
        _store(W, at, end, rows)
    return float(left)


@vector
def _power(y: float, exponent: float) -> float:
    if exponent == -1.0:
        return 1.0 / y
    return 1.0 / (y * y) if exponent == -2.0 else y**exponent


@outer
def entries(
    at: Any, columns: Any, values: Any, W: Any, Ht: Any, beta: float, weight: Any, whose: int,
    out: Any, lo: int, hi: int,
) -> float:  # fmt: skip
    """Sums over the stored entries of sparse rows ``lo..hi``.

    With :math:`y = w_i^\\top h_j` and :math:`q = x_{ij}y^{\\beta-2}`: ``whose=0`` adds :math:`q h_j` to
    row i of ``out``, ``whose=1`` adds :math:`q w_i` to row j, ``whose=2`` returns the part of the
    divergence that entries have and zeros do not.
    """
    k = W.shape[1]
    total = 0.0
    for i in range(lo, hi):
        v = 1.0 if len(weight) == 0 else weight[i]
        own = 0.0
        for e in range(at[i], at[i + 1]):
            j = columns[e]
            x = values[e]
            y = 0.0
            for t in range(k):
                y += W[i, t] * Ht[j, t]
            if whose == 2:
                if x > EPS:
                    safe = max(y, EPS)
                    if beta == 1:
                        own += x * np.log(x / safe) - x
                    else:
                        own += (x**beta - beta * x * safe ** (beta - 1)) / (beta * (beta - 1))
                continue
            q = x * _power(max(y, EPS) if beta < 2 else y, beta - 2.0)
            if whose == 0:
                for t in range(k):
                    out[i, t] += q * Ht[j, t]
            else:
                for t in range(k):
                    out[j, t] += v * q * W[i, t]
        total += v * own
    return total
