"""Rows down flat trees, compiled; `TreeNodes.descend` says the same in torch, for any device."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

_ONE = np.uint64(1)


@inner
def leaf(
    x: Any, i: int, at: int, feature: Any, threshold: Any, left: Any, right: Any, nan_left: Any,
    cat_start: Any, cat_size: Any, bits: Any,
) -> Any:  # fmt: skip
    """The leaf that row i reaches from node ``at``."""
    here = np.uint64(at)  # unsigned: no question whether an index counts from the end
    row, j = np.uint64(i), feature[here]
    while j >= 0:
        v = x[row, np.uint64(j)]
        go = v <= threshold[here]
        if v != v:  # NaN
            go = nan_left[here]
        elif cat_start[here] >= 0:
            if v < 0 or v >= cat_size[here]:
                go = nan_left[here]
            else:
                c = np.uint64(v)
                word = np.uint64(bits[np.uint64(cat_start[here]) + (c >> np.uint64(6))])
                go = (word >> (c & np.uint64(63))) & _ONE != 0
        here = np.uint64(left[here] if go else right[here])
        j = feature[here]
    return np.int64(here)


@outer
def leaves(
    x: Any, lo: int, hi: int, roots: Any, feature: Any, threshold: Any, left: Any, right: Any,
    nan_left: Any, cat_start: Any, cat_size: Any, bits: Any, out: Any,
) -> None:  # fmt: skip
    """out[i, t] = the leaf of row i in tree t, for rows lo..hi."""
    for i in range(lo, hi):
        for t in range(len(roots)):
            out[i, t] = leaf(x, i, roots[t], feature, threshold, left, right, nan_left, cat_start,
                             cat_size, bits)  # fmt: skip


@outer
def summed(
    x: Any, lo: int, hi: int, roots: Any, feature: Any, threshold: Any, left: Any, right: Any,
    nan_left: Any, cat_start: Any, cat_size: Any, bits: Any, value: Any, column: Any, out: Any,
) -> None:  # fmt: skip
    """out[i, c] += the leaf values of row i over all trees, for rows lo..hi.

    Trees go through a block of rows before the next tree, so that a tree stays in the cache.
    ``column[t]`` is where a tree of one value adds; −1: ``value`` has all columns.
    """
    k = value.shape[1]
    for start in range(lo, hi, 256):
        stop = min(start + 256, hi)
        for t in range(len(roots)):
            c = column[t]
            for i in range(start, stop):
                at = leaf(x, i, roots[t], feature, threshold, left, right, nan_left, cat_start,
                          cat_size, bits)  # fmt: skip
                if c >= 0:
                    out[i, c] += value[at, 0]
                else:
                    for m in range(k):
                        out[i, m] += value[at, m]
