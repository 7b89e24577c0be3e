r"""Metrics of the confusion table: rows are actual classes, columns predicted ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from groundstate.compute.display import Displayed
from groundstate.errors import DataError

Floats = NDArray[np.float64]


def confusion(
    y: Any,
    pred: Any,
    *,
    positive_first: bool = False,
    labels: Any = None,
    sample_weight: Any = None,
) -> NDArray[Any]:
    """scikit-learn's confusion matrix: ``C[k, j]`` rows of class k were called j.

    Two classes read [[TN, FP], [FN, TP]]; ``positive_first`` gives [[TP, FN], [FP, TN]].

    Examples
    --------
    >>> confusion([0, 0, 1, 1], [0, 1, 1, 1]).tolist()
    [[1, 1], [0, 2]]
    >>> confusion([0, 0, 1, 1], [0, 1, 1, 1], positive_first=True).tolist()
    [[2, 0], [1, 1]]
    """
    table = confusion_matrix(y, pred, labels=labels, sample_weight=sample_weight)
    if positive_first:
        if len(table) != 2:
            raise DataError(f"positive_first is for two classes, got {len(table)}")
        table = table[::-1, ::-1]
    return table


@dataclass
class ConfusionAccumulator(Displayed):
    r"""A confusion table that grows by batches and adds up over shards.

    .. math:: C_{kj} = \sum_i w_i [y_i = k][\hat y_i = j]

    All count metrics are functions of it. Batches may be NumPy arrays or tensors on any device;
    counts of tensors stay there until read.

    Parameters
    ----------
    n_classes : int
        Labels are 0 to n_classes − 1.

    Examples
    --------
    >>> one, two = ConfusionAccumulator(2), ConfusionAccumulator(2)
    >>> one.update([0, 0, 1], [0, 1, 1]), two.update([1], [1])
    (None, None)
    >>> (one + two).table.tolist(), (one + two).accuracy
    ([[1.0, 1.0], [0.0, 2.0]], 0.75)
    """

    n_classes: int
    counts: Any = None

    def update(self, y: Any, pred: Any, sample_weight: Any = None) -> None:
        """Add a batch of labels and predicted labels."""
        k = self.n_classes
        new: Any
        if hasattr(y, "detach"):
            import torch

            code = y.reshape(-1).long() * k + pred.reshape(-1).long()
            new = torch.bincount(code, weights=sample_weight, minlength=k * k).double()
        else:
            actual, predicted = np.asarray(y).reshape(-1), np.asarray(pred).reshape(-1)
            for labels in (actual, predicted):
                if len(labels) and not 0 <= labels.min() <= labels.max() < k:
                    raise DataError(f"labels must be 0 to {k - 1}, got {int(labels.max())}")
            code = actual.astype(np.int64) * k + predicted
            new = np.bincount(code, sample_weight, minlength=k * k).astype(np.float64)
        if len(new) != k * k:
            raise DataError(f"labels must be 0 to {k - 1}; some were larger")
        self.counts = new if self.counts is None else self.counts + new

    def __add__(self, other: ConfusionAccumulator) -> ConfusionAccumulator:
        if self.n_classes != other.n_classes:
            raise DataError(
                f"tables of {self.n_classes} and {other.n_classes} classes cannot be added"
            )
        parts = [c for c in (self.counts, other.counts) if c is not None]
        return ConfusionAccumulator(self.n_classes, sum(parts) if parts else None)

    @property
    def table(self) -> Floats:
        """The confusion matrix.  # (K, K)"""
        k = self.n_classes
        if self.counts is None:
            return np.zeros((k, k))
        counts = self.counts
        return np.asarray(counts.cpu() if hasattr(counts, "cpu") else counts).reshape(k, k)

    @property
    def accuracy(self) -> float:
        """Share on the diagonal."""
        return float(np.trace(self.table) / self.table.sum())

    @property
    def precision(self) -> Floats:
        """Share right among rows called k; NaN where none was.  # (K,)"""
        return _ratio(np.diag(self.table), self.table.sum(0))

    @property
    def recall(self) -> Floats:
        """Share found of the rows of class k; NaN where there is none.  # (K,)"""
        return _ratio(np.diag(self.table), self.table.sum(1))

    @property
    def specificity(self) -> Floats:
        """Share of the rows of other classes that were not called k.  # (K,)"""
        table, total = self.table, self.table.sum()
        false = table.sum(0) - np.diag(table)
        return 1 - _ratio(false, total - table.sum(1))

    @property
    def npv(self) -> Floats:
        """Share right among rows not called k.  # (K,)"""
        table, total = self.table, self.table.sum()
        missed = table.sum(1) - np.diag(table)
        return 1 - _ratio(missed, total - table.sum(0))

    def f_beta(self, beta: float = 1.0) -> Floats:
        r""":math:`(1+\beta^2)PR/(\beta^2P + R)` of each class.  # (K,)"""
        table, b2 = self.table, beta**2
        return _ratio((1 + b2) * np.diag(table), b2 * table.sum(1) + table.sum(0))

    @property
    def iou(self) -> Floats:
        """Overlap over union of each class.  # (K,)"""
        hit = np.diag(self.table)
        return _ratio(hit, self.table.sum(0) + self.table.sum(1) - hit)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the classes that occur."""
        return float(np.nanmean(self.recall))

    @property
    def mcc(self) -> float:
        """Matthews' correlation of labels and predictions; 0 when one of them is constant."""
        table = self.table / (self.table.max() or 1.0)
        # sums of positive terms: s² - p·p of a rare class in 1e9 rows loses its digits
        hit, others = np.diag(table), 1 - np.eye(self.n_classes)
        missed = table * others
        t, p = table.sum(1), table.sum(0)
        below = np.sqrt(t @ others @ t) * np.sqrt(p @ others @ p)
        fn, fp = missed.sum(1), missed.sum(0)
        elsewhere = others @ hit + np.maximum(missed.sum() - fn - fp, 0.0)  # neither of k nor k
        return float((hit @ elsewhere - fn @ fp) / below) if below > 0 else 0.0


def f1_of_macros(y: Any, pred: Any = None, *, sample_weight: Any = None) -> float:
    r"""Harmonic mean of macro precision and macro recall, :math:`2/(1/\bar P + 1/\bar R)`.

    It is not macro-F1, the mean of the classes' F1. Absent classes count as in scikit-learn, 0.

    Parameters
    ----------
    y, pred : labels, or a confusion matrix as ``y`` alone

    Examples
    --------
    >>> round(f1_of_macros([[8, 2], [1, 9]]), 6)
    0.851764
    """
    table = np.asarray(y) if pred is None else confusion(y, pred, sample_weight=sample_weight)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise DataError(f"a confusion matrix is square, got shape {table.shape}")
    hit = np.diag(table)
    p = float(np.nan_to_num(_ratio(hit, table.sum(0))).mean())
    r = float(np.nan_to_num(_ratio(hit, table.sum(1))).mean())
    return 2 * p * r / (p + r) if p + r > 0 else 0.0


def _ratio(above: Any, below: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(below) > 0, np.asarray(above) / below, np.nan)
