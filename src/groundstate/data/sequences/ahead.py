"""The dates behind the end of a series, where its own are evenly spaced."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.data.sequences.long import LongTable

_LEAST = 3  # dates that have a spacing
_USUAL = 0.9  # share of gaps of one length; the others are holidays and missing items
_DAY = np.timedelta64(1, "D")


def dates_ahead(table: LongTable, steps: int) -> list[NDArray[np.datetime64] | None]:
    """The next dates of each series; None where it has no dates, or no even spacing."""
    times = table.times
    if times is None or times.dtype.kind != "M":
        return [None] * len(table.rows)
    cuts = np.cumsum(table.rows.lengths.numpy())[:-1]
    return [next_dates(part, steps) for part in np.split(times, cuts)]


def next_dates(times: NDArray[Any], steps: int) -> NDArray[np.datetime64] | None:
    """The dates that follow ascending ones: by one gap, by months, or by business days.

    Examples
    --------
    >>> def days(*words):
    ...     return next_dates(np.array(words, dtype="M8[D]"), 2).astype(str).tolist()
    >>> days("2024-01-01", "2024-01-08", "2024-01-15")
    ['2024-01-22', '2024-01-29']
    >>> days("2023-11-30", "2023-12-31", "2024-01-31")
    ['2024-02-29', '2024-03-31']
    >>> days("2024-01-04", "2024-01-05", "2024-01-08", "2024-01-09")
    ['2024-01-10', '2024-01-11']
    >>> next_dates(np.array(["2024-01-01", "2024-01-02", "2024-02-20"], dtype="M8[D]"), 2) is None
    True
    """
    if len(times) < _LEAST:
        return None
    count = np.arange(1, steps + 1)
    days = times.astype("M8[D]")
    whole = bool((days == times).all())
    months = days.astype("M8[M]")
    apart = _usual(np.diff(months).astype(np.int64))
    if whole and apart is not None and apart > 0:
        own, ends = (days - months.astype("M8[D]")) // _DAY + 1, _days_in(months)
        day = 31 if bool((own == ends).all()) else int(own.max())
        if bool((own == np.minimum(day, ends)).all()):
            later = months[-1] + (count * int(apart)).astype("m8[M]")
            into = np.minimum(day, _days_in(later)) - 1
            return np.asarray(later.astype("M8[D]") + into * _DAY)
    gap = _usual(np.diff(times))
    if gap is not None:
        return np.asarray(
            days[-1] + count * gap.astype("m8[D]") if whole else times[-1] + count * gap
        )
    if whole and np.is_busday(days).all() and _usual(np.busday_count(days[:-1], days[1:])) == 1:
        return np.asarray(np.busday_offset(days[-1], count))
    return None


def _usual(gaps: NDArray[Any]) -> Any:
    """The length that nearly all gaps have, or None."""
    values, times = np.unique(gaps, return_counts=True)
    most = int(times.argmax())
    return values[most] if times[most] >= _USUAL * len(gaps) else None


def _days_in(months: NDArray[Any]) -> NDArray[np.int64]:
    first = months.astype("M8[D]")
    return np.asarray(((months + 1).astype("M8[D]") - first) // _DAY)
