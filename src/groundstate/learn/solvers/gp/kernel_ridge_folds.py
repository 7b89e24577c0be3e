r"""Kernel ridge regression for many folds and strengths of one Gram matrix.

A fold is a vector of weights. With :math:`A_f = w_f^{1/2}Kw_f^{1/2}` and :math:`b_f = w_f^{1/2}y`, Lanczos'
recurrence gives orthonormal :math:`V_f` and a tridiagonal :math:`T_f` of

.. math:: A_fV_f = V_fT_f + \text{one column}, \qquad
    (A_f + \alpha)^{-1}b_f \approx V_f(T_f + \alpha)^{-1}\|b_f\|e_1

for every α at once. One product with K moves all folds; a strength is done when its residual, the last
entry of the small solution times the next off-diagonal, is :math:`10^{-10}` of the targets. Strengths
that do not get there while this is cheaper have a factorisation each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from groundstate.learn.solvers.gp.kernel_ridge import ridge_coefficients

LOOK = 8  # products between two looks at the residuals
MOST = 512  # products: all directions are kept
FEW = 4  # strengths for which a factorisation each is no dearer
EXACT = 1e-10  # residual, of the targets' norm


@torch.no_grad()
def ridge_folds(K: Tensor, y: Tensor, weights: Tensor, alphas: Sequence[float]) -> Tensor:
    r"""The a of :math:`(K + \alpha w_f^{-1})a = y` for all folds and strengths, ``(F, S, n)``.

    Parameters
    ----------
    K : ``(n, n)``, the kernel between all rows
    y : ``(n,)``
    weights : ``(F, n)``; rows of no weight in a fold have a coefficient of zero there
    alphas : S strengths

    Examples
    --------
    >>> K, y = torch.eye(3).double() + 0.5, torch.tensor([1.0, 2.0, 3.0]).double()
    >>> w = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]).double()
    >>> ridge_folds(K, y, w, [0.5, 1.0])[0, 0].numpy().round(6).tolist()
    [0.266667, 0.933333, 0.0]
    """
    root = weights.to(K).sqrt()
    strengths = torch.as_tensor(list(alphas)).to(K)
    out = K.new_zeros(len(weights), len(strengths), len(K))
    done = torch.zeros(out.shape[:2], dtype=torch.bool)
    if len(strengths) > FEW:
        done = _lanczos(K, y.to(K), root, strengths, out)
    for f in range(len(weights)):
        left = [k for k, found in enumerate(done[f].tolist()) if not found]
        if not left:
            continue
        live = torch.nonzero(weights[f] > 0)[:, 0]
        part, w = K[live][:, live], weights[f, live]
        for k in left:
            a = ridge_coefficients(part, y[live].to(K)[:, None], strengths[k : k + 1], w)
            out[f, k, live] = a[:, 0]
    return out


def _lanczos(K: Tensor, y: Tensor, root: Tensor, strengths: Tensor, out: Tensor) -> Tensor:
    """Fill in the solutions that are reached, and say which, ``(F, S)``."""
    (folds, n), many = root.shape, len(strengths)
    b = root * y  # (F, n)
    norm = b.norm(dim=1)
    # a product reads K once from memory: about four times the time of its arithmetic
    most = min(n, MOST, max(2 * LOOK, many * n // 48))
    V = K.new_empty(folds, most, n)
    V[:, 0] = b / norm.clamp_min(1e-300)[:, None]
    # the LDL factors of every T + α, and the forward substitution of |b|e₁, grow with T
    pivots: list[Tensor] = []
    betas: list[Tensor] = []
    forward = [norm[:, None].expand(folds, many)]
    goal = EXACT * norm[:, None]
    for k in range(most):
        u = root * ((root * V[:, k]) @ K)
        alpha = (u * V[:, k]).sum(1)
        u = u - alpha[:, None] * V[:, k]
        if k:
            u = u - betas[-1][:, None] * V[:, k - 1]
        for f in range(folds):  # to stay orthogonal
            basis = V[f, : k + 1]
            u[f] -= torch.mv(basis.T, torch.mv(basis, u[f]))
        beta = u.norm(dim=1)
        pivot = alpha[:, None] + strengths  # (F, S)
        if k:
            pivot = pivot - betas[-1].square()[:, None] / pivots[-1]
        pivots.append(pivot)
        betas.append(beta)
        left = forward[-1] * (beta[:, None] / pivot)
        last = k + 1 == most
        if last or (k + 1) % LOOK == 0:
            done = left.abs() <= goal
            if last or bool(done.all()):
                break
        forward.append(-left)
        V[:, k + 1] = u / beta.clamp_min(1e-300)[:, None]
    z = K.new_empty(folds, many, len(pivots))
    below = torch.zeros_like(pivot)
    for k in reversed(range(len(pivots))):
        below = (forward[k] - betas[k][:, None] * below) / pivots[k]
        z[:, :, k] = below
    out.copy_((z @ V[:, : len(pivots)]) * root[:, None])
    return (done & z.isfinite().all(-1)).cpu()
