"""A validated table from raw columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from groundstate.data.messages import listing
from groundstate.data.tables.cells import written_lists
from groundstate.data.tables.kinds import FORM_WORDS, blank, infer
from groundstate.data.tables.match import BY_SPELLING, check_alike, renamed, respelled
from groundstate.data.tables.numbers import number_form
from groundstate.data.tables.schema import Column, Schema
from groundstate.data.tables.table import Table
from groundstate.data.tables.target import choose_target
from groundstate.data.tables.values import canonical, convert
from groundstate.errors import DataError


def build(
    frame: pl.DataFrame,
    name: str,
    notes: Iterable[str],
    target: str | int | None,
    schema: Schema | Mapping[str, str] | None,
    missing: tuple[str, ...],
    separator: str = ",",
    *,
    gaps: bool = False,
) -> Table:
    """A validated table from raw columns."""
    if frame.width == 0:
        raise DataError(f"{name!r} has no columns")
    if frame.height == 0:
        raise DataError(f"{name!r} is empty: it has {listing(frame.columns)} but no row")
    frame = written_lists(frame)
    if isinstance(schema, Schema):
        table = conform(frame, name, notes, schema, missing, separator, gaps=gaps)
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
    separator: str = ",",
    *,
    gaps: bool = False,
) -> Table:
    """A table, no target chosen, with the columns of a known schema; its target may be absent.

    With gaps any column may be, and is empty.
    """
    frame, renaming = renamed(frame, schema, name, gaps=gaps)
    found_notes = [*notes, *renaming]
    extra = [c for c in frame.columns if c not in schema]
    if extra:
        found_notes.append(f"columns {listing(extra)} are not in the schema and are left out")
    needed = [c for c in schema.names if c in frame.columns]
    marked, _ = blank(frame.select(needed), missing)
    columns = {}
    for raw in marked.iter_columns():
        values, lost = convert(raw, schema[raw.name])
        if lost:
            values, lost = _otherwise(raw, schema[raw.name], separator) or (values, lost)
        values, matched = respelled(values, schema[raw.name])
        columns[raw.name] = values
        found_notes.extend([*lost, *matched])
    check_alike(marked, columns, schema, name)
    return Table(
        pl.DataFrame(list(columns.values())),
        schema.select(needed).with_target(None),
        tuple(found_notes),
        name,
    )


def _otherwise(
    raw: pl.Series, column: Column, separator: str
) -> tuple[pl.Series, list[str]] | None:
    """Numbers that are only written otherwise than those of the schema, where all of them read so."""
    marks = ("", "comma", "points", "thousands")
    if raw.dtype != pl.String or column.kind != "numeric" or column.form not in marks:
        return None
    found = number_form(raw, separator)
    if found is None or found[0] not in marks or found[1].null_count() > raw.null_count():
        return None
    words = FORM_WORDS.get(found[0], "written with a decimal point")
    note = f"column {raw.name!r} {BY_SPELLING}: its numbers are {words}"
    return canonical(found[1])[0].rename(raw.name), [note]
