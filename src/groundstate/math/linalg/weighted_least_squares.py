r"""Weighted least squares from sums over rows.

:math:`\min_{W,b}\ \tfrac12\sum_i w_i\|y_i - Wx_i - b\|^2 + \tfrac\lambda2\|W\|^2` needs only
:math:`\sum w,\ \sum wx,\ \sum wy,\ \sum wxx^\top,\ \sum wxy^\top`, which add over
chunks and shards.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import DataError


def regression_sums(
    weights: Tensor | None, x: Tensor, y: Tensor, x_cov: Tensor | None = None
) -> dict[str, Tensor]:
    """Float64 sums over rows of ``x`` ``(B, d)`` and ``y`` ``(B, m)``.

    ``x_cov`` ``(B, d, d)`` or ``(d, d)`` is the covariance of inputs known as distributions:
    expected sums.
    """
    x, y = x.double(), y.double()
    w = x.new_ones(x.shape[0]) if weights is None else weights.to(x.dtype)
    wx = w[:, None] * x
    xx = wx.T @ x
    if x_cov is not None:
        cov = x_cov.to(x.dtype)
        xx = xx + (w.sum() * cov if cov.ndim == 2 else torch.einsum("b,bij->ij", w, cov))
    return {"n": w.sum(), "x": wx.sum(0), "y": w @ y, "xx": xx, "xy": wx.T @ y}


def solve_regression(
    sums: dict[str, Tensor], l2: float = 0.0, intercept: bool = True
) -> tuple[Tensor, Tensor]:
    """``W`` ``(m, d)`` and ``b`` ``(m,)`` in float64; of many best ``W`` the one of least norm."""
    sums = {name: value.detach() for name, value in sums.items()}
    n = sums["n"]
    if not float(n) > 0:
        raise DataError(f"the weights sum to {float(n)}; at least one row needs a positive weight")
    xx, xy = sums["xx"], sums["xy"]
    mx, my = sums["x"] / n, sums["y"] / n
    raw = xx.diagonal()
    if intercept:
        xx = xx - n * torch.outer(mx, mx)
        xy = xy - n * torch.outer(mx, my)
        # what rounding leaves of a constant column is not signal
        dead = xx.diagonal() <= 1e-14 * raw
        keep = (~dead).to(xx.dtype)
        xx, xy = xx * keep[:, None] * keep, xy * keep[:, None]
    if l2 > 0:
        xx = xx + l2 * torch.eye(len(xx), dtype=xx.dtype, device=xx.device)
    W = _solve(xx, xy).T
    b = my - W @ mx if intercept else torch.zeros_like(my)
    return W, b


def _solve(A: Tensor, B: Tensor) -> Tensor:
    scale = A.diagonal().clamp_min(0).sqrt()  # unit diagonal: units of the columns do not matter
    unit = torch.where(scale > 0, scale, 1.0)
    scaled = A / unit[:, None] / unit
    factor, info = torch.linalg.cholesky_ex(scaled)
    if int(info) == 0 and float(factor.diagonal().min()) > 1e-6:
        return torch.cholesky_solve(B / unit[:, None], factor) / unit[:, None]
    values, vectors = torch.linalg.eigh(A)
    kept = values > values.max().clamp_min(0) * len(A) * 1e-13
    inverse = torch.where(kept, 1 / torch.where(kept, values, 1.0), 0.0)
    return vectors @ (inverse[:, None] * (vectors.T @ B))
