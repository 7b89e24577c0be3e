r"""Metrics by name: scikit-learn's numbers, with direction, task and a plain-word description.

Nearly every metric is a function of means, :math:`g(\frac1{\sum w}\sum_i w_i m(y_i, \hat y_i))`:
accuracy is the mean of hits, RMSE the root of a mean, F1 a function of mean counts. Stated in this
form, a metric can be computed for thousands of bootstrap weightings by one matrix product.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError
from groundstate.evaluate.metrics.auc import weighted_auc
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats

Task = Literal["classification", "regression", "density"]
UNIT, POSITIVE = (0.0, 1.0), (0.0, np.inf)
_TINY = np.finfo(np.float64).eps  # scikit-learn clips probabilities here


@dataclass(frozen=True)
class Metric:
    r"""How good predictions are, as one number.

    Attributes
    ----------
    name, title : str
        The name to ask for and what it means in plain words.
    task : str
        ``"classification"``, ``"regression"`` or ``"density"``.
    greater_is_better : bool
    needs : str
        What it reads of a prediction: ``"values"``, ``"probability"`` or ``"ranking"``.
    moments : callable
        Per-row statistics ``(y, prediction) -> (N, M)``.
    finish : callable
        The metric from mean statistics, ``(..., M) -> (...)``.
    is_mean, is_share, is_rank, is_count : bool
        The metric is a plain mean of per-row scores; those scores are 0 or 1; the metric is no
        function of means but of ranks, and its moments are the scores to rank by; it reads labels
        alone, so the cells of a confusion table are enough.
    share : callable or None
        Of a metric that is a share among some rows (precision, recall): hits and those rows, as
        mean statistics ``(..., M) -> (...), (...)``.
    is_ratio : bool
        The metric divides by a mean of the same rows, so that on n of them it is off by about 1/n
        on average; reports give its jackknifed value.
    bounds : tuple of float
        The least and the largest value it can take, which no interval leaves.
    """

    name: str
    title: str
    task: Task
    greater_is_better: bool
    needs: Literal["values", "probability", "ranking"]
    moments: Callable[[NDArray[Any], Prediction], Floats]
    finish: Callable[[Floats], Floats] = lambda means: means[..., 0]
    is_mean: bool = False
    is_share: bool = False
    is_rank: bool = False
    is_count: bool = False
    is_ratio: bool = False
    share: Callable[[Floats], tuple[Floats, Floats]] | None = None
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def __reduce__(self) -> tuple[Callable[[str], Metric], tuple[str]]:
        return metric, (self.name,)

    def available(self, prediction: Prediction) -> bool:
        """Whether the model predicted what this metric needs."""
        return getattr(prediction, self.needs) is not None

    def score(self, y: Any, prediction: Prediction, weight: Floats | None = None) -> float:
        """The metric on weighted rows; ``y`` are class numbers or real values."""
        truth = np.asarray(y)
        if self.is_count and not self.is_mean:
            return float(self.finish(_table_means(truth, prediction, weight)))
        if self.is_ratio:
            return _r2(truth, prediction.values, weight)
        w = np.ones(len(prediction)) if weight is None else weight
        return float(self.scores(truth, prediction, w[None])[0])

    def scores(self, y: NDArray[Any], prediction: Prediction, weights: Floats) -> Floats:
        """The metric for many weightings of the same rows at once.  # (B, N) -> (B,)"""
        if not self.available(prediction):
            raise DataError(f"{self.name} needs a model that gives {self.needs}; choose accuracy")
        rows = self.moments(y, prediction)
        if self.is_rank:
            return weighted_auc(y, rows, weights)
        return self.finish(weights @ rows / weights.sum(1, keepdims=True))

    def per_row(self, y: NDArray[Any], prediction: Prediction) -> Floats:
        """Scores whose weighted mean is the metric, where it is a mean.  # (N,)"""
        if not self.is_mean:
            raise DataError(f"{self.name} is not a mean over rows; compare it by bootstrap")
        return self.moments(y, prediction)[:, 0]


def _hits(y: NDArray[Any], p: Prediction) -> Floats:
    return (y == p.values).astype(np.float64)[:, None]


def _counts(y: NDArray[Any], p: Prediction) -> Floats:
    """For each class: hit, true, predicted.  # (N, 3K)"""
    k = len(p.classes) if p.classes is not None else int(max(y.max(), p.values.max())) + 1
    true, predicted = np.eye(k)[y], np.eye(k)[p.values]
    return np.concatenate([true * predicted, true, predicted], 1)


def _table_means(y: NDArray[Any], p: Prediction, weight: Floats | None) -> Floats:
    """The means of :func:`_counts` from one pass over the rows.  # (3K,)"""
    k = len(p.classes) if p.classes is not None else int(max(y.max(), p.values.max())) + 1
    code = y.astype(np.int64) * k
    code += p.values
    table = np.bincount(code, weight, k * k).reshape(k, k)
    return np.concatenate([np.diag(table), table.sum(1), table.sum(0)]) / table.sum()


def _r2(y: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
    truth = np.asarray(y, np.float64)
    gap = truth - predicted.astype(np.float64, copy=False)
    spread = truth - np.average(truth, weights=weight)
    a, b = (gap, spread) if weight is None else (weight * gap, weight * spread)
    return float(_explained(np.array([a @ gap, 0.0, b @ spread])))


def _balanced(means: Floats) -> Floats:
    hit, true, _ = np.split(means, 3, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nanmean(np.where(true > 0, hit / true, np.nan), -1)


def _f1(means: Floats) -> Floats:
    """Mean over the classes that occur, as labels or as predictions."""
    hit, true, predicted = np.split(means, 3, -1)
    present = true + predicted > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nanmean(np.where(present, 2 * hit / (true + predicted), np.nan), -1)


def _surprise(y: NDArray[Any], p: Prediction) -> Floats:
    assert p.probability is not None
    clipped = np.clip(p.probability, _TINY, 1 - _TINY)
    return -np.log(clipped[np.arange(len(y)), y])[:, None]


def _brier(y: NDArray[Any], p: Prediction) -> Floats:
    assert p.probability is not None
    k = p.probability.shape[1]
    distance = np.square(p.probability - np.eye(k)[y]).sum(1, keepdims=True)
    return distance / 2 if k == 2 else distance


def _gap(y: NDArray[Any], p: Prediction) -> Floats:
    """Small integers would wrap around, float32 overflow in its square."""
    return y.astype(np.float64, copy=False) - p.values.astype(np.float64, copy=False)


def _squares(y: NDArray[Any], p: Prediction) -> Floats:
    return np.square(_gap(y, p))[:, None]


def _spread(y: NDArray[Any], p: Prediction) -> Floats:
    truth = y.astype(np.float64, copy=False)
    middle = truth - (truth.min() + truth.max()) / 2  # without it y**2 - mean**2 cancels
    return np.stack([np.square(_gap(y, p)), middle, np.square(middle)], 1)


def _explained(means: Floats) -> Floats:
    residual, mean, square = np.moveaxis(means, -1, 0)
    total = np.maximum(square - np.square(mean), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 1 - residual / total
    return np.where(total > 0, ratio, np.where(residual > 0, 0.0, 1.0))


def _ranking(y: NDArray[Any], p: Prediction) -> Floats:
    assert p.ranking is not None
    return p.ranking


_ROWS = (
    Metric("accuracy", "share of rows labelled right", "classification", True, "values", _hits,
           is_mean=True, is_share=True, is_count=True, bounds=UNIT),
    Metric("balanced_accuracy", "share labelled right, averaged over classes", "classification",
           True, "values", _counts, _balanced, is_count=True, bounds=UNIT),
    Metric("f1_macro", "balance of precision and recall, averaged over classes", "classification",
           True, "values", _counts, _f1, is_count=True, bounds=UNIT),
    Metric("log_loss", "mean surprise (nats) at the true label", "classification", False,
           "probability", _surprise, is_mean=True, bounds=POSITIVE),
    Metric("brier", "mean squared distance of probabilities from the truth", "classification",
           False, "probability", _brier, is_mean=True, bounds=(0.0, 2.0)),
    Metric("roc_auc", "chance that a row of a class ranks above one of the others",
           "classification", True, "ranking", _ranking, is_rank=True, bounds=UNIT),
    Metric("r2", "share of the target's variance explained", "regression", True, "values",
           _spread, _explained, is_ratio=True, bounds=(-np.inf, 1.0)),
    Metric("rmse", "root of the mean squared error, in units of the target", "regression", False,
           "values", _squares, lambda means: np.sqrt(means[..., 0]), bounds=POSITIVE),
    Metric("mae", "mean absolute error, in units of the target", "regression", False, "values",
           lambda y, p: np.abs(_gap(y, p))[:, None], is_mean=True, bounds=POSITIVE),
    Metric("mean_nll", "mean negative log-likelihood (nats) of a row", "density", False, "values",
           lambda y, p: -p.values[:, None].astype(np.float64), is_mean=True),
)  # fmt: skip


def _two(means: Floats) -> tuple[Floats, Floats, Floats]:
    """Shares of hits on the second class, of it, and of saying it."""
    if means.shape[-1] != 6:
        raise DataError("precision, recall and F1 of one class need two classes; use f1_macro")
    return means[..., 1], means[..., 3], means[..., 5]


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _f1_of(means: Floats) -> Floats:
    hit, true, predicted = _two(means)
    return _ratio(2 * hit, true + predicted)


def _predicted(means: Floats) -> tuple[Floats, Floats]:
    hit, _, predicted = _two(means)
    return hit, predicted


def _true(means: Floats) -> tuple[Floats, Floats]:
    hit, true, _ = _two(means)
    return hit, true


# asked for by name, left out of the list that every assessment shows
_MORE = (
    Metric("f1", "balance of precision and recall of the second class", "classification", True,
           "values", _counts, _f1_of, is_count=True, bounds=UNIT),
    Metric("precision", "share right among rows predicted to be of the second class", "classification",
           True, "values", _counts, lambda means: _ratio(*_predicted(means)), is_count=True, share=_predicted,
           bounds=UNIT),
    Metric("recall", "share found of the rows of the second class", "classification", True,
           "values", _counts, lambda means: _ratio(*_true(means)), is_count=True, share=_true,
           bounds=UNIT),
    Metric("mse", "mean squared error", "regression", False, "values", _squares, is_mean=True,
           bounds=POSITIVE),
)  # fmt: skip
METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
_KNOWN: dict[str, Metric] = {row.name: row for row in (*_ROWS, *_MORE)}
# losses of rows, by the names of `groundstate.evaluate.losses`
_LOSSES = {"zero_one": UNIT, "squared": POSITIVE, "squared error": POSITIVE, "absolute": POSITIVE}
# scikit-learn's further scorers that end at 0 and 1
_SCORERS = {
    f"{name}_{mean}"
    for name in ("f1", "precision", "recall", "jaccard")
    for mean in ("micro", "macro", "samples", "weighted")
} | {
    "average_precision", "jaccard", "top_k_accuracy", "roc_auc_ovr", "roc_auc_ovo",
    "roc_auc_ovr_weighted", "roc_auc_ovo_weighted",
}  # fmt: skip
DRAWN = ("iou", "dice", "pixel_accuracy", "ap50", "ap", "ar")  # of masks and boxes, see drawn.py
DEFAULT: dict[str, str] = {"classification": "accuracy", "regression": "r2", "density": "mean_nll"}


def metric(name: str | Metric | None = None, task: str = "classification") -> Metric:
    """The metric of that name, or the usual one of a task.

    >>> metric("rmse").title
    'root of the mean squared error, in units of the target'
    >>> metric(task="regression").name
    'r2'
    """
    if isinstance(name, Metric):
        return name
    wanted = DEFAULT[task] if name is None else name
    if wanted not in _KNOWN:
        close = difflib.get_close_matches(wanted, _KNOWN, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(METRICS)}"
        raise DataError(f"no metric is called {wanted!r}; {hint}")
    return _KNOWN[wanted]


def bounds_of(name: str) -> tuple[float, float]:
    """The least and the largest value of a metric, loss or scorer; a name nobody knows has none.

    >>> bounds_of("accuracy"), bounds_of("squared"), bounds_of("my_own")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    if name in _KNOWN:
        return _KNOWN[name].bounds
    if name in _SCORERS or name in DRAWN:
        return UNIT
    if name.startswith("neg_"):  # scikit-learn's losses, as scores
        return (-np.inf, 0.0)
    return _LOSSES.get(name, (-np.inf, np.inf))
