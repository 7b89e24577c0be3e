r"""The law of large numbers and the central limit theorem, to look at."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
import torch
from numpy.typing import NDArray
from torch.distributions import Distribution

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import Unreliable
from groundstate.math.arrays import takes_arrays
from groundstate.math.distributions.operations import draw
from groundstate.math.stats.estimation.tails import hill

Floats = NDArray[np.float64]
BLOCK = 2**22


@takes_arrays("x")
def running_mean(x: Any) -> Any:
    r""":math:`\bar x_m = \frac1m\sum_{i \le m}x_i` for every m, along the first axis.

    It settles at the mean if there is one (:math:`E|X| < \infty`), almost surely.

    Examples
    --------
    >>> running_mean([2.0, 4.0, 9.0])
    array([2., 3., 5.])
    """
    if x.ndim == 0:
        raise ValueError("x must be a sample (n, ...), got a single number")
    count = torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)
    return x.cumsum(0) / count.reshape(-1, *[1] * (x.ndim - 1))


@dataclass(frozen=True)
class StandardizedMeans(Displayed):
    r"""Values of :math:`\sqrt m(\bar x - \mu)/\sigma`.

    Attributes
    ----------
    values : ``(k,)``
    ks : largest gap between their distribution function and the normal one
    m : draws in a mean
    mean, std : μ and σ of one draw, or median and half the width of the middle half where there are none
    finite_mean, finite_variance : whether the limit theorems apply
    """

    values: Floats
    ks: float
    m: int
    mean: float
    std: float
    finite_mean: bool
    finite_variance: bool

    def _facts(self) -> dict[str, Any]:
        return {"m": self.m, "KS": self.ks, "finite variance": self.finite_variance}

    def qq(self) -> tuple[Floats, Floats]:
        """Normal quantiles and ordered values, for a plot."""
        k = len(self.values)
        at = scipy.stats.norm.ppf((np.arange(k) + 0.5) / k)
        return np.asarray(at), np.sort(self.values)


def standardized_means(
    sampler: Distribution | Callable[[tuple[int, int], np.random.Generator], Any],
    m: int,
    k: int,
    *,
    mean: float | None = None,
    std: float | None = None,
    random_state: Key | RandomState = 0,
) -> StandardizedMeans:
    r"""k means of m draws each, standardised: :math:`\sqrt m(\bar x - \mu)/\sigma \to N(0, 1)`.

    That needs a finite variance. Without one (Cauchy) a warning says so, and the values are centred at the
    median and scaled by half the width of the middle half: for Cauchy's distribution they have, after
    division by :math:`\sqrt m`, the distribution of one draw, for every m.

    Parameters
    ----------
    sampler : torch distribution, or a function ``((k, m), generator) -> array``
    m : draws in a mean
    k : means
    mean, std : of one draw, if the sampler cannot tell; estimated from its draws otherwise

    Examples
    --------
    >>> one = torch.distributions.Exponential(torch.tensor(1.0).double())
    >>> [round(standardized_means(one, m, 20_000).ks, 1) for m in (1, 256)]
    [0.2, 0.0]
    """
    if m < 1 or k < 2:
        raise ValueError(f"m must be at least 1 and k at least 2, got m={m} and k={k}")
    key = Key.of(random_state)
    means, first = [], None
    step = max(1, BLOCK // m)
    for i, start in enumerate(range(0, k, step)):
        rows = _rows(sampler, (min(step, k - start), m), key.fold(i))
        first = rows.ravel() if first is None else first
        means.append(rows.mean(1))
    assert first is not None
    mu, sigma, has_mean, has_variance = _moments(sampler, first, mean, std)
    values = math.sqrt(m) * (np.concatenate(means) - mu) / sigma
    if not has_variance:
        missing = "variance" if has_mean else "mean"
        warnings.warn(
            f"one draw has no finite {missing}, so the means do not become normal",
            Unreliable,
            stacklevel=2,
        )
    ks = float(scipy.stats.kstest(values, "norm").statistic)
    return StandardizedMeans(values, ks, m, mu, sigma, has_mean, has_variance)


def _rows(sampler: Any, shape: tuple[int, int], key: Key) -> Floats:
    if isinstance(sampler, Distribution):
        flat = draw(sampler, shape[0] * shape[1], key.torch())
        return flat.double().cpu().numpy().reshape(shape)
    rows = np.asarray(sampler(shape, key.numpy()), np.float64)
    if rows.shape != shape:
        raise ValueError(f"the sampler was asked for {shape} numbers and gave {rows.shape}")
    return rows


def _moments(
    sampler: Any, seen: Floats, mean: float | None, std: float | None
) -> tuple[float, float, bool, bool]:
    """μ, σ, and whether they exist."""
    if isinstance(sampler, Distribution):
        mu, variance = float(sampler.mean), float(sampler.variance)
    else:
        mu, variance = float(seen.mean()), float(seen.var())
        top = np.abs(seen - np.median(seen))
        size = math.isqrt(len(seen))
        if len(seen) >= 1000:
            index = hill(top, size) * (1 + 1.645 / math.sqrt(size))
            mu = math.nan if index < 1 else mu
            variance = math.inf if index < 2 else variance
    mu = mean if mean is not None else mu
    variance = std**2 if std is not None else variance
    has_mean = math.isfinite(mu)
    has_variance = has_mean and math.isfinite(variance)
    if has_variance:
        if variance <= 0:
            raise ValueError("every draw is the same; there is nothing to standardise by")
        return mu, math.sqrt(variance), True, True
    low, middle, high = np.quantile(seen, [0.25, 0.5, 0.75])
    return float(mu if has_mean else middle), float(high - low) / 2, has_mean, False
