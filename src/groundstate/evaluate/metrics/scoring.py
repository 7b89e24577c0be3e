"""Scores of fitted models on given rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.metrics import METRICS, Metric
from groundstate.evaluate.metrics import metric as metric_named
from groundstate.evaluate.metrics.intervals import Interval, interval
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import classes_of, weights_of


def score(
    model: Any,
    X: Any,
    y: Any,
    *,
    metric: str | Metric,
    classes: NDArray[Any] | None = None,
    sample_weight: Any = None,
    level: float = 0.95,
    key: Key | RandomState = 0,
) -> Interval:
    """Score of a fitted model on rows it has not seen, with an interval.

    Parameters
    ----------
    classes
        All labels of the task (``Assessment.classes``); None for regression.
    """
    truth = np.asarray(y, np.float64) if classes is None else _codes(y, classes)
    prediction = Prediction.of(model, X, classes)
    return interval(
        metric_named(metric), truth, prediction, sample_weight=sample_weight, level=level, key=key
    )


def all_scores(
    y: NDArray[Any], prediction: Prediction, task: str, sample_weight: Any = None
) -> dict[str, float]:
    """Every metric of the task that the prediction allows; ``y`` are class numbers or values."""
    weight = weights_of(sample_weight, len(prediction))
    return {
        name: row.score(y, prediction, weight)
        for name, row in METRICS.items()
        if row.task == task and row.available(prediction)
    }


def target_of(y: Any, task: str, n: int) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """The labels and class numbers of a target, or None and its real values."""
    values = np.asarray(y)
    if values.shape != (n,):
        raise DataError(f"y has shape {values.shape}; expected one target per row, ({n},)")
    if task == "classification":
        classes, codes = classes_of(values)
        if len(classes) < 2:
            raise DataError(f"the target has the single class {classes.tolist()}; nothing to learn")
        return classes, codes
    try:
        real = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError("regression needs a target of numbers; is it classification?") from error
    if not np.isfinite(real).all():
        raise DataError("the target has missing or infinite values; leave those rows out")
    return None, real


def _codes(y: Any, classes: NDArray[Any]) -> NDArray[Any]:
    values = np.asarray(y)
    codes = np.minimum(np.searchsorted(classes, values), len(classes) - 1)
    odd = classes[codes] != values
    if odd.any():
        raise DataError(f"label {values[odd][0]!r} is not among the classes {classes.tolist()}")
    return codes
