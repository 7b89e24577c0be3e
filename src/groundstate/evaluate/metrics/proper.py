r"""Probabilities judged: the parts of the Brier score, calibration error, reliability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.rows import weights_of
from groundstate.math.stats.interval import z_of
from groundstate.math.stats.quantiles import repeated_quantile

Floats = NDArray[np.float64]
Strategy = Literal["uniform", "quantile"]


class BrierParts(NamedTuple):
    """reliability − resolution + uncertainty = Brier score, when p is constant in each bin."""

    reliability: float
    resolution: float
    uncertainty: float

    @property
    def total(self) -> float:
        """reliability − resolution + uncertainty."""
        return self.reliability - self.resolution + self.uncertainty


@dataclass(frozen=True)
class Reliability(Displayed):
    """How often it happened when the model forecast p.

    Attributes
    ----------
    predicted, observed, count, low, high : (B,)
        Mean prediction, share that happened, rows, and Wilson's interval of the share, by bin.
    """

    predicted: Floats
    observed: Floats
    count: Floats
    low: Floats
    high: Floats


def brier_parts(y: Any, p: Any, bins: Any = None, *, sample_weight: Any = None) -> BrierParts:
    r"""Murphy's parts of the Brier score of a binary forecast.

    .. math:: \frac1n\sum_b n_b(\bar p_b - \bar y_b)^2 - \frac1n\sum_b n_b(\bar y_b - \bar y)^2
              + \bar y(1-\bar y)

    Parameters
    ----------
    y : ``(n,)``, 0 or 1
    p : ``(n,)``
    bins : a number of equal bins, edges, or None for one bin per distinct p, which is exact
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Examples
    --------
    >>> parts = brier_parts([1, 0, 0, 0, 0, 1, 1, 1, 0, 0], [0.1] * 5 + [0.9] * 5)
    >>> [round(part, 6) for part in parts], round(parts.total, 6)
    ([0.05, 0.04, 0.24], 0.25)
    """
    truth, forecast = _pair(y, p)
    w = weights_of(sample_weight, len(truth))
    if bins is None:
        place = np.unique(forecast, return_inverse=True)[1].reshape(-1)
    else:
        edges = np.linspace(0, 1, bins + 1) if np.ndim(bins) == 0 else np.asarray(bins, np.float64)
        place = np.clip(np.searchsorted(edges, forecast, side="right") - 1, 0, len(edges) - 2)
    count = np.bincount(place, w)
    some = count > 0
    mean_p = np.bincount(place, w * forecast)[some] / count[some]
    mean_y = np.bincount(place, w * truth)[some] / count[some]
    share, base = count[some] / w.sum(), float(w @ truth / w.sum())
    return BrierParts(
        float(share @ (mean_p - mean_y) ** 2), float(share @ (mean_y - base) ** 2),
        base * (1 - base),
    )  # fmt: skip


def reliability(
    y: Any,
    p: Any,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    *,
    sample_weight: Any = None,
) -> Reliability:
    """Share that happened against the share foretold, by bins of the forecast, with Wilson bars.

    Parameters
    ----------
    y, p : ``(n,)``, 0 or 1 and probabilities
    strategy : bins of equal width, or of equal count
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Examples
    --------
    >>> curve = reliability([0, 0, 1, 1], [0.1, 0.1, 0.9, 0.9], n_bins=2)
    >>> curve.predicted.round(6).tolist(), curve.observed.tolist()
    ([0.1, 0.9], [0.0, 1.0])
    """
    truth, forecast = _pair(y, p)
    w = weights_of(sample_weight, len(truth))
    place = _bins(forecast, n_bins, strategy, w)
    count = np.bincount(place, w)
    some = count > 0
    n: Floats = np.asarray(count[some], np.float64)
    share, predicted = (np.bincount(place, w * v)[some] / n for v in (truth, forecast))
    z = z_of(level)
    centre, shrink = share + z * z / (2 * n), 1 + z * z / n
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # the ends meet a share of 0 or 1 exactly, which rounding misses
    low = np.where(share == 0, 0.0, (centre - half) / shrink)
    high = np.where(share == 1, 1.0, (centre + half) / shrink)
    return Reliability(predicted, share, n, low, high)


def ece(
    y: Any,
    p: Any,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    norm: Literal["l1", "l2", "max"] = "l1",
    *,
    debias: bool = False,
    sample_weight: Any = None,
) -> float:
    r"""Expected calibration error, :math:`\sum_b\frac{n_b}n|\bar y_b - \bar p_b|`.

    For K > 2 classes the forecast is the largest probability and the event is that its label is
    right. A finite sample makes the error of a perfect forecast positive, falling as
    :math:`n^{-1/2}`; ``debias`` (for ``norm="l2"``) subtracts its expected part
    :math:`\bar y_b(1-\bar y_b)/(n_b-1)` (Kumar, Liang and Ma).

    Parameters
    ----------
    y : ``(n,)`` labels: 0 and 1, or class numbers of the columns of p
    p : ``(n,)`` or ``(n, K)``
    norm : mean, root mean square or largest gap
    sample_weight : ``(n,)``; a weight of 2 is the row twice

    Examples
    --------
    >>> round(ece([1, 0, 0, 0, 0, 1, 1, 1, 0, 0], [0.1] * 5 + [0.9] * 5), 6)
    0.2
    """
    table = np.asarray(p, np.float64)
    if table.ndim == 2:
        if table.shape[1] == 2:
            table = table[:, 1]
        else:
            y = np.asarray(y) == table.argmax(1)
            table = table.max(1)
    truth, forecast = _pair(y, table)
    w = weights_of(sample_weight, len(truth))
    place = _bins(forecast, n_bins, strategy, w)
    count = np.bincount(place, w)
    some = count > 0
    count = count[some]
    rate = np.bincount(place, w * truth)[some] / count
    gap = np.abs(rate - np.bincount(place, w * forecast)[some] / count)
    share = count / w.sum()
    if norm == "l1":
        return float(share @ gap)
    if norm == "max":
        return float(gap.max())
    if norm != "l2":
        raise ValueError(f"norm must be 'l1', 'l2' or 'max', got {norm!r}")
    square = gap**2
    if debias:
        square = square - np.where(count > 1, rate * (1 - rate) / np.maximum(count - 1, 1), 0.0)
    return float(np.sqrt(max(0.0, float(share @ square))))


def _bins(p: Floats, n_bins: int, strategy: str, w: Floats) -> NDArray[np.intp]:
    if n_bins < 1:
        raise ValueError(f"n_bins is at least 1, got {n_bins}")
    if strategy == "uniform":
        edges = np.linspace(0, 1, n_bins + 1)
    elif strategy == "quantile":
        at = np.linspace(0, 1, n_bins + 1)
        # many equal forecasts give equal edges, which must stay: hard 0s and 1s are two bins
        edges = repeated_quantile(p, w if (w != w[0]).any() else None, at)
    else:
        raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}")
    return np.searchsorted(edges[1:-1], p)  # as scikit-learn's calibration_curve


def _pair(y: Any, p: Any) -> tuple[Floats, Floats]:
    truth, forecast = np.asarray(y, np.float64), np.asarray(p, np.float64)
    if truth.shape != forecast.shape or truth.ndim != 1 or not len(truth):
        raise ShapeError(
            f"one probability per label is needed, got {forecast.shape}, {truth.shape}"
        )
    if not np.isin(truth, (0.0, 1.0)).all():
        raise DataError("labels must be 0 and 1; compare y with the positive label first")
    if not ((forecast >= 0) & (forecast <= 1)).all():
        raise DataError("probabilities must be between 0 and 1")
    return truth, forecast
