"""Tables, schemas and targets."""

from __future__ import annotations

import json

import numpy as np
import pytest

from groundstate.data import Column, Schema, Table, load, read
from groundstate.errors import DataError

DATA = {
    "a": [1, 2, 3, 4, 5, 6],
    "b": ["u", "v", "u", None, "v", "u"],
    "y": [0, 1, 0, 1, 0, 1],
}


def test_schema_json_round_trip_for_every_kind() -> None:
    table = read(
        {
            "n": ["1", "?", "3"] * 7,
            "c": ["x", "y", "x"] * 7,
            "d": ["2020-01-01", "2021-01-01", "2022-01-01"] * 7,
            "t": [f"some words about {i}" for i in range(21)],
            "id": list(range(21)),
            "k": [1] * 21,
        },
        target="c",
    )
    assert [c.kind for c in table.schema] == [
        "numeric",
        "category",
        "date",
        "text",
        "id",
        "constant",
    ]
    again = Schema.from_dict(json.loads(json.dumps(table.schema.to_dict())))
    assert again == table.schema


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([], "a stored schema is a mapping"),
        ({"columns": [{"kind": "numeric"}]}, "needs a name"),
        ({"columns": [{"name": "a", "kind": "number"}]}, "kind 'number'; kinds are"),
        ({"columns": [{"name": "a", "kind": "text"}] * 2}, "'a' came twice"),
        ({"columns": [{"name": "age", "kind": "text"}], "target": "agee"}, "did you mean 'age'"),
    ],
)
def test_bad_schema_states(state: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Schema.from_dict(state)


@pytest.mark.parametrize("target", ["y", 2, -1, "last", "-1"])
def test_ways_to_name_the_target(target: str | int) -> None:
    table = read(DATA, target=target)
    assert table.target == "y"
    assert table.features.columns == ("a", "b")
    assert table.y.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("Yy", "no column 'Yy' .did you mean 'y'.*; the columns are 'a', 'b', 'y'"),
        ("price", "no column 'price'; the columns are"),
        (3, "target=3 is no position in a table of 3 columns; use -3 to 2"),
        (True, "must be a column name"),
        (1.5, "must be a column name"),
    ],
)
def test_unknown_targets_are_explained(target: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(DATA, target=target)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "task", "dtype"),
    [
        ([0, 1] * 10, "classification", "int64"),
        ([0.0, 1.0] * 10, "classification", "int64"),
        (list(range(21)) * 3, "regression", "int64"),
        (list(range(15)), "regression", "int64"),
        ([0.5, 1.25] * 10, "regression", "float64"),
        (["no", "yes"] * 10, "classification", "<U3"),
        ([True, False] * 10, "classification", "bool"),
    ],
)
def test_task_follows_the_target(values: list[object], task: str, dtype: str) -> None:
    table = read({"x": np.arange(len(values)) / 3, "y": values}, target="y")
    assert (table.task, str(table.y.dtype)) == (task, dtype)


def test_the_user_decides_the_task() -> None:
    data = {"x": [0.1, 0.2, 0.3, 0.4] * 3, "y": [1, 2, 1, 2] * 3}
    assert read(data, target="y").task == "classification"
    assert read(data, target="y", schema={"y": "numeric"}).task == "regression"
    assert read(data, target="y", schema={"y": "category"}).y.tolist()[:2] == ["1", "2"]


def test_rows_without_a_target_are_set_aside() -> None:
    table = read(DATA, target="b")
    assert table.n_rows == 5
    assert table.schema["b"].missing == 0
    assert table.set_aside is not None
    assert table.set_aside["a"].to_list() == [4]
    assert "1 row without a value of the target 'b' set aside" in table.notes
    with pytest.raises(DataError, match="has no value in any row"):
        read({"a": [1, 2], "b": [None, None]}, target="b")


def test_a_single_column_cannot_be_predicted_from_nothing() -> None:
    with pytest.raises(DataError, match="single column 'a', so nothing is left"):
        read({"a": [1, 2]}, target="a")
    assert read({"a": [1, 2]}).n_columns == 1


def test_an_identifier_asked_for_is_a_value() -> None:
    table = read({"x": np.arange(30) % 7, "id": np.arange(30)}, target="id")
    assert table.task == "regression"


def test_tables_do_not_change() -> None:
    table = read(DATA, target="y")
    with pytest.raises(AttributeError):
        table.name = "other"  # type: ignore[misc]
    source = np.arange(6.0).reshape(3, 2)
    kept = read(source)
    source[:] = 0
    assert kept.matrix()[2, 1] == 5.0


def test_take_select_and_equals() -> None:
    table = read(DATA, target="y")
    assert table.take([2, 0]).frame["a"].to_list() == [3, 1]
    assert table.take(np.array([True] + [False] * 5)).n_rows == 1
    assert table.take([]).n_rows == 0
    assert table.take(np.arange(6)).equals(table)
    assert not table.take([0]).equals(table)
    assert len(table.head(2)) == 2
    for bad, message in [([6], "row numbers must lie in 0..5"), ([True], "mask has 1 entries")]:
        with pytest.raises(DataError, match=message):
            table.take(np.array(bad))
    with pytest.raises(DataError, match="no column 'z'"):
        table.select(["z"])


def test_matrix_of_numbers_only() -> None:
    table = read({"a": [1, None], "b": [0.5, 2.0]})
    np.testing.assert_array_equal(table.matrix(), [[1, 0.5], [np.nan, 2]])
    with pytest.raises(DataError, match="columns 'b' of 'table' are not numbers"):
        read(DATA).matrix()
    with pytest.raises(DataError, match="has no target; choose one"):
        _ = table.y


def test_summary_is_readable() -> None:
    text = load("iris").summary()
    assert text.startswith("iris: 150 rows × 5 columns, classification of 'target'")
    assert "setosa, versicolor, virginica" in text
    assert repr(read(DATA)) == "Table('table': 6 rows, target=None)"
    assert (
        "2 more columns" in Schema(tuple(Column(f"c{i}", "numeric") for i in range(42))).summary()
    )


def test_frame_and_schema_must_agree() -> None:
    with pytest.raises(DataError, match="but the schema says"):
        Table(read(DATA).frame, Schema((Column("a", "numeric"),)))


def test_a_date_target_is_days() -> None:
    days = np.array(["1970-01-02", "1970-01-04", "1970-01-01"], dtype="datetime64[D]")
    table = read({"x": [1, 2, 3], "when": days}, target="when")
    assert (table.task, table.y.tolist()) == ("regression", [1.0, 3.0, 0.0])
