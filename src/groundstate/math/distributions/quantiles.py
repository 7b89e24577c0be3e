r"""Quantiles of torch's distributions: :math:`\min\{y : P(Y \le y) \ge q\}`, for those without ``icdf`` too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import scipy.stats
import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.errors import Unsupported
from groundstate.math.distributions.base import by_scipy


def quantile(distribution: Distribution, q: float) -> Tensor:
    """The q-quantile of every coordinate of a distribution, ``(*batch, *event)``, without gradient.

    Coordinates of a vector have their own quantiles. An angle's are those around its mean
    direction, so that they may leave [−π, π].

    Parameters
    ----------
    distribution : Normal, Laplace, StudentT, LogNormal, Gamma, Exponential, Beta, VonMises, Bernoulli,
        Poisson, NegativeBinomial, MultivariateNormal, Independent of them, or any distribution with
        ``icdf`` or ``quantile``
    q : in (0, 1)

    Examples
    --------
    >>> distribution = D.Poisson(torch.tensor([1.0, 10.0]))
    >>> quantile(distribution, 0.5).tolist(), quantile(distribution, 0.975).tolist()
    ([1.0, 10.0], [3.0, 17.0])
    """
    if not 0 < q < 1:
        raise ValueError(f"a quantile is asked for at q in (0, 1), got q={q}")
    with torch.no_grad():
        if isinstance(distribution, D.Independent):
            return quantile(distribution.base_dist, q)
        own = getattr(distribution, "quantile", None)
        if own is not None:
            result: Tensor = own(q)
            return result
        if isinstance(distribution, D.MultivariateNormal):
            sides = D.Normal(distribution.loc, distribution.variance.sqrt(), validate_args=False)
            return quantile(sides, q)
        if type(distribution) in _SCIPY:
            return _SCIPY[type(distribution)](distribution, q)
        try:
            like = distribution.mean
            return distribution.icdf(torch.full_like(like, q))
        except NotImplementedError:
            raise Unsupported(
                f"{type(distribution).__name__} has no quantiles: its values have no order; use its "
                "probabilities or its mode"
            ) from None


def _ppf(family: Any, q: float, *parameters: Tensor) -> Tensor:
    return by_scipy(family, q, parameters[0], *parameters)


def _von_mises(distribution: Any, q: float) -> Tensor:
    loc, kappa = torch.broadcast_tensors(distribution.loc, distribution.concentration)
    return loc + _ppf(scipy.stats.vonmises, q, kappa)


_SCIPY: dict[type[Distribution], Callable[[Any, float], Tensor]] = {
    D.StudentT: lambda p, q: p.loc + p.scale * _ppf(scipy.stats.t, q, p.df),
    D.Gamma: lambda p, q: _ppf(scipy.stats.gamma, q, p.concentration) / p.rate,
    D.Beta: lambda p, q: _ppf(scipy.stats.beta, q, p.concentration1, p.concentration0),
    D.Poisson: lambda p, q: _ppf(scipy.stats.poisson, q, p.rate),
    D.NegativeBinomial: lambda p, q: _ppf(
        scipy.stats.nbinom, q, *torch.broadcast_tensors(p.total_count, torch.sigmoid(-p.logits))
    ),
    D.Bernoulli: lambda p, q: (torch.sigmoid(-p.logits) < q).to(p.logits.dtype),
    D.VonMises: _von_mises,
}


def interval(distribution: Distribution, level: float = 0.95) -> Tensor:
    r"""The central interval from the quantiles at :math:`(1 \mp \text{level})/2`.

    Returns
    -------
    Tensor ``(2, *batch, *event)`` : lower and upper ends

    Examples
    --------
    >>> interval(D.Normal(torch.tensor(1.0), torch.tensor(2.0)), 0.95)
    tensor([-2.9199,  4.9199])
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}; 0.95 means 95 %")
    tail = 0.5 * (1 - level)
    return torch.stack([quantile(distribution, tail), quantile(distribution, 1 - tail)])


def wrapped(angle: Tensor) -> Tensor:
    """An angle in [−π, π).

    >>> round(float(wrapped(torch.tensor(4.0))), 4)
    -2.2832
    """
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
