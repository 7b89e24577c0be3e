r"""Distances in units of a cloud's own spread: :math:`\sqrt{(x-m)^\top\Sigma^{-1}(x-m)}`."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays

NARROW = 8  # columns that are added one by one: a sum over so short an axis is slow on the CPU
BLOCK = 2**14  # squares at once then, which stay in the cache


def scaled_squares(x: Tensor, centres: Tensor, scales: Tensor) -> Tensor:
    r""":math:`\sum_j s_{kj}^2 (x_{bj} - m_{kj})^2`, ``(B, k)``, from the differences themselves.

    Parameters
    ----------
    x : ``(B, d)``
    centres : ``(k, d)``
    scales : ``(k, d)`` or ``(k, 1)``

    Examples
    --------
    >>> scaled_squares(torch.ones(1, 2), torch.zeros(2, 2), torch.tensor([[1.0], [2.0]])).tolist()
    [[2.0, 8.0]]
    """
    k, d = centres.shape
    if x.device.type != "cpu" or not 0 < d <= NARROW:
        return ((x - centres[:, None]) * scales[:, None]).square().sum(-1).T
    scales = scales.expand(k, d)
    blocks = []
    for part in x.split(max(1, BLOCK // k)):
        columns = (((part[:, j, None] - centres[:, j]) * scales[:, j]).square() for j in range(d))
        blocks.append(reduce(torch.add, columns))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks)


@takes_arrays("X", "Y", "cov", "precision", "J")
def mahalanobis(
    X: Any,
    Y: Any = None,
    *,
    cov: Any = None,
    precision: Any = None,
    J: Any = None,
    pinv: bool = False,
) -> Any:
    r"""Mahalanobis distance :math:`\sqrt{(x-y)^\top\Sigma^{-1}(x-y)} = \|J(x-y)\|`, with
    :math:`J^\top J = \Sigma^{-1}`.

    One of ``cov`` (Σ), ``precision`` (:math:`\Sigma^{-1}`, or any metric M) and ``J`` (a learned map)
    says what the unit is; with none of them it is the covariance of X (divided by n). A precision or J
    of low rank is a pseudometric: distinct points may be at distance zero.

    Parameters
    ----------
    X : ``(..., n, d)``
    Y : a point ``(..., d)``, such as a mean, or rows ``(..., m, d)``; None is the mean of X
    cov, precision : ``(..., d, d)``
    J : ``(..., p, d)``
    pinv : take the pseudo-inverse of a singular ``cov`` instead of refusing it, and a ``precision``
        of low rank

    Returns
    -------
    ``(..., n)`` to a point, ``(..., n, m)`` between rows

    Examples
    --------
    >>> mahalanobis([[2.0, 0.0], [0.0, 2.0]], [0.0, 0.0], cov=[[4.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 2.0]
    """
    given = [
        name for name, m in (("cov", cov), ("precision", precision), ("J", J)) if m is not None
    ]
    if len(given) > 1:
        raise ValueError(f"give one of cov, precision and J, got {' and '.join(given)}")
    if X.ndim < 2:
        raise ShapeError(f"X needs rows (..., n, d), got shape {tuple(X.shape)}")
    d = X.shape[-1]
    centre = X.mean(-2) if Y is None else Y
    point = centre.ndim < X.ndim
    if centre.shape[-1] != d:
        raise ShapeError(f"X has {d} columns, Y has {centre.shape[-1]}")
    if not given:
        gap = X - X.mean(-2, keepdim=True)
        cov = gap.mT @ gap / X.shape[-2]
    other = centre[..., None, :] if point else centre
    if point:
        return _length(_mapped(X - other, cov, precision, J, pinv))
    # distances do not change when both are moved: about the mean no digits are lost
    middle = other.mean(-2, keepdim=True).detach()
    x, y = (_mapped(v - middle, cov, precision, J, pinv) for v in (X, other))
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


@takes_arrays("distance")
def chi2_pvalue(distance: Any, d: int) -> Any:
    r"""How rarely a row of a d-dimensional Gaussian is as far from its mean,
    :math:`P(\chi^2_d \ge \text{distance}^2)`.

    Parameters
    ----------
    distance : Mahalanobis distances
    d : dimensions

    Examples
    --------
    >>> round(chi2_pvalue(2.0, 1), 6), round(chi2_pvalue(2.0, 2), 6)
    (0.0455, 0.135335)
    """
    if d < 1:
        raise ValueError(f"d counts dimensions and must be at least 1, got {d}")
    half = torch.full_like(distance, 0.5 * d)
    return torch.special.gammaincc(half, 0.5 * distance.square())


def precision_map(precision: Tensor, pinv: bool = False) -> Tensor:
    r"""J with :math:`J^\top J = M` for a positive semidefinite M, ``(..., d, d)``.

    >>> precision_map(torch.tensor([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    C, failed = torch.linalg.cholesky_ex(precision)
    if not bool(failed.any()):
        return C.mT
    if not pinv:
        raise ValueError(
            "precision is not positive definite; with pinv=True one of low rank is a pseudometric"
        )
    values, vectors = torch.linalg.eigh(precision)
    most = values.abs().amax(-1, keepdim=True)
    if bool((values < -1e-10 * most).any()):
        raise ValueError(
            f"precision has a negative eigenvalue ({float(values.min()):.3g}): no square of a distance"
        )
    return values.clamp(min=0).sqrt()[..., None] * vectors.mT


def _mapped(
    gap: Tensor, cov: Tensor | None, precision: Tensor | None, J: Tensor | None, pinv: bool
) -> Tensor:
    """Rows in coordinates where distances are Euclidean, ``(..., n, p)``."""
    d = gap.shape[-1]
    name, matrix = next(
        (n, m) for n, m in (("J", J), ("precision", precision), ("cov", cov)) if m is not None
    )
    wrong = matrix.ndim < 2 or matrix.shape[-1] != d or (name != "J" and matrix.shape[-2] != d)
    if wrong:
        want = f"(..., p, {d})" if name == "J" else f"(..., {d}, {d})"
        raise ShapeError(f"{name} needs shape {want}, got {tuple(matrix.shape)}")
    if J is not None:
        return gap @ J.to(gap).mT
    if precision is not None:
        return gap @ precision_map(precision.to(gap), pinv).mT
    assert cov is not None
    S = cov.to(gap)
    L, failed = torch.linalg.cholesky_ex(S)
    pivots = L.diagonal(dim1=-2, dim2=-1).square()
    scale = S.diagonal(dim1=-2, dim2=-1).amax(-1, keepdim=True)
    singular = failed.any() | (pivots <= 8 * d * torch.finfo(S.dtype).eps * scale).any()
    if not bool(singular):
        return torch.linalg.solve_triangular(L, gap.mT, upper=False).mT
    if not pinv:
        raise ValueError(
            "cov is singular, so that some directions have no unit; drop constant and duplicate "
            "columns, shrink it (sklearn.covariance.ledoit_wolf), or pass pinv=True"
        )
    return gap @ precision_map(torch.linalg.pinv(S, hermitian=True), True).mT


def _length(v: Tensor) -> Tensor:
    """Lengths of rows, with derivative zero at zero."""
    square = v.square().sum(-1)
    apart = square > 0
    return torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
