"""A metric on bootstrap resamples of the rows, the same for several models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.metrics.auc import resampled_auc
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats
from groundstate.math.stats.bootstrap import mean_acceleration
from groundstate.math.stats.resample import Cells, counts, merge

_CROSSED = 2**18  # cells of a confusion table that are worth counting first
_LEAVE_ONE_OUT = 4000  # rows of two classes up to which rank metrics get it row by row


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
        self.metric, self.groups = metric, group_numbers(groups)
        strata = group_numbers(stratify)
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
        if self.weight.sum() <= 1:  # no more than one row: there is none to leave out
            return 0.0
        if self.metric.is_rank:
            cells = len(self.weight) ** 2 * class_count(self.predictions[0])
            if cells > 2 * _LEAVE_ONE_OUT**2 or self.groups is not None:
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


def class_count(prediction: Prediction) -> int:
    """Number of classes; 1 for values."""
    return 1 if prediction.classes is None else len(prediction.classes)


def group_numbers(labels: Any) -> NDArray[np.intp] | None:
    """Labels of groups as numbers from 0, ``(n,)``."""
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
