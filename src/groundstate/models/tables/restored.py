"""Between the cells of a table and prepared numbers, for draws and for best values of x."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import issparse

from groundstate.data import Preparation, Table
from groundstate.data.preparation.encoders import Clock, Date, Numeric
from groundstate.data.preparation.levels import Category, Ordinal, TargetMean

_DAY = 86_400e6  # microseconds


def restored(preparation: Preparation, X: NDArray[Any], *, present: bool = False) -> pl.DataFrame:
    """The columns whose prepared form is nearest to ``X`` (n, d); of cells that are present none is missing.

    Numbers and dates are un-standardised, whole numbers rounded, a category is its largest column.
    Hashed text cannot be read back and is left out.

    Examples
    --------
    >>> prep = Preparation().fit({"size": [1.0, 3.0, 5.0], "colour": ["red", "blue", "red"]})
    >>> restored(prep, prep.transform({"size": [3.0], "colour": ["blue"]})).rows()
    [(3.0, 'blue')]
    """
    X = np.asarray(X, np.float64)
    out: list[pl.Series] = []
    at = 0
    for name, encoder in preparation.encoders_.items():
        width = len(encoder.names(name))
        block, at = X[:, at : at + width], at + width
        if isinstance(encoder, Numeric):
            whole = preparation.schema_[name].integer
            out.append(pl.Series(name, _numbers(encoder, block, whole), nan_to_null=True))
        elif isinstance(encoder, Clock):
            hours = _numbers(encoder.hours, block, preparation.schema_[name].integer)
            out.append(pl.Series(name, hours, nan_to_null=True))
        elif isinstance(encoder, Category):
            levels: list[str | None] = [*encoder.levels, *(["other"] if encoder.other else [])]
            levels += [None] if encoder.missing and not present else []
            nearest = block[:, : len(levels)].argmax(1)
            out.append(pl.Series(name, [levels[i] for i in nearest], dtype=pl.String))
        elif isinstance(encoder, (Ordinal, TargetMean)):
            out.append(pl.Series(name, _nearest(encoder, block), dtype=pl.String))
        elif isinstance(encoder, Date) and "elapsed" in encoder.parts:
            days = _numbers(encoder.numbers[0], block, False)  # elapsed comes first
            stamps = pl.Series(name, days * _DAY, nan_to_null=True).round().cast(pl.Int64)
            out.append(stamps.cast(pl.Datetime("us")))
    return pl.DataFrame(out)


def opened(preparation: Preparation, table: Table) -> NDArray[np.float64]:
    """Prepared rows with NaN for every number that a missing cell stands for, ``(n, d)``.

    >>> from groundstate.data import read
    >>> prep = Preparation().fit({"size": [1.0, 3.0, 5.0], "colour": ["red", "blue", "red"]})
    >>> opened(prep, read({"size": [None, 3.0], "colour": ["blue", None]}, schema=prep.schema_))
    array([[nan,  1.,  0.],
           [ 0., nan, nan]])
    """
    X = preparation.transform(table)
    X = X.toarray() if issparse(X) else X
    at = 0
    for name, encoder in preparation.encoders_.items():
        width = len(encoder.names(name))
        absent = table.frame[name].is_null().to_numpy()
        X[absent, at : at + width] = np.nan
        first = encoder.hours if isinstance(encoder, Clock) else encoder
        if isinstance(first, Numeric) and first.indicator:  # there is a value, nobody knows it
            X[absent, at + 1] = 0.0
        elif isinstance(encoder, Category) and encoder.missing:
            X[absent, at + width - 1] = 0.0
        at += width
    for j, (later, earlier) in enumerate(preparation.gaps_):
        either = table.frame[later].is_null() | table.frame[earlier].is_null()
        X[either.to_numpy(), at + j] = np.nan
    return X


def kept(table: Table, found: pl.DataFrame) -> pl.DataFrame:
    """Found rows (one or several per row of the table) with the table's own cells where it has any."""
    times = len(found) // max(table.n_rows, 1)
    own = pl.concat([table.frame] * times)
    return found.with_columns(
        own[name].fill_null(found[name].cast(own[name].dtype, strict=False)).alias(name)
        if own[name].null_count() < len(own)
        else found[name]
        for name in found.columns
        if name in own.columns
    )


def _nearest(encoder: Ordinal | TargetMean, block: NDArray[Any]) -> list[str]:
    """The level whose numbers are nearest."""
    known = encoder.transform(pl.Series(encoder.levels, dtype=pl.String))  # (L, k)
    gaps = ((block[:, None] - known[None]) ** 2).sum(-1)
    return [encoder.levels[i] for i in gaps.argmin(1)]


def _numbers(encoder: Numeric, block: NDArray[Any], whole: bool) -> NDArray[np.float64]:
    values = block[:, 0] * encoder.scale + encoder.mean
    values = np.round(values) if whole else values
    return np.where(block[:, 1] > 0.5, np.nan, values) if encoder.indicator else values
