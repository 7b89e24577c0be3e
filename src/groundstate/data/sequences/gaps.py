"""Holes of a series closed: dates that are left out, and items without a value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundstate.data.sequences.season import season_of

_MOST = 0.2  # share of items that may be made up


class Closed(NamedTuple):
    """One series without holes.

    Attributes
    ----------
    values : ``(T, F)``
    times : ``(T,)``, or None
    made : which values were filled in, ``(T, F)``
    added : how many items were put in because their date was left out
    """

    values: NDArray[np.float64]
    times: NDArray[np.datetime64] | None
    made: NDArray[np.bool_]
    added: int


def close_gaps(values: NDArray[np.float64], times: NDArray[np.datetime64] | None) -> Closed:
    """Put in the dates that an evenly spaced series leaves out, and fill every missing value.

    A value is the mean of its neighbours one season before and after, or of those further off; where
    there are none, it lies on the line between the two items around it. Dates are put in as long as
    they are a fifth of all at most; the holes of business days are holidays and stay.

    Parameters
    ----------
    values : ``(T, F)``, NaN where a value is missing
    times : ascending dates ``(T,)``, or None

    Examples
    --------
    >>> days = np.array(["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-05", "2024-01-06"], "M8[D]")
    >>> closed = close_gaps(np.array([[1.0], [2], [4], [np.nan], [6]]), days)
    >>> closed.values[:, 0].tolist(), closed.added, closed.made[:, 0].tolist()
    ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1, [False, False, True, False, True, False])
    """
    places = None if times is None else _places(times)
    added = 0
    if times is not None and places is not None and len(places) <= places[-1]:
        whole = np.full((int(places[-1]) + 1, values.shape[1]), np.nan)
        whole[places] = values
        times, added = _every(times, places), len(whole) - len(values)
        values = whole
    made = np.isnan(values)
    if not made.any():
        return Closed(values, times, made, added)
    filled = np.column_stack([_filled(values[:, j]) for j in range(values.shape[1])])
    return Closed(filled, times, made, added)


def _places(times: NDArray[np.datetime64]) -> NDArray[np.int64] | None:
    """The number of each date on an even grid; None where there is no such grid, or it is mostly holes."""
    months = times.astype("M8[M]")
    days = times.astype("M8[D]")
    whole = bool((days == times).all())
    into = (days - months.astype("M8[D]")).astype(np.int64)
    lasts = (months + 1).astype("M8[D]") - np.timedelta64(1, "D")
    if whole and len(times) > 2 and ((into == into[0]).all() or (days == lasts).all()):
        found = _numbers(months.astype(np.int64))
        if found is not None:
            return found
    return _numbers(times.astype("M8[us]").astype(np.int64))


def _numbers(at: NDArray[np.int64]) -> NDArray[np.int64] | None:
    steps = np.diff(at)
    if len(steps) < 2 or (steps <= 0).any():
        return None
    values, counts = np.unique(steps, return_counts=True)
    gap = int(values[counts.argmax()])
    far = at - at[0]
    if (far % gap).any():
        return None
    places: NDArray[np.int64] = far // gap
    return places if len(at) >= (1 - _MOST) * (places[-1] + 1) else None


def _every(times: NDArray[np.datetime64], places: NDArray[np.int64]) -> NDArray[np.datetime64]:
    """The dates of all places: those given, and between them even ones."""
    count = np.arange(int(places[-1]) + 1)
    unit = times.astype("M8[us]").astype(np.int64)
    even = np.interp(count, places, unit).round().astype(np.int64).astype("M8[us]")
    found: NDArray[np.datetime64] = even.astype(times.dtype)
    found[places] = times
    return found


def _filled(x: NDArray[np.float64]) -> NDArray[np.float64]:
    known = np.flatnonzero(~np.isnan(x))
    if not len(known):
        return x
    line = np.interp(np.arange(len(x)), known, x[known])
    season = season_of([line])
    if season == 1:
        return line
    for i in np.flatnonzero(np.isnan(x)):
        for k in range(1, 4):
            around = [j for j in (i - k * season, i + k * season) if 0 <= j < len(x)]
            if len(around) == 2 and not np.isnan(x[around]).any():
                line[i] = x[around].mean()
                break
    return line
