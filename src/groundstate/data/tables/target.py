"""Which column is predicted, by name, position or ``"last"``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from groundstate.data.messages import count
from groundstate.data.tables.kinds import measure
from groundstate.data.tables.schema import Kind, Schema, unknown_column
from groundstate.data.tables.table import Table
from groundstate.errors import DataError


def target_name(target: str | int, names: Sequence[str]) -> str:
    """The column meant by a name, a position (negative from the end) or ``"last"``.

    >>> target_name(-1, ["a", "b"]), target_name("last", ["a", "b"]), target_name("a", ["a", "b"])
    ('b', 'b', 'a')
    """
    if isinstance(target, bool) or not isinstance(target, (str, int)):
        raise DataError(
            f"target must be a column name, a position or 'last', got {type(target).__name__}"
        )
    if isinstance(target, str):
        if target in names:
            return target
        if target == "last":
            return names[-1]
        if target.lstrip("-").isdigit():
            return target_name(int(target), names)
        raise DataError(unknown_column(target, names))
    if not -len(names) <= target < len(names):
        raise DataError(
            f"target={target} is no position in a table of {count(len(names), 'column')}; "
            f"use {-len(names)} to {len(names) - 1}"
        )
    return names[target]


def choose_target(table: Table, target: str | int | None) -> Table:
    """`table` with its target set and the rows without one set aside."""
    if target is None:
        return replace(table, schema=table.schema.with_target(None))
    name = target_name(target, table.columns)
    if table.n_columns == 1:
        raise DataError(
            f"{table.name!r} has the single column {name!r}, so nothing is left to predict it "
            "from; if the file has more columns, pass its separator"
        )
    absent = table.frame[name].is_null()
    missing = int(absent.sum())
    schema = _predictable(table, name)
    if not missing:
        return replace(table, schema=schema)
    if missing == table.n_rows:
        raise DataError(f"the target {name!r} of {table.name!r} has no value in any row")
    frame = table.frame.filter(~absent)
    columns = tuple(
        measure(frame[c.name], c) if c.name == name or c.missing else c for c in schema.columns
    )
    note = f"{count(missing, 'row')} without a value of the target {name!r} set aside"
    return replace(
        table,
        frame=frame,
        schema=Schema(columns, name),
        notes=(*table.notes, note),
        set_aside=table.frame.filter(absent),
    )


def _predictable(table: Table, name: str) -> Schema:
    """The schema with `name` as target; an identifier that is asked for is a value after all."""
    columns = list(table.schema.columns)
    at = table.columns.index(name)
    if columns[at].kind == "id":
        kind: Kind = "category" if table.frame[name].dtype == pl.String else "numeric"
        columns[at] = measure(table.frame[name], replace(columns[at], kind=kind))
    return Schema(tuple(columns), name)
