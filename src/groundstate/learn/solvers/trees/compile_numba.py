"""How the loops of trees are compiled."""

from __future__ import annotations

from typing import Any

import numba

_njit: Any = numba.njit


def inner(function: Any) -> Any:
    """A loop that compiled code alone calls: no wrappers, and its caller's cache holds it."""
    return _njit(nogil=True, error_model="numpy", no_cpython_wrapper=True)(function)


def vector(function: Any) -> Any:
    """`inner`, with the freedom that vector instructions need."""
    fast = {"nnan", "nsz", "contract"}
    return _njit(nogil=True, error_model="numpy", fastmath=fast, no_cpython_wrapper=True)(function)


def threads(function: Any) -> Any:
    """A loop with a parallel range."""
    return _njit(nogil=True, parallel=True, error_model="numpy")(function)


def outer(function: Any) -> Any:
    """A function that Python calls, kept on disk."""
    return _njit(cache=True, nogil=True, error_model="numpy")(function)


@inner
def sort_by(key: Any, index: Any, n: int) -> None:
    """Order index[:n] by key[index], equal keys by index: a heap, which compiles in no time."""
    for root in range(n // 2 - 1, -1, -1):
        _sift(key, index, root, n)
    for end in range(n - 1, 0, -1):
        index[0], index[end] = index[end], index[0]
        _sift(key, index, 0, end)


@inner
def _sift(key: Any, index: Any, root: int, n: int) -> None:
    top = index[root]
    k = key[top]
    while True:
        child = 2 * root + 1
        if child >= n:
            break
        if child + 1 < n:
            a, b = index[child], index[child + 1]
            if key[b] > key[a] or (key[b] == key[a] and b > a):
                child += 1
        c = index[child]
        if key[c] < k or (key[c] == k and c < top):
            break
        index[root] = c
        root = child
    index[root] = top


__all__ = ["inner", "outer", "sort_by", "threads", "vector"]
