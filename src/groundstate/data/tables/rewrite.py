"""Found values written as the column writes its own, into its empty cells alone."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from groundstate.data.tables.cells import ADDRESSES
from groundstate.data.tables.dates import BETWEEN, EPOCHS
from groundstate.data.tables.kinds import blank
from groundstate.data.tables.match import renamed
from groundstate.data.tables.numbers import write_numbers
from groundstate.data.tables.schema import Column
from groundstate.data.tables.table import Table
from groundstate.data.tables.written import Written

_TELLING = 20  # cells that say how many decimals a column has
_DECIMALS = 6


def filled_in(cells: Written, rows: Table, found: Mapping[str, pl.Series]) -> pl.DataFrame:
    """The cells as they were written, with found values where they are empty.

    Parameters
    ----------
    cells
        What was read.
    rows
        The same rows as a table.
    found
        Values of some columns, a whole column each.

    Examples
    --------
    >>> cells = Written(pl.DataFrame({"price": ["1,50 €", "", "2,00 €"], "n": ["1", "NA", "4"]}))
    >>> found = {"price": pl.Series([0.0, 1.75, 0.0]), "n": pl.Series([9.0, 2.6, 9.0])}
    >>> filled_in(cells, cells.table(), found).rows()
    [('1,50 €', 1), ('1,75', 3), ('2,00 €', 4)]
    """
    names = renamed(cells.frame, rows.schema, cells.name, gaps=True)[0].columns
    blanks = blank(cells.frame, cells.missing)[0]
    out = []
    for raw, name in zip(cells.frame.iter_columns(), names, strict=False):
        if name not in rows.columns:
            out.append(_cells(raw))
            continue
        column, values = rows.schema[name], rows.frame[name].rename(raw.name)
        empty = blanks[raw.name].is_null()
        if raw.dtype == pl.String and column.markers:
            markers = pl.Series(column.markers, dtype=pl.String).implode()
            empty |= blanks[raw.name].is_in(markers).fill_null(False)
        own = values if _same(raw, values, column, empty) else _cells(raw)
        new = found.get(name)
        if new is not None and empty.any():
            own = own.zip_with(~empty | new.is_null(), _as(new, own, values, column))
        out.append(own)
    return pl.DataFrame(out)


def _cells(raw: pl.Series) -> pl.Series:
    """Cells as they are; one without a letter is empty."""
    return raw.set(raw.str.strip_chars() == "", None) if raw.dtype == pl.String else raw


def _same(raw: pl.Series, values: pl.Series, column: Column, empty: pl.Series) -> bool:
    """Whether canonical values say all that is written."""
    if raw.dtype == pl.String:
        plain = column.kind == "numeric" and not column.form
        return plain and bool((values.is_null() == empty).all())
    base = raw.dtype.base_type()
    kept = (pl.Boolean, pl.Date, pl.Datetime, pl.Categorical, pl.Enum)
    return not (base in kept or raw.dtype.is_numeric())


def _as(new: pl.Series, own: pl.Series, values: pl.Series, column: Column) -> pl.Series:
    """Found values in the type and spelling of a column."""
    if own.dtype == pl.Boolean:
        return new.cast(pl.String).str.to_lowercase() == "true"
    if own.dtype.is_integer() and new.dtype.is_float():
        new = new.round()
    elif new.dtype.is_float() and values.dtype.is_numeric():
        new = _digits(new, values)
    if own.dtype != pl.String:
        return new.cast(own.dtype, strict=False)
    if column.kind == "numeric" and new.dtype.is_numeric():
        return write_numbers(new.round() if column.integer else new, column.form)
    if column.kind == "date" and new.dtype.is_temporal():
        return _days(new.cast(pl.Datetime("us")), values, column.form)
    words = new.cast(pl.String, strict=False)
    if column.form in ADDRESSES or values.dtype != pl.String:
        return words
    known = pl.DataFrame({"is": values, "written": own}).drop_nulls().unique("is", keep="first")
    return words.replace(known["is"].to_list(), known["written"].to_list())


def _digits(new: pl.Series, values: pl.Series) -> pl.Series:
    """Found numbers with as many decimals as the column has, where its cells are enough to tell.

    >>> _digits(pl.Series([2838.5661975]), pl.Series([1.25, 2.5, 3.75, 4.0] * 5)).to_list()
    [2838.57]
    """
    known = values.drop_nulls()
    if len(known) < _TELLING:
        return new
    each = (k for k in range(_DECIMALS + 1) if bool((known.round(k) == known).all()))
    decimals = next(each, None)
    return new if decimals is None else new.round(decimals)


def _days(new: pl.Series, values: pl.Series, form: str) -> pl.Series:
    if form in EPOCHS:
        return (new.to_physical() // EPOCHS[form]).cast(pl.String)
    days = values.drop_nulls()
    clock = bool((days != days.dt.truncate("1d")).any()) and "%H" not in form
    usual = form.split(BETWEEN)[0]
    return new.dt.to_string((usual or "%Y-%m-%d") + (" %H:%M:%S" if clock else ""))
