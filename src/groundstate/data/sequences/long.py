"""Sequences in a long table: one line per item, with the sequence it belongs to and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.rows import Ragged
from groundstate.data.messages import count
from groundstate.data.sequences.gaps import close_gaps
from groundstate.errors import DataError

if TYPE_CHECKING:
    import polars as pl

ID, TIME, TARGET = "id", "time", "target"


@dataclass(frozen=True, repr=False)
class LongTable:
    """Sequences of a long table, in the order in which they first appear, items in the order of time.

    Attributes
    ----------
    rows : Ragged, items ``(F,)``
    names : of the F columns
    ids : of the sequences, ``(n,)``, or None without an ``id`` column
    times : of all items, one sequence after the other, or None without a ``time`` column
    y : a target for each sequence, ``(n,)``, or None
    made : which values were filled in, of all items, ``(N, F)``; None where holes are refused
    added : how many items were put in because their date was left out
    """

    rows: Ragged
    names: tuple[str, ...]
    ids: NDArray[Any] | None
    times: NDArray[Any] | None
    y: NDArray[Any] | None
    made: NDArray[np.bool_] | None = None
    added: int = 0

    def __repr__(self) -> str:
        target = "" if self.y is None else ", with targets"
        return f"{self.rows.describe()} ({', '.join(self.names[:6])}){target}"


def is_long(value: Any) -> bool:
    """Whether a value is a file, or a frame with named columns."""
    return isinstance(value, str | Path) or hasattr(value, "columns")


def read_long(
    source: Any,
    *,
    id: str = ID,
    time: str = TIME,
    target: str | None = TARGET,
    features: Sequence[str] | None = None,
    fill: bool = False,
) -> LongTable:
    """Sequences of a long table.

    Parameters
    ----------
    source : a path (CSV, Parquet, …) or a frame, whatever ``groundstate.data.read`` takes
    id : column that names the sequence of a line; without it all lines are one
    time : column that orders the items of a sequence; without it they stay in their order
    target : column with one value for each sequence, repeated in its lines; None: there is none
    features : columns of the items; None takes all others
    fill : put in dates that an evenly spaced series leaves out, and fill items without a value, by
        :func:`~groundstate.data.sequences.gaps.close_gaps`; otherwise a missing value is refused

    Examples
    --------
    >>> table = {"id": ["b", "a", "b"], "time": [2, 1, 1], "x": [5.0, 7.0, 4.0], "target": [1, 0, 1]}
    >>> found = read_long(table)
    >>> found.ids.tolist(), found.rows.values[:, 0].tolist(), found.y.tolist()
    (['b', 'a'], [4.0, 5.0, 7.0], [1, 0])
    """
    import polars as pl

    from groundstate.data.reader import read

    frame: pl.DataFrame = read(source).frame
    known = frame.columns
    if features is not None:
        absent = [name for name in features if name not in known]
        if absent:
            raise DataError(f"there is no column {absent[0]!r}; there are {', '.join(known)}")
    names = [n for n in known if n not in (id, time, target)] if features is None else [*features]
    if not names:
        raise DataError(f"no column is left for the items; there are {', '.join(known)}")
    foreign = [n for n in names if not frame[n].dtype.is_numeric()]
    if foreign:
        what = "dates" if frame[foreign[0]].dtype.is_temporal() else "words"
        raise DataError(
            f"column {foreign[0]!r} holds {what} and items are numbers; encode or drop it, or name the "
            "columns of id, time, target and features"
        )
    gaps = [n for n in names if frame[n].null_count()]
    if gaps and not fill:
        raise DataError(
            f"column {gaps[0]!r} has {count(frame[gaps[0]].null_count(), 'item')} without a value; fill "
            "them (groundstate impute) or leave these lines out"
        )
    order, number, ids = _ordered(frame, id, time)
    frame = frame[order]
    counts = np.bincount(number, minlength=1 if ids is None else len(ids))
    values = torch.from_numpy(
        frame.select(names).cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
    )
    rows = Ragged(values, torch.from_numpy(np.r_[0, np.cumsum(counts)]))
    has_target = (
        target is not None and target in known and (features is None or target not in names)
    )
    y = _per_sequence(frame[target], number, ids) if has_target and target is not None else None
    times = frame[time].to_numpy() if time in known else None
    found = LongTable(rows, tuple(names), ids, times, y)
    return _closed(found) if fill else found


def _closed(table: LongTable) -> LongTable:
    """The sequences without holes."""
    cuts = table.rows.offsets.tolist()
    dates = table.times if table.times is not None and table.times.dtype.kind == "M" else None
    parts = [
        close_gaps(table.rows.values[a:b].numpy(), None if dates is None else dates[a:b])
        for a, b in pairwise(cuts)
    ]
    empty = [np.isnan(part.values).any(0) for part in parts]
    if np.any(empty):
        name = table.names[int(np.argmax(np.any(empty, 0)))]
        raise DataError(f"column {name!r} holds no value at all in a series; leave it out")
    times = table.times
    if dates is not None:
        times = np.concatenate([part.times for part in parts if part.times is not None])
    lengths = np.array([len(part.values) for part in parts])
    rows = Ragged(
        torch.from_numpy(np.concatenate([part.values for part in parts])),
        torch.from_numpy(np.r_[0, np.cumsum(lengths)]),
    )
    made = np.concatenate([part.made for part in parts])
    return replace(table, rows=rows, times=times, made=made, added=sum(p.added for p in parts))


def _ordered(
    frame: pl.DataFrame, id: str, time: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any] | None]:
    """Lines by sequence and time, the sequence of each, and the names of the sequences."""
    n = frame.height
    number, ids = np.zeros(n, dtype=np.int64), None
    if id in frame.columns:
        given = frame[id].to_numpy()
        found, first, inverse = np.unique(given, return_index=True, return_inverse=True)
        by_appearance = np.argsort(first)
        number, ids = np.argsort(by_appearance)[inverse], found[by_appearance]
    when = np.arange(n)
    if time in frame.columns:
        if frame[time].null_count():
            raise DataError(f"the column {time!r} has missing values; every item needs its time")
        _, when = np.unique(frame[time].to_numpy(), return_inverse=True)
    order = np.lexsort((when, number))
    number = number[order]
    if time in frame.columns:
        same = np.flatnonzero((np.diff(number) == 0) & (np.diff(when[order]) == 0))
        if len(same):
            at = int(order[same[0]])
            who = "" if ids is None else f" of {ids[number[same[0]]]}"
            raise DataError(f"the time {frame[time][at]}{who} is there twice")
    return order, number, ids


def _per_sequence(
    column: pl.Series, number: NDArray[np.int64], ids: NDArray[Any] | None
) -> NDArray[Any]:
    values = np.asarray(column.to_list())
    first = np.flatnonzero(np.r_[True, np.diff(number) > 0])
    other = np.flatnonzero(values != values[first][number])
    if len(other):
        at = other[0]
        who = "the sequence" if ids is None else f"sequence {ids[number[at]]}"
        one, two = values[first][number[at]].item(), values[at].item()
        raise DataError(
            f"{who} has the targets {one!r} and {two!r}; one target for each sequence is needed"
        )
    found: NDArray[Any] = values[first]
    return found
