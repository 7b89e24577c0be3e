"""Compiled: an order of elimination, and its steps as the arrays that ``elimination_numba.run`` reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer


@inner
def cost(v: int, near: Any, logs: Any, around: Any) -> Any:
    """Pairs that eliminating v joins, and the logarithm of the table around it."""
    count, fill, size = 0, 0, 0.0
    for u in range(len(logs)):
        if near[v, u]:
            for k in range(count):
                fill += 0 if near[u, around[k]] else 1
            around[count] = u
            count += 1
            size += logs[u]
    return fill, size


@inner
def min_fill(holds: Any, sizes: Any, keep: Any, order: Any) -> None:
    """Fills ``order`` with all variables but ``keep``: few new pairs first, then small tables."""
    n = len(sizes)
    near, left = np.zeros((n, n), np.bool_), np.ones(n, np.bool_)
    for t in range(len(holds)):
        for a in range(n):
            if holds[t, a]:
                for b in range(n):
                    if holds[t, b] and a != b:
                        near[a, b] = True
    logs, around = np.log(sizes.astype(np.float64)), np.empty(n, np.int64)
    fills, weights, stale = np.zeros(n, np.int64), np.zeros(n), np.ones(n, np.bool_)
    for v in keep:
        left[v] = False
    for place in range(len(order)):
        best = -1
        for v in range(n):
            if left[v]:
                if stale[v]:
                    fills[v], weights[v] = cost(v, near, logs, around)
                    stale[v] = False
                if best < 0 or fills[v] < fills[best] or (
                    fills[v] == fills[best] and weights[v] < weights[best] - 1e-12
                ):  # fmt: skip
                    best = v
        order[place] = best
        left[best] = False
        for a in range(n):
            if near[best, a]:
                near[a, best] = False
                stale[a] = True
                for b in range(n):
                    if near[best, b] and a != b:
                        near[a, b] = True
                for b in range(n):
                    stale[b] |= near[a, b]


@outer
def steps(strides: Any, sizes: Any, keep: Any) -> Any:
    """Heads, members, strides and sizes of all steps, numbers of their results, the largest bucket.

    Parameters
    ----------
    strides : of the given tables along every variable, 0 where a table lacks it, ``(T, n)``
    sizes : of the variables, ``(n,)``
    keep : variables that are left, in the order of the axes of the result
    """
    given, n = strides.shape
    count = n - len(keep)
    order = np.empty(count, np.int64)
    holds = np.zeros((given + count, n), np.bool_)
    across = np.zeros((given + count, n), np.int64)
    for t in range(given):
        for v in range(n):
            holds[t, v], across[t, v] = strides[t, v] > 0, strides[t, v]
    min_fill(holds[:given], sizes, keep, order)
    # what goes first comes last in every table, so that each step reduces the last axis
    ranked = np.empty(n, np.int64)
    for k in range(len(keep)):
        ranked[k] = keep[k]
    for k in range(count):
        ranked[n - 1 - k] = order[k]
    heads, members = np.empty((count + 2, 4), np.int64), np.empty(given + count, np.int64)
    moves, widths = np.empty((given + count) * n, np.int64), np.empty((count + 1) * n, np.int64)
    alive, inside = np.ones(given + count, np.bool_), np.empty(n, np.int64)
    joined, wide, moved, space, largest = 0, 0, 0, 0, 1.0
    for s in range(count + 1):
        last = s == count
        heads[s, 0], heads[s, 1], heads[s, 2], heads[s, 3] = joined, wide, space, 0 if last else 1
        start = joined
        for t in range(given + s):
            if alive[t] and (last or holds[t, order[s]]):
                members[joined] = t
                alive[t] = False
                joined += 1
        dims = 0
        for k in range(n):
            v, found = ranked[k], last and k < len(keep)
            for m in range(start, joined):
                found |= holds[members[m], v]
            if found:
                inside[dims] = v
                widths[wide + dims] = sizes[v]
                dims += 1
        wide += dims
        for m in range(start, joined):
            for k in range(dims):
                moves[moved] = across[members[m], inside[k]]
                moved += 1
        cells, bucket = 1, 1.0
        for k in range(dims - 2, -1, -1):
            if not last:
                holds[given + s, inside[k]], across[given + s, inside[k]] = True, cells
            bucket *= sizes[inside[k]]
            cells *= sizes[inside[k]] if bucket < 2.0**62 else 1
        if dims:
            largest = max(largest, bucket * sizes[inside[dims - 1]])
        space += cells
    heads[count + 1, 0], heads[count + 1, 1] = joined, wide
    heads[count + 1, 2], heads[count + 1, 3] = space, 0
    return heads, members[:joined], moves[:moved], widths[:wide], space, largest
