"""Rows of a batch that are equal count as one, whose weight is theirs."""

from __future__ import annotations

import torch
from torch import Tensor


def distinct(x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Tensor | None, Tensor]:
    """Different rows ``(U, ...)`` with their labels, and the place ``(B,)`` of each row among them.

    >>> rows, _, place = distinct(torch.tensor([[2.0], [1.0], [2.0]]))
    >>> rows.tolist(), place.tolist()
    ([[1.0], [2.0]], [1, 0, 1])
    """
    flat = x.detach().flatten(1)
    both = flat if y is None else torch.cat((flat, y[:, None].to(flat.dtype)), 1)
    _, place = torch.unique(both, dim=0, return_inverse=True)
    first = torch.full((int(place.max()) + 1,), len(x), device=x.device)
    first.scatter_reduce_(0, place, torch.arange(len(x), device=x.device), "amin")
    return x[first], None if y is None else y[first], place
