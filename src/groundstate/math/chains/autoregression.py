r"""Linear autoregression :math:`x_i = c + \sum_{k=1}^p\theta_kx_{i-k} + \varepsilon_i`: roots, responses,
covariances.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays


def _checked(theta: Tensor) -> Tensor:
    if theta.ndim != 1 or not len(theta):
        raise ShapeError(f"theta must have shape (p,) with p >= 1, got {tuple(theta.shape)}")
    return theta


def companion(theta: Tensor) -> Tensor:
    r"""The matrix that moves :math:`(x_{i-1}, \dots, x_{i-p})` on by one, ``(p, p)``."""
    p = len(theta)
    below = torch.eye(p, dtype=theta.dtype, device=theta.device)[:-1]
    return torch.cat([theta[None], below])


@takes_arrays("theta")
def ar_roots(theta: Tensor) -> Tensor:
    r"""Roots of :math:`1 - \sum_k\theta_kz^k`, by modulus; the process is stationary where all have
    :math:`|z| > 1`.

    Coefficients of 0 at the end take roots to infinity, which are left out.

    Parameters
    ----------
    theta : ``(p,)``

    Examples
    --------
    >>> ar_roots([0.8]).real.tolist(), ar_roots([0.5, 0.5]).real.round(12).tolist()
    ([1.25], [1.0, -2.0])
    """
    values = torch.linalg.eigvals(companion(_checked(theta)))
    small = values.abs() <= 1e3 * torch.finfo(theta.dtype).tiny ** 0.5
    roots = 1 / values[~small]
    return roots[roots.abs().argsort()]


@takes_arrays("theta")
def ar_response(theta: Tensor, n: int) -> Tensor:
    r"""What a shock of 1 leaves after 0, 1, …, n−1 steps: :math:`\psi_0 = 1`,
    :math:`\psi_j = \sum_k\theta_k\psi_{j-k}`, ``(n,)``.

    The error of a forecast h steps ahead has the variance :math:`\sigma^2\sum_{j<h}\psi_j^2`.

    Parameters
    ----------
    theta : ``(p,)``
    n : how many

    Examples
    --------
    >>> ar_response([0.5, 0.25], 4).tolist()
    [1.0, 0.5, 0.5, 0.375]
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    theta = _checked(theta)
    past = [theta.new_ones(()), *[theta.new_zeros(())] * (len(theta) - 1)]  # newest first
    found = [past[0]]
    for _ in range(n - 1):
        new = theta @ torch.stack(past)
        past = [new, *past[:-1]]
        found.append(new)
    return torch.stack(found)


@takes_arrays("theta")
def ar_covariance(theta: Tensor, noise: float = 1.0, lags: int = 0) -> Tensor:
    r"""Covariances :math:`\gamma_j = \mathrm{cov}(x_i, x_{i-j})` of the stationary process,
    ``(lags + 1,)``.

    The equations of Yule and Walker, :math:`\gamma_j = \sum_k\theta_k\gamma_{|j-k|} +
    \sigma^2[j = 0]`, are linear in the first p + 1 of them; later ones follow one by one.

    Parameters
    ----------
    theta : ``(p,)``, stationary
    noise : :math:`\sigma^2`
    lags : largest j

    Examples
    --------
    >>> ar_covariance([0.8], lags=1).round(decimals=6).tolist()
    [2.777778, 2.222222]
    """
    theta = _checked(theta)
    if lags < 0:
        raise ValueError(f"lags must be at least 0, got {lags}")
    p = len(theta)
    A = companion(theta)
    if bool((torch.linalg.eigvals(A.detach()).abs() >= 1).any()):
        raise ValueError(
            "the process is not stationary: a root of 1 - sum theta_k z^k lies on or inside the "
            "unit circle, so that its variance grows without end"
        )
    j, k = torch.meshgrid(torch.arange(p + 1), torch.arange(1, p + 1), indexing="ij")
    at = (j.reshape(-1), (j - k).abs().reshape(-1))
    eye = torch.eye(p + 1, dtype=theta.dtype, device=theta.device)
    M = eye.index_put(at, -theta.repeat(p + 1), accumulate=True)
    found = list(torch.linalg.solve(M, noise * eye[0]))
    for _ in range(p + 1, lags + 1):
        found.append(theta @ torch.stack(found[: -p - 1 : -1]))
    return torch.stack(found[: lags + 1])
