"""Rows of equal content as one row that weighs as much as all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows.base import hash_together, home, real_dtype, take


def distinct_rows(
    hashes: NDArray[np.uint64], weight: NDArray[Any] | Tensor | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One row of each content in the order of the hashes, and their summed weights, ``(G,)`` each.

    Rows of weight zero are left out.

    Examples
    --------
    >>> rows, weight = distinct_rows(np.array([7, 3, 7], dtype=np.uint64))
    >>> rows.tolist(), weight.tolist()
    ([1, 0], [1.0, 2.0])
    """
    if isinstance(weight, Tensor):
        weight = weight.detach().cpu().numpy()
    w = np.ones(len(hashes)) if weight is None else np.asarray(weight, dtype=np.float64)
    order = np.argsort(hashes, kind="stable")
    if weight is not None:
        order = order[w[order] > 0]
    ordered = hashes[order]
    other = ordered[1:] != ordered[:-1]
    if other.all():  # the usual case, which small fits feel
        return order, w[order]
    begins = np.flatnonzero(np.concatenate(([True], other)))
    return order[begins], np.add.reduceat(w[order], begins)


def merged(values: Mapping[str, Any], weight: Tensor | None) -> tuple[dict[str, Any], Tensor]:
    """Rows of different content in the order of their hash, with their summed weights ``(G,)``.

    Examples
    --------
    >>> rows, weight = merged({"x": torch.tensor([[1.0], [2.0], [1.0]])}, None)
    >>> sorted(zip(rows["x"][:, 0].tolist(), weight.tolist()))
    [(1.0, 2.0), (2.0, 1.0)]
    """
    index, total = distinct_rows(hash_together(values), weight)
    at = torch.from_numpy(index)
    sums = torch.from_numpy(total).to(home(values), real_dtype(values))
    return {name: take(v, at) for name, v in values.items()}, sums
