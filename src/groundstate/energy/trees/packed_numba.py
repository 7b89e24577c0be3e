r"""Trees of numbers packed for descent: a step reads one place of memory, four rows go at a time.

The children of a node stand beside each other, so that the next node is
:math:`c + [x_j > t]`; a leaf has :math:`t = \infty` and is its own child. NaN goes right where the
lowest bit of the child says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.kernels.compile_numba import inner, outer

_U = np.uint64


class Packed(NamedTuple):
    """Nodes of all trees, in an order of their own."""

    nodes: Any  # (N,) of threshold, column, 2 × child + NaN goes right
    number: NDArray[np.int32]  # (N,) of the node among the nodes of `TreeNodes`
    roots: NDArray[np.int64]  # (T,)


def pack(
    start: NDArray[Any], feature: NDArray[Any], threshold: NDArray[Any], left: NDArray[Any],
    right: NDArray[Any], nan_left: NDArray[Any],
) -> Packed:  # fmt: skip
    """Nodes of `TreeNodes` without sets of categories, packed."""
    kind = np.dtype([("t", threshold.dtype), ("j", np.uint32), ("c", np.uint32)])
    nodes, number = np.empty(len(feature), kind), np.empty(len(feature), np.int32)
    # the children of the r-th inner node of a tree stand at 1 + 2r and 2 + 2r behind its root
    parents = np.flatnonzero(feature >= 0)
    before = np.searchsorted(parents, start)
    tree = np.repeat(np.arange(len(start) - 1), np.diff(before))
    child = start[tree] + 1 + 2 * (np.arange(len(parents)) - before[tree])
    place = np.empty(len(feature), np.int64)
    place[start[:-1]] = start[:-1]
    place[left[parents]], place[right[parents]] = child, child + 1
    number[place] = np.arange(len(feature))
    at = place[parents]
    nodes["t"], nodes["j"], nodes["c"] = np.inf, 0, 2 * np.arange(len(feature))
    nodes["t"][at], nodes["j"][at] = threshold[parents], feature[parents]
    nodes["c"][at] = 2 * child + ~nan_left[parents].astype(bool)
    return Packed(nodes, number, start[:-1])


@inner
def _step(x: Any, i: Any, at: Any, nodes: Any) -> Any:
    node = nodes[at]
    v, c = x[i, node.j], node.c
    on = _U(v > node.t)
    if v != v:  # NaN
        on = _U(c & np.uint32(1))
    return (_U(c) >> _U(1)) + on


@inner
def _four(x: Any, i: Any, root: Any, nodes: Any) -> Any:
    """Where rows i to i + 3 end."""
    a, b, c, d = root, root, root, root
    while True:
        e = _step(x, i, a, nodes)
        f = _step(x, i + _U(1), b, nodes)
        g = _step(x, i + _U(2), c, nodes)
        h = _step(x, i + _U(3), d, nodes)
        if e == a and f == b and g == c and h == d:
            return a, b, c, d
        a, b, c, d = e, f, g, h


@inner
def _block(x: Any, start: int, stop: int, root: Any, nodes: Any, number: Any, out: Any) -> None:
    """out[i - start] = the leaf of row i."""
    i, end, first = _U(start), _U(stop), _U(start)
    while i + _U(4) <= end:
        a, b, c, d = _four(x, i, root, nodes)
        k = i - first
        out[k], out[k + _U(1)] = number[a], number[b]
        out[k + _U(2)], out[k + _U(3)] = number[c], number[d]
        i += _U(4)
    while i < end:
        a, b = root, _step(x, i, root, nodes)
        while a != b:
            a, b = b, _step(x, i, b, nodes)
        out[i - first] = number[a]
        i += _U(1)


_MOST = 4096
_NUMBERS = (
    1 << 16
)  # of the rows that a tree sees before the next: it stays in the cache, so do they


@outer
def leaves(x: Any, lo: int, hi: int, nodes: Any, number: Any, roots: Any, out: Any) -> None:
    """out[i, t] = the leaf of row i in tree t, for rows lo..hi."""
    many, at = min(max(_NUMBERS // max(x.shape[1], 1), 256), _MOST), np.empty(_MOST, np.int64)
    for start in range(lo, hi, many):
        stop = min(start + many, hi)
        for t in range(len(roots)):
            _block(x, start, stop, _U(roots[t]), nodes, number, at)
            for i in range(start, stop):
                out[i, t] = at[i - start]


@outer
def summed(
    x: Any, lo: int, hi: int, nodes: Any, number: Any, roots: Any, value: Any, column: Any, out: Any
) -> None:
    """out[i, c] += the leaf values of row i over all trees, for rows lo..hi.

    ``column[t]`` is where a tree of one value adds; −1: ``value`` has all columns.
    """
    k, at = value.shape[1], np.empty(_MOST, np.int64)
    many = min(max(_NUMBERS // max(x.shape[1], 1), 256), _MOST)
    for start in range(lo, hi, many):
        stop = min(start + many, hi)
        for t in range(len(roots)):
            _block(x, start, stop, _U(roots[t]), nodes, number, at)
            c = column[t]
            if c >= 0 or k == 1:
                c = max(c, 0)
                for i in range(start, stop):
                    out[i, c] += value[at[i - start], 0]
            else:
                for i in range(start, stop):
                    for m in range(k):
                        out[i, m] += value[at[i - start], m]
