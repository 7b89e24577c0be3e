"""Shortest paths, compiled: a heap of four children per node for each source, and all pairs.

Sources that are near each other are done together: nodes in the order in which the first of them
reaches the rest, each takes the best of its neighbours for all of them at once (one vector
instruction for several sources), and is looked at again when a neighbour has changed. What is left when
nothing changes any more are the shortest paths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer, vector

WIDTH = 32  # sources that are done together
NONE = -9999  # as SciPy marks the lack of a predecessor


@inner
def _up(heap: Any, place: Any, key: Any, at: int) -> None:
    node = heap[at]
    k = key[node]
    while at > 0:
        parent = (at - 1) >> 2
        if key[heap[parent]] <= k:
            break
        heap[at] = heap[parent]
        place[heap[at]] = at
        at = parent
    heap[at] = node
    place[node] = at


@inner
def _down(heap: Any, place: Any, key: Any, size: int) -> None:
    node, at = heap[0], 0
    k = key[node]
    while True:
        first = 4 * at + 1
        if first >= size:
            break
        best, low = first, key[heap[first]]
        for c in range(first + 1, min(first + 4, size)):
            if key[heap[c]] < low:
                best, low = c, key[heap[c]]
        if low >= k:
            break
        heap[at] = heap[best]
        place[heap[at]] = at
        at = best
    heap[at] = node
    place[node] = at


@inner
def _settle(
    starts: Any, ends: Any, weight: Any, source: int, heap: Any, place: Any, key: Any, order: Any,
    before: Any,
) -> int:  # fmt: skip
    """Distances from one source into ``key``, and the nodes it reaches in that order."""
    n = len(starts) - 1
    for v in range(n):
        key[v] = np.inf
        place[v] = -1
    key[source], heap[0], place[source] = 0.0, source, 0
    size, done, kept = 1, 0, len(before) > 0
    while size > 0:
        u = heap[0]
        order[done] = u
        done += 1
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            _down(heap, place, key, size)
        base = key[u]
        for e in range(starts[u], starts[u + 1]):
            v = ends[e]
            away = base + weight[e]
            if away < key[v]:
                key[v] = away
                if kept:
                    before[v] = u
                if place[v] == -1:
                    heap[size] = v
                    place[v] = size
                    size += 1
                _up(heap, place, key, place[v])
    return done


@outer
def dijkstra(
    starts: Any, ends: Any, weight: Any, sources: Any, lo: int, hi: int, out: Any, before: Any
) -> None:
    """Distances from ``sources[lo:hi]`` to all nodes into the rows of ``out``.

    ``before`` ``(m, n)`` takes the predecessors; with no rows, they are not kept.
    """
    n = len(starts) - 1
    heap, place = np.empty(n, np.int32), np.empty(n, np.int32)
    key, order = np.empty(n, np.float64), np.empty(n, np.int32)
    for s in range(lo, hi):
        kept = before[s] if len(before) > 0 else before[:0, 0]
        _settle(starts, ends, weight, sources[s], heap, place, key, order, kept)
        for v in range(n):
            out[s, v] = key[v]


@outer
def neighbouring(starts: Any, ends: Any, wanted: Any, order: Any) -> None:
    """Fill ``order`` with all wanted nodes, so that those of one group of ``WIDTH`` are near."""
    n, done = len(wanted), 0
    seen, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    for root in range(n):
        if not wanted[root]:
            continue
        room = WIDTH - done % WIDTH
        queue[0], first, last = root, 0, 1
        seen[root] = root
        while first < last and room > 0:
            u = queue[first]
            first += 1
            if wanted[u]:
                wanted[u] = False
                order[done] = u
                done += 1
                room -= 1
            for e in range(starts[u], starts[u + 1]):
                v = ends[e]
                if wanted[v] and seen[v] != root:
                    seen[v] = root
                    queue[last] = v
                    last += 1


@vector
def _pull(key: Any, starts: Any, ends: Any, weight: Any, v: int, best: Any) -> bool:
    """Paths to v by way of its neighbours, four at a time; whether one became shorter."""
    width = best.size  # a constant would be unrolled and not become vector instructions
    own, e, last = key[v], starts[v], starts[v + 1]
    for c in range(width):
        best[c] = own[c]
    while e + 4 <= last:
        k0, k1, k2, k3 = key[ends[e]], key[ends[e + 1]], key[ends[e + 2]], key[ends[e + 3]]
        w0, w1, w2, w3 = weight[e], weight[e + 1], weight[e + 2], weight[e + 3]
        for c in range(width):
            left, right = min(k0[c] + w0, k1[c] + w1), min(k2[c] + w2, k3[c] + w3)
            best[c] = min(best[c], min(left, right))
        e += 4
    while e < last:
        k0, w0 = key[ends[e]], weight[e]
        for c in range(width):
            best[c] = min(best[c], k0[c] + w0)
        e += 1
    shorter = 0
    for c in range(width):
        shorter += best[c] < own[c]
    if shorter > 0:
        for c in range(width):
            own[c] = best[c]
    return shorter > 0


@outer
def together(
    starts: Any, ends: Any, weight: Any, sources: Any, rows: Any, lo: int, hi: int, out: Any
) -> None:
    """Distances from ``sources[lo:hi]``, in groups, of a symmetric graph into ``out[rows]``."""
    n = len(starts) - 1
    heap, place = np.empty(n, np.int32), np.empty(n, np.int32)
    first, order = np.empty(n, np.float64), np.empty(n, np.int32)
    key, best = np.empty((n, WIDTH)), np.empty(WIDTH)
    stale = np.empty(n, np.bool_)
    for at in range(lo, hi, WIDTH):
        count = min(WIDTH, hi - at)
        reached = _settle(starts, ends, weight, sources[at], heap, place, first, order, heap[:0])
        for v in range(n):
            stale[v] = False
            for c in range(WIDTH):
                key[v, c] = np.inf
        for c in range(count):
            key[sources[at + c], c] = 0.0
        for o in range(reached):
            stale[order[o]] = True
        changed = True
        while changed:
            changed = False
            for o in range(reached):
                v = order[o]
                if not stale[v]:
                    continue
                stale[v] = False
                if _pull(key, starts, ends, weight, v, best):
                    changed = True
                    for e in range(starts[v], starts[v + 1]):
                        stale[ends[e]] = True
        for c in range(count):
            row = rows[at + c]
            for v in range(n):
                out[row, v] = key[v, c]


@outer
def floyd_warshall(table: Any, before: Any) -> None:
    """All shortest paths in place, from the lengths of the edges ``(n, n)``."""
    n = len(table)
    for k in range(n):
        for i in range(n):
            d = table[i, k]
            if d < np.inf:
                for j in range(n):
                    if d + table[k, j] < table[i, j]:
                        table[i, j] = d + table[k, j]
                        before[i, j] = before[k, j]
