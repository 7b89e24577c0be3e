r"""Metrics over batches and shards: sums that merge, and ROC areas from histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.math.stats.interval import Interval, z_of

Floats = NDArray[np.float64]


@dataclass
class MeanAccumulator:
    r"""Mean and variance of per-row losses in one pass (Welford), mergeable over shards (Chan).

    .. math:: M_2 \leftarrow M_2^a + M_2^b + (\bar x_b - \bar x_a)^2\frac{n_an_b}{n_a+n_b}

    Examples
    --------
    >>> one, two = MeanAccumulator(), MeanAccumulator()
    >>> one.update([1.0, 2.0]); two.update([3.0])
    >>> (one + two).mean, (one + two).variance
    (2.0, 1.0)
    """

    weight: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def update(self, losses: Any, sample_weight: Any = None) -> None:
        """Add a batch of losses."""
        x = np.asarray(losses.detach().cpu() if hasattr(losses, "detach") else losses, np.float64)
        x = x.reshape(-1)
        if not len(x):
            return
        w = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        total = float(w.sum())
        if total <= 0:
            return
        mean = float(w @ x) / total
        merged = self + MeanAccumulator(total, mean, float(w @ np.square(x - mean)))
        self.weight, self.mean, self.m2 = merged.weight, merged.mean, merged.m2

    def __add__(self, other: MeanAccumulator) -> MeanAccumulator:
        total = self.weight + other.weight
        if total == 0:
            return MeanAccumulator()
        gap = other.mean - self.mean
        mean = self.mean + gap * other.weight / total
        m2 = self.m2 + other.m2 + gap * gap * self.weight * other.weight / total
        return MeanAccumulator(total, mean, m2)

    @property
    def variance(self) -> float:
        """With ddof 1."""
        return self.m2 / (self.weight - 1) if self.weight > 1 else math.nan

    def interval(self, level: float = 0.95) -> Interval:
        """Normal interval of the mean; n is large where rows are streamed."""
        if self.weight < 2:
            raise DataError(f"an interval of a mean needs at least two rows, got {self.weight:g}")
        half = z_of(level) * math.sqrt(self.variance / self.weight)
        return Interval(self.mean, self.mean - half, self.mean + half, level, "normal")


@dataclass
class RegressionAccumulator(Displayed):
    """MSE, RMSE, MAE and R² of values that come in batches.

    >>> acc = RegressionAccumulator()
    >>> acc.update([1, 2, 2, 4], [0.9, 1.8, 2.7, 3.6])
    >>> round(acc.r2, 6)
    0.852632
    """

    target: MeanAccumulator = field(default_factory=MeanAccumulator)
    square: MeanAccumulator = field(default_factory=MeanAccumulator)
    absolute: MeanAccumulator = field(default_factory=MeanAccumulator)

    def update(self, y: Any, pred: Any, sample_weight: Any = None) -> None:
        """Add a batch of values and predictions."""
        truth, predicted = np.asarray(y, np.float64), np.asarray(pred, np.float64)
        self.target.update(truth, sample_weight)
        self.square.update(np.square(truth - predicted), sample_weight)
        self.absolute.update(np.abs(truth - predicted), sample_weight)

    def __add__(self, other: RegressionAccumulator) -> RegressionAccumulator:
        return RegressionAccumulator(
            self.target + other.target, self.square + other.square, self.absolute + other.absolute
        )

    @property
    def mse(self) -> float:
        """Mean squared error."""
        return self.square.mean

    @property
    def rmse(self) -> float:
        """Its root."""
        return math.sqrt(self.square.mean)

    @property
    def mae(self) -> float:
        """Mean absolute error."""
        return self.absolute.mean

    @property
    def r2(self) -> float:
        """1 − SSE/SST."""
        total = self.target.m2 / self.target.weight
        return 1 - self.mse / total if total > 0 else (1.0 if self.mse == 0 else 0.0)


@dataclass
class AUCAccumulator(Displayed):
    r"""The ROC area of scores in [0, 1] from two histograms of 2¹⁶ bins, mergeable by addition.

    Scores of one bin count as ties, so the error is at most half the share of pairs that share a
    bin, :math:`\frac12\sum_b p_bq_b`.

    Examples
    --------
    >>> acc = AUCAccumulator()
    >>> acc.update([0, 0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.35, 0.7])
    >>> round(acc.auc, 6)
    0.833333
    """

    bins: int = 2**16
    positive: Any = None
    negative: Any = None

    def __post_init__(self) -> None:
        if self.positive is None:
            self.positive, self.negative = np.zeros(self.bins), np.zeros(self.bins)

    def update(self, y: Any, score: Any, sample_weight: Any = None) -> None:
        """Add a batch of labels (0 or 1) and scores between 0 and 1."""
        truth, s = np.asarray(y).astype(bool), np.asarray(score, np.float64)
        if len(s) and not (s.min() >= 0 and s.max() <= 1):
            raise DataError("scores must lie between 0 and 1; squash them first (any rising map)")
        at = np.minimum((s * self.bins).astype(np.int64), self.bins - 1)
        w = np.ones(len(s)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        self.positive = self.positive + np.bincount(at[truth], w[truth], self.bins)
        self.negative = self.negative + np.bincount(at[~truth], w[~truth], self.bins)

    def __add__(self, other: AUCAccumulator) -> AUCAccumulator:
        if self.bins != other.bins:
            raise DataError(f"histograms of {self.bins} and {other.bins} bins cannot be added")
        return AUCAccumulator(
            self.bins, self.positive + other.positive, self.negative + other.negative
        )

    @property
    def auc(self) -> float:
        """Chance that a positive scores above a negative, ties half."""
        pairs = float(self.positive.sum() * self.negative.sum())
        below = np.cumsum(self.negative) - self.negative / 2
        return float(self.positive @ below) / pairs if pairs > 0 else math.nan

    @property
    def error_bound(self) -> float:
        """Largest possible distance from the exact area."""
        pairs = float(self.positive.sum() * self.negative.sum())
        return float(self.positive @ self.negative) / 2 / pairs if pairs > 0 else math.nan
