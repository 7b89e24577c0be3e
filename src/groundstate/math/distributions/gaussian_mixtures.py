r"""Mixtures of Gaussians whose parameters come row by row,
:math:`p(y) = \sum_z \pi_z N(y; \mu_z, \sigma_z^2)`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.math.distributions.operations import _noise

LOG_2PI = math.log(2 * math.pi)


def joint_log_density(log_weights: Tensor, mu: Tensor, sigma: Tensor, y: Tensor) -> Tensor:
    r""":math:`\log\pi_z + \log N(y; \mu_z, \sigma_z^2)` of every component, ``(..., K)``.

    Parameters
    ----------
    log_weights : ``(..., K)``
    mu : ``(..., K, d)``
    sigma : ``(..., K, d)``, or ``(..., K, 1)`` for one scale of all coordinates
    y : ``(..., d)``
    """
    d = mu.shape[-1]
    squares = ((y.unsqueeze(-2) - mu) / sigma).square().sum(-1)
    log_sigma = sigma.log()
    volume = d * log_sigma[..., 0] if sigma.shape[-1] == 1 else log_sigma.sum(-1)
    return log_weights - volume - 0.5 * (squares + d * LOG_2PI)


def mixture_nll(log_weights: Tensor, mu: Tensor, sigma: Tensor, y: Tensor) -> Tensor:
    r"""The negative log-likelihood :math:`-\log\sum_z\pi_zN(y; \mu_z, \sigma_z^2)`, ``(...)``.

    With responsibilities :math:`r_z = \pi_zN_z/\sum_{z'}\pi_{z'}N_{z'}` its derivatives are
    :math:`\partial/\partial\mu_z = r_z(\mu_z - y)/\sigma_z^2` and
    :math:`\partial/\partial\log\sigma_z = r_z(d - \|y - \mu_z\|^2/\sigma_z^2)`. Leading axes are
    free, so the same function serves one output per row and one per position of a sequence.

    Parameters
    ----------
    log_weights, mu, sigma, y : as in ``joint_log_density``

    Examples
    --------
    >>> log_weights = torch.tensor([0.5, 0.5]).double().log()
    >>> mu, sigma = torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([[0.5], [1.0]]).double()
    >>> round(mixture_nll(log_weights, mu, sigma, torch.tensor([0.3]).double()).item(), 6)
    1.773665
    """
    return -torch.logsumexp(joint_log_density(log_weights, mu, sigma, y), -1)


class GaussianMixtureDistribution(Distribution):
    r"""The distribution :math:`p(y) = \sum_z\pi_zN(y; \mu_z, \sigma_z^2)` of every row of a batch.

    Parameters
    ----------
    log_weights : ``(B, K)``, normalised
    mu : ``(B, K, d)``
    sigma : ``(B, K, 1)`` isotropic, or ``(B, K, d)`` diagonal

    Examples
    --------
    >>> log_weights = torch.full((1, 2), 0.5).log()
    >>> p = GaussianMixtureDistribution(log_weights, torch.tensor([[[-3.0], [3.0]]]), torch.ones(1, 2, 1))
    >>> p.mean.tolist(), p.variance.round(decimals=4).tolist()
    ([[0.0]], [[10.0]])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(self, log_weights: Tensor, mu: Tensor, sigma: Tensor) -> None:
        self.log_weights, self.mu, self.sigma = log_weights, mu, sigma
        super().__init__(mu.shape[:1], mu.shape[-1:], validate_args=False)

    @property
    def support(self) -> Any:
        return constraints.real_vector

    def rows(self, index: slice | Tensor) -> GaussianMixtureDistribution:
        """The distributions of some rows."""
        return GaussianMixtureDistribution(
            self.log_weights[index], self.mu[index], self.sigma[index]
        )

    def joint(self, value: Tensor) -> Tensor:
        """Log density of value and component, ``(..., B, K)``."""
        return joint_log_density(self.log_weights, self.mu, self.sigma, value)

    def log_prob(self, value: Tensor) -> Tensor:
        return torch.logsumexp(self.joint(value), -1)

    def responsibilities(self, value: Tensor) -> Tensor:
        r"""Which component a value comes from, :math:`p(z\mid y)`, ``(..., B, K)``."""
        return torch.softmax(self.joint(value), -1)

    @property
    def mean(self) -> Tensor:
        return (self.log_weights.exp().unsqueeze(-1) * self.mu).sum(-2)

    @property
    def variance(self) -> Tensor:
        w, off = self.log_weights.exp().unsqueeze(-1), self.mu - self.mean.unsqueeze(-2)
        return (w * (self.sigma.square() + off.square())).sum(-2)

    @property
    def mode(self) -> Tensor:
        """The highest point of the density, ``(B, d)``."""
        from groundstate.math.distributions.mixture_modes import highest_mode

        return highest_mode(self)

    def cdf(self, value: Tensor) -> Tensor:
        r""":math:`P(Y \le y)` of one coordinate, ``(..., B)`` from ``(..., B, 1)``."""
        z = (value.unsqueeze(-2) - self.mu) / (self.sigma * math.sqrt(2))
        below = 0.5 * (1 + torch.erf(z[..., 0]))  # (..., B, K)
        return (self.log_weights.exp() * below).sum(-1)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, B, d)`` from an explicit generator: a component, then a point around its mean."""
        (B, _), d = self.log_weights.shape, self.mu.shape[-1]
        ends = self.log_weights.exp().cumsum(-1)
        u = _noise(torch.rand, (n, B, 1), ends, generator) * ends[:, -1:]
        z = (u >= ends).sum(-1).clamp_max(ends.shape[-1] - 1)  # (n, B)
        row = torch.arange(B, device=z.device)
        noise = _noise(torch.randn, (n, B, d), ends, generator)
        return self.mu[row, z] + self.sigma[row, z] * noise

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        with torch.no_grad():
            drawn = self.draw(shape.numel(), generator)
        return drawn.reshape(*shape, *self.batch_shape, *self.event_shape)
