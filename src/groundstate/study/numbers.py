"""Numbers for people and for files: rounded, in words, without last-bit noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from groundstate.evaluate import Interval, metric
from groundstate.evaluate.metrics.drawn import TITLES

_DIGITS = 10
_SHARES = ("accuracy", "balanced_accuracy", "precision", "recall", "pixel_accuracy")
_LABELS = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "f1_macro": "F1, mean of classes",
    "log_loss": "Log loss",
    "brier": "Brier score",
    "roc_auc": "ROC area",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "MAE",
    "mse": "MSE",
    "mean_nll": "Surprise",
    "iou": "Intersection over union",
    "dice": "Dice",
    "pixel_accuracy": "Pixel accuracy",
    "ap50": "AP50",
    "ap": "AP",
    "ar": "Recall of boxes",
}
_WITHOUT_UNITS = set(_LABELS) - {"rmse", "mae", "mse"}
_LOSSES = {
    "zero_one": "share of wrong answers",
    "squared": "squared error",
    "absolute": "absolute error",
    "log": "log loss",
}


def plain(value: Any) -> Any:
    """JSON values with floats at ten significant digits, NaN and infinities as None.

    >>> plain({"a": (0.1 + 0.2, float("nan")), "b": np.int64(3)})
    {'a': [0.3, None], 'b': 3}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def span(found: Interval, n: int) -> dict[str, Any]:
    """An interval from n rows as plain values."""
    return {
        "value": found.estimate,
        "lo": found.low,
        "hi": found.high,
        "method": found.method,
        "n": n,
    }


def is_share(name: str) -> bool:
    """Whether a metric is a share that reads best as a percentage."""
    return name in _SHARES


def show(value: float | None, metric: str = "") -> str:
    """A score for reading; ``"p"`` is a p-value, of which more than three digits say nothing.

    >>> show(0.9211, "accuracy"), show(59.6788, "rmse"), show(None), show(0.5)
    ('92.1%', '59.7', '–', '0.500')
    >>> show(-0.0007), show(3e-20, "p"), show(0.04, "p")
    ('−0.0007', 'below 0.001', '0.040')
    >>> show(7e-05, "r2"), show(-0.0004, "r2")
    ('0.000', '0.000')
    >>> show(2803.5), show(123456.7, "rmse"), show(-9e-16, "r2"), show(-0.0002, "accuracy")
    ('2,804', '123,457', '0.000', '0.0%')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if metric == "p":
        return "below 0.001" if value < 0.001 else f"{value:.3f}"
    if metric in _WITHOUT_UNITS and abs(value) < 1e-9:
        value = 0.0  # the last bits of equal numbers
    text = _digits(value, metric)
    if not text.strip("-0.%"):  # nothing is neither above nor below zero
        text = text.removeprefix("-")
    return text.replace("-", "−", 1 if value < 0 else 0)


def _digits(value: float, metric: str) -> str:
    if is_share(metric):
        return f"{value:.1%}"
    if value == 0 or 0.001 <= abs(value) < 10 or (metric == "r2" and abs(value) < 10):
        return f"{value:.3f}"  # of an R² further digits say nothing
    if abs(value) < 0.001:  # of a score whose scale is known, powers of ten say nothing
        return f"{value:.4f}" if metric in ("brier", "log_loss", "r2") else f"{value:.1g}"
    if abs(value) >= 1e9:
        return f"{value:.3e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def show_cell(value: float) -> str:
    """A value of a column for reading, without zeros that say nothing.

    >>> show_cell(6.0), show_cell(0.26), show_cell(93.5), show_cell(2803.5)
    ('6', '0.26', '93.5', '2,804')
    """
    text = show(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def show_beside(value: float, largest: float) -> str:
    """A value for reading in a column of others, with no digit that the largest one has not.

    >>> show_beside(-6e-06, 0.05), show_beside(0.0007, 0.05), show_beside(21.84, 3611.0)
    ('0.000', '0.001', '22')
    """
    if not largest > 0 or not (1e-6 < largest < 1e9):
        return show(value)
    digits = max(0, 2 - math.floor(math.log10(largest)))
    if 0.01 <= largest < 10:
        digits = 3  # as one number alone has
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text.replace("-", "−")


def show_range(low: float | None, high: float | None, metric: str = "") -> str:
    """An interval for reading.

    >>> show_range(0.79, 0.97, "accuracy")
    '79.0% to 97.0%'
    """
    return f"{show(low, metric)} to {show(high, metric)}"


def show_interval(found: Interval) -> str:
    """A number with its interval, for reading.

    >>> show_interval(Interval(-2.62281, -2.7013, -2.5, 0.95, "t"))
    '−2.623 (−2.701 to −2.500)'
    """
    return f"{show(found.estimate)} ({show_range(found.low, found.high)})"


def title(name: str) -> str:
    """What a metric means, in plain words."""
    return TITLES.get(name) or metric(name).title


def label(name: str) -> str:
    """The name of a metric or of a loss as people write it.

    >>> label("r2"), label("roc_auc"), label("zero_one"), label("my_own")
    ('R²', 'ROC area', 'share of wrong answers', 'my own')
    """
    return _LABELS.get(name) or _LOSSES.get(name) or name.replace("_", " ")
