r"""Whitening: a linear map of rows to mean zero and unit covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import DataError, ShapeError
from groundstate.math.arrays import as_tensor, takes_arrays, to_numpy
from groundstate.math.linalg.checks import eye_like, matrix
from groundstate.math.linalg.eigen import svd_flip
from groundstate.math.linalg.matrix_functions import inv_sqrtm

METHODS = ("zca", "pca", "cholesky")


@dataclass(frozen=True)
class Whitening:
    r""":math:`z = W(x - \bar x)` with :math:`WCW^\top = I`.

    Attributes
    ----------
    mean : :math:`\bar x`, ``(..., d)``
    matrix : W, ``(..., d, d)``
    inverse : :math:`W^{-1}`, ``(..., d, d)``
    """

    mean: Any
    matrix: Any
    inverse: Any

    def transform(self, X: Any) -> Any:
        """Whitened rows, ``(..., n, d)``."""
        return self._map(X, lambda rows, mean, W, _: (rows - mean) @ W.mT)

    def inverse_transform(self, Z: Any) -> Any:
        """Rows as they were before whitening."""
        return self._map(Z, lambda rows, mean, _, back: rows @ back.mT + mean)

    def _map(self, X: Any, apply: Any) -> Any:
        rows = as_tensor(X, "X", self.mean if isinstance(self.mean, Tensor) else None)
        own = [as_tensor(a, "W").to(rows) for a in (self.mean, self.matrix, self.inverse)]
        if rows.shape[-1] != own[0].shape[-1]:
            raise ShapeError(f"X must have {own[0].shape[-1]} columns, got {tuple(rows.shape)}")
        out = apply(rows, own[0][..., None, :], own[1], own[2])
        return out if isinstance(X, Tensor) else to_numpy(out)


@takes_arrays("X", "sample_weight")
def whitening(X: Any, method: str = "zca", eps: float = 0.0, sample_weight: Any = None) -> Any:
    r"""The map :math:`W(x - \bar x)` to unit covariance, :math:`W(C + \varepsilon I)W^\top = I`, with
    :math:`C = \frac1n\sum(x - \bar x)(x - \bar x)^\top`.

    ======== ===================================================================
    zca      :math:`W = C^{-1/2}`: of all whitenings the nearest to the input
    pca      :math:`W = \Lambda^{-1/2}Q^\top` for :math:`C = Q\Lambda Q^\top`,
             largest variance first
    cholesky :math:`W = L^{-1}` for :math:`C = LL^\top`: lower triangular
    ======== ===================================================================

    Parameters
    ----------
    X : ``(..., n, d)``
    method : see above
    eps : ridge; needed where columns are dependent
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Returns
    -------
    Whitening : with ``transform`` and ``inverse_transform``

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 1.0], [5.0, 2.0]])
    >>> Z = whitening(X).transform(X)
    >>> bool(np.allclose(Z.T @ Z / 4, np.eye(2)))
    True
    """
    n, d = matrix(X, "X").shape[-2:]
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    share = _shares(sample_weight, X)
    mean = share @ X
    mean = mean + share @ (X - mean[..., None, :])  # the first sum rounds n times
    # the rows themselves, not their covariance: squaring would lose half of the digits
    rows = (X - mean[..., None, :]) * share.sqrt()[:, None]
    if eps > 0:
        ridge = eps**0.5 * eye_like(X)
        rows = torch.cat([rows, ridge.expand(*rows.shape[:-2], d, d)], -2)
    R = torch.linalg.qr(rows, mode="reduced" if rows.requires_grad else "r").R
    rank = _rank(R.detach(), mean.detach())
    if rank < d:
        raise DataError(
            f"columns are linearly dependent: the covariance of {n} rows has rank {rank} of {d} and "
            "cannot be whitened; give eps > 0, more rows, or leave columns out"
        )
    if method == "cholesky":
        sign = R.diagonal(dim1=-2, dim2=-1).sign()
        back = (R * sign[..., None]).mT
        return Whitening(mean, torch.linalg.inv(back), back)
    if method == "zca" and rows.requires_grad:  # has a gradient where eigenvalues repeat
        forth = inv_sqrtm(rows.mT @ rows)
        return Whitening(mean, forth, torch.linalg.inv(forth))
    _, s, Vh = torch.linalg.svd(R)
    V, _ = svd_flip(Vh.mT, Vh)  # the largest entry of each direction is positive
    forth, back = V.mT / s[..., None], V * s[..., None, :]
    if method == "zca":
        forth, back = V @ forth, back @ V.mT
    return Whitening(mean, forth, back)


def _rank(R: Tensor, mean: Tensor) -> int:
    """Rank of columns of length one, above what rounding of the mean leaves of a constant column."""
    size = torch.linalg.vector_norm(R, dim=-2)
    eps = R.shape[-1] * torch.finfo(R.dtype).eps
    rounding = eps * mean.abs()
    live = size > rounding
    unit = torch.where(live[..., None, :], R / torch.where(live, size, 1.0)[..., None, :], 0.0)
    noise = torch.where(live, rounding / torch.where(live, size, 1.0), 0.0).amax(-1)
    s = torch.linalg.svdvals(unit)
    return int((s > noise.clamp(min=eps)[..., None]).sum(-1).min())


def _shares(weight: Tensor | None, X: Tensor) -> Tensor:
    """Weights that sum to one, ``(n,)``."""
    n = X.shape[-2]
    if weight is None:
        return torch.full((n,), 1.0 / n, dtype=X.dtype, device=X.device)
    if weight.shape != (n,) or bool((weight < 0).any()) or not float(weight.sum()) > 0:
        raise DataError(
            f"sample_weight must be {n} numbers, not negative, with a positive sum, "
            f"got shape {tuple(weight.shape)}"
        )
    return (weight / weight.sum()).to(X.dtype)
