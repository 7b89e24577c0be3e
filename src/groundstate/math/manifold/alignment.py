r"""Local coordinates and the matrix that aligns them.

Every neighbourhood has a positive matrix :math:`M_i` that vanishes on what its rows can be in a map;
their sum :math:`M = \sum_i S_iM_iS_i^\top`, each at its rows, is what locally linear embedding and its
variants minimise, :math:`\min_Y \mathrm{tr}(Y^\top MY)` with :math:`Y^\top Y = I`.
"""

from __future__ import annotations

from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor

METHODS = ("standard", "modified", "hessian", "ltsa")
MODIFIED_REG = 1e-3


def barycentre_weights(x: Tensor, near: Tensor, reg: float = 1e-3) -> Tensor:
    r"""Weights that sum to one, :math:`\min_w\|x - \sum_j w_jx_j\|^2 + r\,\mathrm{tr}(G)\|w\|^2`.

    Parameters
    ----------
    x : rows ``(n, d)``
    near : the rows that each is made of, ``(n, k, d)``
    reg : r

    Returns
    -------
    w ``(n, k)``

    Examples
    --------
    >>> x, near = torch.tensor([[1.0]]), torch.tensor([[[0.0], [4.0]]])
    >>> barycentre_weights(x, near, 1e-5).round(decimals=3).tolist()
    [[0.75, 0.25]]
    """
    gap = x[:, None] - near
    G = gap @ gap.mT  # (n, k, k)
    trace = G.diagonal(dim1=1, dim2=2).sum(1)
    size = torch.where(trace > 0, reg * trace, reg)
    k = near.shape[1]
    one = torch.eye(k, dtype=x.dtype, device=x.device)
    w = torch.linalg.solve(G + size[:, None, None] * one, torch.ones_like(G[..., :1]))[..., 0]
    return w / w.sum(1, keepdim=True)


def alignment(
    rows: Tensor, index: Tensor, components: int, method: str = "standard", *, reg: float = 1e-3,
    hessian_tol: float = 1e-4, modified_tol: float = 1e-12,
) -> Any:  # fmt: skip
    """M, a sparse symmetric matrix ``(n, n)``.

    Parameters
    ----------
    rows : ``(n, d)``
    index : numbers of the k nearest other rows of each, ``(n, k)``
    components : dimensions of the map
    method : "standard" (barycentres), "modified" (several barycentres of each row), "hessian"
        (second derivatives on tangent spaces) or "ltsa" (tangent spaces)
    reg, hessian_tol, modified_tol : as in scikit-learn's ``locally_linear_embedding``
    """
    n = len(index)
    x = rows.double()
    near = x[index]  # (n, k, d)
    if method in ("hessian", "ltsa"):
        blocks = _hessian(near, components, hessian_tol) if method == "hessian" else _tangent(
            near, components)  # fmt: skip
        at = index
    else:
        at = torch.cat([torch.arange(n, device=index.device)[:, None], index], 1)
        if method == "standard":
            v = torch.cat([torch.ones(n, 1).to(x), -barycentre_weights(x, near, reg)], 1)
            blocks = v[:, :, None] * v[:, None]
        else:
            blocks = _modified(x, near, components, modified_tol)
    m = at.shape[1]
    i, j = (
        a.reshape(-1).cpu().numpy() for a in torch.broadcast_tensors(at[:, :, None], at[:, None])
    )
    assert len(i) == n * m * m
    M = csr_array((blocks.reshape(-1).cpu().numpy(), (i, j)), shape=(n, n))
    M.sum_duplicates()
    return M


def _tangent(near: Tensor, p: int) -> Tensor:
    """What is left of a neighbourhood outside of its tangent space and the constant."""
    k = near.shape[1]
    u = torch.linalg.svd(near - near.mean(1, keepdim=True), full_matrices=True).U[..., :p]
    G = torch.cat([torch.full_like(u[..., :1], k**-0.5), u], 2)
    return torch.eye(k).to(near) - G @ G.mT


def _hessian(near: Tensor, p: int, tol: float) -> Tensor:
    """Second derivatives in the coordinates of the tangent space."""
    n, k, _ = near.shape
    u = torch.linalg.svd(near - near.mean(1, keepdim=True), full_matrices=True).U[..., :p]
    products = [u[..., a : a + 1] * u[..., a:] for a in range(p)]
    Q = torch.linalg.qr(torch.cat([torch.ones(n, k, 1).to(near), u, *products], 2), "complete").Q
    w = Q[..., p + 1 :]
    total = w.sum(1, keepdim=True)
    w = w / torch.where(total.abs() < tol, 1.0, total)
    return w @ w.mT


def _modified(x: Tensor, near: Tensor, p: int, tol: float) -> Tensor:
    """Several barycentres of each row, one for every direction in which its neighbours hardly vary."""
    n, k, d = near.shape
    gap = near - x[:, None]
    u, s, _ = torch.linalg.svd(gap, full_matrices=True)
    most = min(k, d)
    values = s.square()  # (n, most)
    size = MODIFIED_REG * values.sum(1, keepdim=True)
    w = u.mT.sum(2)  # (n, k)
    w = w / torch.cat([values + size, size.expand(n, k - most)], 1)
    w = (u @ w[..., None])[..., 0]
    w = w / w.sum(1, keepdim=True)
    eta = (values[:, p:].sum(1) / values[:, :p].sum(1)).quantile(0.5)
    upto = values.cumsum(1)
    ratio = upto[:, -1:] / upto[:, :-1] - 1
    count = torch.searchsorted(ratio.flip(1).contiguous(), eta.expand(n, 1).contiguous())[:, 0]
    count = count + k - most  # of the directions that hardly vary
    kept = (torch.arange(k, device=x.device) >= (k - count)[:, None]).to(x)  # (n, k)
    V = u * kept[:, None]
    sums = V.sum(1)  # (n, k)
    number = count.to(x)
    alpha = torch.linalg.vector_norm(sums, dim=1) / number.clamp_min(1).sqrt()
    h = kept * alpha[:, None] - sums
    length = torch.linalg.vector_norm(h, dim=1, keepdim=True)
    h = torch.where(length < tol, 0.0, h / length.clamp_min(1e-300))
    W = (
        V
        - 2 * (V @ h[..., None]) * h[:, None]
        + ((1 - alpha)[:, None] * w)[..., None] * kept[:, None]
    )
    whole = torch.cat([-kept[:, None], W], 1)  # (n, k + 1, k)
    return whole @ whole.mT
