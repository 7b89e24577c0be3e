r"""A Gaussian process given data, and the average weighted by a kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.linalg.gaussian_process import cholesky


class Conditioned(NamedTuple):
    """What is known at new rows.

    Attributes
    ----------
    mean : ``(s,)``, or ``(s, m)`` for m outputs
    cov : ``(s, s)``
    """

    mean: Any
    cov: Any

    @property
    def var(self) -> Any:
        """The diagonal of ``cov``, not below zero, ``(s,)``."""
        diagonal = self.cov.diagonal()
        return diagonal.clamp(min=0) if isinstance(diagonal, Tensor) else diagonal.clip(min=0)


@takes_arrays("X", "y", "Xs", "noise")
def condition(kernel: Kernel, X: Any, y: Any, Xs: Any, noise: Any = 0.0) -> Conditioned:
    r"""A Gaussian process at rows :math:`X_*` given its values at rows X.

    .. math::
        m = K_*^\top K^{-1}y, \qquad C = K_{**} - K_*^\top K^{-1}K_*,
        \qquad K = k(X, X) + \operatorname{diag}(\text{noise}) .

    Without data the mean is zero and C is the prior covariance. A matrix that is singular in
    floating point gets the least jitter that a Cholesky factor needs.

    Parameters
    ----------
    kernel : covariance; noise of its own (`White`) is on the diagonals of K and of :math:`K_{**}`
    X : ``(n, d)``
    y : ``(n,)`` or ``(n, m)``
    Xs : ``(s, d)``
    noise : variance of the noise of y beyond the kernel's, a number or ``(n,)``

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> found = condition(RBF(1.0), [[0.0], [1.0]], [0.0, 1.0], [[0.5], [5.0]])
    >>> found.mean.round(6).tolist(), found.var.round(6).tolist()
    ([0.549318, 0.000527], [0.030456, 1.0])
    """
    x, new = _rows(X, "X"), _rows(Xs, "Xs")
    noise = torch.as_tensor(noise).to(new)
    prior = kernel.of(Geometry(new))
    if not len(x):
        shape = (len(new), *y.shape[1:])
        return Conditioned(new.new_zeros(shape), prior)
    _check_pair(x, y, new)
    if bool((noise < 0).any()):
        raise ValueError(f"noise is a variance and must not be negative, got {float(noise.min())}")
    K = kernel.of(Geometry(x)) + torch.diag_embed(noise.expand(len(x)))
    across = kernel.of(Geometry(x, new))  # (n, s)
    L = cholesky(K)
    flat = y.ndim == 1
    both = torch.cat([across, y[:, None] if flat else y], 1).to(K)
    half = torch.linalg.solve_triangular(L, both, upper=False)
    V, u = half[:, : len(new)], half[:, len(new) :]
    mean = V.mT @ u
    return Conditioned(mean[:, 0] if flat else mean, prior - V.mT @ V)


@takes_arrays("X", "y", "Xs")
def smooth(kernel: Kernel, X: Any, y: Any, Xs: Any, normalize: bool = True) -> Any:
    r"""The average of y weighted by nearness, :math:`\sum_ik(x_*, x_i)y_i / \sum_ik(x_*, x_i)`.

    With ``normalize=False`` it is the plain weighted sum, whose sign classifies labels ±1. Where
    every weight is zero the average is NaN.

    Parameters
    ----------
    kernel : similarity, larger is closer
    X : ``(n, d)``
    y : ``(n,)`` or ``(n, m)``
    Xs : ``(s, d)``
    normalize : divide by the sum of the weights

    Returns
    -------
    ``(s,)`` or ``(s, m)``

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> smooth(RBF(1.0), [[0.0], [2.0]], [1.0, 3.0], [[1.0]]).tolist()
    [2.0]
    """
    x, new = _rows(X, "X"), _rows(Xs, "Xs")
    if not len(x):
        raise ShapeError("an average needs at least one row, got X without rows")
    _check_pair(x, y, new)
    weights = kernel.of(Geometry(new, x))  # (s, n)
    total = weights @ y.to(weights)
    if not normalize:
        return total
    mass = weights.sum(1)
    return total / (mass if y.ndim == 1 else mass[:, None])


def _rows(X: Tensor, name: str) -> Tensor:
    x = X[:, None] if X.ndim == 1 else X
    if x.ndim != 2:
        raise ShapeError(f"{name} needs rows (n, d), got shape {tuple(X.shape)}")
    return x


def _check_pair(x: Tensor, y: Tensor, new: Tensor) -> None:
    if y.ndim not in (1, 2) or len(y) != len(x):
        raise ShapeError(
            f"y needs one value or row for each of the {len(x)} rows of X, got shape "
            f"{tuple(y.shape)}"
        )
    if new.shape[1] != x.shape[1]:
        raise ShapeError(
            f"X and Xs need rows of one width, got {tuple(x.shape)} and {tuple(new.shape)}"
        )
