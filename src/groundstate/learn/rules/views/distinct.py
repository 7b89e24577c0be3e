"""Rows of a batch that are equal count as one, whose weight is theirs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.compute.rows import Ragged, Rows, Tokens, take


def distinct(x: Tensor, y: Any = None) -> tuple[Tensor, Any, Tensor]:
    """Different rows ``(U, ...)`` with their labels or partners, and the place ``(B,)`` of each row
    among them.

    >>> rows, _, place = distinct(torch.tensor([[2.0], [1.0], [2.0]]))
    >>> rows.tolist(), place.tolist()
    ([[1.0], [2.0]], [1, 0, 1])
    """
    flat = x.detach().flatten(1)
    both = flat if y is None else torch.cat((flat, _numbers(y).to(flat.dtype)), 1)
    _, place = torch.unique(both, dim=0, return_inverse=True)
    first = torch.full((int(place.max()) + 1,), len(x), device=x.device)
    first.scatter_reduce_(0, place, torch.arange(len(x), device=x.device), "amin")
    return x[first], None if y is None else take(y, first), place


def _numbers(y: Rows) -> Tensor:
    """What rows hold, as columns: labels ``(B, 1)``, tokens filled up ``(B, T)``."""
    rows = y.tokens if isinstance(y, Tokens) else y
    return rows.padded(-1) if isinstance(rows, Ragged) else rows.detach().reshape(len(rows), -1)  # type: ignore[union-attr]
