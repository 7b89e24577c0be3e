"""Sorting and selecting by hand: the library's own take seconds to compile."""

from __future__ import annotations

from typing import Any

from groundstate.compute.kernels.compile_numba import inner


@inner
def sort_by(key: Any, index: Any, n: int) -> None:
    """Order index[:n] by key[index], equal keys by index: a heap."""
    for step in range(n // 2 + n - 1):
        if step < n // 2:
            root, end = n // 2 - 1 - step, n
        else:
            root, end = 0, n - 1 - (step - n // 2)
            index[0], index[end] = index[end], index[0]
        top = index[root]
        k = key[top]
        while True:
            child = 2 * root + 1
            if child >= end:
                break
            if child + 1 < end:
                a, b = index[child], index[child + 1]
                if key[b] > key[a] or (key[b] == key[a] and b > a):
                    child += 1
            c = index[child]
            if key[c] < k or (key[c] == k and c < top):
                break
            index[root] = c
            root = child
        index[root] = top


@inner
def select_by(key: Any, index: Any, lo: int, hi: int, k: int) -> None:
    """Reorder index[lo:hi] so that what a sort by key would put at place k stands there.

    What stands before it has no larger key, what stands behind it no smaller one.
    """
    a, b = lo, hi - 1
    while a < b:
        pivot, i, j = key[index[(a + b) // 2]], a, b
        while i <= j:
            while key[index[i]] < pivot:
                i += 1
            while key[index[j]] > pivot:
                j -= 1
            if i <= j:
                index[i], index[j] = index[j], index[i]
                i += 1
                j -= 1
        if k <= j:
            b = j
        elif k >= i:
            a = i
        else:
            return
