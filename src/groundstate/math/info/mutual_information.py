r"""What one variable says about another: :math:`I(X;Y) = H(X) + H(Y) - H(X,Y) \ge 0`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.info.pmf import in_base, pmf, weighted


@takes_arrays("joint")
def mutual_information(joint: Any, base: float | None = None) -> Any:
    r""":math:`I(X;Y) = \sum_{xy} p_{xy}\log\frac{p_{xy}}{p_xp_y}`, zero exactly under independence.

    Differentiable in the table. From samples of continuous variables use scikit-learn's
    ``mutual_info_regression``.

    Parameters
    ----------
    joint : weights or counts ``(..., K, L)``, X along the rows
    base : of the logarithm; 2 gives bits

    Examples
    --------
    >>> round(mutual_information([[1, 0], [0, 1], [1, 0]]), 6)  # Y = X² for X = −1, 0, 1
    0.636514
    """
    p, log = _joint(joint)
    rows, columns = p.sum(-1, keepdim=True), p.sum(-2, keepdim=True)
    ratio = torch.where(p > 0, log, 0.0) - _log(rows) - _log(columns)
    return in_base(weighted(p, ratio).sum((-2, -1)).clamp_min(0.0), base)


@takes_arrays("joint")
def conditional_entropy(joint: Any, base: float | None = None, *, given: int = -2) -> Any:
    r""":math:`H(Y\mid X) = H(X,Y) - H(X)`, what is left of Y's uncertainty once X is known.

    Parameters
    ----------
    joint : weights or counts ``(..., K, L)``, X along the rows
    base : of the logarithm
    given : the axis of the known variable: −2 (rows) gives H(Y|X), −1 gives H(X|Y)

    Examples
    --------
    >>> conditional_entropy([[1, 1], [2, 0]], base=2)
    0.5
    """
    if given not in (-2, -1):
        raise ValueError(f"given must be -2 (rows) or -1 (columns), got {given!r}")
    p, log = _joint(joint)
    known = p.sum(-1 if given == -2 else -2, keepdim=True)
    inside = torch.where(p > 0, log, 0.0) - _log(known)
    return in_base(-weighted(p, inside).sum((-2, -1)).clamp_max(0.0), base)


@takes_arrays("rho")
def mi_gaussian(rho: Any, base: float | None = None, *, split: int | None = None) -> Any:
    r"""Of two Gaussian variables :math:`-\tfrac12\log(1-\rho^2)`; of two Gaussian vectors
    :math:`\tfrac12\log\frac{|S_{xx}||S_{yy}|}{|S|}`.

    Parameters
    ----------
    rho : correlations in (−1, 1) of any shape; with ``split`` covariances ``(..., d, d)``
    base : of the logarithm
    split : the first ``split`` variables of a covariance are X, the others Y

    Examples
    --------
    >>> round(mi_gaussian(0.5), 6), round(mi_gaussian([[4.0, 1.0], [1.0, 1.0]], split=1), 6)
    (0.143841, 0.143841)
    """
    if split is None:
        if bool((rho.detach().abs() > 1).any()):
            raise ValueError("rho must be correlations between -1 and 1; a covariance needs split=")
        return in_base(-0.5 * torch.log1p(-(rho**2)), base)
    if rho.ndim < 2 or rho.shape[-1] != rho.shape[-2] or not 0 < split < rho.shape[-1]:
        raise ShapeError(
            f"split={split} needs a covariance (..., d, d) with d > split, got {tuple(rho.shape)}"
        )

    parts = _half_log_det(rho[..., :split, :split]) + _half_log_det(rho[..., split:, split:])
    return in_base(parts - _half_log_det(rho), base)


def _half_log_det(S: Tensor) -> Tensor:
    L, failed = torch.linalg.cholesky_ex(S)
    if bool(failed.any()):
        raise ValueError(
            "the covariance is not positive definite: a variable is a sum of others, and the "
            "mutual information is infinite or the matrix is no covariance"
        )
    return L.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _joint(table: Tensor) -> tuple[Tensor, Tensor]:
    if table.ndim < 2:
        raise ShapeError(f"joint must be a table (..., K, L), got shape {tuple(table.shape)}")
    flat = pmf(table.flatten(-2), "joint")
    return flat.p.reshape(table.shape), flat.log.reshape(table.shape)


def _log(p: Tensor) -> Tensor:
    return torch.where(p > 0, p, 1.0).log()
