r"""Two distributions that torch lacks: inverse Gaussian, and Tweedie's sum of a random number of gammas."""

from __future__ import annotations

import math
from typing import Any

import scipy.stats
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.compute.foreign.torch import standard_gamma
from groundstate.errors import Unsupported

_CELLS = 2**21  # terms of the series held at once
_LONG = 1e5  # jumps from which the series is too long


class InverseGaussianDistribution(Distribution):
    r""":math:`p(y) = (2\pi\varphi y^3)^{-1/2}\exp\{-(y-\mu)^2/(2\varphi\mu^2y)\}`.

    Parameters
    ----------
    mu, phi : mean and dispersion, of one shape; the variance is φμ³

    Examples
    --------
    >>> distribution = InverseGaussianDistribution(torch.ones(1), torch.ones(1))
    >>> round(distribution.log_prob(torch.ones(1)).item(), 6)
    -0.918939
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.positive
    has_rsample = False

    def __init__(self, mu: Tensor, phi: Tensor) -> None:
        self.mu, self.phi = mu, phi
        super().__init__(mu.shape, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.mu

    @property
    def variance(self) -> Tensor:
        return self.phi * self.mu**3

    @property
    def mode(self) -> Tensor:
        a = 1.5 * self.phi * self.mu
        return self.mu / (torch.sqrt(1 + a.square()) + a)

    def expand(self, batch_shape: Any, _instance: Any = None) -> InverseGaussianDistribution:
        return InverseGaussianDistribution(
            self.mu.expand(batch_shape), self.phi.expand(batch_shape)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        deviance = (value - self.mu).square() / (value * self.mu.square())
        return -0.5 * (math.log(2 * math.pi) + self.phi.log() + 3 * value.log()) - deviance / (
            2 * self.phi
        )

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By the two roots of a chi-square (Michael, Schucany and Haas)."""
        size = self._extended_shape(torch.Size(sample_shape))
        mu, phi = self.mu.expand(size), self.phi.expand(size)
        a = 0.5 * phi * mu * torch.randn(size, dtype=mu.dtype, device=mu.device).square()
        low = mu / (1 + a + torch.sqrt(a * (a + 2)))  # the smaller root, without cancellation
        u = torch.rand(size, dtype=mu.dtype, device=mu.device)
        return torch.where(u * (mu + low) <= mu, low, mu.square() / low)


class TweedieDistribution(Distribution):
    r"""A Poisson number of gamma jumps: an atom at 0 and a density above it, variance φμᵖ.

    With :math:`\lambda = \mu^{2-p}/(\varphi(2-p))` jumps of shape :math:`a = (2-p)/(p-1)` and scale
    :math:`s = \varphi(p-1)\mu^{p-1}`,

    .. math:: p(0) = e^{-\lambda}, \qquad
        p(y) = \sum_{k \ge 1} \frac{e^{-\lambda}\lambda^k}{k!}\,\mathrm{Gamma}(y; ka, s) .

    Parameters
    ----------
    mu, phi : mean and dispersion, of one shape
    power : p, between 1 and 2

    Examples
    --------
    >>> distribution = TweedieDistribution(torch.ones(1), torch.ones(1), 1.5)
    >>> distribution.log_prob(torch.zeros(1)).item()
    -2.0
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.nonnegative
    has_rsample = False

    def __init__(self, mu: Tensor, phi: Tensor, power: float) -> None:
        if not 1 < power < 2:
            raise Unsupported(
                f"the distribution of power {power} has no density in closed form or short series; it can be "
                "fitted, but gives no probabilities; use a power of 0, 1 to 2, or 3"
            )
        self.mu, self.phi, self.power = mu, phi, power
        self.shape = (2 - power) / (power - 1)
        super().__init__(mu.shape, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.mu

    @property
    def variance(self) -> Tensor:
        return self.phi * self.mu**self.power

    @property
    def rate(self) -> Tensor:
        """λ, the mean number of jumps."""
        return self.mu ** (2 - self.power) / (self.phi * (2 - self.power))

    @property
    def scale(self) -> Tensor:
        """s, the scale of one jump."""
        return self.phi * (self.power - 1) * self.mu ** (self.power - 1)

    def expand(self, batch_shape: Any, _instance: Any = None) -> TweedieDistribution:
        mu, phi = self.mu.expand(batch_shape), self.phi.expand(batch_shape)
        return TweedieDistribution(mu, phi, self.power)

    def log_prob(self, value: Tensor) -> Tensor:
        value, rate, scale = torch.broadcast_tensors(value, self.rate, self.scale)
        positive = value > 0
        y = torch.where(positive, value, torch.ones_like(value))
        return torch.where(positive, self._density(y, rate, scale), -rate)

    def _density(self, y: Tensor, rate: Tensor, scale: Tensor) -> Tensor:
        """The series around its largest term, in blocks of rows; a saddle point where it is long."""
        p = self.power
        phi = self.phi.expand(y.shape)
        top = (y.detach() ** (2 - p) / (phi.detach() * (2 - p))).clamp_min(1.0)
        far = top > _LONG
        near = [torch.where(far, torch.ones_like(v), v) for v in (y, rate, scale, top)]
        flat = [v.reshape(-1) for v in near]
        reach = int(10 * math.sqrt(float(flat[3].max()) + 1) + 20) if top.numel() else 1
        pieces = zip(*(v.split(max(1, _CELLS // (2 * reach + 1))) for v in flat), strict=True)
        parts = [self._series(a, b, c, d, reach) for a, b, c, d in pieces]
        found = torch.cat(parts).reshape(y.shape)
        return torch.where(far, self._saddle(y), found) if bool(far.any()) else found

    def _saddle(self, y: Tensor) -> Tensor:
        """−½log 2πφyᵖ − d/2φ, whose relative error falls as one over the number of jumps."""
        p = self.power
        d = y ** (2 - p) / ((1 - p) * (2 - p)) - y * self.mu ** (1 - p) / (1 - p)
        half = d + self.mu ** (2 - p) / (2 - p)  # half the unit deviance
        return -0.5 * torch.log(2 * math.pi * self.phi * y**p) - half / self.phi

    def _series(self, y: Tensor, rate: Tensor, scale: Tensor, top: Tensor, reach: int) -> Tensor:
        first = (top.round() - reach).clamp_min(1.0)
        k = first[:, None] + torch.arange(2 * reach + 1, dtype=y.dtype, device=y.device)  # (n, J)
        ka = k * self.shape
        ratio = torch.log(y / scale)[:, None]
        terms = k * rate.log()[:, None] - torch.lgamma(k + 1) + ka * ratio - torch.lgamma(ka)
        return torch.logsumexp(terms, 1) - rate - y / scale - y.log()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        size = self._extended_shape(torch.Size(sample_shape))
        rate, scale = self.rate.expand(size), self.scale.expand(size)
        jumps = torch.poisson(rate)
        some = jumps > 0
        total = standard_gamma(torch.where(some, jumps * self.shape, 1.0).contiguous())
        return torch.where(some, scale * total, 0.0)

    def below(self, value: Tensor) -> Tensor:
        """P(≤ value), by summing over the number of jumps."""
        top = float(self.rate.detach().max()) if self.mu.numel() else 0.0
        most = int(top + 12 * math.sqrt(top + 1) + 20)
        k = torch.arange(1, most + 1, dtype=torch.float64)  # (J,)
        rate = self.rate.detach().double().cpu()[..., None]
        ratio = (value / self.scale).detach().double().cpu()[..., None]
        weight = torch.exp(k * rate.log() - rate - torch.lgamma(k + 1))
        inside = torch.as_tensor(scipy.stats.gamma.cdf(ratio.numpy(), (k * self.shape).numpy()))
        return (torch.exp(-rate[..., 0]) + (weight * inside).sum(-1)).to(self.mu)

    def quantile(self, q: float) -> Tensor:
        """The smallest y with P(≤ y) ≥ q, by bisection; of very many jumps the Gaussian one."""
        many = self.rate > 1e4
        z = float(torch.special.ndtri(torch.tensor(q, dtype=torch.float64)))
        out = self.mean + z * self.variance.sqrt()
        if not bool(many.all()):
            few = TweedieDistribution(self.mu[~many], self.phi[~many], self.power)
            out = out.masked_scatter(~many, few._bisected(q))
        return out

    def _bisected(self, q: float) -> Tensor:
        low = torch.zeros_like(self.mu)
        high = self.mean + 20 * self.variance.sqrt() + 1e-12
        for _ in range(60):
            middle = 0.5 * (low + high)
            enough = self.below(middle) >= q
            low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
        return torch.where(torch.exp(-self.rate) >= q, torch.zeros_like(high), high)
