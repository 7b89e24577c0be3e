"""Cells of a table as numbers, levels and series of the types that the table had."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.tables.table import Table
from groundstate.models.generative.tables.columns import FEW, Coded, LevelColumn, NumberColumn

F64 = NDArray[np.float64]


def learned_column(table: Table, name: str, weight: F64) -> Coded:
    """What a column is: numbers, or levels."""
    column = table.column(name)
    kind = column.kind
    if kind in ("numeric", "date"):
        values = numbers_of(table.frame[name])
        if kind == "numeric" and column.n_unique <= min(FEW, max(2, table.n_rows // 10)):
            words = plain_of(table.frame[name], None)
            return LevelColumn.learned(name, words, weight, number=True, integer=column.integer)
        return NumberColumn.learned(
            name, values, weight, integer=column.integer, date=kind == "date"
        )
    return LevelColumn.learned(
        name, plain_of(table.frame[name], None), weight, number=False, integer=False
    )


def numbers_of(cells: pl.Series) -> F64:
    """Numbers, dates in microseconds since 1970; NaN for what is missing."""
    if cells.dtype.is_temporal():
        cells = cells.cast(pl.Datetime("us")).to_physical()
    return np.asarray(cells.cast(pl.Float64).fill_null(float("nan")).to_numpy(), np.float64)


def plain_of(cells: pl.Series, column: LevelColumn | None) -> list[Any]:
    """Floats or words, None for what is missing."""
    number = cells.dtype.is_numeric() if column is None else column.number
    if number:
        return [None if v is None or v != v else float(v) for v in cells.to_list()]
    return [None if v is None else str(v) for v in cells.to_list()]


def series_of(column: Coded, values: list[Any]) -> pl.Series:
    """Values of a column in its type."""
    if isinstance(column, NumberColumn) and column.date:
        whole = [None if v is None else int(v) for v in values]
        return pl.Series(column.name, whole, pl.Int64).cast(pl.Datetime("us"))
    if isinstance(column, NumberColumn) or column.number:
        return pl.Series(column.name, values, pl.Float64).cast(
            pl.Int64 if column.integer else pl.Float64
        )
    return pl.Series(column.name, values, pl.String)


def frame_of(drawn: Any) -> pl.DataFrame:
    """Drawn rows as a frame."""
    return drawn if isinstance(drawn, pl.DataFrame) else pl.DataFrame(drawn)
