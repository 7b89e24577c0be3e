r"""The bootstrap: how a statistic varies when its rows are drawn again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError, ShapeError
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.resample import Cells, merge
from groundstate.math.stats.samples import sample

Floats = NDArray[np.float64]
_METHODS = ("bca", "basic", "percentile")
_JACKKNIFE = 1000  # rows (or groups of rows) left out one after the other
_BLOCK = 2**22


@dataclass(frozen=True)
class Bootstrap:
    """A statistic, its resampled values, and their interval.

    Attributes
    ----------
    estimate, low, high, level, method
        The interval.
    draws : (n_resamples,)
    """

    interval: Interval
    draws: Floats = field(repr=False)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the resampled values."""
        return float(self.draws.std(ddof=1))

    def __str__(self) -> str:
        return str(self.interval)


def bootstrap(
    metric: Callable[..., Any] | str,
    *arrays: Any,
    n_resamples: int = 9999,
    method: str = "BCa",
    level: float = 0.95,
    groups: Any = None,
    stratify: Any = None,
    sample_weight: Any = None,
    random_state: Key | RandomState = 0,
) -> Bootstrap:
    r"""Interval of any statistic of rows, from resampled rows.

    Rows of all arrays are drawn jointly with replacement. ``"BCa"`` corrects the percentiles for
    bias :math:`z_0` and skewness :math:`a`,

    .. math:: \alpha' = \Phi\!\left(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\right) ;

    ``"percentile"`` takes quantiles of the draws, ``"basic"`` mirrors them at the estimate.

    A mean never touches the rows again: rows are merged into cells, whose counts are one
    multinomial draw per resample. A metric that takes ``sample_weight`` gets counts as weights, one
    that takes ``axis`` gets blocks of resamples, any other is called once per resample.

    Parameters
    ----------
    metric : ``metric(*arrays)``, or ``"mean"`` of one array ``(n,)``
    arrays : arrays of n rows
    n_resamples : number of resamples
    method : ``"BCa"``, ``"percentile"`` or ``"basic"``
    groups : ``(n,)`` labels; whole groups are drawn (people, households)
    stratify : ``(n,)`` labels; rows are drawn within each label, so that rare ones stay
    sample_weight : ``(n,)``; a weight of 2 is the row twice
    random_state : seed or key

    Examples
    --------
    >>> x = np.arange(40.0) % 7
    >>> print(bootstrap("mean", x))
    2.875 (2.275 to 3.5)
    """
    if not arrays:
        raise DataError("bootstrap needs at least one array of rows")
    rows = [np.asarray(array) for array in arrays]
    n = len(rows[0])
    if any(len(array) != n for array in rows):
        raise ShapeError(f"all arrays need the same rows, got {[len(a) for a in rows]}")
    if n < 2:
        raise DataError(f"the bootstrap needs at least two rows, got {n}")
    how = method.lower()
    if how not in _METHODS:
        raise ValueError(f"method must be 'BCa', 'percentile' or 'basic', got {method!r}")
    checked_level(level)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weight.shape != (n,) or (weight < 0).any() or not weight.sum() > 0:
        raise DataError(
            "sample_weight must be one number per row, not negative, positive somewhere"
        )
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}")
    generator = Key.of(random_state).numpy()
    if metric == "mean" and rows[0].ndim == 1:
        rows = [sample(rows[0], "the array")]
    if metric == "mean" and rows[0].ndim == 1 and groups is None and stratify is None:
        cells, total, _ = merge(rows[0][:, None], weight)
        draws = Cells(cells, total).draws(n_resamples, generator)[:, 0]
        value = float(total @ cells[:, 0] / total.sum())
        skew = mean_acceleration(cells[:, 0], total)
        return Bootstrap(interval_of(value, draws, level, how, skew), draws)
    call = _Call(_mean if metric == "mean" else metric, rows, weight, groups, stratify)
    draws = call.resampled(n_resamples, generator)
    skew = call.acceleration() if how == "bca" else 0.0
    return Bootstrap(interval_of(call.value(weight), draws, level, how, skew), draws)


def interval_of(
    estimate: float, draws: Floats, level: float, method: str = "bca", acceleration: float = 0.0
) -> Interval:
    """The interval that resampled values give; resamples without a value (NaN) are left out."""
    draws = draws[~np.isnan(draws)]
    if len(draws) == 0 or np.isnan(estimate):
        return Interval(float(estimate), np.nan, np.nan, level, method)
    if draws.min() == draws.max():  # every resample says the same
        return Interval(float(estimate), float(draws[0]), float(draws[0]), level, method)
    z = float(scipy.stats.norm.ppf((1 + level) / 2))
    tails = np.array([-z, z])
    if method == "bca":
        below = (draws < estimate).mean() + (draws == estimate).mean() / 2
        z0 = scipy.stats.norm.ppf(np.clip(below, 0.5 / len(draws), 1 - 0.5 / len(draws)))
        shifted = z0 + tails
        room = 1 - acceleration * shifted
        with np.errstate(divide="ignore"):  # no room: so skewed that the tail is the last draw
            tails = z0 + np.where(room > 0, shifted / room, np.sign(shifted) * np.inf)
    low, high = np.quantile(draws, scipy.stats.norm.cdf(tails))
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return Interval(float(estimate), float(low), float(high), level, method)


def mean_acceleration(x: Floats, weight: Floats) -> float:
    r"""BCa's acceleration of a mean, :math:`\sum u_i^3/(6(\sum u_i^2)^{3/2})`, u the deviations."""
    if not len(x):
        return 0.0
    u = x - weight @ x / weight.sum()
    u = u / (np.abs(u).max() or 1.0)  # skewness has no unit, and cubes of 1e150 overflow
    spread = float(weight @ u**2) ** 1.5
    return float(weight @ u**3) / (6 * spread) if spread > 0 else 0.0


def _mean(x: Any, sample_weight: Any = None) -> float:
    return float(np.average(x, weights=sample_weight))


class _Call:
    """A metric of rows under weights, in the quickest way that it allows."""

    def __init__(
        self, metric: Any, rows: list[NDArray[Any]], weight: Floats, groups: Any, stratify: Any
    ) -> None:
        if isinstance(metric, str):
            raise ValueError(f"metric is a function, or 'mean', got {metric!r}")
        if groups is not None and stratify is not None:
            raise ValueError("give groups or stratify, not both")
        self.metric, self.rows, self.weight = metric, rows, weight
        known = _parameters(metric)
        self.weighs, self.batches = "sample_weight" in known, "axis" in known
        if not self.weighs and (weight != np.round(weight)).any():
            raise DataError("this metric takes no sample_weight, so weights must be whole numbers")
        self.groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
        self.strata = None if stratify is None else np.unique(stratify, return_inverse=True)[1]
        self.units = len(weight) if self.groups is None else int(self.groups.max()) + 1

    def value(self, weight: Floats) -> float:
        if self.weighs:
            return float(self.metric(*self.rows, sample_weight=weight))
        index = np.repeat(np.arange(len(weight)), weight.astype(np.int64))
        return float(self.metric(*(array[index] for array in self.rows)))

    def weights(self, generator: np.random.Generator) -> Floats:
        """Weights of one resample.  # (n,)"""
        if self.groups is not None:
            hits = np.bincount(
                generator.integers(self.units, size=self.units), minlength=self.units
            )
            return hits[self.groups] * self.weight
        if self.strata is None:
            return _hits(self.weight, generator)
        out = np.zeros(len(self.weight))
        for label in range(int(self.strata.max()) + 1):
            rows = np.flatnonzero(self.strata == label)
            out[rows] = _hits(self.weight[rows], generator)
        return out

    def resampled(self, n: int, generator: np.random.Generator) -> Floats:
        plain = self.groups is None and self.strata is None and (self.weight == 1).all()
        if self.batches and not self.weighs and plain:
            size, out = len(self.weight), []
            step = max(1, _BLOCK // size)
            for start in range(0, n, step):
                index = generator.integers(size, size=(min(step, n - start), size))
                out.append(self.metric(*(array[index] for array in self.rows), axis=1))
            return np.concatenate(out).astype(np.float64)
        return np.array([self.value(self.weights(generator)) for _ in range(n)])

    def acceleration(self) -> float:
        """Skewness of the influence of single rows, or of up to a thousand groups of rows."""
        unit = np.arange(len(self.weight)) if self.groups is None else self.groups
        size = self.units
        part = unit * min(_JACKKNIFE, size) // size
        left = []
        for label in np.unique(part):
            weight = np.where(part == label, 0.0, self.weight)
            if weight.sum() > 0:
                left.append(self.value(weight))
        values = np.array(left)
        values = values[~np.isnan(values)]
        if len(values) < 2:
            return 0.0
        return -mean_acceleration(values, np.ones(len(values)))


def _hits(weight: Floats, generator: np.random.Generator) -> Floats:
    total = max(1, round(float(weight.sum())))
    if (weight == 1).all():
        hits = generator.integers(len(weight), size=total)
        return np.bincount(hits, minlength=len(weight)).astype(np.float64)
    return generator.multinomial(total, weight / weight.sum()).astype(np.float64)


def _parameters(metric: Any) -> set[str]:
    try:
        return set(inspect.signature(metric).parameters)
    except (TypeError, ValueError):
        return set()
