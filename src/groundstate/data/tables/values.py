"""Values in canonical form: whole or real numbers, dates, strings; nothing infinite."""

from __future__ import annotations

from typing import Any

import polars as pl

from groundstate.data.messages import count
from groundstate.data.tables.cells import ADDRESSES, shared_part
from groundstate.data.tables.dates import parse_dates
from groundstate.data.tables.numbers import parse_numbers
from groundstate.data.tables.schema import Column

# years 1 to 9999, outside which neither Python nor pandas can show a date
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
_LARGEST_WHOLE = 2**53


def is_nested(dtype: Any) -> bool:
    """Whether values are lists, structs, bytes or Python objects."""
    return bool(dtype.is_nested()) or dtype.base_type() in (pl.Binary, pl.Object, pl.Unknown)


def typed_name(dtype: Any) -> str:
    """The plain name of a type, ``Datetime`` rather than ``Datetime('us')``."""
    return str(dtype.base_type())


def canonical(s: pl.Series) -> tuple[pl.Series, list[str]]:
    """A typed column as ``Int64``, ``Float64``, ``Datetime`` or ``String``; infinities are nulls.

    >>> canonical(pl.Series("v", [1.0, float("inf")]))
    (shape: (2,)
    Series: 'v' [f64]
    [
        1.0
        null
    ], ["column 'v' holds 1 infinite value, read as missing"])
    """
    dtype = s.dtype
    if dtype == pl.Boolean:
        words = {True: "True", False: "False"}
        return s.replace_strict(words, return_dtype=pl.String), []
    if dtype.is_integer():
        whole = s.cast(pl.Int64, strict=False)
        if whole.null_count() > s.null_count():  # beyond 64 bits
            return s.cast(pl.Float64), []
        return whole, []
    if dtype.is_float() or dtype.is_decimal():
        real = s.cast(pl.Float64)
        if real.is_finite().all() and not real.null_count():
            return real, []
        infinite = int(real.is_infinite().sum() or 0)
        notes = [f"column {s.name!r} holds {count(infinite, 'infinite value')}, read as missing"]
        return _null_where(real, ~real.is_finite()), notes if infinite else []
    if dtype.is_temporal():
        return _temporal(s)
    return s.cast(pl.String, strict=False).rename(s.name), []


def _null_where(s: pl.Series, mask: pl.Series) -> pl.Series:
    return pl.select(pl.when(~mask).then(s).alias(s.name)).to_series()


def _temporal(s: pl.Series) -> tuple[pl.Series, list[str]]:
    if s.dtype.base_type() in (pl.Duration, pl.Time):
        ticks = s.dtype.time_unit if isinstance(s.dtype, pl.Duration) else "ns"
        return s.to_physical().cast(pl.Float64) / {"ms": 1e3, "us": 1e6, "ns": 1e9}[ticks], []
    if s.dtype == pl.Date:
        micros = s.to_physical().cast(pl.Int64) * 86_400_000_000
    else:
        if getattr(s.dtype, "time_zone", None):
            s = s.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        raw = s.to_physical()
        unit = getattr(s.dtype, "time_unit", "us")
        micros = raw // 1000 if unit == "ns" else raw
        if unit == "ms":
            edge = _LATEST // 1000
            raw = _null_where(raw, ((raw > edge) | (raw < -edge)).fill_null(False))
            micros = raw * 1000
    outside = ((micros < _EARLIEST) | (micros > _LATEST)).fill_null(False)
    lost = int(outside.sum())
    notes = [f"column {s.name!r} holds {count(lost, 'impossible date')}, read as missing"]
    kept = _null_where(micros, outside) if lost else micros
    return kept.cast(pl.Datetime("us")).rename(s.name), notes if lost else []


def convert(raw: pl.Series, column: Column) -> tuple[pl.Series, list[str]]:
    """Values of `raw` as `column` says they are; what does not fit becomes missing, with a note.

    >>> convert(pl.Series("n", ["1", "x"]), Column("n", "numeric"))[1]
    ["column 'n': 1 value cannot be read as numeric and counts as missing, for example 'x'"]
    """
    kind = column.kind
    if kind == "constant":
        return (raw if raw.dtype == pl.String else canonical(raw)[0]), []
    notes: list[str] = []
    if raw.dtype == pl.String:
        before = raw
        if kind == "numeric":
            values = raw.cast(pl.Int64, strict=False)
            if column.form or values.null_count() > raw.null_count():
                values = parse_numbers(raw, column.form)
        elif kind == "date":
            values = parse_dates(raw, column.form or "%Y-%m-%d")
        elif column.dtype == "Boolean":
            folded = raw.str.to_lowercase()
            values = raw.zip_with(~folded.is_in(["true", "false"]), folded.str.to_titlecase())
        elif column.form in ADDRESSES:
            values = shared_part(raw, column.form)
        else:
            values = raw
    else:
        before, notes = canonical(raw)
        values = _retype(before, column)
    lost = values.null_count() - before.null_count()
    if lost > 0:
        example = before.filter(values.is_null() & before.is_not_null())[0]
        verb = "counts" if lost == 1 else "count"
        notes.append(
            f"column {raw.name!r}: {count(lost, 'value')} cannot be read as {kind} and {verb} "
            f"as missing, for example {str(example)[:60]!r}"
        )
    final, further = canonical(values)
    return final.rename(raw.name), notes + further


def _retype(values: pl.Series, column: Column) -> pl.Series:
    """Canonical values of one type as another kind asks for."""
    stamps = values.dtype == pl.Datetime("us")
    if column.kind == "date":
        return values if stamps else parse_dates(_as_words(values), column.form or "%Y%m%d")
    if column.kind == "numeric":
        if stamps:
            return values.to_physical().cast(pl.Float64) / 86_400e6
        if values.dtype == pl.String:
            truth = {"True": 1, "False": 0}
            return values.replace_strict(truth, default=None, return_dtype=pl.Int64)
        return values
    return _as_words(values)


def _as_words(values: pl.Series) -> pl.Series:
    """Numbers as labels: a whole number loses its ``.0``, so that 3 and 3.0 are one label."""
    if values.dtype == pl.Float64:
        small = (values.abs() < _LARGEST_WHOLE).all()
        if small and bool((values == values.round()).all()):
            values = values.cast(pl.Int64, strict=False)
    if values.dtype == pl.Datetime("us"):
        return values.dt.to_string("iso:strict")
    return values.cast(pl.String, strict=False)
