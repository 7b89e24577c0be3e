r"""Where to cut a probability: :math:`\hat y = 1(p \ge \delta)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.evaluate.calibration.recalibrate import chosen_rows
from groundstate.evaluate.rows import take

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdTable(Displayed):
    """What every threshold would do, one row per distinct score, thresholds rising.

    Attributes
    ----------
    threshold, tn, fp, fn, tp, precision, recall, fpr, f1, accuracy : (T,)
    """

    threshold: Floats
    tn: Floats
    fp: Floats
    fn: Floats
    tp: Floats

    @property
    def precision(self) -> Floats:
        """Share right among those called positive."""
        return self.tp / np.maximum(self.tp + self.fp, 1)

    @property
    def recall(self) -> Floats:
        """Share of the positives that is found; it never rises with the threshold."""
        return self.tp / (self.tp + self.fn)

    @property
    def fpr(self) -> Floats:
        """Share of the negatives that is called positive."""
        return self.fp / (self.fp + self.tn)

    @property
    def f1(self) -> Floats:
        """Harmonic mean of precision and recall."""
        return 2 * self.tp / (2 * self.tp + self.fp + self.fn)

    @property
    def accuracy(self) -> Floats:
        """Share right."""
        return (self.tp + self.tn) / (self.tp + self.tn + self.fp + self.fn)

    def __len__(self) -> int:
        return len(self.threshold)

    def to_frame(self) -> Any:
        """A polars frame."""
        import polars as pl

        names = (
            "threshold",
            "tn",
            "fp",
            "fn",
            "tp",
            "precision",
            "recall",
            "fpr",
            "f1",
            "accuracy",
        )
        return pl.DataFrame({name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class TunedThreshold(Displayed):
    """A classifier with its own threshold.

    Attributes
    ----------
    classifier : scikit-learn's ``TunedThresholdClassifierCV``, fitted
    threshold : float
    bayes : float or None
        The threshold that costs ask for when probabilities are right.
    """

    classifier: Any = field(repr=False)
    threshold: float
    bayes: float | None = None

    def __str__(self) -> str:
        text = f"threshold {self.threshold:.4g}"
        return text if self.bayes is None else f"{text}, by costs alone {self.bayes:.4g}"


def threshold_table(y: Any, p: Any) -> ThresholdTable:
    """Counts of every threshold, from one sort.

    Parameters
    ----------
    y : ``(n,)``, two labels; the larger is positive
    p : ``(n,)`` scores

    Examples
    --------
    >>> table = threshold_table([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> table.threshold.tolist(), table.recall.tolist()
    ([0.1, 0.35, 0.4, 0.8], [1.0, 1.0, 0.5, 0.5])
    """
    labels, score = np.asarray(y), np.asarray(p, np.float64)
    known = np.unique(labels)
    if len(known) != 2 or labels.shape != score.shape or score.ndim != 1:
        raise DataError("a threshold table needs two labels and one score per row")
    at, place = np.unique(score, return_inverse=True)
    positive = labels == known[1]
    up = np.bincount(place[positive], minlength=len(at)).astype(np.float64)
    down = np.bincount(place[~positive], minlength=len(at)).astype(np.float64)
    tp, fp = np.cumsum(up[::-1])[::-1], np.cumsum(down[::-1])[::-1]  # p ≥ threshold
    return ThresholdTable(at, down.sum() - fp, fp, up.sum() - tp, tp)


def bayes_threshold(cost: Any) -> float:
    r"""The threshold of least expected cost, :math:`c_{fp}/(c_{fp}+c_{fn})` above what is right.

    Parameters
    ----------
    cost : ``[[c00, c01], [c10, c11]]``: cost of saying j when the truth is k

    Examples
    --------
    >>> bayes_threshold([[0, 9], [1, 0]])
    0.9
    """
    table = np.asarray(cost, np.float64)
    if table.shape != (2, 2):
        raise DataError(f"cost is a 2 × 2 table, actual by predicted, got shape {table.shape}")
    fp, fn = float(table[0, 1] - table[0, 0]), float(table[1, 0] - table[1, 1])
    if fp <= 0 or fn <= 0:
        raise DataError("a mistake must cost more than being right, for both classes")
    return fp / (fp + fn)


def tune_threshold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    objective: Any = "balanced_accuracy",
    cost: Any = None,
    split: Any = None,
    part: str = "train",
    cv: Any = 5,
) -> TunedThreshold:
    """Choose the threshold by cross-validation, or on validation rows for a fitted model.

    Parameters
    ----------
    estimator : unfitted (cross-validated on the rows), or fitted with ``cv="prefit"``
    objective : scorer or its name; ignored when ``cost`` is given
    cost : ``[[c00, c01], [c10, c11]]``
    split, part : with a split, X and y are the whole table and ``part`` names the rows to use;
        the test rows are refused

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1)); y = (X[:, 0] + rng.normal(size=400) > 1).astype(int)
    >>> found = tune_threshold(LogisticRegression(), X, y, cost=[[0, 1], [9, 0]])
    >>> found.bayes, found.threshold < 0.35
    (0.1, True)
    """
    from sklearn.base import clone
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import TunedThresholdClassifierCV

    labels = np.asarray(y)
    if split is not None:
        rows = chosen_rows(split, part, "tuned")
        X, labels = take(X, rows), labels[rows]
    bayes = None
    if cost is not None:
        bayes, table = bayes_threshold(cost), np.asarray(cost, np.float64)
        classes = np.unique(labels)

        def spent(truth: Any, predicted: Any) -> float:
            a, b = np.searchsorted(classes, truth), np.searchsorted(classes, predicted)
            return float(table[a, b].mean())

        objective = make_scorer(spent, greater_is_better=False)
    prefit = isinstance(cv, str) and cv == "prefit"
    model = estimator if prefit else clone(estimator)
    tuned = TunedThresholdClassifierCV(model, scoring=objective, cv=cv, refit=not prefit)
    tuned.fit(X, labels)
    return TunedThreshold(tuned, float(tuned.best_threshold_), bayes)
