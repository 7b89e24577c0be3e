r"""Transport between Gaussians: linear maps, and means in the Bures metric."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal, Normal

from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import gaussian_moments, is_gaussian

_STEPS = 500


def moments(p: Distribution) -> tuple[Tensor, Tensor]:
    """Mean ``(d,)`` and covariance ``(d, d)`` of a Gaussian; a Normal of one variable has d = 1."""
    if not is_gaussian(p) or p.batch_shape:
        raise Unsupported(
            f"transport of distributions is for single Gaussians (Normal, MultivariateNormal, "
            f"Independent Normal without batch), got {type(p).__name__} with batch "
            f"{tuple(p.batch_shape)}"
        )
    if not p.event_shape:
        return p.mean.reshape(1), p.variance.reshape(1, 1)
    return gaussian_moments(p)


def like(p: Distribution, mean: Tensor, cov: Tensor) -> Distribution:
    """A Gaussian of these moments: of one variable where p is."""
    if not p.event_shape:
        return Normal(mean[0], cov[0, 0].sqrt())
    return MultivariateNormal(mean, cov)


def root(S: Tensor, power: float = 0.5) -> Tensor:
    """A power of a symmetric positive (semi-)definite matrix, by its eigenvectors."""
    values, vectors = torch.linalg.eigh(S)
    if power < 0 and not bool((values.detach() > 0).all()):
        raise ValueError("a covariance is singular; its optimal map is not unique")
    some = values > 0
    values = torch.where(some, torch.where(some, values, 1.0) ** power, 0.0)
    return (vectors * values.unsqueeze(-2)) @ vectors.mT


def optimal_map(S0: Tensor, S1: Tensor) -> Tensor:
    r""":math:`A = S_0^{-1/2}(S_0^{1/2}S_1S_0^{1/2})^{1/2}S_0^{-1/2}`, with :math:`AS_0A = S_1`."""
    half, inverse = root(S0), root(S0, -0.5)
    return inverse @ root(half @ S1 @ half) @ inverse


def bures_mean(covs: Tensor, weights: Tensor) -> Tensor:
    r"""The covariance S with :math:`S = \sum_kw_k(S^{1/2}S_kS^{1/2})^{1/2}`: a fixed point, by
    :math:`S \leftarrow S^{-1/2}\big(\sum_kw_k(S^{1/2}S_kS^{1/2})^{1/2}\big)^2S^{-1/2}`.

    Parameters
    ----------
    covs : ``(k, d, d)``
    weights : ``(k,)``, summing to 1
    """
    S = torch.einsum("k,kij->ij", weights, covs)
    tiny = 10 * torch.finfo(S.dtype).eps
    for _ in range(_STEPS):
        half, inverse = root(S), root(S, -0.5)
        mean = torch.einsum("k,kij->ij", weights, root(half @ covs @ half))
        new = inverse @ mean @ mean @ inverse
        new = 0.5 * (new + new.mT)
        moved = float((new - S).detach().norm() / S.detach().norm())
        S = new
        if moved <= tiny:
            break
    return S


def geodesic(p0: Distribution, p1: Distribution, t: float) -> Distribution:
    """The Gaussian at time t on the way from p0 to p1."""
    (m0, S0), (m1, S1) = moments(p0), moments(p1)
    A = (1 - t) * torch.eye(len(m0), dtype=S0.dtype, device=S0.device) + t * optimal_map(S0, S1)
    S = A @ S0 @ A.mT
    return like(p0, (1 - t) * m0 + t * m1, 0.5 * (S + S.mT))


def barycenter(measures: list[Any], weights: Tensor) -> Distribution:
    """The Gaussian of least weighted squared distance to some Gaussians."""
    found = [moments(p) for p in measures]
    w = weights.to(found[0][0])
    mean = torch.einsum("k,ki->i", w, torch.stack([m for m, _ in found]))
    return like(measures[0], mean, bures_mean(torch.stack([S for _, S in found]), w))
