r"""Orthogonal rotations of loadings towards few large ones."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor


def rotation_of(
    W: Tensor,
    method: Literal["varimax", "quartimax"] = "varimax",
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Tensor:
    r"""R with :math:`R^\top R = I` that makes WR simple, ``(l, l)``.

    Varimax maximises the variance of the squared loadings of each factor, quartimax the sum of their
    fourth powers: :math:`\sum_{jk}\tilde w_{jk}^4 - \tfrac\gamma d\sum_k(\sum_j\tilde w_{jk}^2)^2` with
    γ = 1 or 0, by the polar factor of its gradient.

    Parameters
    ----------
    W : loadings ``(d, l)``
    method : "varimax" or "quartimax"
    tol : stop when the objective grows by a smaller fraction
    max_iter : steps at most

    Examples
    --------
    >>> W = torch.tensor([[1.0, 1.0], [1.0, -1.0]]).double()
    >>> (W @ rotation_of(W)).abs().round(decimals=3).tolist()
    [[0.0, 1.414], [1.414, 0.0]]
    """
    d, l = W.shape
    R = torch.eye(l, dtype=W.dtype, device=W.device)
    before = 0.0
    for _ in range(max_iter):
        turned = W @ R
        gradient = turned**3
        if method == "varimax":
            gradient = gradient - turned * (turned.square().sum(0) / d)
        U, s, Vt = torch.linalg.svd(W.T @ gradient)
        R = U @ Vt
        after = float(s.sum())
        if before and after < before * (1 + tol):
            break
        before = after
    return R
