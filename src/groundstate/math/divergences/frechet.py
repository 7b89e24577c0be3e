r"""Fréchet distance: the squared 2-Wasserstein distance of two Gaussians."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays


@takes_arrays("mean1", "cov1", "mean2", "cov2")
def frechet(mean1: Any, cov1: Any, mean2: Any, cov2: Any) -> Any:
    r""":math:`\|m_1-m_2\|^2 + \mathrm{tr}\big(S_1 + S_2 - 2(S_1^{1/2}S_2S_1^{1/2})^{1/2}\big)`.

    Squared. The roots of the eigenvalues of :math:`L^\top S_2L`, with :math:`S_1 = LL^\top`, are
    those of the matrix under the root; float64 throughout, since a root doubles lost digits.

    Parameters
    ----------
    mean1, mean2 : ``(..., d)``, or numbers
    cov1, cov2 : covariances ``(..., d, d)``, or variances where the means are numbers

    Examples
    --------
    >>> frechet(0, 1, 3, 4)
    10.0
    >>> round(frechet([0, 0], [[2, 1], [1, 2]], [1, -2], [[1, 0], [0, 4]]), 6)
    5.77122
    """
    m1, m2 = torch.atleast_1d(mean1), torch.atleast_1d(mean2)
    S1, S2 = (S.reshape(*S.shape[:-2], 1, 1) if S.ndim == 0 else S for S in (cov1, cov2))
    d = m1.shape[-1]
    for S, name in ((S1, "cov1"), (S2, "cov2")):
        if S.ndim < 2 or S.shape[-2:] != (d, d) or m2.shape[-1] != d:
            raise ShapeError(
                f"frechet needs means of {d} entries and covariances ({d}, {d}), got means "
                f"{tuple(m1.shape)}, {tuple(m2.shape)} and {name} {tuple(S.shape)}"
            )
    out = torch.promote_types(S1.dtype, S2.dtype)
    A, B = S1.double(), S2.double()
    L = factor(A)
    roots = torch.linalg.eigvalsh(L.mT @ B @ L)
    floor = d * torch.finfo(torch.float64).eps * roots.detach().amax(-1, keepdim=True)
    some = roots > floor  # the root of rounding errors is no rounding error
    cross = torch.where(some, torch.where(some, roots, 1.0).sqrt(), 0.0).sum(-1)

    def trace(S: Tensor) -> Tensor:
        return S.diagonal(dim1=-2, dim2=-1).sum(-1)

    away = (m1 - m2).double().square().sum(-1)
    return (away + (trace(A) + trace(B) - 2 * cross).clamp_min(0.0)).to(out)


def factor(S: Tensor) -> Tensor:
    """L with LLᵀ = S: Cholesky's, or from eigenvectors where S is singular."""
    L, failed = torch.linalg.cholesky_ex(S)
    if not bool(failed.any()):
        return L
    values, vectors = torch.linalg.eigh(S)
    lowest, highest = values.detach().amin(-1), values.detach().amax(-1)
    if bool((lowest < -1e-6 * highest.clamp_min(1e-300)).any()):
        raise ValueError("a covariance has negative eigenvalues; it must be positive semi-definite")
    some = values > 0
    return vectors * torch.where(some, torch.where(some, values, 1.0).sqrt(), 0.0).unsqueeze(-2)


@takes_arrays("X", "Y")
def frechet_from_samples(X: Any, Y: Any) -> Any:
    """`frechet` of the means and covariances (ddof 1) of two sets of feature rows.

    Parameters
    ----------
    X, Y : ``(..., n, d)`` and ``(..., m, d)``: features of whatever network the caller trusts

    Examples
    --------
    >>> frechet_from_samples([[0.0], [2.0]], [[1.0], [3.0]])
    1.0
    """
    for rows, name in ((X, "X"), (Y, "Y")):
        if rows.ndim < 2 or rows.shape[-2] < 2:
            raise ShapeError(f"{name} must be at least two rows (n, d), got {tuple(rows.shape)}")
    (m1, S1), (m2, S2) = moments(X), moments(Y)
    return frechet(m1, S1, m2, S2).to(X.dtype)


def moments(X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance (ddof 1) of rows, in float64."""
    rows = X.double()
    mean = rows.mean(-2)
    centred = rows - mean.unsqueeze(-2)
    return mean, centred.mT @ centred / (X.shape[-2] - 1)
