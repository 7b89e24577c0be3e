"""New rows are read as the table they belong to, and cells are filled without touching others."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from groundstate.data import Written, read, written
from groundstate.data.tables.rewrite import filled_in
from groundstate.errors import DataError


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """Month first, kilograms, addresses and codes, which only many rows show."""
    lines = [
        f"joe{i}@{('x.com', 'y.org', 'z.net')[i % 3]},{i % 12 + 1:02d}/{i % 28 + 1:02d}/2020,"
        f"{i} kg,{i}.5%,{i % 4:02d},{'TRUE' if i % 2 else 'FALSE'},{'' if i % 5 == 0 else i}"
        for i in range(1, 60)
    ]
    path = tmp_path / "known.csv"
    path.write_text("mail,day,weight,share,code,ready,n\n" + "\n".join(lines) + "\n")
    return path


def test_a_few_rows_are_read_by_the_table_they_belong_to(known: Path, tmp_path: Path) -> None:
    schema = read(known).schema
    (tmp_path / "new.csv").write_text("day,weight,code\n03/04/2020,500 g,01\n")
    row = written(tmp_path / "new.csv").table(schema=schema, gaps=True)
    assert row.columns == schema.names and str(row.frame["day"][0]) == "2020-03-04 00:00:00"
    assert row.frame["weight"][0] == 0.5 and row.frame["code"][0] == "01"
    assert row.frame["mail"][0] is None and row.frame["n"][0] is None


def test_absent_columns_are_refused_unless_asked_for(known: Path) -> None:
    schema = read(known).schema
    with pytest.raises(DataError, match="lacks the columns"):
        written({"day": ["03/04/2020"]}).table(schema=schema)
    with pytest.raises(DataError, match="lacks the columns"):
        written({"other": ["1"]}).table(schema=schema, gaps=True)


def test_filling_leaves_every_written_cell_as_it_is(known: Path) -> None:
    cells = written(known)
    out = filled_in(cells, cells.table(), {"n": pl.Series([2.6] * 59)})
    assert out.drop("n").equals(cells.frame.drop("n"))
    assert out["n"].to_list() == [3 if i % 5 == 0 else i for i in range(1, 60)]


def test_found_values_are_written_as_the_column_is() -> None:
    cells = Written(
        pl.DataFrame(
            {
                "day": ["12/31/2021", "", "01/02/2021"],
                "share": ["5.5%", "NA", "7%"],
                "weight": ["2 kg", "", "3 kg"],
                "ready": ["TRUE", "", "FALSE"],
                "state": ["known", "", "inf"],
            }
        )
    )
    rows = cells.table()
    found = {
        "day": rows.frame["day"].fill_null(strategy="forward"),
        "share": pl.Series([0.0, 6.5, 0.0]),
        "weight": pl.Series([0.0, 2.0, 0.0]),
        "ready": pl.Series(["False", "False", "False"]),
    }
    out = filled_in(cells, rows, found)
    assert out.row(1) == ("12/31/2021", "6.5%", "2 kg", "FALSE", None)
    assert out[[0, 2]].equals(cells.frame[[0, 2]])


def test_a_cell_that_cannot_be_read_is_not_empty() -> None:
    cells = Written(pl.DataFrame({"a": ["1.5", "inf", "", "2.5"]}))
    out = filled_in(cells, cells.table(), {"a": pl.Series([2.0] * 4)})
    assert out["a"].to_list() == ["1.5", "inf", "2", "2.5"]


def test_points_between_thousands_beside_a_decimal_comma(tmp_path: Path) -> None:
    path = tmp_path / "preise.csv"
    path.write_text(
        "preis;menge;satz;umsatz\n12.573;3;0,5;1.234,5\n950;4;1,5;2.345\n1.000;5;2,5;7\n"
    )
    table = read(path)
    assert table.values("preis").tolist() == [12573, 950, 1000]
    assert table.values("umsatz").tolist() == [1234.5, 2345, 7]
    assert any("'preis', 'umsatz'" in note and "points between" in note for note in table.notes)


@pytest.mark.parametrize("weights", ["1.205;0.250", "1.2;12.345"])
def test_points_that_are_decimal_stay_so(tmp_path: Path, weights: str) -> None:
    first, second = weights.split(";")
    path = tmp_path / "t.csv"
    path.write_text(f"kg;satz\n{first};0,5\n{second};1,5\n")
    assert read(path).values("kg").tolist() == [float(first), float(second)]


def test_numbers_of_new_rows_may_be_written_otherwise(tmp_path: Path) -> None:
    schema = read({"a": ["0.5", "1.25", "3"], "b": ["1", "2", "3"]}).schema
    (tmp_path / "excel.csv").write_text("a;b\n" + "0,75;4\n" * 6)
    table = read(tmp_path / "excel.csv", schema=schema)
    assert table.values("a").tolist() == [0.75] * 6
    assert "column 'a' differs in spelling only: its numbers are written with a decimal comma" in (
        table.notes
    )
