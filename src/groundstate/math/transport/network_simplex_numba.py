r"""The network simplex for transport: min ⟨T, C⟩ with row sums a, column sums b, T ≥ 0.

A basis is a spanning tree on the sources 0..n−1, the sinks n..n+m−1 and a root that ties together
the parts of a degenerate plan by arcs without flow. Potentials π make the reduced cost
:math:`C_{ij} + \pi_i - \pi_{n+j}` zero on the tree; a pivot takes in the arc of most negative reduced
cost of a block of rows (Grigoriadis' block search), pushes flow round the cycle it closes and drops
a blocking arc. Ties are broken so that the tree stays strongly feasible (Cunningham): every node can
send flow to the root, which excludes cycling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.kernels.compile_numba import inner, outer, vector
from groundstate.compute.tiles import one_blas_thread

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
_FEW = 64 * 64  # cells up to which pivots cost less than better prices
_SOFT, _STEPS, _TINY = 0.05, 20, np.float32(1e-30)


def solve(C: F64, a: F64, b: F64, max_pivots: int) -> tuple[F64, I32, I32, F64, int]:
    """Flows with their sources and sinks, potentials (n + m,), and pivots (−1: too many).

    ``a`` and ``b`` are positive with equal sums.
    """
    n, m = C.shape
    nodes = n + m + 1
    parent, child, right, left, depth = np.full((5, nodes), -1, np.int32)
    up = np.zeros(nodes, np.bool_)
    flow, pi = np.zeros((2, nodes))
    pi[n:-1] = _prices(C, a, b)
    _start(C, a, b, parent, child, right, left, depth, up, flow, pi)
    pivots = int(_pivot(C, parent, child, right, left, depth, up, flow, pi, max_pivots))
    tied = np.flatnonzero((parent[:-1] >= 0) & (parent[:-1] < n + m)).astype(np.int32)
    other = parent[tied]
    source, sink = np.where(up[tied], tied, other), np.where(up[tied], other, tied) - n
    return flow[tied], source, sink, pi[:-1], pivots


def _prices(C: F64, a: F64, b: F64) -> F64:
    """Duals of the columns from a few steps of Sinkhorn in single precision: a third of the pivots
    of a start from column minima."""
    v = C.min(0)
    if C.size <= _FEW:
        return v
    rest = C - v
    rest -= rest.min(1, keepdims=True)
    eps = _SOFT * float(rest.mean())
    if not eps > 0:
        return v
    rest *= -1 / eps
    K = np.exp(rest.astype(np.float32))
    x, y = (a / a.sum()).astype(np.float32), np.ones(len(b), np.float32)
    rows, columns = x, (b / b.sum()).astype(np.float32)
    with one_blas_thread():  # threads cost more than products of this size
        for _ in range(_STEPS):
            x = rows / np.maximum(K @ y, _TINY)
            y = columns / np.maximum(x @ K, _TINY)
    prices: F64 = v + eps * np.log(np.maximum(y, _TINY).astype(np.float64))
    return prices


@vector
def _lowest(row: Any, v: Any, m: int) -> float:
    best = np.inf
    for j in range(m):
        best = min(best, row[j] - v[j])
    return best


@inner
def _link(u: int, p: int, parent: Any, child: Any, right: Any, left: Any) -> None:
    first = child[p]
    parent[u], right[u], left[u], child[p] = p, first, -1, u
    if first >= 0:
        left[first] = u


@inner
def _unlink(u: int, parent: Any, child: Any, right: Any, left: Any) -> None:
    before, after = left[u], right[u]
    if before >= 0:
        right[before] = after
    else:
        child[parent[u]] = after
    if after >= 0:
        left[after] = before


@outer
def _start(
    C: Any, a: Any, b: Any,
    parent: Any, child: Any, right: Any, left: Any, depth: Any, up: Any, flow: Any, pi: Any,
) -> None:  # fmt: skip
    """Rows take the columns of least reduced cost that are left; each part hangs on the root.

    A row meets columns of several parts and joins them: all their open columns but its last are
    filled, so a part has at most one open column and no cycle closes.
    """
    n, m = C.shape
    root = n + m
    v = pi[n:root].copy()
    need = b.copy()
    for i in range(n):
        have = a[i]
        u = _lowest(C[i], v, m)
        pi[i] = -u
        first = True
        while have > 0:
            best, at = np.inf, -1
            for j in range(m):
                if need[j] > 0 and C[i, j] - v[j] < best:
                    best, at = C[i, j] - v[j], j
            if at < 0:
                break  # what rounding left over
            take = min(have, need[at])
            node = n + at
            if parent[node] < 0:  # a fresh column hangs on the row
                _link(node, i, parent, child, right, left)
                up[node], flow[node] = False, take
            elif first:  # the row hangs on an open column
                _link(i, node, parent, child, right, left)
                up[i], flow[i] = True, take
            else:  # turn the column's part round, so that the column is its top, and hang it here
                x, p, carried, rising = node, i, take, False
                while True:
                    above, c, r = parent[x], flow[x], up[x]
                    if above >= 0:
                        _unlink(x, parent, child, right, left)
                    _link(x, p, parent, child, right, left)
                    up[x], flow[x] = rising, carried
                    if above < 0:
                        break
                    x, p, carried, rising = above, x, c, not r
            first = False
            have -= take
            need[at] -= take
    for i in range(n):
        if parent[i] < 0:
            _link(i, root, parent, child, right, left)
            up[i] = True
    _label(n, m, C, parent, child, right, depth, pi)


@inner
def _label(
    n: int, m: int, C: Any, parent: Any, child: Any, right: Any, depth: Any, pi: Any
) -> None:
    """Depths and potentials from the root downwards; rows at the root keep theirs."""
    root = n + m
    depth[root] = 0
    x = child[root]
    while x >= 0 and x != root:
        p = parent[x]
        depth[x] = depth[p] + 1
        if p != root:
            if x < n:
                pi[x] = pi[p] - C[x, p - n]
            else:
                pi[x] = pi[p] + C[p, x - n]
        if child[x] >= 0:
            x = child[x]
            continue
        while x != root and right[x] < 0:
            x = parent[x]
        if x != root:
            x = right[x]


@outer
def _pivot(
    C: Any, parent: Any, child: Any, right: Any, left: Any, depth: Any, up: Any, flow: Any,
    pi: Any, max_pivots: int,
) -> int:  # fmt: skip
    n, m = C.shape
    root = n + m
    rows = max(1, int(np.ceil(np.sqrt(n * m) / m)))
    scale = 0.0
    for i in range(n):
        for j in range(m):
            scale = max(scale, abs(C[i, j]))
    tol = 1e-13 * scale
    v = pi[n:root]
    at, clean, pivots = 0, 0, 0
    while clean < n:
        best, i, j = -tol, -1, -1
        for _ in range(min(rows, n - clean)):
            value = _lowest(C[at], v, m) + pi[at]
            if value < best:
                best, i = value, at
            at = at + 1 if at + 1 < n else 0
            clean += 1
        if i < 0:
            continue
        least = np.inf
        for c in range(m):
            if C[i, c] - v[c] < least:
                least, j = C[i, c] - v[c], c
        clean = 0
        j += n
        if parent[i] == j or parent[j] == i:  # rounding of the potentials
            _label(n, m, C, parent, child, right, depth, pi)
            continue
        if pivots == max_pivots:
            return -1
        pivots += 1
        _exchange(i, j, best, parent, child, right, left, depth, up, flow, pi)
    _label(n, m, C, parent, child, right, depth, pi)
    return pivots


@inner
def _exchange(
    i: int, j: int, cost: float, parent: Any, child: Any, right: Any, left: Any, depth: Any,
    up: Any, flow: Any, pi: Any,
) -> None:  # fmt: skip
    """Arc i → j enters the tree with reduced cost ``cost`` < 0; a blocking arc leaves it."""
    join, x = i, j
    while join != x:
        if depth[join] >= depth[x]:
            join = parent[join]
        else:
            x = parent[x]
    step, out, top, low = np.inf, -1, j, i
    x = i
    while x != join:
        if up[x] and flow[x] < step:
            step, out = flow[x], x
        x = parent[x]
    x = j
    while x != join:
        if not up[x] and flow[x] <= step:
            step, out, top, low = flow[x], x, i, j
        x = parent[x]
    if step > 0:
        x = i
        while x != join:
            flow[x] += -step if up[x] else step
            x = parent[x]
        x = j
        while x != join:
            flow[x] += step if up[x] else -step
            x = parent[x]
    x, p, carried, rising = low, top, step, low == i
    while True:  # turn the part below the leaving arc round: ``low`` becomes its top
        above, c, r = parent[x], flow[x], up[x]
        _unlink(x, parent, child, right, left)
        _link(x, p, parent, child, right, left)
        up[x], flow[x] = rising, carried
        if x == out:
            break
        x, p, carried, rising = above, x, c, not r
    shift = -cost if low == i else cost
    x = low
    while True:
        pi[x] += shift
        depth[x] = depth[parent[x]] + 1
        if child[x] >= 0:
            x = child[x]
            continue
        while x != low and right[x] < 0:
            x = parent[x]
        if x == low:
            return
        x = right[x]
