r"""Linear algebra of Gaussian processes: factors with jitter, and draws."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg.lapack import dpotri
from torch import Tensor
from torch.distributions import MultivariateNormal

from groundstate.math.linalg.cholesky import factor

MOST_JITTER = 1e-4


def cholesky(K: Tensor) -> Tensor:
    r"""The lower L with :math:`LL^\top = K`; a matrix that is singular in floating point gets a
    jitter of 1e-10, times ten up to 1e-4, on its diagonal, relative to the mean of the diagonal.

    Examples
    --------
    >>> cholesky(torch.ones(2, 2, dtype=torch.float64)).isfinite().all().item()
    True
    """
    tries = 7 if K.dtype == torch.float64 else 3
    try:
        return factor(K, max_tries=tries)[0]
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(
            f"the covariance of {K.shape[-1]} observations is not positive definite, even with "
            f"{MOST_JITTER} of its size on the diagonal; raise alpha or check the kernel"
        ) from None


def lower_inverse(L: Tensor) -> Tensor:
    r"""The lower half of :math:`(LL^\top)^{-1}` with its diagonal; above it there is nothing to read.

    Examples
    --------
    >>> lower_inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]).double()).diagonal().tolist()
    [0.25, 0.0625]
    """
    if L.device.type != "cpu" or L.dtype != torch.float64:
        return torch.cholesky_inverse(L)
    # the transpose of rows is columns, so that LAPACK's upper half is our lower one
    found, failed = dpotri(L.numpy().T, lower=0)
    if failed:
        raise np.linalg.LinAlgError("the factor has a zero on its diagonal")
    return torch.from_numpy(found.T)


def joint_normal(mean: Tensor, L: Tensor) -> MultivariateNormal:
    """A normal distribution from its mean and factor."""
    return MultivariateNormal(mean, scale_tril=L, validate_args=False)


def draws(
    cov: Tensor, n: int, generator: torch.Generator | None = None, jitter: float = 1e-10
) -> Tensor:
    r"""Draws :math:`Lz` with covariance ``cov``, ``(n, m)`` for m points."""
    size = cov.diagonal().mean().clamp(min=torch.finfo(cov.dtype).tiny)
    eye = torch.eye(len(cov), dtype=cov.dtype, device=cov.device)
    L = cholesky(cov + jitter * size * eye)
    z = torch.randn(n, len(cov), generator=generator, dtype=cov.dtype, device=cov.device)
    return z @ L.T
