"""Shapes and symmetry of matrices, checked where they come in."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import ShapeError


def matrix(A: Tensor, name: str = "A") -> Tensor:
    """A itself, if it is a matrix ``(..., m, n)`` with at least one entry."""
    if A.ndim < 2 or 0 in A.shape[-2:]:
        raise ShapeError(f"{name} must be a matrix (..., m, n), got shape {tuple(A.shape)}")
    return A


def square(A: Tensor, name: str = "A") -> Tensor:
    """A itself, if it is a square matrix ``(..., n, n)``."""
    if matrix(A, name).shape[-1] != A.shape[-2]:
        raise ShapeError(f"{name} must be square (..., n, n), got shape {tuple(A.shape)}")
    return A


def eye_like(A: Tensor, n: int | None = None) -> Tensor:
    """The identity in the precision and on the device of A."""
    return torch.eye(A.shape[-1] if n is None else n, dtype=A.dtype, device=A.device)


def asymmetry(A: Tensor) -> Tensor:
    r""":math:`\|A - A^*\|/\|A\|` in the Frobenius norm, ``(...,)``; zero for A = 0."""
    size = torch.linalg.matrix_norm(A)
    gap = torch.linalg.matrix_norm(A - A.mH)
    return gap / torch.where(size == 0, 1.0, size)


def looks_hermitian(A: Tensor) -> bool:
    """Whether every matrix equals its conjugate transpose up to the root of the precision."""
    root: float = torch.finfo(A.dtype).eps ** 0.5
    return bool((asymmetry(A.detach()) <= root).all())
