"""Whether one column alone gives the target away."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.tables.table import Table

_SUSPICIOUS = 0.99
_MAX_ROWS = 50_000
_MAX_CLASSES = 100
_BINS = 64
_ROWS_PER_GROUP = 5


def single_column_scores(table: Table) -> Iterator[tuple[str, float]]:
    """Accuracy, or R², of the best answer per value of one column, when suspiciously near 1.

    Columns with nearly as many values as rows are cut into quantile bins, so that a name
    that is different in every row is no false alarm.
    """
    if table.n_rows < 20:
        return
    rows = np.arange(0, table.n_rows, -(-table.n_rows // _MAX_ROWS))
    regression, y = table.task == "regression", table.y[rows]
    levels, codes = np.unique(y, return_inverse=True)
    if not regression and not 2 <= len(levels) <= _MAX_CLASSES:
        return
    for column in table.features.schema:
        if column.kind not in ("numeric", "category", "date"):
            continue
        values = table.frame[column.name][rows]
        groups = _groups(values)
        if groups is None:
            continue
        if regression:
            score = _regression(values, groups, y.astype(np.float64))
        else:
            score = _classification(groups, codes, len(levels))
        if score is not None:
            yield column.name, score


def _groups(values: pl.Series) -> NDArray[np.int64] | None:
    """Group number of each row: equal values, or equal quantile bins; missing is a group."""
    n = len(values)
    most = max(2, n // _ROWS_PER_GROUP)
    codes = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    if codes.max(initial=0) < most:
        return codes
    if values.dtype == pl.String:
        return None
    bins = min(_BINS, most)
    order = values.rank("average").fill_null(0.0).to_numpy()
    return np.minimum((order / (n + 1) * bins).astype(np.int64), bins - 1) + (order > 0)


def _classification(groups: NDArray[np.int64], codes: NDArray[np.intp], k: int) -> float | None:
    table = np.bincount(groups * k + codes, minlength=(int(groups.max()) + 1) * k).reshape(-1, k)
    accuracy = float(table.max(axis=1).sum() / len(codes))
    baseline = float(table.sum(axis=0).max() / len(codes))
    suspicious = accuracy >= _SUSPICIOUS and 1 - accuracy <= 0.1 * (1 - baseline)
    return accuracy if suspicious else None


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values divided by the largest, whose squares would overflow otherwise."""
    largest = float(np.abs(values).max(initial=0.0))
    return values / largest if largest > 0 else values


def _regression(
    values: pl.Series, groups: NDArray[np.int64], y: NDArray[np.float64]
) -> float | None:
    y = _unit(y)
    total = float(np.sum((y - y.mean()) ** 2))
    if total == 0.0:
        return None
    counts = np.bincount(groups)
    sums = np.bincount(groups, weights=y)
    means = sums / np.maximum(counts, 1)
    between = float(np.sum(counts * (means - y.mean()) ** 2)) / total
    linear = 0.0
    if values.dtype != pl.String:
        x = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        seen = ~np.isnan(x)
        if seen.mean() > 0.9 and np.ptp(x[seen]) > 0 and np.ptp(y[seen]) > 0:
            linear = float(np.corrcoef(_unit(x[seen]), y[seen])[0, 1] ** 2)
    best = max(between, linear)
    return best if best >= 0.998 else None
