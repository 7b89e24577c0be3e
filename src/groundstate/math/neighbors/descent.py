r"""Near rows without looking at all pairs (Dong and others): a neighbour of a neighbour is likely one too.

A few trees, which halve the rows along random directions, give first lists. In each round every row looks
at the neighbours of its neighbours, in both directions, as the round before left them, so that the
answer does not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.compute.tiles import over_slices

TREES, LEAF, ROUNDS = 5, 40, 12
ENOUGH = 1e-3  # changes of a round, as a fraction of all entries, below which it ends
SLICE = 4096


def descend(rows: Tensor, k: int, random_state: RandomState = 0) -> tuple[Tensor, Tensor]:
    """Squared distances and indices ``(n, k)`` of near other rows, the nearest first.

    Examples
    --------
    >>> square, index = descend(torch.arange(200.0)[:, None], 2)
    >>> index[5].sort().values.tolist()
    [4, 6]
    """
    from groundstate.math.neighbors.descent_numba import improve, leaves

    X = np.ascontiguousarray(rows.detach().numpy())
    n = len(X)
    value = np.full((n, k), np.inf)
    near = np.full((n, k), -1, np.int64)
    key = Key.of(random_state).fold("trees")
    for tree in range(TREES):
        order, place, starts = _tree(X, key.fold(tree).numpy(), max(LEAF, k + 1))
        _all(lambda lo, hi: leaves(X, order, place, starts, lo, hi, value, near), n)  # noqa: B023
    fresh = near >= 0
    for _ in range(ROUNDS):
        back, back_fresh = _reverse(near, value, fresh)
        new = (np.empty_like(near), np.empty_like(value), np.empty_like(fresh))
        changed = _all(
            lambda lo, hi: improve(X, near, value, fresh, back, back_fresh, lo, hi, *new),  # noqa: B023
            n,
        )
        near, value, fresh = new
        if changed <= ENOUGH * n * k:
            break
    return torch.from_numpy(value), torch.from_numpy(near)


def _all(block: Any, n: int) -> int:
    return sum(part or 0 for part in over_slices(block, n, SLICE))


def _tree(
    X: NDArray[Any], rng: np.random.Generator, leaf: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows halved along random directions: their order, the leaf of each, where leaves begin."""
    n = len(X)
    order, starts = np.arange(n), np.array([0, n])
    while np.diff(starts).max() > leaf:
        along = X[order] @ np.asarray(rng.standard_normal(X.shape[1]), X.dtype)
        part = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = order[np.lexsort((along, part))]
        middle = (starts[:-1] + starts[1:]) // 2
        starts = np.unique(np.concatenate([starts, middle]))
    place = np.empty(n, np.int64)
    place[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return order, place, starts


def _reverse(near: Any, value: Any, fresh: Any) -> tuple[Any, Any]:
    """Up to k rows that have a row among their neighbours, the nearest of them; −1 fills up."""
    n, k = near.shape
    to = near.ravel()
    of = np.repeat(np.arange(n), k)
    order = np.lexsort((of, value.ravel(), to))
    order = order[to[order] >= 0]
    to = to[order]
    slot = np.arange(len(to)) - np.searchsorted(to, to)
    use = slot < k
    back, flag = np.full((n, k), -1, np.int64), np.zeros((n, k), np.bool_)
    back[to[use], slot[use]] = of[order][use]
    flag[to[use], slot[use]] = fresh.ravel()[order][use]
    return back, flag
