"""The right metrics for a task, and all of them at once with how sure they are."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError

Task = Literal[
    "regression", "multivariate regression", "binary", "multiclass", "multilabel", "mask"
]
REPORTS: dict[str, tuple[str, ...]] = {
    "binary": ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc",
               "average_precision", "log_loss", "brier", "ece"),
    "multiclass": ("accuracy", "balanced_accuracy", "precision_macro", "recall_macro", "f1_macro",
                   "f1_of_macros", "log_loss"),
    "multilabel": ("subset_accuracy", "hamming_loss", "f1_macro", "f1_micro"),
    "regression": ("rmse", "mae", "r2"),
    "multivariate regression": ("rmse", "mae", "r2"),
    "mask": ("iou", "iou_pooled", "dice", "dice_pooled", "hausdorff"),
}  # fmt: skip
NEEDS_PROBA = ("roc_auc", "average_precision", "log_loss", "brier", "ece")


@dataclass(frozen=True)
class TaskMetrics:
    """What to measure.

    Attributes
    ----------
    task : str
    tuning : str
        Metric to tune by: log loss with probabilities, accuracy without, MSE for numbers.
    report : tuple of str
        Metrics to show.
    """

    task: Task
    tuning: str
    report: tuple[str, ...]


def is_mask(y: Any) -> bool:
    """Whether an array is a stack of label images: whole numbers with at least three axes.

    >>> is_mask(np.zeros((2, 8, 8), int)), is_mask([0, 1])
    (True, False)
    """
    values = np.asarray(y)
    return values.ndim >= 3 and values.dtype.kind in "iub"


def task_of(y: Any) -> Task:
    """The task a target asks for.

    >>> task_of([0.5, 1.5]), task_of(["a", "b", "c"]), task_of([0, 1])
    ('regression', 'multiclass', 'binary')
    """
    from sklearn.utils.multiclass import type_of_target

    if is_mask(y):
        return "mask"
    kind = type_of_target(y)
    known: dict[str, Task] = {
        "continuous": "regression",
        "continuous-multioutput": "multivariate regression",
        "multiclass-multioutput": "multivariate regression",
        "binary": "binary",
        "multiclass": "multiclass",
        "multilabel-indicator": "multilabel",
    }
    if kind not in known:
        raise DataError(f"this target ({kind}) fits no task; give one label or number per row")
    return known[kind]


def for_task(y: Any, proba: bool = True) -> TaskMetrics:
    """The metrics of the task that a target asks for.

    Parameters
    ----------
    y : the target
    proba : whether the model gives probabilities

    Examples
    --------
    >>> for_task([0, 1, 1]).tuning, for_task([0, 1, 1], proba=False).tuning, for_task([0.1]).tuning
    ('log_loss', 'accuracy', 'mse')
    """
    task = task_of(y)
    if task in ("binary", "multiclass"):
        shown = tuple(n for n in REPORTS[task] if proba or n not in NEEDS_PROBA)
        return TaskMetrics(task, "log_loss" if proba else "accuracy", shown)
    tuning = {"multilabel": "f1_macro", "mask": "iou"}.get(task, "mse")
    return TaskMetrics(task, tuning, REPORTS[task])


def empirical_risk(loss_rows: Any, sample_weight: Any = None) -> float:
    r"""The plain average of per-row losses, :math:`\hat R = \frac1n\sum_i\ell_i`.

    >>> empirical_risk([0.0, 1.0, 1.0, 0.0])
    0.5
    """
    rows = np.asarray(loss_rows, np.float64)
    if rows.ndim != 1 or not len(rows):
        raise ShapeError(f"a risk is the mean of one loss per row, got shape {rows.shape}")
    return float(np.average(rows, weights=sample_weight))


class MetricReport(Displayed, Mapping[str, float]):
    """Every metric of a task by name; printed with intervals, undefined ones marked as such.

    Attributes
    ----------
    task : str
    """

    def __init__(self, task: Task, values: dict[str, float], interval: Any) -> None:
        self.task = task
        self._values, self._interval = values, interval

    def __getitem__(self, name: str) -> float:
        if name not in self._values:
            close = difflib.get_close_matches(name, self._values, n=3)
            hint = f"did you mean {', '.join(close)}?" if close else f"there are {list(self)}"
            raise ValueError(f"no metric is called {name!r} here; {hint}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def interval(self, name: str, level: float = 0.95) -> Any:
        """The interval of one metric on these rows, None where there is no method for it."""
        self[name]
        return self._interval(name, level)

    def __str__(self) -> str:
        lines = []
        for name, value in self._values.items():
            found = None if math.isnan(value) else self.interval(name)
            if math.isnan(value):
                text = "undefined"
            elif found is None or math.isnan(found.low):
                text = f"{value:.4g} (no interval)"
            else:
                text = f"{value:.4g} ({found.low:.4g} to {found.high:.4g})"
            lines.append(f"{name:<18} {text}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, undefined ones as None."""
        return {k: None if math.isnan(v) else v for k, v in self._values.items()}


def report(
    y: Any,
    pred: Any = None,
    proba: Any = None,
    *,
    energy: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> MetricReport:
    r"""Every metric of the task: scikit-learn's numbers, with intervals when printed.

    Parameters
    ----------
    y : target
    pred : predictions; may be left out when ``energy`` is given
    proba : ``(n, K)`` probabilities of the sorted labels, or ``(n,)`` of the larger of two
    energy : ``(n, K)`` energies of the sorted labels; :math:`p = \mathrm{softmax}(-e)`
    classes : ``(K,)`` sorted labels of the columns; needed where some label does not occur in y
        or pred
    sample_weight : ``(n,)``

    Examples
    --------
    >>> y = [0] * 50 + [1] * 50
    >>> found = report(y, [0] * 30 + [1] * 20 + [0] * 10 + [1] * 40)
    >>> round(found["precision"], 6), round(found["recall"], 6), round(found["f1"], 6)
    (0.666667, 0.8, 0.727273)
    """
    truth = np.asarray(y)
    task = task_of(truth)
    if energy is not None:
        from scipy.special import softmax

        table = np.asarray(energy, np.float64)
        proba = softmax(-table, axis=1) if proba is None else proba
        if pred is None:
            pred = _labels(truth, truth, table, classes)[table.argmin(1)]
    if pred is None:
        raise DataError("a report needs predictions; pass pred, or energy for energy models")
    predicted = np.asarray(pred)
    if predicted.shape != truth.shape:
        raise ShapeError(f"y and pred need one shape, got {truth.shape} and {predicted.shape}")
    if (
        task in ("binary", "multiclass")
        and predicted.dtype.kind == "f"
        and truth.dtype.kind in "iub"
        and (predicted != np.round(predicted)).any()
    ):  # counts predicted by a regressor
        task = "regression"
    if task in ("binary", "multiclass"):
        labels = _labels(truth, predicted, proba, classes)
        if len(labels) > 2:
            task = "multiclass"
        with warnings.catch_warnings():  # what a missing class leaves undefined is predicted so
            warnings.simplefilter("ignore", UserWarning)
            values = _CLASSES[task](truth, predicted, proba, sample_weight, labels)
    else:
        labels, values = None, _VALUES[task](truth, predicted, proba, sample_weight)

    def interval(name: str, level: float) -> Any:
        return _interval(name, task, truth, predicted, proba, sample_weight, level, labels)

    return MetricReport(task, values, interval)


def _labels(y: NDArray[Any], pred: NDArray[Any], proba: Any, classes: Any) -> NDArray[Any]:
    """The sorted labels, one for each column of the probabilities."""
    labels = np.unique(np.concatenate([y, pred])) if classes is None else np.asarray(classes)
    width = np.shape(proba)[1] if np.ndim(proba) == 2 else len(labels)
    if width != len(labels):
        raise ShapeError(
            f"{width} columns of probabilities for {len(labels)} labels; pass classes=, the sorted "
            "labels of the columns"
        )
    return labels


def _second(proba: Any) -> NDArray[Any]:
    p = np.asarray(proba, np.float64)
    return p[:, 1] if p.ndim == 2 else p


def _binary(y: Any, pred: Any, proba: Any, w: Any, labels: Any) -> dict[str, float]:
    from sklearn import metrics as sk

    from groundstate.evaluate.metrics.proper import ece

    top = labels[-1]
    options = {"sample_weight": w}
    nan = {**options, "pos_label": top, "zero_division": np.nan}
    found = {
        "accuracy": sk.accuracy_score(y, pred, **options),
        "balanced_accuracy": sk.balanced_accuracy_score(y, pred, **options),
        "precision": sk.precision_score(y, pred, **nan),
        "recall": sk.recall_score(y, pred, **nan),
        "f1": sk.f1_score(y, pred, **nan),
    }
    if proba is not None:
        p = _second(proba)
        both = len(np.unique(y)) == 2
        found |= {
            "roc_auc": sk.roc_auc_score(y, p, **options) if both else math.nan,
            "average_precision": sk.average_precision_score(y, p, pos_label=top, **options)
            if (y == top).any()
            else math.nan,
            "log_loss": sk.log_loss(y, np.stack([1 - p, p], 1), labels=labels, **options)
            if len(labels) == 2
            else math.nan,
            "brier": sk.brier_score_loss(y, p, pos_label=top, **options),
            "ece": ece((y == top).astype(float), p, sample_weight=w),
        }
    return {k: float(v) for k, v in found.items()}


def _multiclass(y: Any, pred: Any, proba: Any, w: Any, labels: Any) -> dict[str, float]:
    from sklearn import metrics as sk

    from groundstate.evaluate.metrics.counts import f1_of_macros

    macro = {"average": "macro", "sample_weight": w, "zero_division": np.nan}
    found = {
        "accuracy": sk.accuracy_score(y, pred, sample_weight=w),
        "balanced_accuracy": sk.balanced_accuracy_score(y, pred, sample_weight=w),
        "precision_macro": sk.precision_score(y, pred, **macro),
        "recall_macro": sk.recall_score(y, pred, **macro),
        "f1_macro": sk.f1_score(y, pred, **macro),
        "f1_of_macros": f1_of_macros(y, pred, sample_weight=w),
    }
    if proba is not None:
        found["log_loss"] = sk.log_loss(y, proba, sample_weight=w, labels=labels)
    return {k: float(v) for k, v in found.items()}


def _multilabel(y: Any, pred: Any, proba: Any, w: Any) -> dict[str, float]:
    from sklearn import metrics as sk

    options = {"sample_weight": w, "zero_division": np.nan}
    return {
        "subset_accuracy": float(sk.accuracy_score(y, pred, sample_weight=w)),
        "hamming_loss": float(sk.hamming_loss(y, pred, sample_weight=w)),
        "f1_macro": float(sk.f1_score(y, pred, average="macro", **options)),
        "f1_micro": float(sk.f1_score(y, pred, average="micro", **options)),
    }


def _regression(y: Any, pred: Any, proba: Any, w: Any) -> dict[str, float]:
    from sklearn import metrics as sk

    y, pred = (np.asarray(v, np.float64) for v in (y, pred))  # float16 squares overflow at 256
    return {
        "rmse": float(sk.root_mean_squared_error(y, pred, sample_weight=w)),
        "mae": float(sk.mean_absolute_error(y, pred, sample_weight=w)),
        "r2": float(sk.r2_score(y, pred, sample_weight=w)) if len(y) > 1 else math.nan,
    }


def _mask(y: Any, pred: Any, proba: Any, w: Any) -> dict[str, float]:
    from groundstate.evaluate.metrics.overlap import dice, hausdorff, iou

    far = [
        hausdorff(a > 0, b > 0) if (a > 0).any() and (b > 0).any() else math.nan
        for a, b in zip(y, pred)
    ]
    known = [d for d in far if not math.isnan(d)]
    found = {}
    for name, overlap in (("iou", iou), ("dice", dice)):
        found[name] = float(overlap(y, pred).mean())
        found[f"{name}_pooled"] = float(overlap(y, pred, pool="pooled").mean())
    return found | {"hausdorff": float(np.mean(known)) if known else math.nan}


_CLASSES: dict[str, Callable[[Any, Any, Any, Any, Any], dict[str, float]]] = {
    "binary": _binary,
    "multiclass": _multiclass,
}
_VALUES: dict[str, Callable[[Any, Any, Any, Any], dict[str, float]]] = {
    "multilabel": _multilabel,
    "regression": _regression,
    "multivariate regression": _regression,
    "mask": _mask,
}


def _interval(
    name: str, task: str, y: Any, pred: Any, proba: Any, w: Any, level: float, labels: Any
) -> Any:
    """Wilson for shares, DeLong for the area of two classes, the bootstrap for the rest."""
    from groundstate.evaluate.metrics.base import _KNOWN
    from groundstate.evaluate.metrics.intervals import interval
    from groundstate.evaluate.predictions import Prediction
    from groundstate.math.stats.delong import auc_interval

    if name not in _KNOWN or task not in ("binary", "multiclass", "regression"):
        return None
    if name == "roc_auc" and w is None:
        return auc_interval(y, _second(proba), level)
    if task == "regression":
        truth, predicted = y.astype(np.float64), Prediction(np.asarray(pred, np.float64))
    else:
        truth, table = np.searchsorted(labels, y), None
        if proba is not None:
            table = np.asarray(proba, np.float64)
            table = np.stack([1 - table, table], 1) if table.ndim == 1 else table
        predicted = Prediction(np.searchsorted(labels, pred), table, table, np.asarray(labels))
    return interval(_KNOWN[name], truth, predicted, sample_weight=w, level=level)
