r"""The covariance of the columns of a table."""

from __future__ import annotations

from typing import Any

from groundstate.errors import DataError, ShapeError
from groundstate.math.arrays import takes_arrays


@takes_arrays("X", "sample_weight")
def cov(X: Any, ddof: float = 1, sample_weight: Any = None) -> Any:
    r""":math:`\frac1{n - \text{ddof}}\sum_i(x_i - \bar x)(x_i - \bar x)^\top`.

    ``ddof=1`` is unbiased for independent rows, ``ddof=0`` the covariance of the rows themselves, as
    principal components and whitening use it; with n = 5 its mean is .8 of the true one.

    Parameters
    ----------
    X : rows ``(..., n, d)``; a vector ``(n,)`` is one column and gives a number
    ddof : what is taken from n
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Returns
    -------
    ``(..., d, d)``

    Examples
    --------
    >>> cov([[1.0, 2.0], [3.0, 6.0]]).tolist(), cov([1.0, 3.0], ddof=0)
    ([[2.0, 4.0], [4.0, 8.0]], 1.0)
    """
    if X.ndim == 0 or X.numel() == 0:
        raise ShapeError(f"X must be rows (..., n, d), got shape {tuple(X.shape)}")
    rows = X[:, None] if X.ndim == 1 else X
    weight = rows.new_ones(rows.shape[-2]) if sample_weight is None else sample_weight
    if weight.shape != rows.shape[-2:-1] or bool((weight < 0).any()):
        raise DataError(
            f"sample_weight must be {rows.shape[-2]} numbers, not negative, got {tuple(weight.shape)}"
        )
    weight = weight.to(rows.dtype)
    n = weight.sum()
    if not float(n) > ddof:
        raise DataError(f"ddof={ddof} needs more rows than that, got a weight of {float(n):g}")
    apart = rows - (weight @ rows / n)[..., None, :]
    out = (weight[:, None] * apart).mT @ apart / (n - ddof)
    return out[0, 0] if X.ndim == 1 else out
