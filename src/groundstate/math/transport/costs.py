r"""Costs of moving a unit of mass: :math:`c(x, y) = \|x - y\|^p`."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.kernels.geometry import squared_by_product


def cost(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    """Costs between rows ``(..., n, d)`` and ``(..., m, d)``, differentiable; ``(..., n, m)``.

    >>> cost(torch.tensor([[0.0]]), torch.tensor([[3.0]])).tolist()
    [[9.0]]
    """
    if p == 2 and not (torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)):
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square_()
    if p == 2:
        return squared_by_product(x, y, same=False)
    distance = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    if p == 1:
        return distance
    apart = distance > 0
    return torch.where(apart, torch.where(apart, distance, 1.0) ** p, 0.0)


def rows(X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Two samples as rows of one width and dtype; values ``(n,)`` are rows of one column."""
    x, y = (v[:, None] if v.ndim == 1 else v for v in (X, Y))
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1] or 0 in (*x.shape, *y.shape):
        raise ShapeError(
            f"transport needs rows (n, d) and (m, d), got X {tuple(X.shape)}, Y {tuple(Y.shape)}"
        )
    dtype = torch.promote_types(x.dtype, y.dtype)
    return x.to(dtype), y.to(dtype)


def masses(weight: Tensor | None, like: Tensor, name: str) -> Tensor:
    """Weights of rows, divided by their sum; equal ones unless given."""
    n = like.shape[-2]
    if weight is None:
        return like.new_full((*like.shape[:-2], n), 1 / n)
    if weight.shape[-1] != n:
        raise ShapeError(f"{n} rows need as many {name}, got {weight.shape[-1]}")
    seen = weight.detach()
    if bool((seen < 0).any()) or not bool((seen.sum(-1) > 0).all()):
        raise ValueError(f"{name} must be non-negative and not all zero")
    weight = weight.to(like.dtype)
    return weight / weight.sum(-1, keepdim=True)
