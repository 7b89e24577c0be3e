r"""Bayes' rule: :math:`P(R \mid O) = P(R)\,P(O \mid R)/P(O)`, on tables and in conjugate families."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution, constraints
from torch.distributions.utils import broadcast_all

from groundstate.errors import Unsupported
from groundstate.math.arrays import as_tensor, takes_arrays


class Posterior(NamedTuple):
    """Posterior ``(..., K)`` and evidence P(observation) ``(...)``."""

    posterior: Any
    evidence: Any


@takes_arrays("prior", "likelihood", finite=False)
def posterior(prior: Any, likelihood: Any, *, log: bool = False) -> Posterior:
    r"""The distribution over reasons after an observation, and the evidence :math:`\sum_r P(r)P(o\mid r)`.

    Sums are taken of logarithms, so that likelihoods of many rows may be given as logs.

    Parameters
    ----------
    prior : ``(..., K)`` probabilities of the reasons; divided by their sum
    likelihood : ``(..., K)`` probability (or density) of the observation under each reason
    log : both are given as logarithms, and the evidence is returned as one

    Examples
    --------
    >>> found = posterior([0.5, 0.3, 0.2], [0.10, 0.40, 0.05])
    >>> found.posterior.round(6), round(found.evidence, 6)
    (array([0.277778, 0.666667, 0.055556]), 0.18)
    >>> posterior([0.01, 0.99], [0.9, 0.1]).posterior.round(6)
    array([0.083333, 0.916667])
    """
    if prior.shape[-1] != likelihood.shape[-1]:
        raise ValueError(
            f"prior and likelihood need one number per reason, got {tuple(prior.shape)} and "
            f"{tuple(likelihood.shape)}"
        )
    for name, value in (("prior", prior), ("likelihood", likelihood)):
        bad = torch.isnan(value) | (value == math.inf if log else (value < 0) | (value == math.inf))
        if bool(bad.any()):
            raise ValueError(
                f"{name} must be {'log ' if log else ''}probabilities, no NaN or infinity"
            )
    log_prior, log_lik = (prior, likelihood) if log else (prior.log(), likelihood.log())
    total = log_prior.logsumexp(-1, keepdim=True)
    if not bool(torch.isfinite(total).all()):
        raise ValueError("the prior gives every reason probability 0")
    joint = log_prior - total + log_lik
    evidence = joint.logsumexp(-1)
    if not bool(torch.isfinite(evidence.detach()).all()):
        raise ValueError(
            "the observation has probability 0 under every reason, so it cannot be conditioned on"
        )
    after = (joint - evidence.unsqueeze(-1)).exp()
    return Posterior(after, evidence if log else evidence.exp())


class NormalInverseGamma(Distribution):
    r"""A normal mean and variance together: :math:`v \sim \mathrm{InverseGamma}(a, b)`,
    :math:`\mu \mid v \sim N(m, v/\kappa)`; the event is (μ, v).

    Parameters
    ----------
    loc : m
    kappa : how many rows the prior mean is worth
    concentration, rate : a and b of the variance

    Examples
    --------
    >>> p = NormalInverseGamma(0.0, 1.0, 3.0, 2.0)
    >>> p.mean.tolist(), type(p.marginal_mean()).__name__
    ([0.0, 1.0], 'StudentT')
    """

    arg_constraints = {
        "loc": constraints.real,
        "kappa": constraints.positive,
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.stack([constraints.real, constraints.positive], -1)

    def __init__(
        self, loc: Any, kappa: Any, concentration: Any, rate: Any, validate_args: bool | None = None
    ) -> None:
        parts = broadcast_all(loc, kappa, concentration, rate)
        self.loc, self.kappa, self.concentration, self.rate = parts
        super().__init__(self.loc.shape, torch.Size([2]), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        spread = torch.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)
        return torch.stack([self.loc, spread], -1)

    def log_prob(self, value: Tensor) -> Tensor:
        mu, v = value.unbind(-1)
        variance = D.InverseGamma(self.concentration, self.rate, validate_args=False)
        inner = D.Normal(self.loc, (v / self.kappa).sqrt(), validate_args=False)
        return variance.log_prob(v) + inner.log_prob(mu)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        v = D.InverseGamma(self.concentration, self.rate).rsample(sample_shape)
        mu = D.Normal(self.loc, (v / self.kappa).sqrt()).rsample()
        return torch.stack([mu, v], -1)

    def marginal_mean(self) -> D.StudentT:
        """The distribution of μ alone."""
        scale = (self.rate / (self.concentration * self.kappa)).sqrt()
        return D.StudentT(2 * self.concentration, self.loc, scale)

    def predictive(self) -> D.StudentT:
        """The distribution of the next value."""
        scale = (self.rate * (1 + 1 / self.kappa) / self.concentration).sqrt()
        return D.StudentT(2 * self.concentration, self.loc, scale)


def conjugate_update(
    prior: Distribution, x: Any, *, scale: Any = None, sample_weight: Any = None
) -> Distribution:
    r"""The posterior in the family of the prior.

    ====================  ===================  ==========================================================
    prior                 x                    posterior
    ====================  ===================  ==========================================================
    Beta(a, b)            0 and 1              Beta(a + heads, b + tails)
    Dirichlet(a)          labels 0 to K − 1    Dirichlet(a + counts)
    Gamma(a, b)           counts               Gamma(a + Σx, b + n): the rate of a Poisson distribution
    Normal(m, s)          real, ``scale``      precisions add: :math:`1/s^2 + n/\sigma^2`
    NormalInverseGamma    real                 mean and variance both unknown
    ====================  ===================  ==========================================================

    Parameters
    ----------
    prior : one of the above
    x : ``(n,)`` observations; none leaves the prior
    scale : known standard deviation σ of the observations, for a Normal prior
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Examples
    --------
    >>> found = conjugate_update(D.Beta(2.0, 2.0), [1, 1, 0, 1])
    >>> found.concentration1.item(), found.concentration0.item()
    (5.0, 3.0)
    """
    rows = as_tensor(x, "x")
    w = (
        torch.ones_like(rows)
        if sample_weight is None
        else as_tensor(sample_weight, "sample_weight")
    )
    if rows.ndim != 1 or w.shape != rows.shape or bool((w < 0).any()):
        raise ValueError(
            f"x must be a list of numbers with one weight each, at least 0; got shapes "
            f"{tuple(rows.shape)} and {tuple(w.shape)}"
        )
    p: Any = prior
    if isinstance(prior, D.Beta):
        _whole(rows, 0, 1, "0 and 1")
        heads = (w * rows).sum().to(p.concentration1)
        tails = w.sum().to(heads) - heads
        return D.Beta(p.concentration1 + heads, p.concentration0 + tails)
    if isinstance(prior, D.Dirichlet):
        k = p.concentration.shape[-1]
        _whole(rows, 0, k - 1, f"labels 0 to {k - 1}")
        counts = torch.zeros(k, dtype=w.dtype, device=w.device).index_add(0, rows.long(), w)
        return D.Dirichlet(p.concentration + counts.to(p.concentration))
    if isinstance(prior, D.Gamma):
        _whole(rows, 0, math.inf, "counts")
        total = (w * rows).sum().to(p.rate)
        return D.Gamma(p.concentration + total, p.rate + w.sum().to(p.rate))
    if isinstance(prior, D.Normal):
        if scale is None:
            raise ValueError("a Normal prior needs scale=, the known standard deviation of x")
        known = torch.as_tensor(scale).to(p.loc)
        precision = p.scale**-2 + w.sum().to(p.loc) / known**2
        pull = p.loc / p.scale**2 + (w * rows).sum().to(p.loc) / known**2
        return D.Normal(pull / precision, precision.rsqrt())
    if isinstance(prior, NormalInverseGamma):
        n = w.sum().to(p.loc)
        mean = ((w * rows).sum() / w.sum().clamp(min=torch.finfo(w.dtype).tiny)).to(p.loc)
        scatter = (w * (rows - mean.to(rows)).square()).sum().to(p.loc)
        kappa = p.kappa + n
        rate = p.rate + 0.5 * scatter + 0.5 * p.kappa * n * (mean - p.loc) ** 2 / kappa
        loc = (p.kappa * p.loc + n * mean) / kappa
        return NormalInverseGamma(loc, kappa, p.concentration + 0.5 * n, rate)
    raise Unsupported(
        f"{type(prior).__name__} is not a conjugate prior here; use Beta, Dirichlet, Gamma, Normal or "
        "NormalInverseGamma, or posterior() on a grid"
    )


def _whole(x: Tensor, low: float, high: float, says: str) -> None:
    if bool(((x != x.round()) | (x < low) | (x > high)).any()):
        raise ValueError(
            f"x must be {says} under this prior, got {float(x.min())} to {float(x.max())}"
        )
