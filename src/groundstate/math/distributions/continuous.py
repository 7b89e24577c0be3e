"""Families of real and of positive y: Gaussian, gamma, inverse Gaussian."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.stats
import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.math.distributions.base import Family, by_scipy
from groundstate.math.distributions.families import InverseGaussianDistribution
from groundstate.math.distributions.links import Identity, Inverse, InversePower, Link


@dataclass(frozen=True)
class Gaussian(Family):
    r""":math:`b(\vartheta) = \vartheta^2/2`, V = 1, d = (y − μ)²; φ is the variance.

    >>> Gaussian().unit_deviance(torch.tensor(3.0), torch.tensor(1.0)).item()
    4.0
    """

    name = "gaussian"
    code = 0
    scaled = True

    @property
    def canonical(self) -> Link:
        return Identity()

    def variance(self, mu: Tensor) -> Tensor:
        return torch.ones_like(mu)

    def cumulant(self, theta: Tensor) -> Tensor:
        return 0.5 * theta.square()

    def natural(self, mu: Tensor) -> Tensor:
        return mu

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        return (y - mu).square()

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        scale = torch.as_tensor(phi, dtype=mu.dtype, device=mu.device).sqrt().expand_as(mu)
        return D.Normal(mu, scale, validate_args=False)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        scale = torch.as_tensor(phi, dtype=mu.dtype, device=mu.device).sqrt()
        return mu + scale * torch.special.ndtri(torch.tensor(q, dtype=torch.float64)).to(mu)


@dataclass(frozen=True)
class Gamma(Family):
    r""":math:`b(\vartheta) = -\log(-\vartheta)`, V = μ²; shape 1/φ.

    >>> Gamma().variance(torch.tensor(3.0)).item()
    9.0
    """

    name = "gamma"
    code = 2
    scaled = True
    low = 0.0
    open_low = True
    says = "numbers above 0"

    @property
    def canonical(self) -> Link:
        return Inverse()

    def variance(self, mu: Tensor) -> Tensor:
        return mu.square()

    def cumulant(self, theta: Tensor) -> Tensor:
        return -torch.log(-theta)

    def natural(self, mu: Tensor) -> Tensor:
        return -1 / mu

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        ratio = y / mu
        return 2 * (ratio - 1 - ratio.log())

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        shape = 1 / torch.as_tensor(phi, dtype=mu.dtype, device=mu.device).expand_as(mu)
        return D.Gamma(shape, shape / mu, validate_args=False)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        shape = 1 / torch.as_tensor(phi, dtype=mu.dtype, device=mu.device)
        return by_scipy(scipy.stats.gamma, q, mu, shape, scale=mu / shape)


@dataclass(frozen=True)
class InverseGaussian(Family):
    r""":math:`b(\vartheta) = -\sqrt{-2\vartheta}`, V = μ³; the distribution of a first passage time.

    >>> InverseGaussian().unit_deviance(torch.tensor(2.0), torch.tensor(1.0)).item()
    0.5
    """

    name = "inverse_gaussian"
    code = 3
    scaled = True
    low = 0.0
    open_low = True
    says = "numbers above 0"

    @property
    def canonical(self) -> Link:
        return InversePower(2.0)

    def variance(self, mu: Tensor) -> Tensor:
        return mu**3

    def cumulant(self, theta: Tensor) -> Tensor:
        return -torch.sqrt(-2 * theta)

    def natural(self, mu: Tensor) -> Tensor:
        return -0.5 / mu.square()

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        return (y - mu).square() / (y * mu.square())

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        phi = torch.as_tensor(phi, dtype=mu.dtype, device=mu.device).expand_as(mu)
        return InverseGaussianDistribution(mu, phi)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        return by_scipy(scipy.stats.invgauss, q, mu, mu * phi, scale=1 / torch.as_tensor(phi))
