"""Rows of a twin that agree with what is known of them: gaps filled in, and rows given some columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from groundstate.compute.random import Key
from groundstate.data import read
from groundstate.data.tables.table import Table
from groundstate.errors import DataError, Unsupported
from groundstate.models.generative.tables.columns import LevelColumn, NumberColumn

if TYPE_CHECKING:
    from groundstate.models.generative.tables.table_generator import TableGenerator

BLOCK = 4096  # rows drawn at once given values of columns
TRIES = 20  # draws of a cell until it is not missing


def filled(model: TableGenerator, table: Table, how: str, key: Key) -> pl.DataFrame:
    """A table with values in all gaps of the columns that were learned."""
    gone = {c.name: table.frame[c.name].is_null() for c in model.columns_}
    made = _completed(model, table, how, key)
    for attempt in range(TRIES):  # where the level that stands for missing came out
        empty = pl.Series([False] * table.n_rows)
        for name, own in gone.items():
            empty |= own & made[name].is_null()
        left = np.flatnonzero(empty.to_numpy())
        if not len(left):
            break
        again = _completed(model, table.take(left), "sample", key.fold("again", attempt))
        order = np.arange(table.n_rows)
        order[left] = table.n_rows + np.arange(len(left))
        made = pl.concat([made, again])[order]
    out = model._typed(table.frame)
    return out.with_columns(
        pl.when(own).then(made[name].cast(out[name].dtype)).otherwise(pl.col(name)).alias(name)
        for name, own in gone.items()
    )


def drawn_given(
    model: TableGenerator, n: int, given: Mapping[str, Any], T: float, key: Key
) -> Iterator[pl.DataFrame]:
    """Rows drawn given the values of some columns, in blocks of a fixed size."""
    if n < 1:
        raise ValueError(f"n_samples must be at least 1, got {n}")
    if T != 1.0:
        raise Unsupported("rows given values of columns are drawn at temperature 1 only")
    row = model._read(_row(model, given)).frame
    for i, at in enumerate(range(0, n, BLOCK)):
        rows = pl.concat([row] * min(BLOCK, n - at))
        table = read(rows, schema=model.schema_)
        made = _completed(model, table, "sample", key.fold("given", i), at, as_seen=True)
        known = model._typed(rows)
        yield made.with_columns(known[name].cast(made[name].dtype) for name in given)


def _completed(
    model: TableGenerator,
    table: Table,
    how: str,
    key: Key,
    start: int = 0,
    *,
    as_seen: bool = False,
) -> pl.DataFrame:
    """Rows of a twin that agree with the cells of a table that are there.

    As seen, the other cells may be missing as often as in training.
    """
    inner = model._coded(table, None)
    for column in model.columns_:
        gone = table.frame[column.name].is_null()
        own = pl.when(gone).then(None).otherwise(pl.col(column.name))
        inner = inner.with_columns(own.alias(column.name))
        if isinstance(column, NumberColumn) and column.missing:
            flag = pl.when(gone & as_seen).then(None).otherwise(pl.lit("no"))
            inner = inner.with_columns(flag.alias(flag_of(column.name)))
    made = model.estimator_.impute(inner, how, random_state=key.fold("rows"))
    return model._decoded(made, key, start)


def _row(model: TableGenerator, given: Mapping[str, Any]) -> pl.DataFrame:
    """One row of the columns that are given."""
    known = {column.name: column for column in model.columns_}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise DataError(f"{name!r} is no column that was learned; those are {', '.join(known)}")
        column = known[name]
        if isinstance(column, LevelColumn):
            value = _level(value, column, model.schema_[name].dtype == "Boolean")
        values[name] = [value]
    return pl.DataFrame(values)


def _level(value: Any, column: LevelColumn, truth: bool) -> Any:
    """A value of a column of few values, which has to be one that was seen."""
    try:
        found: Any = float(value) if column.number else str(value)
    except ValueError:
        found = value
    found = str(value).capitalize() if truth else found
    if column.words([found])[0] is None:
        seen = ", ".join(str(v) for v in column.levels if v is not None)
        raise DataError(f"{column.name} was never {value!r} in training; it was {seen}")
    return found


def flag_of(name: str) -> str:
    """Name of the column that says whether a number is missing."""
    return f"{name} (missing)"
