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
from groundstate.evaluate.metrics.auc import resampled_auc
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, weights_of
from groundstate.math.stats.bootstrap import interval_of, mean_acceleration
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.means import mean_interval
from groundstate.math.stats.proportions import proportion_interval
from groundstate.math.stats.resample import Cells, counts, merge

_CROSSED = 4096  # cells of a confusion table that are worth counting first
_LEAVE_ONE_OUT = 4000  # rows up to which rank metrics get their acceleration row by row


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
    metric: Metric,
    y: Any,
    prediction: Prediction,
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
    Where every row is right, every resample is, and the bootstrap would claim certainty: the lower
    end is then the mean of Wilson's over the classes, for ranks that of the rarest class.

    Parameters
    ----------
    groups
        Labels of dependent rows; whole groups are resampled, shares included.

    Examples
    --------
    >>> from groundstate.evaluate import METRICS
    >>> y = np.arange(20.0)
    >>> found = interval(METRICS["r2"], y, Prediction(y + np.tile([4.0, -4.0], 10)))
    >>> round(found.estimate, 4), round(METRICS["r2"].score(y, Prediction(y + 4)), 4)
    (0.5675, 0.5188)
    """
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
    found = bootstrap(
        metric, y, prediction, sample_weight=sample_weight, level=level, key=key, groups=groups,
        unbiased=metric.is_ratio,
    )  # fmt: skip
    if (metric.is_count or metric.is_rank) and found.estimate == found.low == found.high == 1.0:
        return _all_right(metric.is_rank, truth, weight, _numbers(groups), level)
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
        groups: Any = None,
        stratify: Any = None,
    ) -> None:
        if groups is not None and stratify is not None:
            raise ValueError("give groups or stratify, not both")
        self.metric, self.groups = metric, _numbers(groups)
        strata = _numbers(stratify)
        if metric.is_count and self.groups is None and strata is None:
            y, predictions, weight = _crossed(y, predictions, weight)
        # what a row says: its moments under every model, or, for ranks, its label and scores
        predicted: list[Any] = [metric.moments(y, p) for p in predictions]
        if metric.is_rank and (self.groups is not None or strata is not None):
            self.cells, self.weight, first = predicted[0], weight, np.arange(len(weight))
        else:
            table = np.concatenate([y[:, None], *predicted] if metric.is_rank else predicted, 1)
            if self.groups is not None:
                self.cells, self.weight = _summed(table, weight, self.groups)
                first = np.zeros(0, np.intp)
            elif strata is not None:
                self.cells, self.weight, first = table, weight, np.arange(len(weight))
            else:
                self.cells, self.weight, first = merge(table, weight)
        self.models = len(predictions)
        self.y, self.predictions = y[first], [p.take(first) for p in predictions]
        self.estimates = self._scores(self.weight[None])[0]
        generator = key.numpy()
        whole = bool((self.weight == np.round(self.weight)).all())
        if not metric.is_rank:
            self.draws = self._finish(self._means(n, generator, strata))
        elif whole or self.groups is not None or strata is not None:
            extra = (self.groups, strata)
            self.draws = np.stack(
                [
                    resampled_auc(self.y, metric.moments(self.y, p), self.weight, n, key, *extra)
                    for p in self.predictions
                ],
                1,
            )
        else:
            self.draws = np.concatenate(
                [self._scores(c) for c in counts(self.weight, n, generator)]
            )

    def _means(self, n: int, generator: np.random.Generator, strata: Any) -> Floats:
        """Mean moments of n resamples.  # (n, models * M)"""
        if strata is None:
            return Cells(self.cells, self.weight).draws(n, generator)
        total = np.zeros((n, self.cells.shape[1]))
        for label in range(int(strata.max()) + 1):
            rows = strata == label
            if self.weight[rows].sum() > 0:
                cells, weight, _ = merge(self.cells[rows], self.weight[rows])
                total += Cells(cells, weight).draws(n, generator) * weight.sum()
        return total / self.weight.sum()

    def _finish(self, means: Floats) -> Floats:
        if self.groups is not None:  # the last column is the weight of a group
            means = means[:, :-1] / means[:, -1:]
        width = means.shape[1] // self.models
        return np.stack(
            [self.metric.finish(means[:, i : i + width]) for i in range(0, means.shape[1], width)],
            1,
        )

    def _scores(self, weights: Floats) -> Floats:
        if self.metric.is_rank:
            return np.stack([self.metric.scores(self.y, p, weights) for p in self.predictions], 1)
        return self._finish(weights @ self.cells / weights.sum(1, keepdims=True))

    def acceleration(self) -> float:
        """Skewness of the influence of single rows on the first model's score."""
        if self.metric.is_rank:
            if len(self.weight) > _LEAVE_ONE_OUT or self.groups is not None:
                return 0.0
            rows = range(0, len(self.weight), 256)
            left = np.concatenate(
                [
                    self._scores(np.maximum(self.weight - np.eye(len(self.weight))[i : i + 256], 0))
                    for i in rows
                ]
            )[:, 0]
        else:
            left = self._left_out()
        known = ~np.isnan(left)
        return -mean_acceleration(left[known], self.weight[known])

    def _left_out(self) -> Floats:
        """The first model's score without one row (or group) of each cell.  # (cells,)"""
        means = (self.weight @ self.cells - self.cells) / max(self.weight.sum() - 1, 1e-300)
        return self._finish(means)[:, 0]

    def jackknife(self) -> float:
        """The first model's score less its bias of order 1/n; the score itself of one row."""
        plain, n = float(self.estimates[0]), float(self.weight.sum())
        if self.metric.is_rank or n <= 2:
            return plain
        left = self._left_out()
        known = np.isfinite(left) & (self.weight > 0)
        if not known.any():
            return plain
        mean = float(self.weight[known] @ left[known] / self.weight[known].sum())
        return n * plain - (n - 1) * mean


def _numbers(labels: Any) -> NDArray[np.intp] | None:
    return None if labels is None else np.unique(labels, return_inverse=True)[1].reshape(-1)


def _crossed(
    y: NDArray[Any], predictions: list[Prediction], weight: Floats
) -> tuple[NDArray[Any], list[Prediction], Floats]:
    """The cells of the confusion table as rows, where labels are few and weights whole."""
    predicted = [y, *(p.values for p in predictions)]
    if any(labels.dtype.kind not in "iub" for labels in predicted):
        return y, predictions, weight
    k = 1 + max(int(labels.max()) for labels in predicted)
    if k ** len(predicted) > _CROSSED or (weight != np.round(weight)).any():
        return y, predictions, weight
    code = np.zeros(len(y), np.int64)
    for labels in predicted:
        code *= k
        code += labels
    table = np.bincount(code, None if (weight == 1).all() else weight, k ** len(predicted))
    cells = np.flatnonzero(table)
    each = [cells // k ** (len(predicted) - 1 - i) % k for i in range(len(predicted))]
    shown = [Prediction(v, classes=p.classes) for v, p in zip(each[1:], predictions)]
    return each[0], shown, table[cells].astype(np.float64)


def _summed(table: Floats, weight: Floats, groups: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Weighted sums of the rows of each group, the weight last.  # (G, M + 1), (G,)"""
    sums = [np.bincount(groups, weight * column) for column in table.T]
    cells = np.stack([*sums, np.bincount(groups, weight)], 1)
    cells = cells[cells[:, -1] > 0]
    return cells, np.ones(len(cells))


__all__ = [
    "Interval",
    "Resampled",
    "bootstrap",
    "bootstrap_metric",
    "interval",
    "student",
    "wilson",
]
