r"""Orthogonal rotations of loadings towards few large ones."""

from __future__ import annotations

import math
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
    γ = 1 or 0, by the polar factor of its gradient; where that stops at a saddle, two factors are turned
    by the best angle in their plane.

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
    [[1.414, 0.0], [0.0, 1.414]]
    """
    d, l = W.shape
    gamma = 1.0 if method == "varimax" else 0.0
    R = torch.eye(l, dtype=W.dtype, device=W.device)
    before = -math.inf
    for _ in range(max_iter):
        turned = W @ R
        gradient = turned**3 - gamma * turned * (turned.square().sum(0) / d)
        U, s, Vt = torch.linalg.svd(W.T @ gradient)
        R = U @ Vt
        after = float(s.sum())
        if after <= before * (1 + tol):
            pair = _saddle(W @ R, gamma, tol)
            if pair is None:
                break
            first, second, turn = pair
            R[:, [first, second]] = R[:, [first, second]] @ turn
            after = -math.inf
        before = after
    return R


def _saddle(turned: Tensor, gamma: float, tol: float) -> tuple[int, int, Tensor] | None:
    r"""Two factors whose turn raises the objective from a point that is no maximum, and the turn.

    In their plane the objective is a constant plus :math:`\tfrac14(a\cos4\varphi + b\sin4\varphi)`.
    """
    d, l = turned.shape
    least = tol * float((turned**4).sum())
    for first in range(l):
        for second in range(first + 1, l):
            x, y = turned[:, first], turned[:, second]
            u, v = x.square() - y.square(), 2 * x * y
            U, V = float(u.sum()), float(v.sum())
            a = float((u.square() - v.square()).sum()) - gamma * (U * U - V * V) / d
            b = 2 * float(u @ v) - 2 * gamma * U * V / d
            if a < 0 and math.hypot(a, b) - a > 4 * least:
                angle = math.atan2(b, a) / 4
                c, s = math.cos(angle), math.sin(angle)
                return first, second, turned.new_tensor([[c, -s], [s, c]])
    return None
