"""Seasons found, and holes closed."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.data import read_long
from groundstate.data.sequences.gaps import close_gaps
from groundstate.data.sequences.season import season_of
from groundstate.errors import DataError


@pytest.mark.parametrize("season", [4, 7, 12, 24])
@pytest.mark.parametrize("trend", [0.0, 0.5])
def test_a_season_is_found_through_noise_and_trend(season: int, trend: float) -> None:
    t = np.arange(12 * season)
    for seed in range(5):
        noise = np.random.default_rng(seed).normal(size=len(t))
        assert season_of([trend * t + 5 * np.sin(2 * np.pi * t / season) + noise]) == season


def test_noise_has_no_season() -> None:
    found = [season_of([np.random.default_rng(s).normal(size=300)]) for s in range(50)]
    assert found.count(1) >= 48
    assert season_of([np.ones(90)]) == 1 and season_of([np.arange(5.0)]) == 1


def test_dates_left_out_are_put_in() -> None:
    days = np.datetime64("2024-01-01") + np.r_[0:30, 33:60]
    closed = close_gaps(np.r_[0.0:30, 33:60][:, None], days)
    assert closed.added == 3 and closed.values[:, 0].tolist() == list(range(60))
    assert closed.times is not None and (np.diff(closed.times) == np.timedelta64(1, "D")).all()
    assert np.flatnonzero(closed.made[:, 0]).tolist() == [30, 31, 32]
    ends = np.array(["2024-01-31", "2024-02-29", "2024-04-30", "2024-05-31", "2024-06-30"], "M8[D]")
    monthly = close_gaps(np.arange(5.0)[:, None], ends)
    assert monthly.added == 1 and monthly.values[2, 0] == 1.5
    hours = np.datetime64("2024-03-30T22:00") + np.timedelta64(1, "h") * np.r_[0:10, 11:40]
    assert close_gaps(np.arange(39.0)[:, None], hours).added == 1  # the night the clocks change


def test_uneven_dates_and_long_holes_stay() -> None:
    week = np.datetime64("2024-01-01") + np.arange(60)
    work = week[np.is_busday(week)]
    assert close_gaps(np.ones((len(work), 1)), work).added == 0
    halves = np.datetime64("2024-01-01") + np.r_[0:30, 330:360]
    assert close_gaps(np.ones((60, 1)), halves).added == 0


def test_a_hole_takes_its_values_from_the_seasons_around() -> None:
    t = np.arange(70)
    x = 10.0 + (t % 7)
    x[30:37] = np.nan
    closed = close_gaps(x[:, None], None)
    np.testing.assert_allclose(closed.values[:, 0], 10.0 + (t % 7))
    x[:] = np.nan
    x[5] = 2.0
    assert close_gaps(x[:, None], None).values[:, 0].tolist() == [2.0] * 70


def test_a_long_table_refuses_or_fills() -> None:
    table = {"time": [1, 2, 3, 4], "x": [1.0, None, 3.0, 4.0]}
    with pytest.raises(DataError, match="'x' has 1 item without a value"):
        read_long(table)
    found = read_long(table, fill=True)
    assert found.rows.values[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert found.made is not None and found.made.sum() == 1
