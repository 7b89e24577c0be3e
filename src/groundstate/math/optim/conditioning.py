r"""How well a least-squares problem is conditioned, and how to make it better.

Gradient descent on least squares with the Hessian :math:`H = \overline{xx^\top}` needs a number of
steps that grows with :math:`\kappa = \max|\lambda|/\min|\lambda|`. Centring takes the mean out of it,
whitening makes it one.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import DataError
from groundstate.math.linalg.whitening import whitening

F64 = NDArray[np.float64]


def _table(X: ArrayLike) -> F64:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or not len(rows):
        raise DataError(f"X must be a table (n_samples, n_features), got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise DataError("X holds NaN or infinity; impute or drop such rows")
    return rows


def _shares(weight: ArrayLike | None, n: int) -> F64:
    """Weights that sum to one, ``(n,)``."""
    if weight is None:
        return np.full(n, 1.0 / n)
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != (n,) or not (w >= 0).all() or not w.sum() > 0:
        raise DataError(f"sample_weight must be {n} numbers, not negative, with a positive sum")
    return w / w.sum()


def centre(X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> tuple[F64, F64]:
    r"""Rows about their mean, :math:`x - \bar x`, and the mean.

    With centred columns the intercept no longer interacts with the other coefficients: the
    off-diagonal block of the least-squares Hessian is zero.

    Examples
    --------
    >>> rows, mean = centre([[1.0, 4.0], [3.0, 8.0]])
    >>> rows.tolist(), mean.tolist()
    ([[-1.0, -2.0], [1.0, 2.0]], [2.0, 6.0])
    """
    rows = _table(X)
    mean = _shares(sample_weight, len(rows)) @ rows
    return rows - mean, mean


def least_squares_hessian(
    X: ArrayLike, *, intercept: bool = True, sample_weight: ArrayLike | None = None
) -> F64:
    r"""The Hessian :math:`\overline{\tilde x\tilde x^\top}` of
    :math:`\tfrac1{2n}\sum(y - w^\top\tilde x)^2`.

    With ``intercept`` :math:`\tilde x = (1, x)`, else :math:`\tilde x = x`.

    Examples
    --------
    >>> least_squares_hessian([[1.0], [3.0]]).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    rows = _table(X)
    if intercept:
        rows = np.column_stack([np.ones(len(rows)), rows])
    H: F64 = (rows * _shares(sample_weight, len(rows))[:, None]).T @ rows
    return H


def hessian_condition(
    X: ArrayLike, *, intercept: bool = True, sample_weight: ArrayLike | None = None
) -> float:
    r"""The condition :math:`\kappa = \max|\lambda|/\min|\lambda|` of the least-squares Hessian;
    infinite where it is singular.

    Examples
    --------
    >>> round(hessian_condition([[1.0], [-1.0]]), 12), hessian_condition([[1.0, 1.0], [2.0, 2.0]])
    (1.0, inf)
    """
    H = least_squares_hessian(X, intercept=intercept, sample_weight=sample_weight)
    sizes = np.abs(np.linalg.eigvalsh(H))
    least, most = float(sizes.min()), float(sizes.max())
    return most / least if least > len(H) * np.finfo(float).eps * most else float("inf")


class ZCAWhitener:
    r"""Whiten with the least change: :math:`x \leftarrow (C + \varepsilon I)^{-1/2}(x - \bar x)`,
    :math:`C = \overline{(x - \bar x)(x - \bar x)^\top}`.

    Of all linear maps to unit covariance this one stays closest to the data. The least-squares
    Hessian of whitened rows is the identity, so gradient descent with step size one ends after one
    step. (For scaling alone use scikit-learn's ``StandardScaler``.)

    Parameters
    ----------
    eps : added to the eigenvalues; needed where columns are linearly dependent

    Attributes
    ----------
    mean_ : ``(d,)``
    matrix_ : symmetric ``(d, d)``, :math:`(C + \varepsilon I)^{-1/2}`
    inverse_ : symmetric ``(d, d)``, its inverse

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 3.0], [2.0, 1.0], [5.0, 2.0]]
    >>> white = ZCAWhitener().fit(X).transform(X)
    >>> bool(np.allclose(white.T @ white / 4, np.eye(2), atol=1e-12))
    True
    """

    def __init__(self, eps: float = 0.0) -> None:
        self.eps = eps

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn mean and covariance from rows ``(n, d)``."""
        found = whitening(_table(X), "zca", self.eps, sample_weight)
        self.mean_: F64 = found.mean
        self.matrix_: F64 = found.matrix
        self.inverse_: F64 = found.inverse
        return self

    def transform(self, X: ArrayLike) -> F64:
        """Whitened rows, ``(n, d)``."""
        return (_table(X) - self.mean_) @ self.matrix_

    def fit_transform(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> F64:
        """``fit``, then ``transform`` of the same rows."""
        return self.fit(X, y, sample_weight).transform(X)

    def inverse_transform(self, X: ArrayLike) -> F64:
        """Rows as they were before whitening."""
        return _table(X) @ self.inverse_ + self.mean_
