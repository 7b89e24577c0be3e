"""Weighted statistics in which a weight of 2 is the row twice, to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import DataError

Floats = NDArray[np.float64]


def check_weights(sample_weight: ArrayLike | None, n: int) -> Floats | None:
    """Weights (n,) as float64, or None when all rows count once; bad ones are a `DataError`."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise DataError(f"sample_weight has shape {weights.shape} for {n} rows; expected ({n},)")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError("sample_weight must be finite and not negative")
    if not weights.any():
        raise DataError("sample_weight is zero for every row; nothing is left to learn from")
    return weights


def tally(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Distinct values in ascending order and the total weight of each; NaN is left out.

    Everything below is computed from this summary, which is the same for a row of weight 2,
    for the row twice, and for any order of the rows.
    """
    present = ~np.isnan(values)
    kept = values[present]
    if weights is None:
        distinct, counts = np.unique(kept, return_counts=True)
        return distinct, counts.astype(np.float64)
    distinct, where = np.unique(kept, return_inverse=True)
    totals: Floats = np.bincount(
        where.ravel(), weights=weights[present], minlength=len(distinct)
    ).astype(np.float64)
    seen = totals > 0
    return distinct[seen], totals[seen]


def median(values: Floats, totals: Floats) -> float:
    r"""The weighted median: the mean of the lower and the upper one.

    The lower is the smallest value with :math:`\sum_{v \le m} w \ge W/2`, the upper the
    smallest with :math:`> W/2`; with unit weights this is the ordinary median.

    >>> median(np.array([1.0, 2.0, 9.0]), np.array([1.0, 1.0, 2.0]))
    5.5
    """
    reached = np.cumsum(totals)
    half = reached[-1] / 2
    low = values[np.searchsorted(reached, half, side="left")]
    high = values[min(np.searchsorted(reached, half, side="right"), len(values) - 1)]
    # halving first cannot overflow
    return float(low / 2 + high / 2) if low != high else float(low)


def mean_and_scale(values: Floats, totals: Floats) -> tuple[float, float]:
    r"""Mean and standard deviation :math:`\sqrt{\sum w (v-\bar v)^2 / W}`; 1 where that is 0.

    Values are divided by the largest first, so that neither squares nor sums overflow.
    """
    top = float(np.abs(values).max(initial=0.0))
    if top == 0.0 or len(values) == 1:
        return (float(values[0]) if len(values) else 0.0), 1.0
    unit = values / top
    share = totals / totals.sum()
    mean = float(np.sum(share * unit))
    spread = float(np.sqrt(np.sum(share * (unit - mean) ** 2)))
    if spread <= 1e-14:  # rounding, not variation
        return mean * top, 1.0
    return mean * top, max(spread * top, np.finfo(float).tiny)
