"""How sure a score is: Wilson, Student and bootstrap intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.resample import counts, merge
from groundstate.evaluate.rows import Floats, weights_of

_LEAVE_ONE_OUT = 4000  # rows up to which rank metrics get their acceleration row by row


@dataclass(frozen=True)
class Interval:
    """An estimate and a range that holds the truth with the given confidence."""

    estimate: float
    low: float
    high: float
    level: float = 0.95
    method: str = "wilson"

    def __str__(self) -> str:
        return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g})"


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    r"""Wilson's interval of a share.

    .. math:: \frac{\hat p + z^2/2n}{1 + z^2/n} \pm \frac{z}{1 + z^2/n}
              \sqrt{\frac{\hat p (1-\hat p)}{n} + \frac{z^2}{4n^2}}

    Parameters
    ----------
    successes, n
        Hits and trials; with weights, ``n`` is the effective number.
    level
        Confidence.

    Examples
    --------
    >>> print(wilson(900, 1000))
    0.9 (0.8798 to 0.9171)
    """
    if not 0 <= successes <= n or n <= 0:
        raise DataError(f"wilson needs 0 <= successes <= n and n > 0, got {successes} of {n}")
    p, z2 = successes / n, _z(level) ** 2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2) / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(p, low, high, level, "wilson")


def student(scores: Any, level: float = 0.95) -> Interval:
    r"""Student's interval of a mean of independent scores, :math:`\bar s \pm t\, s/\sqrt n`.

    Not for folds of one cross-validation, whose scores share training rows; see
    :func:`groundstate.evaluate.corrected_t`.

    >>> print(student([1.0, 2.0, 3.0]))
    2 (-0.4841 to 4.484)
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise DataError(f"student needs at least two scores, got shape {values.shape}")
    _z(level)
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(values)
    mean = float(values.mean())
    return Interval(mean, mean - float(half), mean + float(half), level, "student")


def bootstrap(
    metric: Metric,
    y: Any,
    prediction: Prediction,
    *,
    sample_weight: Any = None,
    n: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile"] = "bca",
    key: Key | RandomState = 0,
) -> Interval:
    r"""Interval of any metric on fixed predictions, from resampled rows.

    ``"bca"`` corrects the percentiles for bias :math:`z_0` and skewness :math:`a`:

    .. math:: \alpha' = \Phi\!\left(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\right)

    Parameters
    ----------
    metric, y, prediction
        What to compute; ``y`` are class numbers or real values.
    sample_weight
        A weight of 2 is the row twice.
    n
        Number of resamples.
    key
        Seed or key.

    Examples
    --------
    >>> from groundstate.evaluate import METRICS
    >>> y = np.arange(50.0)
    >>> print(bootstrap(METRICS["mae"], y, Prediction(y + np.tile([1.0, -3.0], 25))))
    2 (1.72 to 2.28)
    """
    y = np.asarray(y)
    weight = weights_of(sample_weight, len(prediction))
    z = _z(level)
    sample = Resampled(metric, y, [prediction], weight, n, Key.of(key))
    estimate, draws = sample.estimates[0], sample.draws[:, 0]
    draws = draws[~np.isnan(draws)]
    if len(draws) == 0 or np.isnan(estimate):
        return Interval(float(estimate), math.nan, math.nan, level, method)
    if draws.min() == draws.max():  # every resample says the same
        return Interval(float(estimate), float(draws[0]), float(draws[0]), level, method)
    tails = np.array([-z, z])
    if method == "bca":
        below = (draws < estimate).mean() + (draws == estimate).mean() / 2
        z0 = stats.norm.ppf(np.clip(below, 0.5 / len(draws), 1 - 0.5 / len(draws)))
        shifted = z0 + tails
        tails = z0 + shifted / (1 - sample.acceleration() * shifted)
    low, high = np.quantile(draws, stats.norm.cdf(tails))
    return Interval(float(estimate), float(low), float(high), level, method)


def interval(
    metric: Metric,
    y: Any,
    prediction: Prediction,
    *,
    sample_weight: Any = None,
    level: float = 0.95,
    key: Key | RandomState = 0,
) -> Interval:
    """The right interval for a metric: Wilson for a share, BCa bootstrap for the rest.

    Weighted shares use the weight itself as the number of rows (a weight of 2 is the row twice).
    """
    if metric.is_share:
        weight = weights_of(sample_weight, len(prediction))
        hits = metric.per_row(np.asarray(y), prediction)
        total = float(weight.sum())
        return wilson(min(float(hits @ weight), total), total, level)
    return bootstrap(metric, y, prediction, sample_weight=sample_weight, level=level, key=key)


class Resampled:
    """A metric of one or several models on the same bootstrap resamples of the rows.

    Attributes
    ----------
    estimates : (models,)
    draws : (n, models)
    """

    def __init__(
        self,
        metric: Metric,
        y: Floats,
        predictions: list[Prediction],
        weight: Floats,
        n: int,
        key: Key,
    ) -> None:
        self.metric = metric
        # what a row says: its moments under every model, or, for ranks, its label and scores
        said: list[Any] = [metric.moments(y, p) for p in predictions]
        table = np.concatenate([y[:, None], *said] if metric.is_rank else said, 1)
        self.cells, self.weight, first = merge(table, weight)
        self.y, self.predictions = y[first], [p.take(first) for p in predictions]
        self.estimates = self._scores(self.weight[None])[0]
        blocks = [self._scores(c) for c in counts(self.weight, n, key.numpy())]
        self.draws = np.concatenate(blocks)

    def _scores(self, weights: Floats) -> Floats:
        if self.metric.is_rank:
            return np.stack([self.metric.scores(self.y, p, weights) for p in self.predictions], 1)
        means = weights @ self.cells / weights.sum(1, keepdims=True)  # (b, models * M)
        width = self.cells.shape[1] // len(self.predictions)
        return np.stack(
            [self.metric.finish(means[:, i : i + width]) for i in range(0, means.shape[1], width)],
            1,
        )

    def acceleration(self) -> float:
        """Skewness of the influence of single rows on the first model's score."""
        total = self.weight.sum()
        if self.metric.is_rank:
            if len(self.weight) > _LEAVE_ONE_OUT:
                return 0.0
            rows = range(0, len(self.weight), 256)
            left = np.concatenate(
                [
                    self._scores(np.maximum(self.weight - np.eye(len(self.weight))[i : i + 256], 0))
                    for i in rows
                ]
            )[:, 0]
        else:
            width = self.cells.shape[1] // len(self.predictions)
            cells = self.cells[:, :width]
            means = (self.weight @ cells - cells) / max(total - 1, 1e-300)  # leave one row out
            left = self.metric.finish(means)
        known = ~np.isnan(left)
        left, w = left[known], self.weight[known]
        pull = left @ w / w.sum() - left
        spread = float(w @ pull**2) ** 1.5
        return float(w @ pull**3) / (6 * spread) if spread > 0 else 0.0


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise DataError(f"level is a confidence between 0 and 1 such as 0.95, got {level}")
    return float(stats.norm.ppf((1 + level) / 2))
