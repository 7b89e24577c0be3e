"""How sure a score is: Wilson, Student and bootstrap intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.metrics import metric as metric_named
from groundstate.evaluate.metrics.resampled import Resampled, class_count, group_numbers
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, weights_of
from groundstate.math.stats.bootstrap import interval_of
from groundstate.math.stats.delong import mean_auc_interval
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.means import mean_interval
from groundstate.math.stats.proportions import proportion_interval

_RANKED = 20_000  # rows times classes from which ranks have DeLong's interval
_WORK, _FEWEST = 200_000_000, 300  # rows times classes times resamples, and the fewest of these


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
    return proportion_interval(successes, n, level)


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
    return mean_interval(values, level)


def bootstrap(
    metric: Metric,
    y: Any,
    prediction: Prediction,
    *,
    sample_weight: Any = None,
    n: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile", "basic"] = "bca",
    key: Key | RandomState = 0,
    groups: Any = None,
    stratify: Any = None,
    unbiased: bool = False,
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
    groups
        Labels of dependent rows; whole groups are drawn.
    stratify
        Labels; rows are drawn within each, so that rare classes stay.
    unbiased
        Estimate by the jackknife, :math:`n\hat s - (n-1)\overline{\hat s_{-i}}`, which takes away
        the part of the bias that falls as 1/n. The limits stay those of ``method``.

    Examples
    --------
    >>> from groundstate.evaluate import METRICS
    >>> y = np.arange(50.0)
    >>> print(bootstrap(METRICS["mae"], y, Prediction(y + np.tile([1.0, -3.0], 25))))
    2 (1.72 to 2.28)
    """
    weight = weights_of(sample_weight, len(prediction))
    checked_level(level)
    sample = Resampled(
        metric, np.asarray(y), [prediction], weight, n, Key.of(key), groups, stratify
    )
    skew = sample.acceleration() if method == "bca" else 0.0
    found = interval_of(float(sample.estimates[0]), sample.draws[:, 0], level, method, skew)
    found = found.within(metric.bounds)  # the basic method mirrors draws beyond the ends
    estimate = sample.jackknife() if unbiased else found.estimate
    if not unbiased or not found.low <= estimate <= found.high:  # rows too few for terms of 1/n
        return found
    return replace(found, estimate=estimate, method=f"{method}, jackknife")


def bootstrap_metric(
    metric: str | Metric,
    y: Any,
    pred: Any,
    proba: Any = None,
    *,
    sample_weight: Any = None,
    n_resamples: int = 9999,
    level: float = 0.95,
    method: Literal["bca", "percentile", "basic"] = "bca",
    groups: Any = None,
    stratify: Any = None,
    random_state: Key | RandomState = 0,
) -> Interval:
    """Interval of a metric of :data:`METRICS` from labels or values and a model's predictions of them.

    Count metrics draw the cells of the confusion table, means draw weights of cells, and the ROC
    area is computed on one sort; no resample touches the rows again.

    Parameters
    ----------
    metric
        Name of a metric.
    y : (N,)
        Labels or real values.
    pred : (N,)
        Predicted labels or values.
    proba : (N, K) or (N,), optional
        Probabilities of the sorted labels, or of the larger of two.

    Examples
    --------
    >>> y = np.repeat([0, 1], 50)
    >>> print(bootstrap_metric("f1_macro", y, np.where(np.arange(100) % 5 > 0, y, 1 - y)))
    0.8 (0.719 to 0.8792)
    """
    measure = metric_named(metric)
    truth, prediction = Prediction.read(y, pred, proba, measure.task)
    return bootstrap(
        measure, truth, prediction, sample_weight=sample_weight, n=n_resamples, level=level,
        method=method, key=random_state, groups=groups, stratify=stratify,
    )  # fmt: skip


def interval(
    metric: str | Metric,
    y: Any,
    prediction: Any,
    *,
    sample_weight: Any = None,
    level: float = 0.95,
    key: Key | RandomState = 0,
    groups: Any = None,
) -> Interval:
    """The right interval for a metric: Wilson for a share, BCa bootstrap for the rest.

    Weighted shares use the weight itself as the number of rows (a weight of 2 is the row twice).
    Precision and recall are shares of the rows called, and of the rows of, their class.
    A ratio of means such as R² is estimated by the jackknife, free of its bias of order 1/n.
    The ROC area of many rows or classes has DeLong's interval, which ranks each class once.
    Where every row is right, every resample is, and the bootstrap would claim certainty: the lower
    end is then the mean of Wilson's over the classes, for ranks that of the rarest class.

    Parameters
    ----------
    metric
        A metric or its name.
    prediction : Prediction, or (N,) predicted labels or values
    groups
        Labels of dependent rows; whole groups are resampled, shares included.

    Examples
    --------
    >>> from groundstate.evaluate import METRICS
    >>> print(interval("accuracy", ["a", "b"] * 20, ["a"] * 5 + ["b"] * 35))
    0.525 (0.375 to 0.6706)
    >>> y = np.arange(20.0)
    >>> found = interval("r2", y, y + np.tile([4.0, -4.0], 10))
    >>> round(found.estimate, 4), round(METRICS["r2"].score(y, Prediction(y + 4)), 4)
    (0.5675, 0.5188)
    """
    metric = metric_named(metric)
    if not isinstance(prediction, Prediction):
        y, prediction = Prediction.read(y, prediction, None, metric.task)
    truth, weight = np.asarray(y), weights_of(sample_weight, len(prediction))
    total = float(weight.sum())
    if metric.is_share and groups is None:
        hits = metric.per_row(truth, prediction)
        return wilson(min(float(hits @ weight), total), total, level)
    if metric.share is not None and groups is None:
        hit, among = (
            float(part) for part in metric.share(weight @ metric.moments(truth, prediction))
        )
        if among <= 0:
            return Interval(np.nan, np.nan, np.nan, level, "wilson")
        return wilson(min(hit, among), among, level)
    cells = total * class_count(prediction)
    if metric.is_rank and cells > _RANKED and groups is None and (weight % 1 == 0).all():
        times = weight.astype(np.intp)  # a weight of 2 is the row twice
        scores = np.repeat(metric.moments(truth, prediction), times, 0)
        found = mean_auc_interval(np.repeat(truth, times), scores, level)
    else:
        n = int(np.clip(_WORK / max(cells, 1), _FEWEST, 2000)) if metric.is_count else 2000
        found = bootstrap(
            metric, y, prediction, sample_weight=sample_weight, n=n, level=level, key=key,
            groups=groups, unbiased=metric.is_ratio,
        )  # fmt: skip
    if (metric.is_count or metric.is_rank) and found.estimate == found.low == found.high == 1.0:
        return _all_right(metric.is_rank, truth, weight, group_numbers(groups), level)
    return found


def _all_right(
    rank: bool, y: NDArray[Any], weight: Floats, groups: NDArray[np.intp] | None, level: float
) -> Interval:
    """What rows without a mistake say: Wilson's lower ends of the classes."""
    if groups is not None:  # a group counts once for each of its classes
        y = np.unique(np.stack([y, groups]), axis=1)[0]
        weight = np.ones(len(y))
    sizes = np.bincount(y.astype(np.intp), weight)
    lows = [wilson(n, n, level).low for n in sizes[sizes > 0].tolist()]
    return Interval(1.0, min(lows) if rank else float(np.mean(lows)), 1.0, level, "wilson by class")


__all__ = [
    "Interval",
    "bootstrap",
    "bootstrap_metric",
    "interval",
    "student",
    "wilson",
]
