r"""How closely columns of any kind go together, and groups of those that do.

===================  ===============================================================
two numbers          :math:`|\rho|`, Spearman's rank correlation
labels and a number  :math:`\eta`, the root of the share of the ranks' variance between labels
two labels           Cramér's V, corrected for its bias
===================  ===============================================================
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import scipy.stats
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from groundstate.evaluate.frames import frame_of
from groundstate.evaluate.rows import Floats

_ROWS = 2_000
_LEVELS = 50


def association(X: Any) -> Floats:
    """Association of every pair of columns, ``(d, d)`` between 0 and 1.

    Rows where either value is missing do not count for a pair. Text with more than 50 different
    values goes with nothing.

    Examples
    --------
    >>> rows = pl.DataFrame({"a": [1, 2, 3, 4] * 9, "b": [1, 4, 9, 16] * 9, "c": ["u", "u", "v", "v"] * 9})
    >>> association(rows).round(2).tolist()
    [[1.0, 1.0, 0.89], [1.0, 1.0, 0.89], [0.89, 0.89, 1.0]]
    """
    frame = frame_of(X)
    frame = frame[np.arange(0, frame.height, -(-frame.height // _ROWS))] if frame.height else frame
    columns = [_column(frame[name]) for name in frame.columns]
    found = np.eye(len(columns))
    for i, j in combinations(range(len(columns)), 2):
        found[i, j] = found[j, i] = between(*columns[i], *columns[j])
    return found


def column_groups(X: Any, threshold: float = 0.8) -> list[tuple[str, ...]]:
    """Columns that go together, by average linkage of 1 − association; every column is in one.

    Parameters
    ----------
    threshold : mean association within a group at which groups are still joined
    """
    frame = frame_of(X)
    names = frame.columns
    if len(names) < 2:
        return [(name,) for name in names]
    apart = 1 - association(frame)
    np.fill_diagonal(apart, 0.0)
    label = fcluster(
        linkage(squareform(apart, checks=False), "average"), 1 - threshold + 1e-12, "distance"
    )
    kept: dict[int, list[str]] = {}
    for name, own in zip(names, label.tolist(), strict=True):
        kept.setdefault(own, []).append(name)
    return [tuple(group) for group in kept.values()]


def between(a: Floats, kind_a: bool, b: Floats, kind_b: bool) -> float:
    """Association of two columns; kinds are True for numbers. NaN is missing."""
    seen = np.isfinite(a) & np.isfinite(b)
    a, b = a[seen], b[seen]
    if len(a) < 3 or (a == a[0]).all() or (b == b[0]).all():
        return 0.0
    if kind_a and kind_b:
        return float(abs(np.corrcoef(scipy.stats.rankdata(a), scipy.stats.rankdata(b))[0, 1]))
    if kind_a:
        a, b = b, a
    if kind_a or kind_b:
        return correlation_ratio(_codes(a), scipy.stats.rankdata(b))
    return cramer(_codes(a), _codes(b))


def correlation_ratio(group: NDArray[np.intp], values: Floats) -> float:
    """η: root of the share of the variance that lies between groups, less what chance puts there."""
    counts = np.bincount(group)
    means = np.bincount(group, values) / np.maximum(counts, 1)
    inside = float(((values - means[group]) ** 2).sum())
    whole = float(((values - values.mean()) ** 2).sum())
    free = len(values) - int((counts > 0).sum())
    if whole == 0 or free <= 0:
        return 0.0
    return float(np.sqrt(max(0.0, 1 - inside / whole * (len(values) - 1) / free)))


def cramer(a: NDArray[np.intp], b: NDArray[np.intp]) -> float:
    """Cramér's V with Bergsma's correction."""
    n, r, c = len(a), int(a.max()) + 1, int(b.max()) + 1
    seen = np.bincount(a * c + b, minlength=r * c).reshape(r, c).astype(np.float64)
    wanted = seen.sum(1, keepdims=True) * seen.sum(0) / n
    phi2 = float(((seen - wanted) ** 2 / wanted).sum() / n)
    phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    rows, columns = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    least = min(rows, columns) - 1
    return float(np.sqrt(min(1.0, phi2 / least))) if least > 0 else 0.0


def _codes(values: Floats) -> NDArray[np.intp]:
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _column(values: pl.Series) -> tuple[Floats, bool]:
    """A column as numbers, NaN where missing, and whether they are numbers rather than labels."""
    if values.dtype.is_temporal():
        values = values.to_physical()
    if values.dtype.is_numeric():
        return values.cast(pl.Float64).fill_null(float("nan")).to_numpy(), True
    codes = values.cast(pl.String).rank("dense").cast(pl.Float64)
    if codes.max() is not None and float(codes.max()) > _LEVELS:  # type: ignore[arg-type]
        return np.full(len(values), np.nan), False
    return codes.fill_null(float("nan")).to_numpy(), False
