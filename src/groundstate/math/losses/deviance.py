r"""Half the unit deviance of an exponential family under any link, :math:`\tfrac12 d(y, g^{-1}(\eta))`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.math.distributions.base import Family
from groundstate.math.distributions.continuous import Gamma, Gaussian, InverseGaussian
from groundstate.math.distributions.discrete import Bernoulli, NegativeBinomial, Poisson
from groundstate.math.distributions.links import InversePower, Link, Log, Logit
from groundstate.math.distributions.tweedie import Tweedie
from groundstate.math.losses.base import PointLoss, weighted_mean
from groundstate.math.losses.classes import LogLoss


@dataclass(frozen=True)
class Deviance(PointLoss):
    r""":math:`\tfrac12 d(y, \mu)`, :math:`\mu = g^{-1}(\eta)`, least for the mean.

    The slope is :math:`-(y-\mu)\mu'/V(\mu)`. The curvature is the observed one where that cannot be
    negative, else the expected one, :math:`\mu'^2/V(\mu)`, or the larger of both where the expected
    one is far too small for y above μ.

    Parameters
    ----------
    family : V, d and the domain of y
    own_link : g
    """

    name = "deviance"
    family: Family
    own_link: Link

    def __post_init__(self) -> None:
        named = self.family.named if isinstance(self.family, Tweedie) else None
        object.__setattr__(self, "family", self.family if named is None else named)

    @property
    def link(self) -> Link:
        return self.own_link

    @property
    def compiled(self) -> tuple[int, float, int, float] | None:
        if self.family.code < 0 or self.link.code < 0:
            return None
        power = float(self.link.k) if isinstance(self.link, InversePower) else 1.0
        return self.family.code, self.family.parameter, self.link.code, power

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.family, Bernoulli) and isinstance(self.link, Logit):
            own = torch.special.xlogy(y, y) + torch.special.xlogy(1 - y, 1 - y)
            return own + LogLoss().value(eta, y)
        if isinstance(self.family, Poisson) and isinstance(self.link, Log):
            return torch.special.xlogy(y, y) - y * eta - y + eta.exp()
        return 0.5 * self.family.unit_deviance(y, self.link.inverse(eta))

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        mu = self.link.inverse(eta)
        if self._canonical:
            return mu - y
        return (mu - y) * self.link.derivative(eta) / self.family.variance(mu)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        mu, slope = self.link.inverse(eta), self.link.derivative(eta)
        if self._canonical:
            return slope
        expected = slope.square() / self.family.variance(mu)
        return self._observed(mu, y, expected) if isinstance(self.link, Log) else expected

    @property
    def _canonical(self) -> bool:
        """Whether V(μ) = μ′, so that both cancel, also in the tails."""
        pair = (Gaussian, self.family.canonical), (Poisson, Log()), (Bernoulli, Logit())
        return any(isinstance(self.family, f) and self.link == link for f, link in pair)

    def _observed(self, mu: Tensor, y: Tensor, expected: Tensor) -> Tensor:
        family = self.family
        p = (
            2.0
            if isinstance(family, Gamma)
            else 3.0
            if isinstance(family, InverseGaussian)
            else 0.0
        )
        p = float(family.power) if isinstance(family, Tweedie) else p
        if isinstance(family, NegativeBinomial):
            a = family.alpha
            return mu * (1 + a * y) / (1 + a * mu).square()
        if 1 < p <= 2:
            return (2 - p) * mu ** (2 - p) + (p - 1) * y * mu ** (1 - p)
        if p > 2:  # far below y the expected one promises steps that leap over the minimum
            return expected + (p - 1) * mu ** (1 - p) * (y - mu).clamp_min(0)
        return expected

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        mean = float(weighted_mean(y.double(), weight))
        low, high = self.link.low, self.link.high
        inside = min(max(mean, low + 1e-15 if math.isfinite(low) else low), high)
        if math.isfinite(high):
            inside = min(inside, high - 1e-15)
        return float(self.link.link(torch.tensor(inside, dtype=torch.float64)))

    def check(self, y: Tensor) -> None:
        self.family.check(y)


def poisson() -> Deviance:
    """Half the Poisson deviance from :math:`e^\\eta`."""
    return Deviance(Poisson(), Log())


def gamma() -> Deviance:
    """Half the gamma deviance from :math:`e^\\eta`."""
    return Deviance(Gamma(), Log())


def tweedie(power: float = 1.5) -> Deviance:
    """Half Tweedie's deviance from :math:`e^\\eta`."""
    return Deviance(Tweedie(power), Log())
