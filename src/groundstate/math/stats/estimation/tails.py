r"""How heavy a right tail is: :math:`e^{tx}P(X > x) \to \infty` for every t > 0, or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.distributions import Distribution

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.math.arrays import as_tensor
from groundstate.math.distributions.calculus.cumulative import icdf, log_sf
from groundstate.math.stats.psis import pareto_fit
from groundstate.math.stats.samples import sample

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TailReport(Displayed):
    """The right tail of a distribution or a sample.

    Attributes
    ----------
    heavy : whether the tail is heavier than every exponential one
    slope : of log P(X > x) against log x far out; −α for a tail like :math:`x^{-α}`
    index : Hill's estimate of α (samples); None for a distribution
    shape, shape_error : of a generalised Pareto distribution fitted to the excesses (samples)
    x, t : points and exponents
    growth : log P(X > x) + t x, ``(len(t), len(x))`` (distributions)
    excess : mean of X − x beyond each x (samples)
    """

    heavy: bool
    slope: float
    index: float | None
    shape: float | None
    shape_error: float | None
    x: Floats
    t: Floats | None
    growth: Floats | None
    excess: Floats | None

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"heavy": self.heavy, "slope": self.slope}
        if self.index is not None:
            facts |= {"Hill": self.index, "Pareto shape": self.shape}
        return facts


def tail_report(
    x: Any, *, t: Any = (0.1, 0.5, 1.0), at: Any = None, k: int | None = None
) -> TailReport:
    r"""Is the right tail heavy?

    For a distribution :math:`\log P(X > x) + tx` is given on a grid; the tail is heavy where
    :math:`-\log P(X > x)/x` falls to zero. For a sample: Hill's estimate from the k largest values, the slope
    of the survival function on logarithmic axes, mean excesses, and a generalised Pareto fit, whose shape
    is above zero for a heavy tail.

    Parameters
    ----------
    x : torch distribution of one variable, or a sample ``(n,)``
    t : exponents, for a distribution
    at : points; for a distribution 5 and 30 by default, for a sample quantiles
    k : how many of the largest values count as the tail; the square root of n

    Examples
    --------
    >>> from torch.distributions import Cauchy, Exponential
    >>> one = torch.tensor(1.0).double()
    >>> print(tail_report(Cauchy(0 * one, one)))
    TailReport: heavy True, slope -1
    >>> tail_report(Exponential(one), t=[0.5], at=[5.0, 30.0]).growth
    array([[ -2.5, -15. ]])
    """
    if isinstance(x, Distribution):
        return _of_distribution(x, np.asarray(t, np.float64), at)
    return _of_sample(as_tensor(x, "x").detach().double().cpu().numpy(), at, k)


def _of_distribution(p: Distribution, t: Floats, at: Any) -> TailReport:
    points = np.asarray((5.0, 30.0) if at is None else at, np.float64)
    sf = log_sf(p, torch.from_numpy(points)).numpy()
    growth = sf + t[:, None] * points
    ends = icdf(p, torch.tensor([0.5, 0.75], dtype=torch.float64))
    middle, width = float(ends[0]), float(ends[1] - ends[0])
    far = middle + width * torch.tensor([1e2, 1e4, 1e6, 1.1e6], dtype=torch.float64)
    logs = log_sf(p, far).numpy()
    with np.errstate(invalid="ignore"):
        rate = -logs / far.numpy()
        heavy = bool(np.isfinite(rate[1]) and rate[1] < 0.5 * rate[0])
        reach = np.log(far.numpy() - middle)
        slope = (logs[3] - logs[2]) / (reach[3] - reach[2]) if np.isfinite(logs[3]) else -math.inf
    return TailReport(heavy, float(slope), None, None, None, points, t, growth, None)


def _of_sample(x: Floats, at: Any, k: int | None) -> TailReport:
    if x.ndim != 1 or len(x) < 20:
        raise DataError(f"a tail needs a sample of at least 20 numbers, got shape {x.shape}")
    k = max(10, round(math.sqrt(len(x)))) if k is None else k
    if not 5 <= k < len(x):
        raise DataError(f"k is the number of largest values, from 5 to {len(x) - 1}, got {k}")
    ordered = np.sort(x)
    top = ordered[-k:]
    start = ordered[-k - 1]
    index = hill(x, k)
    shape, _ = pareto_fit(top - start) if top[-1] > top[0] > start else (-math.inf, 0.0)
    error = (1 + max(shape, 0.0)) / math.sqrt(k)
    survival = np.arange(k, 0, -1) / len(x)
    positive = top > 0
    slope = (
        float(np.polyfit(np.log(top[positive]), np.log(survival[positive]), 1)[0])
        if positive.sum() > 2 and np.ptp(top[positive]) > 0
        else -math.inf
    )
    points = np.quantile(x, [0.5, 0.75, 0.9, 0.95, 0.99]) if at is None else np.asarray(at, float)
    excess = np.array([(x[x > u] - u).mean() if (x > u).any() else math.nan for u in points])
    heavy = shape > 1.645 * error
    return TailReport(bool(heavy), slope, index, shape, error, points, None, None, excess)


def hill(x: Any, k: int) -> float:
    r"""Hill's estimate of α from the k largest values:
    :math:`1/\hat\alpha = \frac1k\sum_{i\le k}\log(x_{(i)}/x_{(k+1)})`; infinite where they are equal,
    NaN where the k + 1 largest are not all positive.

    >>> hill(np.exp(np.arange(10.0)), 3)
    0.5
    """
    values = np.sort(sample(x, "x", 2))
    if not 1 <= k < len(values):
        raise ValueError(f"k must be at least 1 and below the {len(values)} rows, got {k}")
    start, top = values[-k - 1], values[-k:]
    if start <= 0:
        return math.nan
    mean = float(np.log(top / start).mean())
    return 1 / mean if mean > 0 else math.inf
