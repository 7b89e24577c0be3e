r"""The adjugate, the transposed matrix of cofactors (not the adjoint, which is :math:`\bar A^\top`)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import square


@takes_arrays("A")
def adjugate(A: Any) -> Any:
    r""":math:`\operatorname{adj}(A)_{ij} = (-1)^{i+j}M_{ji}` with
    :math:`A\operatorname{adj}(A) = \det(A)I`, for singular A too.

    By :math:`A = USV^*` it is
    :math:`\det(U)\det(V^*)\,V\operatorname{diag}\bigl(\prod_{k\ne i}s_k\bigr)U^*`; its transpose is the
    gradient of the determinant. It has a gradient of its own at every rank.

    Parameters
    ----------
    A : ``(..., n, n)``

    Examples
    --------
    >>> adjugate([[3.0, 1.0], [1.0, 2.0]]).round(12).tolist()
    [[2.0, -1.0], [-1.0, 3.0]]
    >>> adjugate([[1.0, 2.0], [2.0, 4.0]]).round(12).tolist()
    [[4.0, -2.0], [-2.0, 1.0]]
    """
    out: Tensor = _Adjugate.apply(square(A))
    return out


def without_one(s: Tensor) -> Tensor:
    r""":math:`\prod_{k\ne i}s_k` without division, ``(..., n)``."""
    one = torch.ones_like(s[..., :1])
    before = torch.cat([one, s[..., :-1].cumprod(-1)], -1)
    after = torch.cat([s[..., 1:].flip(-1).cumprod(-1).flip(-1), one], -1)
    return before * after


def without_two(s: Tensor) -> Tensor:
    r""":math:`\prod_{k\ne i,j}s_k` without division, ``(..., n, n)``, zero on the diagonal."""
    n = s.shape[-1]
    one = torch.ones_like(s[..., :1])
    before = torch.cat([one, s[..., :-1].cumprod(-1)], -1)
    after = torch.cat([s[..., 1:].flip(-1).cumprod(-1).flip(-1), one], -1)
    later = torch.ones(n, n, dtype=torch.bool, device=s.device).triu(1)
    between = torch.where(later, s[..., None, :], 1.0).cumprod(-1)
    between = torch.cat([torch.ones_like(between[..., :1]), between[..., :-1]], -1)
    upper = torch.where(later, before[..., :, None] * between * after[..., None, :], 0.0)
    return upper + upper.mT


class _Adjugate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        U, s, Vh = torch.linalg.svd(A)
        turn = torch.linalg.det(U) * torch.linalg.det(Vh)
        ctx.save_for_backward(U, s, Vh, turn)
        return (Vh.mH * (turn[..., None] * without_one(s))[..., None, :]) @ U.mH

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        # to first order adj(S + M) has -M_ij Π_{k≠i,j} s_k off, Σ_k M_kk Π_{l≠i,k} s_l on the diagonal
        U, s, Vh, turn = ctx.saved_tensors
        G = turn.conj()[..., None, None] * (Vh @ grads[0] @ U)
        pairs = without_two(s).to(G.dtype)
        on = (pairs @ G.diagonal(dim1=-2, dim2=-1)[..., None])[..., 0]
        return U @ (torch.diag_embed(on) - pairs * G) @ Vh
