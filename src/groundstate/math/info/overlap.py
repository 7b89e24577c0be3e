"""How often labels meet: the counts behind overlap of masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import DataError, ShapeError

F64 = NDArray[np.float64]


def label_counts(
    y: Any, pred: Any, n_classes: int | None = None, *, by_image: bool = False,
    ignore_index: int | None = None,
) -> tuple[F64, F64, F64]:  # fmt: skip
    """Hits, true and predicted places of each class, counted on the device of y.

    Parameters
    ----------
    y, pred : whole numbers of one shape
    n_classes : K, one more than the largest label by default
    by_image : count for each entry of the first axis, or for all together
    ignore_index : label of places that do not count

    Returns
    -------
    three arrays ``(N, K)``, or ``(1, K)``

    Examples
    --------
    >>> [c.tolist() for c in label_counts([1, 1, 0, 0], [1, 0, 0, 0])]
    [[[2.0, 1.0]], [[2.0, 2.0]], [[3.0, 1.0]]]
    """
    actual, predicted = _labels(y), _labels(pred)
    if actual.shape != predicted.shape or actual.ndim < 1:
        raise ShapeError(
            f"masks need one shape, got {tuple(actual.shape)} and {tuple(predicted.shape)}"
        )
    n = len(actual) if by_image else 1
    image = torch.arange(n, device=actual.device).repeat_interleave(actual.numel() // max(n, 1))
    t, p = actual.reshape(-1), predicted.reshape(-1).to(actual.device)
    if ignore_index is not None:
        keep = t != ignore_index
        image, t, p = image[keep], t[keep], p[keep]
    most = max(int(t.max()), int(p.max())) if t.numel() else 0
    k = n_classes or 1 + most
    if t.numel() and (most >= k or min(int(t.min()), int(p.min())) < 0):
        raise DataError(f"labels must be 0 to {k - 1}; pass n_classes or ignore_index")

    def count(at: Tensor) -> F64:
        found = torch.bincount(at, minlength=n * k).reshape(n, k)
        return np.asarray(found.cpu().numpy(), np.float64)

    base = image * k
    return count((base + t)[t == p]), count(base + t), count(base + p)


def _labels(values: Any) -> Tensor:
    """Labels as they lie on their device; a tensor on a GPU is counted there."""
    if not isinstance(values, Tensor):
        values = torch.from_numpy(np.ascontiguousarray(values))
    return values.long()
