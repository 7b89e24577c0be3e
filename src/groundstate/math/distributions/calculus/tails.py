r"""Closed forms that keep their digits in the tails, where :math:`1 - F` has none left.

.. math:: \log(1 - \Phi(x)) = \log\Phi(-x), \qquad P(X > k) = P(k + 1, \lambda)\ \text{(Poisson)}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.math.distributions.calculus.incomplete import betainc, gammainc

Formula = Callable[[Any, Tensor], Tensor]


def of_kind(table: dict[type[Distribution], Formula], p: Distribution) -> Formula | None:
    """The entry of the nearest class of a distribution."""
    return next((table[kind] for kind in type(p).__mro__ if kind in table), None)


def _ndtr(z: Tensor) -> Tensor:
    """The normal distribution function; torch's own has no digits left below −8."""
    return torch.special.log_ndtr(z).exp()


def _positive(x: Tensor) -> Tensor:
    return x.clamp(min=torch.finfo(x.dtype).tiny)


def _above(formula: Formula, low: Callable[[Any], Any]) -> Formula:
    """log P(X > x) of a continuous distribution that begins at ``low``, before which it is 0."""

    def of(p: Any, x: Tensor) -> Tensor:
        inside = x > low(p)
        return torch.where(inside, formula(p, torch.where(inside, x, low(p) + 1.0)), 0.0)

    return of


def _counts(sf: Formula) -> Formula:
    """log P(X > k) of counts from P(X > k) at 0, 1, ..."""

    def of(p: Any, x: Tensor) -> Tensor:
        k = x.detach().floor()
        return torch.where(k < 0, 0.0, sf(p, k.clamp(min=0)).log())

    return of


def _binomial(p: Any, k: Tensor) -> Tensor:
    more = k < p.total_count
    safe = torch.where(more, k, torch.zeros_like(k))
    value = betainc(safe + 1, (p.total_count - safe).clamp(min=1), p.probs)
    return torch.where(more, value, 0.0)


def _fisher(p: Any, x: Tensor) -> Tensor:
    y = p.df1 * x.clamp(min=0)
    return betainc(0.5 * p.df2, 0.5 * p.df1, p.df2 / (p.df2 + y)).log()


def _laplace(p: Any, x: Tensor) -> Tensor:
    z = (x - p.loc) / p.scale
    return torch.where(z > 0, -z - math.log(2), torch.log1p(-0.5 * z.clamp(max=0).exp()))


def _laplace_below(p: Any, x: Tensor) -> Tensor:
    z = (x - p.loc) / p.scale
    tail = 0.5 * (-z.abs()).exp()
    return torch.where(z < 0, tail, 1 - tail)


def _laplace_quantile(p: Any, q: Tensor) -> Tensor:
    low = q < 0.5
    half = torch.where(low, q, 1 - q)
    return p.loc + torch.where(low, 1.0, -1.0) * p.scale * (2 * half).log()


def _cauchy_quantile(p: Any, q: Tensor) -> Tensor:
    low = q < 0.5
    size = 1 / (math.pi * torch.where(low, q, 1 - q)).tan()  # infinite at 0 and 1
    return p.loc - torch.where(low, size, -size) * p.scale


def _below(x: Tensor, loc: Any, scale: Any) -> Tensor:
    """P(X ≤ x) of a Cauchy distribution, to full digits on the left."""
    return torch.atan2(torch.ones_like(x), (loc - x) / scale) / math.pi


def _gumbel_height(p: Any, x: Tensor) -> Tensor:
    return (-(x - p.loc) / p.scale).exp()


LOG_SF: dict[type[Distribution], Formula] = {
    D.Normal: lambda p, x: torch.special.log_ndtr((p.loc - x) / p.scale),
    D.LogNormal: lambda p, x: torch.special.log_ndtr((p.loc - _positive(x).log()) / p.scale),
    D.HalfNormal: _above(
        lambda p, x: math.log(2) + torch.special.log_ndtr(-x / p.scale), lambda p: p.scale * 0
    ),
    D.Exponential: lambda p, x: -p.rate * x.clamp(min=0),
    D.Weibull: _above(lambda p, x: -((x / p.scale) ** p.concentration), lambda p: p.scale * 0),
    D.Pareto: _above(lambda p, x: p.alpha * (p.scale / x).log(), lambda p: p.scale),
    D.Gumbel: lambda p, x: (-torch.expm1(-_gumbel_height(p, x))).log(),
    D.Cauchy: lambda p, x: _below(-x, -p.loc, p.scale).log(),
    D.Laplace: _laplace,
    D.Gamma: lambda p, x: gammainc(p.concentration, p.rate * x.clamp(min=0), upper=True).log(),
    D.InverseGamma: lambda p, x: torch.where(
        x > 0, gammainc(p.concentration, p.rate / _positive(x)).log(), 0.0
    ),
    D.FisherSnedecor: _fisher,
    D.Beta: lambda p, x: betainc(p.concentration0, p.concentration1, 1 - x.clamp(0, 1)).log(),
    D.Poisson: _counts(lambda p, k: gammainc(k + 1, p.rate.expand_as(k + p.rate))),
    D.Binomial: _counts(_binomial),
    D.Geometric: lambda p, x: (x.detach().floor() + 1).clamp(min=0) * torch.log1p(-p.probs),
    D.NegativeBinomial: _counts(lambda p, k: betainc(k + 1, p.total_count, p.probs)),
}
CDF: dict[type[Distribution], Formula] = {
    D.Normal: lambda p, x: _ndtr((x - p.loc) / p.scale),
    D.LogNormal: lambda p, x: torch.where(
        x > 0, _ndtr((_positive(x).log() - p.loc) / p.scale), 0.0
    ),
    D.Cauchy: lambda p, x: _below(x, p.loc, p.scale),
    D.Laplace: _laplace_below,
    D.Gumbel: lambda p, x: (-_gumbel_height(p, x)).exp(),
}
ICDF: dict[type[Distribution], Formula] = {
    D.Normal: lambda p, q: p.loc + p.scale * torch.special.ndtri(q),
    D.LogNormal: lambda p, q: (p.loc + p.scale * torch.special.ndtri(q)).exp(),
    D.Cauchy: _cauchy_quantile,
    D.Laplace: _laplace_quantile,
    D.Gumbel: lambda p, q: p.loc - p.scale * (-q.log()).log(),
}
