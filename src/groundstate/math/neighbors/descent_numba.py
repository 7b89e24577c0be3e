"""Neighbours of neighbours, compiled; each row improves its own list from the lists of a round before."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.math.neighbors.nearest_numba import _sink, _sorted


@inner(fastmath={"contract", "reassoc", "nnan", "ninf", "nsz"})
def _square(a: Any, b: Any) -> float:
    s = a[0] * 0
    for j in range(len(a)):
        s += (a[j] - b[j]) * (a[j] - b[j])
    return np.float64(s)


@outer
def leaves(
    rows: Any, order: Any, place: Any, starts: Any, lo: int, hi: int, value: Any, near: Any
) -> None:
    """Look at the rows of one's own leaf of a tree; lists are heaps, the worst first."""
    for i in range(lo, hi):
        leaf = place[i]
        v, x = value[i], near[i]
        for at in range(starts[leaf], starts[leaf + 1]):
            j = order[at]
            if j == i:
                continue
            s = _square(rows[i], rows[j])
            if s < v[0]:
                known = False
                for c in range(len(x)):
                    known = known or x[c] == j
                if not known:
                    _sink(v, x, s, j)


@outer
def improve(
    rows: Any, near: Any, value: Any, fresh: Any, back: Any, back_fresh: Any, lo: int, hi: int,
    new_near: Any, new_value: Any, new_fresh: Any,
) -> int:  # fmt: skip
    """One round of rows lo..hi: neighbours of neighbours that one of the two steps is new to."""
    n, k = near.shape
    stamp = np.full(n, -1, np.int64)
    v, x = np.empty(k), np.empty(k, np.int64)
    changed = 0
    for i in range(lo, hi):
        stamp[i] = i
        v[:] = np.inf
        x[:] = -1
        for c in range(k):
            if near[i, c] >= 0:
                stamp[near[i, c]] = i
                _sink(v, x, value[i, c], near[i, c])
        for a in range(2 * k):
            u = near[i, a] if a < k else back[i, a - k]
            if u < 0:
                continue
            first = fresh[i, a] if a < k else back_fresh[i, a - k]
            for b in range(2 * k):
                w = near[u, b] if b < k else back[u, b - k]
                if w < 0 or stamp[w] == i:
                    continue
                if not (first or (fresh[u, b] if b < k else back_fresh[u, b - k])):
                    continue
                stamp[w] = i
                s = _square(rows[i], rows[w])
                if s < v[0]:
                    _sink(v, x, s, w)
        _sorted(v, x)
        for c in range(k):
            new_value[i, c], new_near[i, c] = v[c], x[c]
            new = True
            for b in range(k):
                new = new and near[i, b] != x[c]
            new_fresh[i, c] = new
            changed += new
    return changed
