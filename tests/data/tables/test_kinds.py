"""What a column is taken for, and how to say otherwise."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from groundstate.data import read
from groundstate.data.tables.kinds import infer

ROWS = 40
RNG = np.random.default_rng(5)


def kind(values: object, name: str = "c", **options: object) -> str:
    return read({name: values}, **options).schema[name].kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "values", "want"),
    [
        ("x", [1.5, 2.5, 3.5] * 5, "numeric"),
        ("x", ["1", "2", "3"] * 5, "numeric"),
        ("x", ["1", "?", "3"] * 5, "numeric"),
        ("x", ["red", "blue", "red"] * 5, "category"),
        ("x", [True, False, None] * 5, "category"),
        ("x", ["true", "FALSE", "True"] * 5, "category"),
        ("zip", ["08001", "10115", "00042"] * 5, "category"),
        ("x", ["2021-01-03", "2021-02-01", "2021-05-07"] * 5, "date"),
        ("x", ["3 Jan 2021", "12 Feb 2021", "30 Dec 2020"] * 5, "date"),
        ("x", [dt.date(2020, 1, 2), None, dt.date(2021, 1, 2)] * 5, "date"),
        ("version", ["1.2.3", "1.2.4", "1.3.0"] * 5, "category"),
        ("x", ["7"] * 15, "constant"),
        ("x", [None] * 15, "constant"),
        ("x", ["a"] * 15 + [None], "category"),
        ("id", list(range(100, 100 + ROWS)), "id"),
        ("PassengerId", list(range(ROWS)), "id"),
        ("count", list(range(ROWS)), "numeric"),
        ("key", [f"k{i:x}9" for i in range(ROWS)], "id"),
        ("hash", [f"h{i:x}9" for i in range(ROWS)], "id"),
        ("review", [f"it was good {i} times out of ten" for i in range(ROWS)], "text"),
    ],
)
def test_kinds(name: str, values: list[object], want: str) -> None:
    assert kind(values, name) == want


def test_a_few_words_among_numbers_are_missing() -> None:
    table = read({"x": [*map(str, range(98)), "broken", "broken"]})
    column = table.schema["x"]
    assert (column.kind, column.missing, column.markers) == ("numeric", 2, ("broken",))
    assert any("'broken' (2 rows) are read as missing" in note for note in table.notes)


def test_many_words_among_numbers_are_a_category() -> None:
    assert kind([*map(str, range(60)), *["none of these"] * 40]) == "category"


def test_markers_are_found_and_reported() -> None:
    column = read({"x": ["1", " ? ", "NA", "3", ""]}).schema["x"]
    assert (column.missing, column.markers) == (3, ("?", "NA"))
    assert read({"x": ["1", "-999", "3"]}, missing=("-999",)).schema["x"].missing == 1


def test_infinite_values_count_as_missing() -> None:
    table = read({"x": [1.0, np.inf, -np.inf, np.nan, 2.0]})
    assert table.schema["x"].missing == 3
    assert "2 infinite values" in table.notes[0]


def test_override_of_kinds() -> None:
    table = read({"zip": ["8001", "8002", "8001"]}, schema={"zip": "category"})
    assert table.schema["zip"].categories == ("8001", "8002")
    assert kind([1, 2, 3], schema={"c": "text"}) == "text"
    assert kind([1.0, 2.0, 3.0], schema={"c": "id"}) == "id"
    days = read({"d": ["03/04/2021", "05/06/2021"]}, schema={"d": "date:%m/%d/%Y"})
    assert days.frame["d"].dt.month().to_list() == [3, 5]
    compact = read({"d": [20210304, 20210506]}, schema={"d": "date"})
    assert compact.frame["d"].dt.day().to_list() == [4, 6]


def test_whole_numbers_and_whole_floats_are_one_label() -> None:
    table = read({"c": [1.0, 2.0, np.nan]}, schema={"c": "category"})
    assert table.schema["c"].categories == ("1", "2")


@pytest.mark.parametrize(
    ("values", "month", "ambiguous"),
    [
        (["31/01/2021", "02/03/2021"], [1, 3], False),
        (["01/31/2021", "02/03/2021"], [1, 2], False),
        (["01/02/2021", "02/03/2021"], [2, 3], True),
        (["31.12.2020 10:15", "1.2.2021 23:59"], [12, 2], False),
        (["2021-05-31T23:30:00-02:00", "2021-05-01T00:30:00Z"], [6, 5], False),
        (["1/2/2021 12:10 AM", "1/30/2021 11:10 PM"], [1, 1], False),
        (["03 Mar 2021", "17 Nov 2020"], [3, 11], False),
        (["2021/3/3 14:00", "2020/11/17 9:05"], [3, 11], False),
        (["March 3 2021", "November 17 2020"], [3, 11], False),
    ],
)
def test_date_forms(values: list[str], month: list[int], ambiguous: bool) -> None:
    table = read({"when": values})
    assert table.frame["when"].dt.month().to_list() == month
    assert any("month first" in note for note in table.notes) == ambiguous


def test_dates_in_several_spellings_are_dates() -> None:
    days = [dt.date(2021, 1, 1) + dt.timedelta(i) for i in range(60)]
    spelled = ("%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y")
    values = [day.strftime(spelled[i % 3]) for i, day in enumerate(days)]
    table = read({"d": values, "x": range(60)})
    assert table.frame["d"].dt.date().to_list() == days
    assert any("in 3 spellings" in note for note in table.notes)
    again = read({"d": [values[2], values[1], "soon"], "x": [0, 1, 2]}, schema=table.schema)
    assert again.frame["d"].dt.date().to_list() == [days[2], days[1], None]
    slashes = [day.strftime(("%Y-%m-%d", "%d/%m/%Y")[i % 2]) for i, day in enumerate(days[:12])]
    assert any("%Y-%m-%d|%m/%d/%Y" in note for note in read({"d": slashes, "x": range(12)}).notes)
    swapped = [day.strftime(("%d/%m/%Y", "%m/%d/%Y")[i % 2]) for i, day in enumerate(days)]
    assert read({"d": swapped, "x": range(60)}).schema["d"].kind != "date"  # which is 03/04?


def test_days_in_one_number() -> None:
    whole = [20210101 + 100 * (i % 12) + i % 28 for i in range(60)]
    for values in (whole, [str(v) for v in whole]):
        table = read({"d": values, "x": range(60)})
        assert table.schema["d"].kind == "date" and any("in one number" in n for n in table.notes)
        assert table.frame["d"].dt.month().to_list()[:3] == [1, 2, 3]
        again = read({"d": values[:2], "x": [0, 1]}, schema=table.schema)
        assert again.frame["d"].dt.day().to_list() == [1, 2]
    assert kind([*whole[:-1], 20211301]) == "numeric"  # there is no month 13
    assert kind(whole[:10]) == "numeric"


def test_seconds_since_1970_are_dates_by_declaration() -> None:
    for form, scale in (("epoch", 1), ("epoch:ms", 1000)):
        for values in ([1614780000 * scale, None], [str(1614780000 * scale), None]):
            days = read({"t": values, "x": [1, 2]}, schema={"t": f"date:{form}"}).frame["t"]
            assert str(days[0]) == "2021-03-03 14:00:00" and days[1] is None


def test_one_late_date_decides_the_order() -> None:
    values = [f"{1 + i % 12:02d}/{1 + i % 9:02d}/2020" for i in range(200)] + ["01/25/2020"]
    assert read({"d": values}).schema["d"].form == "%m/%d/%Y"


def test_impossible_dates_are_missing() -> None:
    far = np.array([0, 10**18], dtype="datetime64[s]")
    table = read({"d": far.astype("datetime64[s]"), "x": [1, 2]})
    assert table.schema["d"].missing == 1


def test_time_spans_are_seconds() -> None:
    table = read({"t": [dt.timedelta(minutes=1), dt.timedelta(minutes=2)]})
    assert table.values("t").tolist() == [60.0, 120.0]


def test_integers_beyond_64_bits_are_real_numbers() -> None:
    table = read({"x": ["123456789012345678901234567890", "1", "2"]})
    assert table.schema["x"].kind == "numeric"
    assert table.values("x")[0] == pytest.approx(1.2345678901234568e29)


def test_a_way_of_writing_numbers_is_said_once() -> None:
    rows = {"a": ["1,5", "2,5", "7"], "b": ["0,1", "3", "4,25"], "c": ["1 %", "2 %", "3 %"]}
    found = infer(pl.DataFrame(rows), separator=";")
    assert found.notes == (
        "columns 'a', 'b' are read as numbers written with a decimal comma",
        "column 'c' is read as numbers written with a percent sign",
    )
    assert [c.kind for c in found.columns] == ["numeric"] * 3
