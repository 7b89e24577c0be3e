"""Rows of a twin that agree with what is known of them: gaps filled in, and rows given some columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.data import read
from groundstate.data.tables.table import Table
from groundstate.errors import DataError, Unsupported
from groundstate.models.generative.tables.cells import numbers_of
from groundstate.models.generative.tables.columns import LevelColumn, NumberColumn
from groundstate.models.generative.tables.formulas import computed, solved
from groundstate.models.generative.tables.orders import broken

if TYPE_CHECKING:
    from groundstate.models.generative.tables.table_generator import TableGenerator

BLOCK = 4096  # rows drawn at once given values of columns
TRIES = 100  # draws of a cell until it is not missing, and of a row until no order is broken


def filled(model: TableGenerator, table: Table, how: str, key: Key) -> pl.DataFrame:
    """A table with values in all gaps of the columns that were learned."""
    gone = {name: table.frame[name].is_null() for name in model.learned_names_}
    made = _completed(model, table, how, key)
    for attempt in range(TRIES):  # where the level that stands for missing came out
        empty = pl.Series([False] * table.n_rows)
        for name, own in gone.items():
            empty |= own & made[name].is_null()
        left = np.flatnonzero(empty.to_numpy() | _apart(model, table, made))
        if not len(left):
            break
        again = _completed(model, table.take(left), "sample", key.fold("again", attempt))
        made = replaced(made, left, again, model._ids)
    out = model._typed(table.frame)
    out = out.with_columns(
        pl.when(own).then(made[name].cast(out[name].dtype)).otherwise(pl.col(name)).alias(name)
        for name, own in gone.items()
    )
    return computed(out, model.formulas_, gone)  # of what is known, not of what it was coded as


def replaced(
    made: pl.DataFrame, at: NDArray[np.int64], new: pl.DataFrame, kept: Sequence[str]
) -> pl.DataFrame:
    """Rows with others in some places; the columns that are kept stay."""
    order = np.arange(len(made))
    order[at] = len(made) + np.arange(len(at))
    return pl.concat([made, new])[order].with_columns(made[name] for name in kept)


def _apart(model: TableGenerator, table: Table, made: pl.DataFrame) -> NDArray[np.bool_]:
    """Rows whose filled cells do not go with a known column that follows from them, or break an order."""
    found = np.zeros(table.n_rows, bool)
    known = model._typed(table.frame)
    for pair in model.orders_:
        open_ = known[pair[0]].is_null() | known[pair[1]].is_null()
        ends = [known[n].fill_null(made[n].cast(known[n].dtype)) for n in pair]
        found |= broken(pl.DataFrame(ends), [pair]) & open_.to_numpy()
    for name, derived in model.derived_.items():
        there, open_ = ~known[name].is_null(), known[derived.source].is_null()
        differs = made[name].cast(pl.String).ne_missing(known[name].cast(pl.String))
        found |= (differs & there & open_).to_numpy()
    for name, formula in model.formulas_.items():
        own, gaps = numbers_of(known[name]), np.zeros(table.n_rows, int)
        given = []
        for source in formula.sources:
            gaps += known[source].is_null().to_numpy()
            given.append(
                numbers_of(known[source].fill_null(made[source].cast(known[source].dtype)))
            )
        # where one is a gap it follows, and another draw would be no nearer
        found |= ~formula.agrees(given, own) & ~np.isnan(own) & (gaps > 1)
    return found


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
        own = key.fold("given", i)
        made = _completed(model, table, "sample", own, at, as_seen=True)
        for attempt in range(TRIES):
            left = np.flatnonzero(_apart(model, table, made))
            if not len(left):
                break
            new = _completed(
                model, table.take(left), "sample", own.fold("again", attempt), at, as_seen=True
            )
            made = replaced(made, left, new, model._ids)
        known = model._typed(rows)
        made = made.with_columns(known[name].cast(made[name].dtype) for name in given)
        gone = {name: known[name].is_null() for name in model.formulas_}
        yield computed(made, model.formulas_, gone)


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
    table = _decided(model, table)
    inner = model._coded(table, None)
    for column in model.columns_:
        gone = table.frame[column.name].is_null()
        own = pl.when(gone).then(None).otherwise(pl.col(column.name))
        inner = inner.with_columns(own.alias(column.name))
        if isinstance(column, NumberColumn) and column.missing:
            flag = pl.when(gone & as_seen).then(None).otherwise(pl.lit("no"))
            inner = inner.with_columns(flag.alias(flag_of(column.name)))
    made = model.estimator_.impute(inner, how, random_state=key.fold("rows"))
    rows = model._decoded(made, key, start)
    again = _halfway(model, table, rows)
    if again is None:
        return rows
    left, part = again
    new = _completed(model, part, how, key.fold("halfway"), start, as_seen=as_seen)
    return replaced(rows, left, new, model._ids)


def _halfway(
    model: TableGenerator, table: Table, made: pl.DataFrame
) -> tuple[NDArray[np.int64], Table] | None:
    """Rows of which a column is known and both that decide it were gaps, with one of those as made."""
    kinds = {c.name: c for c in model.columns_}
    frame, left = table.frame, np.zeros(table.n_rows, bool)
    for name, formula in model.formulas_.items():
        both = frame[name].is_not_null() & (len(formula.sources) > 1)
        for source in formula.sources:
            both &= frame[source].is_null()
        if both.any():
            # what has few levels is as made, so that the number follows
            first = sorted(formula.sources, key=lambda s: isinstance(kinds.get(s), NumberColumn))[0]
            drawn = pl.when(both).then(made[first].cast(frame[first].dtype))
            frame = frame.with_columns(drawn.otherwise(pl.col(first)).alias(first))
            left |= both.to_numpy()
    if not left.any():
        return None
    at = np.flatnonzero(left)
    return at, Table(frame, table.schema, table.notes, table.name).take(at)


def _decided(model: TableGenerator, table: Table) -> Table:
    """A table with the one value of a column that a known column follows from, where there is one."""
    frame = table.frame
    for name, derived in model.derived_.items():
        times = {v: derived.values.count(v) for v in derived.values}
        back = {
            str(v): str(g)
            for g, v in zip(derived.given, derived.values, strict=True)
            if times[v] == 1 and v is not None and g is not None
        }
        source = frame[derived.source]
        words = _words(frame[name], derived.column).replace_strict(
            back, default=None, return_dtype=pl.String
        )
        if source.dtype.is_numeric():
            words = words.cast(pl.Float64)
        frame = frame.with_columns(source.fill_null(words.cast(source.dtype)).alias(source.name))
    numbers: dict[str, Any] = {c.name: c for c in model.columns_}
    numbers |= {name: f.column for name, f in model.formulas_.items()}
    frame = solved(frame, model.formulas_, numbers)
    return Table(frame, table.schema, table.notes, table.name)


def _words(series: pl.Series, column: LevelColumn) -> pl.Series:
    """Values as they are written in the levels of a column."""
    if column.number:
        return pl.Series(
            [None if v is None else str(float(v)) for v in series.to_list()], dtype=pl.String
        )
    return series.cast(pl.String)


def _row(model: TableGenerator, given: Mapping[str, Any]) -> pl.DataFrame:
    """One row of the columns that are given."""
    known: dict[str, NumberColumn | LevelColumn] = {c.name: c for c in model.columns_}
    known |= {name: derived.column for name, derived in model.derived_.items()}
    known |= {name: formula.column for name, formula in model.formulas_.items()}
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
