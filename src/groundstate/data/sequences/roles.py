"""Which column of a long table orders its items, and which names their series."""

from __future__ import annotations

import polars as pl

from groundstate.data.messages import listing
from groundstate.data.sequences.long import ID, TIME
from groundstate.data.tables.schema import unknown_column
from groundstate.data.tables.table import Table
from groundstate.errors import DataError


def roles_of(table: Table, id: str | None = None, time: str | None = None) -> tuple[str, str]:
    """The columns of id and time: those named, else those called so, else what can only be that.

    The one column of dates is the time. The one column of words is the id where its labels tell
    items of the same time apart.

    Parameters
    ----------
    table : the long table
    id, time : names of the columns, where they are known; one that is not there is a `DataError`

    Examples
    --------
    >>> from groundstate.data import read
    >>> days = ["2024-01-01", "2024-01-02"] * 2
    >>> roles_of(read({"shop": ["a", "a", "b", "b"], "day": days, "sold": [3, 4, 1, 2]}))
    ('shop', 'day')
    """
    for name in (id, time):
        if name is not None and name not in table.columns:
            raise DataError(unknown_column(name, table.columns))
    if time is None:
        dates = [c.name for c in table.schema if c.kind == "date"]
        if TIME not in table.columns and len(dates) > 1:
            raise DataError(
                f"{listing(dates)} hold dates; name the one that orders the items with --time"
            )
        time = TIME if TIME in table.columns or not dates else dates[0]
    if id is None:
        id = ID if ID in table.columns else _told_apart(table, time)
    return id, time


def _told_apart(table: Table, time: str) -> str:
    """The one column of words, where it is needed and enough to give every item its time."""
    words = [s.name for s in table.frame.iter_columns() if s.dtype == pl.String and s.name != time]
    if len(words) != 1 or time not in table.columns:
        return ID
    repeats = table.frame[time].is_duplicated().any()
    return (
        words[0] if repeats and not table.frame.select(words[0], time).is_duplicated().any() else ID
    )
