"""A validated table from raw columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from groundstate.data.messages import did_you_mean, listing
from groundstate.data.tables.kinds import blank, infer
from groundstate.data.tables.schema import Schema
from groundstate.data.tables.table import Table
from groundstate.data.tables.target import choose_target
from groundstate.data.tables.values import convert
from groundstate.errors import DataError


def build(
    frame: pl.DataFrame,
    name: str,
    notes: Iterable[str],
    target: str | int | None,
    schema: Schema | Mapping[str, str] | None,
    missing: tuple[str, ...],
    separator: str = ",",
) -> Table:
    """A validated table from raw columns."""
    if frame.width == 0:
        raise DataError(f"{name!r} has no columns")
    if frame.height == 0:
        raise DataError(f"{name!r} is empty: it has {listing(frame.columns)} but no row")
    if isinstance(schema, Schema):
        table = conform(frame, name, notes, schema, missing)
        chosen = target if target is not None else schema.target
        if chosen is None or (chosen == schema.target and chosen not in table.schema):
            return table
        return choose_target(table, chosen)
    found = infer(frame, overrides=schema, missing=missing, separator=separator)
    if not found.columns:
        raise DataError(f"{name!r} has no column of plain values")
    table = Table(found.frame, Schema(found.columns), (*notes, *found.notes), name)
    return choose_target(table, target)


def conform(
    frame: pl.DataFrame,
    name: str,
    notes: Iterable[str],
    schema: Schema,
    missing: tuple[str, ...],
) -> Table:
    """A table, no target chosen, with the columns of a known schema; its target may be absent."""
    needed = [c for c in schema.names if c in frame.columns or c != schema.target]
    absent = [c for c in needed if c not in frame.columns and schema[c].kind not in _UNUSED]
    if absent:
        guess = did_you_mean(absent[0], frame.columns)
        raise DataError(
            f"{name!r} lacks the columns {listing(absent)} of the schema{guess}; "
            f"it has {listing(frame.columns)}"
        )
    found_notes = list(notes)
    extra = [c for c in frame.columns if c not in schema]
    if extra:
        found_notes.append(f"columns {listing(extra)} are not in the schema and are left out")
    needed = [c for c in needed if c in frame.columns]
    marked, _ = blank(frame.select(needed), missing)
    columns = []
    for raw in marked.iter_columns():
        values, lost = convert(raw, schema[raw.name])
        columns.append(values)
        found_notes.extend(lost)
    return Table(
        pl.DataFrame(columns), schema.select(needed).with_target(None), tuple(found_notes), name
    )


_UNUSED = ("id", "constant")
