r"""Sums and means over the items of each row, differentiable and with the same bits every time."""

from __future__ import annotations

import torch
from torch import Tensor


def sum_items(values: Tensor, offsets: Tensor) -> Tensor:
    r""":math:`s_i = \sum_{j \in \text{row } i} v_j`, ``(n, *item shape)``; 0 for an empty row.

    >>> sum_items(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 2, 2, 3])).tolist()
    [3.0, 0.0, 3.0]
    """
    return torch.segment_reduce(values, "sum", offsets=offsets, axis=0, initial=0, unsafe=True)


def mean_items(values: Tensor, offsets: Tensor) -> Tensor:
    r""":math:`\bar v_i = s_i / \max(1, n_i)`, ``(n, *item shape)``; 0 for an empty row.

    >>> mean_items(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 2, 2, 3])).tolist()
    [1.5, 0.0, 3.0]
    """
    size = offsets.diff().clamp(min=1).to(values.dtype)
    return sum_items(values, offsets) / size.reshape(-1, *(1,) * (values.ndim - 1))
