"""Numba kernels of :mod:`groundstate.math.chains.chain_fast`; imported on first use.

Arrays: ``eu`` ``(B, L, K)``, ``ew`` ``(1, 1, K, K)`` (shared) or ``(B, L-1, K, K)``, ``steps``
``(B,)``. Every kernel fills the rows ``lo..hi`` of its outputs and lets go of the interpreter, so
that threads share the rows. Sums over rows go through a fixed number of slots, so that results do
not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

SLOTS = 32
MANY = 24  # states from which a row of sums at once is quicker than one minimum after the other
LOWEST = {"nnan", "nsz"}  # lets minima use vector registers; inf keeps its meaning
SUMS = {"reassoc", "contract"}  # lets dot products use vector registers; inf and NaN keep meaning


@njit(cache=True, nogil=True, fastmath=SUMS)
def backward(
    lo: int, hi: int, eu: Any, ew: Any, steps: Any, tiny: float, beta: Any, log_scale: Any
) -> None:
    """Messages ``(B, L, K)``, largest 1, and log of the scaled sum ``(B,)``; NaN: give up."""
    k = eu.shape[2]
    shared = ew.shape[0] == 1 and ew.shape[1] == 1
    for r in range(lo, hi):
        onward = np.empty(k)
        total = 0.0
        alive = True
        for t in range(steps[r] - 2, -1, -1):
            e = ew[0, 0] if shared else ew[r, t]
            for j in range(k):
                onward[j] = eu[r, t + 1, j] * beta[r, t + 1, j]
            top = 0.0
            for i in range(k):
                s = 0.0
                for j in range(k):
                    s += e[i, j] * onward[j]
                beta[r, t, i] = s
                top = max(top, s)
            if top == 0.0:
                total = -np.inf
                break
            for i in range(k):
                s = beta[r, t, i] / top
                beta[r, t, i] = s
                if 0.0 < s < tiny:
                    alive = False
            total += np.log(top)
        s = 0.0
        for i in range(k):
            s += eu[r, 0, i] * beta[r, 0, i]
        log_scale[r] = total + np.log(s) if alive and s > 0.0 else (-np.inf if alive else np.nan)


@njit(cache=True, nogil=True, fastmath=SUMS)
def forward(
    lo: int,
    hi: int,
    eu: Any,
    ew: Any,
    beta: Any,
    steps: Any,
    tame: Any,
    pairs: int,
    weight: Any,
    mu: Any,
    out: Any,
) -> None:
    """Marginals from the messages; pairs 0: none, 1: all ``(B, L-1, K, K)``, 2: weighted sums over
    rows and positions ``(1, SLOTS, K, K)``. Here ``lo..hi`` are slots: every SLOTS-th row."""
    b, k = eu.shape[0], eu.shape[2]
    shared = ew.shape[0] == 1 and ew.shape[1] == 1
    for slot in range(lo, hi):
        onward = np.empty(k)
        for r in range(slot, b, SLOTS):
            if not tame[r]:
                continue
            s = 0.0
            for i in range(k):
                mu[r, 0, i] = eu[r, 0, i] * beta[r, 0, i]
                s += mu[r, 0, i]
            for i in range(k):
                mu[r, 0, i] /= s
            for t in range(steps[r] - 1):
                e = ew[0, 0] if shared else ew[r, t]
                for j in range(k):
                    onward[j] = eu[r, t + 1, j] * beta[r, t + 1, j]
                for i in range(k):
                    m = mu[r, t, i]
                    if m == 0.0:
                        continue
                    s = 0.0
                    for j in range(k):
                        s += e[i, j] * onward[j]
                    m /= s
                    if pairs == 0:
                        for j in range(k):
                            mu[r, t + 1, j] += m * e[i, j] * onward[j]
                    elif pairs == 1:
                        for j in range(k):
                            p = m * e[i, j] * onward[j]
                            mu[r, t + 1, j] += p
                            out[r, t, i, j] = p
                    else:
                        for j in range(k):
                            p = m * e[i, j] * onward[j]
                            mu[r, t + 1, j] += p
                            out[0, slot, i, j] += weight[r] * p


@njit(cache=True, nogil=True)
def draw(lo: int, hi: int, eu: Any, ew: Any, beta: Any, steps: Any, noise: Any, y: Any) -> None:
    """Sequences ``(N, B, L)`` by inversion of each transition distribution."""
    count, k = noise.shape[0], eu.shape[2]
    shared = ew.shape[0] == 1 and ew.shape[1] == 1
    for r in range(lo, hi):
        p = np.empty(k)
        for c in range(count):
            last = 0
            for t in range(steps[r]):
                s = 0.0
                for j in range(k):
                    p[j] = eu[r, t, j] * beta[r, t, j]
                    if t > 0:
                        e = ew[0, 0] if shared else ew[r, t - 1]
                        p[j] *= e[last, j]
                    s += p[j]
                target = noise[c, r, t] * s
                running = 0.0
                last = 0
                for j in range(k):
                    if p[j] > 0.0:
                        last = j
                    running += p[j]
                    if running > target:
                        break
                y[c, r, t] = last


@njit(cache=True, nogil=True, fastmath=LOWEST)
def viterbi(lo: int, hi: int, u: Any, w: Any, steps: Any, y: Any, energy: Any) -> None:
    """Min-sum from the right, then a walk from the left: lexicographically lowest minimiser.

    The energies of the tails are kept, not the successors: the walk looks for the successor of one
    state alone, and the loops over all of them only take minima.
    """
    n, k = u.shape[1:]
    shared = w.shape[0] == 1 and w.shape[1] == 1
    across = np.ascontiguousarray(w[0, 0].T) if shared else np.empty((0, 0), dtype=w.dtype)
    tail = np.empty((n, k), dtype=u.dtype)
    best = np.empty(k, dtype=u.dtype)
    for r in range(lo, hi):
        end = steps[r] - 1
        for j in range(k):
            tail[end, j] = u[r, end, j]
        for t in range(end - 1, -1, -1):
            if shared and k > MANY:  # inner loop over i: contiguous and without a reduction
                for i in range(k):
                    best[i] = np.inf
                for j in range(k):
                    for i in range(k):
                        s = across[j, i] + tail[t + 1, j]
                        best[i] = s if s < best[i] else best[i]
            else:
                e = w[0, 0] if shared else w[r, t]
                for i in range(k):
                    low = np.inf
                    for j in range(k):
                        s = e[i, j] + tail[t + 1, j]
                        low = s if s < low else low
                    best[i] = low
            for i in range(k):
                tail[t, i] = u[r, t, i] + best[i]
        low = np.inf
        arg = 0
        for i in range(k):
            if tail[0, i] < low:
                low = tail[0, i]
                arg = i
        energy[r] = low
        y[r, 0] = arg
        for t in range(end):
            e = w[0, 0] if shared else w[r, t]
            low = np.inf
            last = arg
            arg = 0
            for j in range(k):
                s = e[last, j] + tail[t + 1, j]
                if s < low:
                    low = s
                    arg = j
            y[r, t + 1] = arg
