r"""Moments of samples and of distributions."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.math.arrays import takes_arrays
from groundstate.math.distributions.calculus.integrate import expectation


def moments(
    x: Any,
    order: int = 2,
    *,
    central: bool = True,
    standardized: bool = False,
    absolute: bool = False,
    sample_weight: Any = None,
) -> Any:
    r"""Mean, variance, third moment and so on, up to ``order``: :math:`E X,\ E(X - \mu)^2,\ E(X - \mu)^3`.

    The first is always the mean. The third central moment of a sum of independent variables is the sum of
    theirs, as the variance is; the absolute third moment is not. Divisors are n.

    Parameters
    ----------
    x : sample ``(n, ...)``, or a torch distribution of one variable (quadrature)
    order : of the last moment
    central : about the mean; False gives :math:`E X^k`
    standardized : divide the third and later ones by :math:`\sigma^k` (skewness, kurtosis)
    absolute : :math:`E|X - \mu|^k`
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Returns
    -------
    ``(order, ...)``

    Examples
    --------
    >>> from torch.distributions import Exponential
    >>> moments(Exponential(torch.tensor(1.0).double()), 3).round(decimals=6).tolist()
    [1.0, 1.0, 2.0]
    >>> moments([1.0, 2.0, 6.0], 3, standardized=True).round(4)
    array([3.    , 4.6667, 0.5952])
    """
    if order < 1:
        raise ValueError(f"order is a whole number of at least 1, got {order}")
    if isinstance(x, Distribution):
        if sample_weight is not None:
            raise ValueError("sample_weight is for samples; a distribution brings its own")
        return _of_distribution(x, order, central, standardized, absolute)
    found = _of_sample(x, sample_weight, order, central, standardized, absolute)
    return found


@takes_arrays("x", "weight")
def _of_sample(
    x: Any, weight: Any, order: int, central: bool, standardized: bool, absolute: bool
) -> Any:
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"x must be a sample (n, ...) of at least one row, got {tuple(x.shape)}")
    w = torch.ones(len(x), dtype=x.dtype, device=x.device) if weight is None else weight.to(x.dtype)
    if w.shape != (len(x),) or bool((w < 0).any()) or not float(w.detach().sum()) > 0:
        raise ValueError("sample_weight must be one number per row, at least 0, not all 0")
    w = (w / w.sum()).reshape(-1, *[1] * (x.ndim - 1))
    mean = (w * x).sum(0)
    y = x - mean if central else x
    y = y.abs() if absolute else y
    found = [mean] + [(w * y**k).sum(0) for k in range(2, order + 1)]
    sigma = (w * (x - mean).square()).sum(0).sqrt()
    return _assembled(found, sigma, standardized)


def _of_distribution(
    p: Distribution, order: int, central: bool, standardized: bool, absolute: bool
) -> Tensor:
    mean = expectation(p, lambda v: v)
    if not bool(torch.isfinite(mean)):
        return torch.full((order,), float("nan"), dtype=mean.dtype)
    centre = mean if central else torch.zeros_like(mean)

    def about(k: int) -> Tensor:
        kink = centre.detach() if absolute else None
        return expectation(
            p, lambda v: ((v - centre).abs() if absolute else v - centre) ** k, split=kink
        )

    found = [mean] + [about(k) for k in range(2, order + 1)]
    sigma = expectation(p, lambda v: (v - mean) ** 2).sqrt() if standardized else mean
    return _assembled(found, sigma, standardized)


def _assembled(found: list[Tensor], sigma: Tensor, standardized: bool) -> Tensor:
    if standardized:
        found = [m if k < 2 else m / sigma ** (k + 1) for k, m in enumerate(found)]
    return torch.stack(found)


def mean_abs_dev(x: Any, center: Literal["median", "mean"] = "median") -> Any:
    r"""The mean distance from the median, :math:`E|X - m|`, or from the mean.

    Not the median distance (``scipy.stats.median_abs_deviation``).

    Parameters
    ----------
    x : sample ``(n, ...)``, or a torch distribution of one variable

    Examples
    --------
    >>> mean_abs_dev([1.0, 2.0, 6.0])
    1.6666666666666667
    """
    if center not in ("median", "mean"):
        raise ValueError(f"center must be 'median' or 'mean', got {center!r}")
    if isinstance(x, Distribution):
        from groundstate.math.distributions.calculus.cumulative import icdf

        half = torch.tensor(0.5, dtype=torch.float64)
        middle = icdf(x, half) if center == "median" else expectation(x, lambda v: v)
        return expectation(x, lambda v: (v - middle).abs(), split=middle.detach())
    return _spread(x, center)


@takes_arrays("x")
def _spread(x: Any, center: str) -> Any:
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"x must be a sample (n, ...) of at least one row, got {tuple(x.shape)}")
    middle = x.quantile(0.5, 0) if center == "median" else x.mean(0)
    return (x - middle).abs().mean(0)
