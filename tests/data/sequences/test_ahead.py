"""Dates behind the end of a series."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.data.sequences.ahead import dates_ahead, next_dates
from groundstate.data.sequences.long import read_long


def months(first: str, n: int, apart: int = 1) -> np.ndarray:
    return np.datetime64(first, "M") + np.arange(n) * apart


@pytest.mark.parametrize(("times", "wanted"), [
    (np.datetime64("2024-02-27") + np.arange(3), ["2024-03-01", "2024-03-02"]),
    (np.datetime64("2024-01-01T22", "us") + np.arange(3) * np.timedelta64(90, "m"),
     ["2024-01-02T02:30:00.000000", "2024-01-02T04:00:00.000000"]),
    (months("2023-10", 4).astype("M8[D]"), ["2024-02-01", "2024-03-01"]),
    (months("2023-10", 4).astype("M8[D]") + 14, ["2024-02-15", "2024-03-15"]),
    (months("2023-11", 3).astype("M8[D]") - 1, ["2024-01-31", "2024-02-29"]),
    (months("2023-01", 4, 3).astype("M8[D]") - 1, ["2023-12-31", "2024-03-31"]),
    (months("2018-03", 6, 12).astype("M8[D]"), ["2024-03-01", "2025-03-01"]),
    (np.busday_offset("2024-01-02", np.arange(12)), ["2024-01-18", "2024-01-19"]),
    (np.delete(np.busday_offset("2024-01-02", np.arange(30)), 9), ["2024-02-13", "2024-02-14"]),
    (np.delete(np.datetime64("2024-01-01") + np.arange(31), 9), ["2024-02-01", "2024-02-02"]),
    (np.array(["2024-01-01", "2024-01-05", "2024-03-01", "2024-03-02"], "M8[D]"), None),
    (np.array(["2024-01-01", "2024-01-02"], "M8[D]"), None),
])  # fmt: skip
def test_the_next_dates(times: np.ndarray, wanted: list[str] | None) -> None:
    found = next_dates(times, 2)
    assert wanted == (None if found is None else found.astype(str).tolist())
    if found is not None and str(times.dtype) == "datetime64[D]":  # as a reader may give them
        again = next_dates(times.astype("M8[us]"), 2)
        assert again is not None and again.astype(str).tolist() == wanted


def test_each_series_has_its_own() -> None:
    days = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-05-01", "2024-05-08", "2024-05-15"]
    table = {"id": list("aaabbb"), "time": days, "x": [1.0, 2, 3, 4, 5, 6]}
    found = dates_ahead(read_long(table), 1)
    assert [None if d is None else d.astype(str).tolist() for d in found] == [
        ["2024-01-04"],
        ["2024-05-22"],
    ]
    counted = read_long({**table, "time": [1, 2, 3, 1, 2, 3]})
    assert dates_ahead(counted, 1) == [None, None]
