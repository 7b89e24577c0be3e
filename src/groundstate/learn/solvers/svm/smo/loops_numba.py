r"""Compiled loops of sequential minimal optimisation; the reference is in ``smo_reference``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from groundstate.compute.kernels.compile_numba import outer

WIDTH = 2048  # columns of a block
FLAT = 1e-12  # curvature below which a direction counts as flat


@njit(cache=True, nogil=True)
def solve_pairs(
    K: Any, beta: Any, lo: Any, hi: Any, F: Any, tol: float, max_steps: int, shrink_every: int,
    eps: Any,
) -> tuple[int, float]:  # fmt: skip
    r"""Pair steps on a dense matrix until the violation is at most ``tol``; β and F in place.

    With a tube of half width ``eps`` (None for none) a coefficient pays ε|β|, so that its error
    counts F − ε above zero and F + ε below it, and a step ends at zero.

    The pair is chosen by second order: i has the largest F that may rise, j the largest decrease
    of the objective against it. Every ``shrink_every`` steps coordinates at a bound that cannot
    move are set aside; their F is made up for before the end. Returns steps and violation.
    """
    n = len(beta)
    active = np.arange(n)
    size = n
    start, errors = beta.copy(), F.copy()
    until_shrink = shrink_every
    steps = 0
    while True:
        i, top, bottom = -1, -np.inf, np.inf
        for a in range(size):
            t = active[a]
            rise = fall = F[t]
            if eps is not None:
                rise += eps if beta[t] < 0.0 else -eps
                fall += -eps if beta[t] > 0.0 else eps
            if rise > top and beta[t] < hi[t]:
                top, i = rise, t
            if fall < bottom and beta[t] > lo[t]:
                bottom = fall
        if top - bottom <= tol or i < 0 or bottom == np.inf:
            if size == n:
                return steps, max(top - bottom, 0.0) if i >= 0 and bottom < np.inf else 0.0
            _restore(K, beta - start, errors, F, active, size)
            size = n
            until_shrink = shrink_every
            continue
        if steps >= max_steps:
            if size < n:
                _restore(K, beta - start, errors, F, active, size)
            return steps, top - bottom
        row = K[i]
        Kii = row[i]
        j, best = -1, 0.0
        for a in range(size):
            t = active[a]
            gap = top - F[t]
            if eps is not None:
                gap -= -eps if beta[t] > 0.0 else eps
            if gap > 0.0 and beta[t] > lo[t]:
                curve = max(Kii + K[t, t] - 2.0 * row[t], FLAT)
                gain = gap * gap / curve
                if gain > best:
                    best, j = gain, t
        if j < 0:
            return steps, top - bottom
        curve = max(Kii + K[j, j] - 2.0 * row[j], FLAT)
        fall, high, low = F[j], hi[i], lo[j]
        if eps is not None:
            fall += -eps if beta[j] > 0.0 else eps
            high = 0.0 if beta[i] < 0.0 else high
            low = 0.0 if beta[j] > 0.0 else low
        step = min((top - fall) / curve, min(high - beta[i], beta[j] - low))
        new_i, new_j = beta[i] + step, beta[j] - step
        beta[i] = high if step == high - beta[i] else new_i
        beta[j] = low if step == beta[j] - low else new_j
        other = K[j]
        if size == n:
            for t in range(n):
                F[t] -= step * (row[t] - other[t])
        else:
            for a in range(size):
                t = active[a]
                F[t] -= step * (row[t] - other[t])
        steps += 1
        until_shrink -= 1
        if until_shrink == 0:
            until_shrink = shrink_every
            kept = 0
            for a in range(size):  # set aside what is at a bound and beyond both extremes
                t = active[a]
                f = F[t]
                if eps is None:
                    stuck = (beta[t] >= hi[t] and f > top) or (beta[t] <= lo[t] and f < bottom)
                else:
                    still = beta[t] == 0.0 and f - eps < bottom and f + eps > top
                    above = beta[t] >= hi[t] and f - eps > top
                    stuck = still or above or (beta[t] <= lo[t] and f + eps < bottom)
                if stuck:
                    continue
                active[a], active[kept] = active[kept], t
                kept += 1
            size = kept


@njit(cache=True, nogil=True)
def _restore(K: Any, change: Any, errors: Any, F: Any, active: Any, size: int) -> None:
    """F of the rows that were set aside, from where it began."""
    for b in range(size, len(F)):
        F[active[b]] = errors[active[b]]
    for t in range(len(F)):
        if change[t] != 0.0:
            row = K[t]
            for b in range(size, len(F)):
                F[active[b]] -= change[t] * row[active[b]]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _subtract_part(F: Any, cache: Any, slots: Any, change: Any, a: int, b: int) -> None:
    part = F[a:b]
    m = len(slots)
    r = 0
    while r + 4 <= m:
        k0, k1 = cache[slots[r], a:b], cache[slots[r + 1], a:b]
        k2, k3 = cache[slots[r + 2], a:b], cache[slots[r + 3], a:b]
        c0, c1, c2, c3 = change[r], change[r + 1], change[r + 2], change[r + 3]
        for t in range(b - a):
            part[t] -= c0 * k0[t] + c1 * k1[t] + c2 * k2[t] + c3 * k3[t]
        r += 4
    while r < m:
        k0, c0 = cache[slots[r], a:b], change[r]
        for t in range(b - a):
            part[t] -= c0 * k0[t]
        r += 1


@njit(cache=True, nogil=True)
def subtract_rows(F: Any, cache: Any, slots: Any, change: Any) -> None:
    r"""F −= Σ_r change_r · cache[slot_r], four rows at a time, in column blocks of the L1 cache."""
    for a in range(0, len(F), WIDTH):
        _subtract_part(F, cache, slots, change, a, min(len(F), a + WIDTH))


@njit(cache=True, nogil=True, parallel=True)
def subtract_rows_parallel(F: Any, cache: Any, slots: Any, change: Any) -> None:
    """`subtract_rows` on all threads."""
    for block in prange((len(F) + WIDTH - 1) // WIDTH):
        a = block * WIDTH
        _subtract_part(F, cache, slots, change, a, min(len(F), a + WIDTH))


@njit(cache=True, nogil=True)
def gather(cache: Any, slots: Any, columns: Any, first: int, out: Any) -> None:
    """out[a, b] = cache[slots[a], columns[b]] for rows from ``first`` on, and symmetrically."""
    m = len(columns)
    for a in range(first, m):
        row = cache[slots[a]]
        for b in range(a + 1):
            value = row[columns[b]]
            out[a, b] = value
            out[b, a] = value


@outer
def content_hashes(bits: Any, labels: Any, out: Any) -> None:
    """A hash of each row and its label from the bits of its numbers; both zeros are one."""
    n, d = bits.shape
    for i in range(n):
        h = np.uint64(labels[i]) + np.uint64(0x9E3779B97F4A7C15)
        for j in range(d):
            word = bits[i, j]
            if word << np.uint64(1) != np.uint64(0):
                h ^= word + np.uint64(j) * np.uint64(0x9E3779B97F4A7C15)
                h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                h ^= h >> np.uint64(31)
        out[i] = h
