"""Units, money, lists, addresses and spellings: read as what they are, and never a crash."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundstate.data import Preparation, read
from groundstate.data.tables.cells import list_form, listed, shared_part
from groundstate.data.tables.match import plain_label, renamed
from groundstate.data.tables.numbers import number_form, parse_numbers
from groundstate.data.tables.units import parse_units
from groundstate.errors import DataError


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["1,200 kg", "950 kg", "12.5 kg"], [1200, 950, 12.5]),
        (["1 kg", "2 kg", "500 g", "1 lb"], [1, 2, 0.5, 0.45359237]),
        (["$3.50", "$1,200", "-$7"], [3.5, 1200, -7]),
        (["3,50 €", "1.200,00 €"], [3.5, 1200]),
        (["CHF 12", "CHF 1'200.50"], [12, 1200.5]),
        (["12%", "7.5 %"], [12, 7.5]),
        (["1.2k", "900", "3M"], [1200, 900, 3e6]),
        (["$1.2M", "$950K"], [1.2e6, 950e3]),
        (["3 ft 4 in", "5 ft", "6 ft 6 in"], [3 + 4 / 12, 5, 6.5]),
        (["1h 30min", "45 min", "2 h", "15 min", "20 min"], [90, 45, 120, 15, 20]),
        (["1 star", "5 stars", "3 stars"], [1, 5, 3]),
        (["23.4 kmpl", "19.7 kmpl"], [23.4, 19.7]),
        (["1248 CC", "998 CC"], [1248, 998]),
    ],
)
def test_numbers_with_what_stands_beside_them(words: list[str], numbers: list[float]) -> None:
    table = read({"v": words * 5})
    assert table.schema["v"].kind == "numeric"
    np.testing.assert_allclose(table.frame["v"].to_numpy()[: len(words)], numbers)
    assert len(table.notes) == 1 and table.notes[0].startswith("column 'v' is read as numbers")
    again = read({"v": words[:1]}, schema=table.schema)  # one new cell, the same reading
    np.testing.assert_allclose(again.frame["v"][0], numbers[0])
    assert read({"v": words * 5}, schema={"v": "category"}).schema["v"].kind == "category"


@pytest.mark.parametrize("words", [["5 kg", "3 m", "2 kg"], ["$5", "€3", "$2"]])
def test_what_has_no_common_unit_is_said(words: list[str]) -> None:
    table = read({"v": words * 5})
    assert table.schema["v"].kind == "category"
    assert "mixes" in table.notes[0] and "no common unit" in table.notes[0]


@pytest.mark.parametrize(
    "words", [["C85", "B42"], ["1st", "2nd", "3rd"], ["007X", "012X"], ["10a", "11b"]]
)
def test_codes_are_no_numbers(words: list[str]) -> None:
    assert read({"v": words * 10}).schema["v"].kind != "numeric"


def test_lists_become_a_column_per_item() -> None:
    for cells in (
        ["red;green", "red", "blue; red", "green;blue;red"],
        ["red|green", "red", "blue|red", "green|blue|red"],
        ["red, green", "red", "blue, red", "green, blue, red"],
        ["['red', 'green']", '["red"]', "[blue, red]", "(green, blue, red)"],
        [["red", "green"], ["red"], ["blue", "red"], ["green", "blue", "red"]],
    ):
        table = read({"v": cells * 5, "x": np.arange(20.0)})
        assert table.schema["v"].kind == "list", cells
        prep = Preparation().fit(table)
        assert prep.feature_names_out()[:4] == [
            "v has blue",
            "v has green",
            "v has red",
            "v number",
        ]
        assert prep.transform(table)[:4, :3].tolist() == [
            [0, 1, 1],
            [0, 0, 1],
            [1, 0, 1],
            [1, 1, 1],
        ]
        again = Preparation.from_state(prep.to_state())
        assert np.array_equal(again.transform(table), prep.transform(table))


def test_names_and_sentences_are_no_lists() -> None:
    names = pl.Series([f"Smith{i}, John{i}" for i in range(50)])
    assert list_form(names) is None
    assert list_form(pl.Series(["Boston, MA", "Austin, TX", "Reno, NV", "Salem, OR"] * 9)) is None


def test_addresses_are_read_by_the_part_that_rows_share() -> None:
    n = 40
    table = read(
        {
            "mail": [f"user{i}@{'a.org' if i % 2 else 'B.com'}" for i in range(n)],
            "page": [f"https://www.{'x.ch' if i % 3 else 'y.ch'}/p/{i}?q=1" for i in range(n)],
            "ip": [f"10.{i % 2}.3.{i}" for i in range(n)],
        }
    )
    assert table.schema.of_kind("category") == ("mail", "page", "ip")
    assert table.schema["mail"].categories == ("a.org", "b.com")
    assert table.schema["page"].categories == ("x.ch", "y.ch")
    assert table.schema["ip"].categories == ("10.0", "10.1")
    assert len(table.notes) == 3
    again = read(
        {"mail": ["me@A.org"], "page": ["http://x.ch"], "ip": ["10.1.9.9"]}, schema=table.schema
    )
    assert again.frame.row(0) == ("a.org", "x.ch", "10.1")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=12)), min_size=1, max_size=30))
def test_any_strings_are_read_and_chunks_are_the_whole(cells: list[str | None]) -> None:
    try:
        table = read({"v": cells, "x": range(len(cells))})
    except DataError:
        return
    whole = read({"v": cells, "x": range(len(cells))}, schema=table.schema).frame
    half = len(cells) // 2
    parts = [
        read({"v": pl.Series(c, dtype=pl.String), "x": r}, schema=table.schema).frame
        for c, r in ((cells[:half], range(half)), (cells[half:], range(half, len(cells))))
        if c
    ]
    assert pl.concat(parts).equals(whole)


_UNIT = st.sampled_from(["kg", "g", "lb"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0.001, 1e6), _UNIT), min_size=2, max_size=20))
def test_numbers_round_trip_in_any_unit(pairs: list[tuple[float, str]]) -> None:
    size = {"kg": 1.0, "g": 1e-3, "lb": 0.45359237}
    words = pl.Series([f"{v!r} {u}" for v, u in pairs])
    got = parse_units(words, "unit:kg").to_numpy()
    np.testing.assert_allclose(got, [v * size[u] for v, u in pairs], rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.decimals(-1e6, 1e6, places=2), min_size=3, max_size=20))
def test_money_round_trips(amounts: list[object]) -> None:
    words = pl.Series([f"{'-' if float(a) < 0 else ''}${abs(float(a)):,.2f}" for a in amounts])  # type: ignore[arg-type]
    form = number_form(words, ",")
    assert form is not None and form[0] == "currency"
    np.testing.assert_allclose(parse_numbers(words, form[0]), [float(a) for a in amounts])  # type: ignore[arg-type]


def test_items_of_any_list_come_back() -> None:
    row, item = listed(pl.Series(["a;b;a", "", None, ";c;"]), ";")
    assert row.tolist() == [0, 0, 3] and item.to_list() == ["a", "b", "c"]
    assert shared_part(pl.Series(["none", None]), "email").to_list() == ["none", None]


def test_labels_that_differ_in_spelling_are_one() -> None:
    train = read({"x": range(20), "y": ["<=50K", ">50K"] * 10})
    more = read({"x": [1, 2, 3], "y": ["<=50K.", " >50k", "other"]}, schema=train.schema)
    assert more.frame["y"].to_list() == ["<=50K", ">50K", "other"]
    assert "differs in spelling only" in more.notes[0]
    both = read({"x": range(20), "y": ["a", "A"] * 10})  # two labels of the table itself stay two
    assert read({"x": [1], "y": ["A."]}, schema=both.schema).frame["y"].to_list() == ["A."]
    assert plain_label("No.") == plain_label("no") != plain_label("n o")


def test_columns_that_differ_in_spelling_are_found() -> None:
    schema = read({"Petal Length": [1.0, 2.0], "n": [1.0, 2.0]}).schema
    frame, notes = renamed(pl.DataFrame({"petal_length": [1.0], "N": [2.0]}), schema, "t")
    assert frame.columns == ["Petal Length", "n"] and len(notes) == 2
    with pytest.raises(DataError, match=r"lacks the columns 'n' .*it has"):
        read({"Petal Length": [1.0], "m": [2.0]}, schema=schema)


def test_another_table_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    named = read({"a": rng.normal(size=20), "b": rng.normal(size=20)}).schema
    bare = read(rng.normal(size=(20, 4))).schema
    (tmp_path / "bare.csv").write_text("1,2\n3,4\n5,6\n")
    with pytest.raises(DataError, match="no line of names, so that 'a', 'b' cannot be found"):
        read(tmp_path / "bare.csv", schema=named)
    with pytest.raises(DataError, match="has 7 columns without names and the table .* had 4"):
        read(rng.normal(size=(5, 7)), schema=bare)
    with pytest.raises(DataError, match="another kind of table: 'a', 'b' should hold numbers"):
        read({"a": ["u", "v", "w", "x", "y"], "b": ["u"] * 5}, schema=named)
    assert read(rng.normal(size=(5, 5)), schema=bare).n_columns == 4  # with the target behind
