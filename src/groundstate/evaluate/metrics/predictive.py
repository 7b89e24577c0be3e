r"""Predictive distributions judged: coverage of intervals, PIT, interval score, CRPS."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.proportions import effective_n, proportion_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coverage(Displayed):
    """How often intervals held the truth.

    Attributes
    ----------
    overall : Interval
        Share inside, with Wilson's interval.
    mean_width : float
    by_prediction : tuple of Interval
        The share by tenth of the middle of the intervals.
    by_feature : dict of str to tuple of Interval
        The same by tenth of each feature.
    """

    overall: Interval
    mean_width: float
    by_prediction: tuple[Interval, ...] = ()
    by_feature: dict[str, tuple[Interval, ...]] | None = None

    def __str__(self) -> str:
        return f"covers {self.overall}, mean width {self.mean_width:.4g}"


def coverage(
    y: Any, lo: Any, hi: Any, X: Any = None, *, level: float = 0.95, sample_weight: Any = None
) -> Coverage:
    """Share of truths inside their intervals: overall, and by tenths of predictions and features.

    Parameters
    ----------
    y, lo, hi : ``(n,)``
    X : ``(n, d)`` array or frame; its numeric columns are cut into tenths
    level : of the intervals of the shares

    Examples
    --------
    >>> print(coverage([0.0, 1.0, 2.0, 9.0], [-1, 0, 1, 2], [1, 2, 3, 4]))
    covers 0.75 (0.3006 to 0.9544), mean width 2
    """
    truth, low, high = (np.asarray(v, np.float64) for v in (y, lo, hi))
    if truth.ndim != 1 or low.shape != truth.shape or high.shape != truth.shape:
        raise ShapeError(
            f"y, lo and hi need one number per row, got {truth.shape}, {low.shape}, {high.shape}"
        )
    if (high < low).any():
        raise DataError("an interval ends before it begins; swap lo and hi")
    w = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    inside = (low <= truth) & (truth <= high)

    def share(rows: Any) -> Interval:
        n = effective_n(w[rows])
        return proportion_interval(float(np.average(inside[rows], weights=w[rows])) * n, n, level)

    def tenths(values: Floats) -> tuple[Interval, ...]:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, 11)))
        place = np.searchsorted(edges[1:-1], values)
        return tuple(share(place == b) for b in np.unique(place))

    features = None
    if X is not None:
        from groundstate.evaluate.rows import columns

        names = list(getattr(X, "columns", []))
        each: list[Any] = columns(X)
        if len(each) == 1 and np.ndim(each[0]) == 2:
            each = list(np.asarray(each[0]).T)
        names = [str(n) for n in names] or [f"x{j}" for j in range(len(each))]
        features = {
            name: tenths(np.asarray(column, np.float64))
            for name, column in zip(names, each)
            if np.asarray(column).dtype.kind in "fiu" and np.isfinite(column).all()
        }
    width = high - low
    return Coverage(share(slice(None)), float(np.average(width, weights=w)),
                    tenths((low + high) / 2), features)  # fmt: skip


def interval_score(y: Any, lo: Any, hi: Any, level: float = 0.9) -> Floats:
    r"""Winkler's score of an interval at ``level`` = 1 − α, one per row, lower is better.

    :math:`(u-l) + \frac2\alpha(l-y)_+ + \frac2\alpha(y-u)_+`.

    >>> interval_score([0.0, 3.0], [-1.0, -1.0], [1.0, 1.0], level=0.9).round(6).tolist()
    [2.0, 42.0]
    """
    truth, low, high = (np.asarray(v, np.float64) for v in (y, lo, hi))
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return high - low + 2 / (1 - level) * miss


def crps_gaussian(y: Any, mean: Any, std: Any) -> Floats:
    r"""CRPS of a Gaussian, :math:`\sigma\{z(2\Phi(z)-1) + 2\varphi(z) - \pi^{-1/2}\}`, per row.

    >>> round(float(crps_gaussian(0.0, 0.0, 1.0)), 6)
    0.233695
    """
    truth, m, s = (np.asarray(v, np.float64) for v in (y, mean, std))
    if (s <= 0).any():
        raise DataError("std must be positive")
    z = (truth - m) / s
    normal = scipy.stats.norm
    return np.asarray(
        s * (z * (2 * normal.cdf(z) - 1) + 2 * normal.pdf(z) - 1 / math.sqrt(math.pi))
    )


def crps_sample(y: Any, draws: Any) -> Floats:
    r"""CRPS of draws, :math:`E|X - y| - \frac12E|X - X'|`, per row, in :math:`O(m\log m)`.

    Parameters
    ----------
    y : ``(n,)``
    draws : ``(n, m)``

    Examples
    --------
    >>> crps_sample([0.0], [[-1.0, 1.0]]).tolist()
    [0.5]
    """
    truth = np.asarray(y, np.float64)
    x = np.sort(np.asarray(draws, np.float64), axis=1)
    if x.ndim != 2 or len(x) != len(truth):
        raise ShapeError(f"draws are (n, m) for n rows, got {x.shape} for {truth.shape}")
    m = x.shape[1]
    spread = x @ (2 * np.arange(1, m + 1) - m - 1) / m**2
    return np.abs(x - truth[:, None]).mean(1) - spread


@dataclass(frozen=True)
class PIT(Displayed):
    """Where the truth lies in the predicted distributions: uniform when the model knows its spread.

    Attributes
    ----------
    values : (n,) or None
        :math:`F_i(y_i)`; None for a model without uncertainty.
    histogram : (10,) counts
    ks, pvalue : Kolmogorov-Smirnov distance from uniform, and its p
    kind : where the distribution came from, or ``"no uncertainty"``
    """

    values: Floats | None
    histogram: NDArray[np.intp] | None
    ks: float
    pvalue: float
    kind: str


def pit(model: Any, X: Any, y: Any) -> PIT:
    """Probability integral transform of a fitted regressor on rows.

    The distribution is the model's ``predict_dist`` (something with ``cdf``), else a Gaussian from
    ``predict(return_std=True)``, else its quantiles (``predict_quantiles`` with ``quantiles``).
    A model that predicts points alone is labelled "no uncertainty".

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(400, 2)); y = X @ [1.0, -2.0] + rng.normal(size=400)
    >>> found = pit(BayesianRidge().fit(X[:200], y[:200]), X[200:], y[200:])
    >>> found.kind, found.pvalue > 0.01
    ('gaussian', True)
    """
    truth = np.asarray(y, np.float64)
    found = predictive_cdf(model, X)
    if found is None:
        return PIT(None, None, math.nan, math.nan, "no uncertainty")
    kind, cdf = found
    values = np.clip(np.asarray(cdf(truth), np.float64).reshape(len(truth)), 0, 1)
    test = scipy.stats.kstest(values, "uniform")
    histogram = np.histogram(values, 10, (0, 1))[0]
    return PIT(values, histogram, float(test.statistic), float(test.pvalue), kind)


def predictive_cdf(model: Any, X: Any) -> tuple[str, Any] | None:
    """The kind of a model's predictive distribution and its cumulative function, None for points."""
    from groundstate.evaluate.fitting import gives_std

    if hasattr(model, "predict_dist"):
        found = model.predict_dist(X)

        def cdf(y: Floats) -> Any:
            import torch

            if type(found).__module__.startswith(("torch", "groundstate")):
                return found.cdf(torch.as_tensor(y)).numpy()
            return found.cdf(y)

        return "distribution", cdf
    if gives_std(model):
        mean, std = model.predict(X, return_std=True)
        mean, std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
        return "gaussian", lambda y: scipy.stats.norm.cdf((y - mean.reshape(-1)) / std.reshape(-1))
    if hasattr(model, "predict_quantiles") and hasattr(model, "quantiles"):
        table = np.asarray(model.predict_quantiles(X), np.float64)  # (n, Q)
        at = np.asarray(model.quantiles, np.float64)
        return "quantiles", lambda y: np.array(
            [np.interp(v, row, at, left=0.0, right=1.0) for v, row in zip(y, table)]
        )
    return None
