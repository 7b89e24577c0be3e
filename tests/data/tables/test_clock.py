"""Clock times are numbers of hours that turn with the day; texts that repeat are texts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from groundstate import Ridge, TablePredictor
from groundstate.data import Preparation, read
from groundstate.data.tables.numbers import parse_numbers, write_numbers


def hours(n: int = 200) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 24 * 60, n) / 60


def test_clock_times_are_hours_of_the_day() -> None:
    at = hours()
    table = read({"at": write_numbers(pl.Series(at), "clock").to_list(), "x": range(200)})
    column = table.schema["at"]
    assert (column.kind, column.form) == ("numeric", "clock")
    assert np.allclose(table.frame["at"].to_numpy(), at)
    assert table.notes == ("column 'at' is read as numbers of hours, written as clock times",)
    prep = Preparation().fit(table)
    assert prep.feature_names_out()[:3] == ["at", "at sin", "at cos"]
    again = Preparation.from_state(prep.to_state())
    assert np.array_equal(again.transform(table), prep.transform(table))
    assert Preparation(trees=True).fit(table).feature_names_out() == ["at", "x"]


def test_the_last_minute_is_next_to_the_first() -> None:
    at = hours()
    rows = {"at": write_numbers(pl.Series(at), "clock").to_list()}
    model = TablePredictor(Ridge(alpha=1e-6)).fit(rows, np.cos(2 * np.pi * at / 24))
    late, early = model.predict({"at": ["23:59", "00:00"]})
    assert abs(late - early) < 0.01 and abs(early - 1) < 0.01


@pytest.mark.parametrize("written", ["8:30 PM", "20:30", "20:30:00", "08:30 p.m."])
def test_spellings_of_one_time(written: str) -> None:
    assert parse_numbers(pl.Series([written]), "clock").to_list() == [20.5]


def test_what_is_no_clock_time_is_missing_and_named() -> None:
    times = [f"{h:02d}:{m:02d}" for h in range(24) for m in (0, 15, 30, 45)]
    table = read({"at": [*times, "closed", None]})
    assert table.frame["at"].null_count() == 2 and "'closed'" in table.notes[-1]
    assert read({"score": [f"{a}:{a % 4}" for a in range(40)]}).schema["score"].kind != "numeric"


def test_times_that_something_takes_do_not_turn() -> None:
    taken = [f"{h}:{m:02d}:30" for h in range(0, 60, 3) for m in (0, 20, 40)]
    table = read({"took": taken})
    assert table.schema["took"].form == "clock"
    assert Preparation().fit(table).feature_names_out() == ["took"]


def test_missing_clock_times_are_marked() -> None:
    at = write_numbers(pl.Series(hours(60)), "clock").to_list()
    at[3] = None
    prep = Preparation().fit(read({"at": at}))
    assert prep.feature_names_out() == ["at", "at missing", "at sin", "at cos"]
    assert np.isfinite(prep.transform({"at": [None, "08:30"]})).all()


def test_sentences_that_repeat_are_texts_and_short_labels_are_not() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.choice(list("abcdefgh"), 300), rng.choice(list("stuvwxyz"), 300)
    sentences = [f"the room was {i} and the staff {j}" for i, j in zip(a, b)]
    assert len(set(sentences)) < 150
    assert read({"said": sentences}).schema["said"].kind == "text"
    assert read({"job": [f"machine operator {i}{j}" for i, j in zip(a, b)]}).schema["job"].kind == (
        "category"
    )
    few = [f"the answer of this group is {i}" for i in a]
    assert read({"few": few}).schema["few"].kind == "category"  # eight levels of a label
