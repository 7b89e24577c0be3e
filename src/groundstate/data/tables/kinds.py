"""What each column holds: from a raw frame to canonical values and a schema.

Canonical values are ``Int64`` or ``Float64`` (finite or null) for numbers, ``Datetime`` for
dates and ``String`` for everything else, so that the rest of the package sees three types only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from groundstate.data.messages import count, listing
from groundstate.data.tables.cells import ADDRESSES, address_form, list_form, shared_part
from groundstate.data.tables.dates import BETWEEN, COMPACT, compact_days, date_form, month_first
from groundstate.data.tables.numbers import (
    DECIMAL_COMMA,
    number_form,
    offenders,
    parse_numbers,
    points_between,
)
from groundstate.data.tables.schema import KINDS, MAX_LISTED, Column, Kind, unknown_column
from groundstate.data.tables.units import mixed_units
from groundstate.data.tables.values import canonical, convert, is_nested, typed_name
from groundstate.errors import DataError

MISSING: tuple[str, ...] = (
    *("", "?", "-", "--", ".", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan"),
    *("NAN", "-nan", "null", "NULL", "Null", "None", "NaT", "\\N"),
)
"""Spellings read as a missing value unless the caller gives others."""

_ID_NAME = re.compile(
    r"^(|#|index|idx|row|rownames|row_?n(ame|umber|r|o)?|no|nr|key|uuid|guid|unnamed.*)$"
    r"|(^|[_\s.-])id$|^id([_\s.-]|$)",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z]I[dD]$")
_MIN_ROWS_ID = 10
_MIN_TEXTS = 20
_SHARE_TEXTS = 0.05  # of the rows, of different texts where they repeat
_SENTENCE = 5.0  # words of a text on average, where texts repeat


@dataclass(frozen=True)
class Inferred:
    """Canonical columns, their schema entries and what had to be decided on the way."""

    frame: pl.DataFrame
    columns: tuple[Column, ...]
    notes: tuple[str, ...]


def infer(
    frame: pl.DataFrame,
    *,
    overrides: Mapping[str, str] | None = None,
    missing: Iterable[str] = MISSING,
    separator: str = ",",
) -> Inferred:
    """Find the kind of every column and bring its values into canonical form.

    Parameters
    ----------
    frame
        Raw columns; text files come as strings.
    overrides
        Kinds fixed by the user, ``{"zip": "category", "when": "date:%m/%d/%Y"}``.
    missing
        Spellings that stand for no value.
    separator
        The field separator of the file, which decides what ``1,234`` means.

    Examples
    --------
    >>> raw = pl.DataFrame({"a": ["1", "?", "3"], "b": ["x", "y", "x"]})
    >>> [(c.name, c.kind, c.missing) for c in infer(raw).columns]
    [('a', 'numeric', 1), ('b', 'category', 0)]
    """
    chosen = dict(overrides or {})
    for name in chosen:
        if name not in frame.columns:
            raise DataError(unknown_column(name, frame.columns))
    notes: list[str] = []
    nested = [s.name for s in frame.iter_columns() if is_nested(s.dtype)]
    if nested:
        frame = frame.drop(nested)
        notes.append(f"columns {listing(nested)} hold nested or binary values and are left out")
    marked, found = blank(frame, tuple(missing))
    series: list[pl.Series] = []
    columns: list[Column] = []
    forms: dict[str, list[str]] = {}
    for s in marked.iter_columns():
        values, column, further = _column(s, chosen.get(s.name), separator)
        markers = (*found.get(s.name, ()), *column.markers)
        series.append(values)
        columns.append(replace(column, markers=markers))
        notes.extend(further)
    if separator != "," and any(column.form in DECIMAL_COMMA for column in columns):
        for i, (s, column) in enumerate(zip(marked.iter_columns(), columns)):
            plain = column.kind == "numeric" and not column.form and s.dtype == pl.String
            if plain and s.name not in chosen and points_between(s.drop_nulls().head(1000)):
                series[i], columns[i] = _grouped(s, series[i], column)
    for column in columns:
        words = _form_words(column)
        if words and column.name not in chosen:
            forms.setdefault(words, []).append(column.name)
    written = [
        f"{'column' if len(names) == 1 else 'columns'} {listing(names)} "
        f"{'is' if len(names) == 1 else 'are'} read as numbers {words}"
        for words, names in forms.items()
    ]
    return Inferred(pl.DataFrame(series), tuple(columns), (*written, *notes))


def blank(
    frame: pl.DataFrame, markers: tuple[str, ...]
) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
    """Strip strings and turn markers into nulls; also which markers each column had."""
    text = [s.name for s in frame.iter_columns() if s.dtype == pl.String]
    if not text:
        return frame, {}
    stripped = frame.with_columns(pl.col(text).str.strip_chars())
    words = pl.Series(sorted({m.strip() for m in markers}), dtype=pl.String)
    hit = stripped.select(pl.col(text).is_in(words.implode()) & pl.col(text).is_not_null())
    hits = [s.name for s in hit.iter_columns() if s.any()]
    found: dict[str, tuple[str, ...]] = {}
    cleaned = []
    for name in hits:
        mask = hit[name].fill_null(False)
        named = stripped[name].filter(mask).unique().to_list()
        found[name] = tuple(sorted(word for word in named if word))
        cleaned.append(pl.select(pl.when(~mask).then(stripped[name]).alias(name)).to_series())
    return (stripped.with_columns(cleaned) if cleaned else stripped), found


def parse_override(name: str, wanted: str) -> tuple[Kind, str]:
    """Split ``"date:%d/%m/%Y"`` into kind and form; an unknown kind is a `DataError`."""
    kind, _, form = wanted.partition(":") if isinstance(wanted, str) else (wanted, "", "")
    carries = kind in ("date", "list") or (kind == "numeric" and form.startswith("unit:"))
    carries |= kind == "category" and form in ADDRESSES
    if kind not in KINDS or (form and not carries):
        raise DataError(
            f"schema gives column {name!r} the kind {wanted!r}; kinds are {listing(KINDS)}, "
            "and a date may carry its form as 'date:%d/%m/%Y', a list what parts its items as "
            "'list:;', a number its unit as 'numeric:unit:kg', a category 'category:url'"
        )
    return kind, form


def _column(
    raw: pl.Series, wanted: str | None, separator: str
) -> tuple[pl.Series, Column, list[str]]:
    name, notes = raw.name, list[str]()
    if wanted is not None:
        kind, form = parse_override(name, wanted)
        column = Column(name, kind, dtype=typed_name(raw.dtype), form=form, given=True)
        if raw.dtype == pl.String and not form:
            column = replace(column, form=_form_for(raw, kind, separator))
        values, lost = convert(raw, column)
        if len(values) > values.null_count() or raw.null_count() == len(raw):
            notes += lost
        else:
            raise DataError(
                f"no value of column {name!r} can be read as {wanted!r}, for example "
                f"{str(raw.drop_nulls()[0])[:60]!r}; give it another kind in schema"
            )
    elif raw.dtype == pl.String:
        values, column, notes = _from_text(raw, separator)
    else:
        values, notes = canonical(raw)
        kind = "date" if values.dtype == pl.Datetime("us") else "numeric"
        if values.dtype == pl.String:
            kind = "category"
            if raw.dtype not in (pl.Categorical, pl.Enum, pl.Boolean):
                kind = _string_kind(values)
        column = Column(name, kind, dtype=typed_name(raw.dtype))
        if raw.dtype.is_integer() and (days := compact_days(raw)) is not None:
            values, column, notes = _compact(days, name)
    column = measure(values, column)
    if wanted is None:
        column = _special(values, column)
    return values, column, notes


def _grouped(raw: pl.Series, plain: pl.Series, column: Column) -> tuple[pl.Series, Column]:
    """1.200 beside columns with a decimal comma is 1200, where every value reads so."""
    values = parse_numbers(raw, "points").rename(raw.name)
    if values.null_count() > plain.null_count():
        return plain, column
    return values, measure(values, replace(column, form="points"))


def _compact(days: pl.Series, name: str) -> tuple[pl.Series, Column, list[str]]:
    note = (
        f"column {name!r} is read as dates, year, month and day in one number; "
        f"pass schema={{{name!r}: 'numeric'}} if it is none"
    )
    return days.rename(name), Column(name, "date", dtype="Datetime", form=COMPACT), [note]


def _form_for(raw: pl.Series, kind: Kind, separator: str) -> str:
    if kind == "numeric":
        found = number_form(raw, separator)
        return found[0] if found else ""
    if kind == "date":
        dated = date_form(raw)
        return dated[0] if dated else "%Y-%m-%d"
    if kind == "list":
        return list_form(raw) or ";"
    return ""


def _from_text(raw: pl.Series, separator: str) -> tuple[pl.Series, Column, list[str]]:
    name = raw.name
    found = number_form(raw, separator)
    if found is not None and not (found[0] == "" and _codes(raw)):
        form, parsed = found
        notes = []
        bad = offenders(raw, parsed) or []
        if bad:
            lost = parsed.null_count() - raw.null_count()
            notes.append(
                f"column {name!r} is numeric; {listing(bad)} ({count(lost, 'row')}) "
                f"{'is' if lost == 1 else 'are'} read as missing"
            )
        whole = raw.cast(pl.Int64, strict=False) if form == "" else parsed
        integers = whole.dtype == pl.Int64 and whole.null_count() == parsed.null_count()
        if integers and (days := compact_days(whole)) is not None:
            return _compact(days, name)
        values, further = canonical(whole if integers else parsed)
        dtype = "Int64" if integers else "Float64"
        column = Column(name, "numeric", dtype=dtype, form=form, markers=tuple(bad))
        return values.rename(name), column, notes + further
    dated = date_form(raw)
    if dated is not None:
        form, values, ambiguous = dated
        notes = []
        if ambiguous:
            notes.append(
                f"column {name!r} could be day/month or month/day; day first was taken, "
                f"pass schema={{{name!r}: 'date:{month_first(form)}'}} for month first"
            )
        if BETWEEN in form:
            written = form.split(BETWEEN)
            notes.append(
                f"column {name!r} holds dates in {len(written)} spellings ({', '.join(written)})"
            )
        bad = offenders(raw, values) or []
        if bad:
            lost = values.null_count() - raw.null_count()
            notes.append(
                f"column {name!r} holds dates; {listing(bad)} ({count(lost, 'row')}) "
                f"{'is' if lost == 1 else 'are'} read as missing"
            )
        column = Column(name, "date", dtype="Datetime", form=form, markers=tuple(bad))
        return values.rename(name), column, notes
    return _from_words(raw)


def _from_words(raw: pl.Series) -> tuple[pl.Series, Column, list[str]]:
    """Labels, lists of labels, addresses, free text or names of rows."""
    name = raw.name
    address = address_form(raw)
    if address is not None:
        _, what, part = ADDRESSES[address]
        note = f"column {name!r} holds {what} and is read by {part}"
        values = shared_part(raw, address)
        return values, Column(name, "category", dtype="String", form=address), [note]
    form = list_form(raw)
    if form is not None:
        note = f"column {name!r} holds lists and is read by their items"
        return raw, Column(name, "list", dtype="String", form=form), [note]
    kind = _string_kind(raw)
    mixed = mixed_units(raw.drop_nulls().head(1000))
    if mixed:
        note = (
            f"column {name!r} mixes {listing(mixed)}, which have no common unit, and is read as "
            "labels; split it into columns of one unit each"
        )
        return raw, Column(name, "category", dtype="String"), [note]
    if kind == "category":
        levels = raw.unique().drop_nulls()
        if len(levels) <= 4 and {v.lower() for v in levels.to_list()} <= {"true", "false"}:
            truth = raw.str.to_lowercase() == "true"
            return canonical(truth.rename(name))[0], Column(name, kind, dtype="Boolean"), []
    return raw, Column(name, kind, dtype="String"), []


FORM_WORDS = {
    "comma": "written with a decimal comma",
    "points": "written with points between thousands and a decimal comma",
    "thousands": "written with commas between thousands",
    "percent": "written with a percent sign",
    "clock": "of hours, written as clock times",
    "currency": "written with a currency sign",
    "currency:comma": "written with a currency sign",
    "magnitude": "shortened as 1.2k",
}


def _form_words(column: Column) -> str:
    """How the numbers of a column are written, for the note about them."""
    if column.kind != "numeric":
        return ""
    if column.form.startswith("unit:"):
        return f"in the unit {column.form[5:]!r}"
    return FORM_WORDS.get(column.form, "")


def _codes(raw: pl.Series) -> bool:
    """Whether digits are labels: whole numbers of one width, some with a leading zero."""
    filled = raw.drop_nulls()
    if not filled.str.contains(r"^0\d").any():
        return False
    widths = filled.str.len_chars()
    return widths.min() == widths.max() and bool(filled.str.contains(r"^\d+$").all())


def _string_kind(text: pl.Series) -> Kind:
    """Category, free text or an identifier, from how often values repeat and hold spaces.

    Values that repeat are text where they are sentences, most of which a new row may not repeat.
    """
    filled = text.drop_nulls()
    n, distinct = len(filled), filled.n_unique()
    if n < _MIN_ROWS_ID:
        return "category"
    if distinct <= 0.5 * n:
        few = distinct < max(_MIN_TEXTS, _SHARE_TEXTS * n)
        return "category" if few or _mean_words(filled.unique()) < _SENTENCE else "text"
    spaced = float(filled.str.contains(r"\S\s+\S").mean() or 0.0)  # type: ignore[arg-type]
    if spaced >= 0.5:
        return "text" if distinct >= _MIN_TEXTS else "category"
    return "id" if distinct == n == len(text) else "category"


def _mean_words(values: pl.Series) -> float:
    return float(values.str.count_matches(r"\S+").mean() or 0.0)  # type: ignore[arg-type]


def measure(values: pl.Series, column: Column) -> Column:
    """Fill in the counts of a column from its canonical values."""
    missing = values.null_count()
    distinct = values.n_unique() - (1 if missing else 0)
    integer = values.dtype == pl.Int64
    if values.dtype == pl.Float64 and distinct:
        integer = bool((values == values.round()).all())
    levels: tuple[str, ...] = ()
    if column.kind == "category" and distinct <= MAX_LISTED:
        levels = tuple(values.drop_nulls().unique().sort().to_list())
    return replace(
        column,
        n_rows=len(values),
        missing=missing,
        n_unique=distinct,
        integer=integer,
        categories=levels,
    )


def _special(values: pl.Series, column: Column) -> Column:
    """Constants and named identifiers, whatever their type."""
    n = len(values)
    if column.n_unique == 0 or (column.n_unique == 1 and column.missing == 0):
        return replace(column, kind="constant", categories=())
    unique = column.n_unique == n and n >= _MIN_ROWS_ID
    if unique and names_an_id(column.name) and (column.integer or values.dtype == pl.String):
        return replace(column, kind="id", categories=())
    return column


def names_an_id(name: str) -> bool:
    """Whether a column is called like an identifier.

    >>> names_an_id("customer_id"), names_an_id("PassengerId"), names_an_id("humid")
    (True, True, False)
    """
    return bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))
