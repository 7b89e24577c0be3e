"""New rows beside a known schema: names and labels that differ in spelling only, and other tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

import polars as pl

from groundstate.data.messages import did_you_mean, listing
from groundstate.data.tables.schema import Column, Schema
from groundstate.errors import DataError

_NUMBERED = re.compile(r"x\d+")
_UNUSED = ("id", "constant")
BY_SPELLING = "differs in spelling only"
_NEAR = 0.85  # likeness of names that are probably the same
_FEW = 5  # rows, below which values that cannot be read tell nothing about a table


def plain_label(label: str) -> str:
    """A label without case, quotes, a final dot and blanks around it.

    >>> plain_label(" >50K. ") == plain_label(">50k"), plain_label("1.5") == plain_label("15")
    (True, False)
    """
    return re.sub(r"\s+", " ", label.strip("'\" \t").rstrip(". ")).casefold()


def plain_name(name: str) -> str:
    """The name of a column without case and marks between its words.

    >>> plain_name("Petal Length") == plain_name("petal_length")
    True
    """
    return re.sub(r"[\s_.\-]+", "", name.casefold())


def renamed(
    frame: pl.DataFrame, schema: Schema, name: str, *, gaps: bool = False
) -> tuple[pl.DataFrame, list[str]]:
    """Columns under the names of the schema, and what was done.

    What is missing is a `DataError`; with gaps an empty column, where at least one is there.
    """
    if _nameless(frame.columns) and _nameless(schema.names):
        frame, notes = _by_place(frame, schema, name)
    else:
        frame, notes = _by_name(frame, schema)
    target = schema.target
    absent = [
        c.name
        for c in schema
        if c.name not in frame.columns and c.kind not in _UNUSED and c.name != target
    ]
    if gaps and any(n in frame.columns for n in schema.names):
        _check_misspelt(absent, [n for n in frame.columns if n not in schema], name)
        empty = [n for n in schema.names if n not in frame.columns and n != target]
        return frame.with_columns(pl.lit(None, pl.String).alias(n) for n in empty), notes
    if not absent:
        return frame, notes
    if _nameless(frame.columns) and not _nameless(schema.names):
        raise DataError(
            f"{name!r} has no line of names, so that {listing(absent)} cannot be found in it; add "
            f"the names as its first line, or pass a table with these columns"
        )
    guess = did_you_mean(absent[0], frame.columns)
    raise DataError(
        f"{name!r} lacks the columns {listing(absent)} of the schema{guess}; "
        f"it has {listing(frame.columns)}"
    )


def _check_misspelt(absent: list[str], spare: list[str], name: str) -> None:
    """Refuse a column that would be left out, and another filled in, for a letter."""
    for column in absent:
        near = get_close_matches(column, spare, n=1, cutoff=_NEAR)
        if near:
            raise DataError(
                f"{name!r} has a column {near[0]!r}, which is not known, and lacks {column!r}; rename "
                f"it, or take it out and {column!r} is a gap in every row"
            )


def _nameless(names: Iterable[str]) -> bool:
    """Whether columns are only numbered, as those of a file without a header are."""
    known = list(names)
    return bool(known) and all(_NUMBERED.fullmatch(name) for name in known)


def _by_place(frame: pl.DataFrame, schema: Schema, name: str) -> tuple[pl.DataFrame, list[str]]:
    """Columns without names belong together by their place, so there have to be as many."""
    width, wanted = frame.width, len(schema)
    places = max(int(n[1:]) for n in schema.names) + 1
    features = [n for n in schema.names if n != schema.target]
    if width == len(features) and list(frame.columns) != features:
        frame = frame.rename(dict(zip(frame.columns, features, strict=True)))
        return frame, ["columns without names are taken in their order, the target left out"]
    if width not in (wanted, wanted + 1, places):
        raise DataError(
            f"{name!r} has {width} columns without names and the table learned from had {places}; "
            "these are different tables"
        )
    return frame, []


def _by_name(frame: pl.DataFrame, schema: Schema) -> tuple[pl.DataFrame, list[str]]:
    """Columns whose names differ from those of the schema in spelling only get theirs."""
    spare = [n for n in frame.columns if n not in schema]
    if not spare:
        return frame, []
    written: dict[str, list[str]] = {}
    for n in spare:
        written.setdefault(plain_name(n), []).append(n)
    known = [plain_name(n) for n in schema.names]
    found = {}
    for n in schema.names:
        like = written.get(plain_name(n), [])
        if n not in frame.columns and len(like) == 1 and known.count(plain_name(n)) == 1:
            found[like[0]] = n
    notes = [f"column {old!r} {BY_SPELLING} and is taken for {new!r}" for old, new in found.items()]
    return frame.rename(found), notes


def respelled(values: pl.Series, column: Column) -> tuple[pl.Series, list[str]]:
    """Labels that differ from a known one in spelling only are that one.

    >>> column = Column("y", "category", categories=("<=50K", ">50K"))
    >>> respelled(pl.Series("y", [">50K.", "<=50K"]), column)[0].to_list()
    ['>50K', '<=50K']
    """
    if column.kind != "category" or not column.categories or values.dtype != pl.String:
        return values, []
    new = set(values.drop_nulls().unique().to_list()) - set(column.categories)
    if not new:
        return values, []
    written: dict[str, list[str]] = {}
    for label in column.categories:
        written.setdefault(plain_label(label), []).append(label)
    found = {}
    for label in sorted(new):
        like = written.get(plain_label(label), [])
        if len(like) == 1 and plain_label(label):
            found[label] = like[0]
    if not found:
        return values, []
    pairs = ", ".join(f"{old!r} is {new!r}" for old, new in list(found.items())[:4])
    note = f"what {BY_SPELLING} among the labels of {column.name!r} is taken as one: {pairs}"
    return values.replace(found), [note + (", …" if len(found) > 4 else "")]


def matches(notes: Iterable[str]) -> list[str]:
    """The notes that speak of names and labels matched in spite of their spelling."""
    return [note for note in notes if BY_SPELLING in note]


def check_alike(raw: pl.DataFrame, read: dict[str, pl.Series], schema: Schema, name: str) -> None:
    """Refuse rows most of whose numbers and dates are something else: that is another table."""
    wanted = [c for c in schema if c.kind in ("numeric", "date") and c.name in read]
    if raw.height < _FEW or not wanted:
        return
    lost = []
    for column in wanted:
        before, after = raw[column.name], read[column.name]
        present = len(before) - before.null_count()
        if present and len(after) - after.null_count() < 0.5 * present:
            lost.append(column.name)
    if 2 * len(lost) <= len(wanted):
        return
    kinds = " and ".join(sorted({"dates" if schema[n].kind == "date" else "numbers" for n in lost}))
    example = raw[lost[0]].drop_nulls()[0]
    raise DataError(
        f"{name!r} is another kind of table: {listing(lost)} should hold {kinds} and "
        f"{'does' if len(lost) == 1 else 'do'} not, for example {str(example)[:60]!r}"
    )
