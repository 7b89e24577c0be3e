"""Families of coins, labels and counts: Bernoulli, categorical, Poisson, negative binomial."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.stats
import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn.functional import softplus

from groundstate.errors import DataError
from groundstate.math.distributions.base import Family, by_scipy
from groundstate.math.distributions.links import Link, Log, Logit, Softmax


@dataclass(frozen=True)
class Bernoulli(Family):
    r""":math:`b(\vartheta) = \log(1 + e^\vartheta)`, V = μ(1 − μ). Shares in [0, 1] are allowed.

    >>> Bernoulli().variance(torch.tensor(0.5)).item()
    0.25
    """

    name = "bernoulli"
    code = 4
    whole = True
    low, high = 0.0, 1.0
    says = "numbers between 0 and 1"

    @property
    def canonical(self) -> Link:
        return Logit()

    def variance(self, mu: Tensor) -> Tensor:
        return mu * (1 - mu)

    def cumulant(self, theta: Tensor) -> Tensor:
        return softplus(theta)

    def natural(self, mu: Tensor) -> Tensor:
        return mu.log() - torch.log1p(-mu)

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        ones = torch.xlogy(y, y) - torch.xlogy(y, mu)
        return 2 * (ones + torch.xlogy(1 - y, 1 - y) - torch.special.xlog1py(1 - y, -mu))

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        return D.Bernoulli(probs=mu, validate_args=False)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        return (1 - mu < q).to(mu.dtype)


@dataclass(frozen=True)
class Categorical(Family):
    r""":math:`b(\vartheta) = \log\sum_k e^{\vartheta_k}` over the last axis; y and μ are one-hot and
    probabilities, ``(..., K)``; V is the covariance :math:`\mathrm{diag}\,\mu - \mu\mu^\top`.

    >>> p = torch.tensor([0.5, 0.25, 0.25])
    >>> Categorical().unit_deviance(torch.tensor([1.0, 0.0, 0.0]), p).item()
    1.3862943649291992
    """

    name = "categorical"
    whole = True
    low, high = 0.0, 1.0
    says = "shares of the classes that sum to 1"

    @property
    def canonical(self) -> Link:
        return Softmax()

    def variance(self, mu: Tensor) -> Tensor:
        return torch.diag_embed(mu) - mu[..., :, None] * mu[..., None, :]

    def cumulant(self, theta: Tensor) -> Tensor:
        return torch.logsumexp(theta, -1)

    def natural(self, mu: Tensor) -> Tensor:
        return mu.log()

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        return 2 * (torch.xlogy(y, y) - torch.xlogy(y, mu)).sum(-1)

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        return D.OneHotCategorical(probs=mu, validate_args=False)

    def log_prob(self, y: Tensor, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        return torch.xlogy(y, mu).sum(-1)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        raise DataError("labels have no order, so the categorical family has no quantiles")

    def supports(self, y: Tensor) -> Tensor:
        total = y.sum(-1, keepdim=True)
        whole = torch.isclose(total, torch.ones_like(total), atol=1e-6)
        return super().supports(y) & whole


@dataclass(frozen=True)
class Poisson(Family):
    r""":math:`b(\vartheta) = e^\vartheta`, V = μ. Rates that are no whole numbers are allowed.

    >>> Poisson().unit_deviance(torch.tensor(0.0), torch.tensor(2.0)).item()
    4.0
    """

    name = "poisson"
    code = 1
    whole = True
    low = 0.0
    says = "numbers of at least 0"

    @property
    def canonical(self) -> Link:
        return Log()

    def variance(self, mu: Tensor) -> Tensor:
        return mu

    def cumulant(self, theta: Tensor) -> Tensor:
        return theta.exp()

    def natural(self, mu: Tensor) -> Tensor:
        return mu.log()

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        return 2 * (torch.xlogy(y, y) - torch.xlogy(y, mu) - y + mu)

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        return D.Poisson(mu, validate_args=False)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        return by_scipy(scipy.stats.poisson, q, mu, mu)


@dataclass(frozen=True)
class NegativeBinomial(Family):
    r""":math:`V = \mu + \alpha\mu^2`: counts whose rate itself varies as a gamma distribution.

    :math:`b(\vartheta) = -\log(1 - e^\vartheta)/\alpha` with
    :math:`\vartheta = \log\{\alpha\mu/(1 + \alpha\mu)\}`. That link is rarely wanted, so
    ``canonical`` is the customary log.

    Parameters
    ----------
    alpha : excess of the variance over that of a Poisson distribution; above 0

    >>> NegativeBinomial(0.5).variance(torch.tensor(2.0)).item()
    4.0
    """

    name = "negative_binomial"
    code = 5
    whole = True
    low = 0.0
    says = "numbers of at least 0"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise ValueError(f"alpha must be above 0, got {self.alpha}; alpha → 0 is Poisson")

    @property
    def parameter(self) -> float:
        return self.alpha

    @property
    def canonical(self) -> Link:
        return Log()

    def variance(self, mu: Tensor) -> Tensor:
        return mu + self.alpha * mu.square()

    def cumulant(self, theta: Tensor) -> Tensor:
        return -torch.log(-torch.expm1(theta)) / self.alpha

    def natural(self, mu: Tensor) -> Tensor:
        return -torch.log1p(1 / (self.alpha * mu))

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        a = self.alpha
        tail = (y + 1 / a) * (torch.log1p(a * y) - torch.log1p(a * mu))
        return 2 * (torch.xlogy(y, y) - torch.xlogy(y, mu) - tail)

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        count = torch.full_like(mu, 1 / self.alpha)
        logits = torch.log(self.alpha * mu)
        return D.NegativeBinomial(count, logits=logits, validate_args=False)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        return by_scipy(scipy.stats.nbinom, q, mu, 1 / self.alpha, 1 / (1 + self.alpha * mu))
