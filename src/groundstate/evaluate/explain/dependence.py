r"""Partial dependence: the mean prediction when one column is set to a value in every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.data import Table
from groundstate.errors import DataError
from groundstate.evaluate.frames import frame_of
from groundstate.evaluate.rows import Floats, n_rows, weights_of
from groundstate.models.shapley.game import answers
from groundstate.models.tables.explained import table_rows
from groundstate.models.tables.table import TablePredictor

_ROWS = 100_000  # rows that are predicted at once


@dataclass(frozen=True)
class Dependence(Displayed):
    """Predictions along one column.

    Attributes
    ----------
    column : str
    grid : list of G values of the column: numbers, or labels
    average : (G, K) partial dependence
    individual : (n, G, K) or None, one curve per row (ICE)
    outputs : classes, or ``("value",)``
    units : ``"value"``, ``"probability"``, ``"score"`` or ``"vote"``
    """

    column: str
    grid: list[Any]
    average: Floats
    individual: Floats | None
    outputs: tuple[Any, ...]
    units: str

    def to_dict(self, curves: int = 0) -> dict[str, Any]:
        """Plain values for a report, with at most this many single curves."""
        found: dict[str, Any] = {
            "column": self.column,
            "grid": list(self.grid),
            "average": self.average.tolist(),
            "outputs": [str(label) for label in self.outputs],
            "units": self.units,
        }
        if self.individual is not None and curves:
            found["curves"] = self.individual[:curves].tolist()
        return found


def partial_dependence(
    model: Any,
    X: Any,
    column: str | int,
    *,
    grid: Any = None,
    grid_resolution: int = 20,
    percentiles: tuple[float, float] = (0.05, 0.95),
    individual: bool = False,
    sample_weight: Any = None,
) -> Dependence:
    r"""The mean prediction as one column changes and all others stay as they are.

    .. math:: \bar f_j(v) = \frac1W\sum_i w_i f(x_i \text{ with } x_{ij} = v)

    Parameters
    ----------
    model
        A fitted `TablePredictor`, classifier or regressor.
    X
        Rows to average over.
    column
        Name, or position.
    grid
        Values to set; by default the distinct values when there are few of them, else as many
        equal steps between two percentiles (numbers), or the most frequent labels.
    grid_resolution
        Most values.
    individual
        Keep the curve of every row (individual conditional expectation).

    Examples
    --------
    >>> from groundstate import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> line = partial_dependence(Ridge(alpha=1e-9).fit(X, 3 * X[:, 0]), X, 0, grid=[0.0, 1.0])
    >>> float(np.diff(line.average[:, 0])[0].round(6))
    3.0
    """
    rows: Any = table_rows(model, X) if isinstance(model, TablePredictor) else X
    frame = frame_of(rows)
    name = frame.columns[column] if isinstance(column, int) else column
    if name not in frame.columns:
        raise DataError(f"no column {name!r}; there are {', '.join(frame.columns[:20])}")
    place, n = frame.columns.index(name), n_rows(rows)
    values = frame[name]
    points = _grid(values, grid_resolution, percentiles) if grid is None else list(grid)
    if not points:
        raise DataError(f"{name!r} has no value to set; pass grid=[...]")
    answer, outputs, units = answers(model)
    weight = weights_of(sample_weight, n)
    parts, at_once = [], max(1, _ROWS // max(n, 1))
    for lo in range(0, len(points), at_once):
        some = points[lo : lo + at_once]
        parts.append(answer(_set(rows, frame, name, place, some)).reshape(len(some), n, -1))
    found = np.concatenate(parts)  # (G, n, K)
    average = np.einsum("n,gnk->gk", weight / weight.sum(), found)
    each = np.moveaxis(found, 0, 1) if individual else None
    return Dependence(name, points, average, each, outputs, units)


def _grid(values: pl.Series, most: int, percentiles: tuple[float, float]) -> list[Any]:
    seen = values.drop_nulls()
    if seen.dtype.is_numeric() and seen.dtype != pl.Boolean:
        numbers = seen.cast(pl.Float64).to_numpy()
        numbers = numbers[np.isfinite(numbers)]
        distinct = np.unique(numbers)
        if len(distinct) < most:
            return [float(v) for v in distinct]
        low, high = np.quantile(numbers, percentiles)
        if low == high:
            low, high = distinct[0], distinct[-1]
        return [float(v) for v in np.linspace(low, high, most)]
    if seen.dtype.is_temporal():
        ordered = seen.sort()
        steps = np.linspace(percentiles[0], percentiles[1], min(most, ordered.n_unique()))
        at = np.unique((steps * (len(ordered) - 1)).astype(int))
        return [ordered[int(i)] for i in at]
    counts = seen.value_counts(name="times").sort(["times", seen.name], descending=[True, False])
    return list(counts[seen.name].head(most).to_list())


def _set(rows: Any, frame: pl.DataFrame, name: str, place: int, some: list[Any]) -> Any:
    """The rows once for every value, with the column set to it."""
    n = n_rows(rows)
    if isinstance(rows, Table) or hasattr(rows, "columns"):
        kind = frame[name].dtype
        whole = kind.is_integer() and any(v != int(v) for v in some)
        new = pl.Series(name, some, strict=False)
        new = new if whole or kind.is_numeric() else new.cast(kind)
        column = new.gather(np.repeat(np.arange(len(some)), n))
        many = pl.concat([frame] * len(some)).with_columns(column)
        if isinstance(rows, Table):
            return Table(many, rows.schema)
        return many if isinstance(rows, pl.DataFrame) else many.to_pandas()
    matrix = np.asarray(rows)
    many_rows: NDArray[Any] = np.tile(matrix, (len(some), 1))
    if many_rows.dtype.kind in "iub":
        many_rows = many_rows.astype(np.float64)
    many_rows[:, place] = np.repeat(np.asarray(some), n)
    return many_rows
