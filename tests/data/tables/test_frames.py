"""Tables that are already in memory, and sparse ones."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from groundstate.data import Preparation, SparseTable, read
from groundstate.errors import DataError

COLUMNS = {"n": [1.5, None, 3.0], "c": ["a", None, "b"], "k": [1, 2, 3], "t": [True, None, False]}


def test_frames_of_every_make_are_one_table() -> None:
    want = read(COLUMNS)
    assert read(pl.DataFrame(COLUMNS)).equals(want)
    assert read(pl.DataFrame(COLUMNS).lazy()).equals(want)
    assert read(pa.table(COLUMNS)).equals(want)
    assert read(pd.DataFrame(COLUMNS)).frame.equals(want.frame)
    assert read([dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values())]).equals(
        want
    )


def test_pandas_peculiarities() -> None:
    frame = pd.DataFrame([[1, "x", 2.5], [2, 3, np.nan]], columns=["a", "a", 7])
    table = read(frame)
    assert table.columns == ("a", "a_2", "7")
    assert table.frame["a_2"].to_list() == ["x", "3"]
    labels = read(pd.DataFrame({"c": pd.Categorical(["lo", "hi", "lo"]), "x": [1, 2, 3]}))
    assert labels.schema["c"].kind == "category"
    zoned = pd.DataFrame({"d": pd.to_datetime(["2021-01-01 01:00"] * 2, utc=True), "x": [1, 2]})
    assert read(zoned).schema["d"].dtype == "Datetime"


def test_arrays_and_tensors() -> None:
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert read(X).columns == ("x0", "x1")
    np.testing.assert_array_equal(read(X).matrix(), X)
    np.testing.assert_array_equal(read(torch.from_numpy(X)).matrix(), X)
    np.testing.assert_array_equal(read(torch.from_numpy(X).bfloat16()).matrix(), X)
    np.testing.assert_array_equal(read(X.tolist()).matrix(), X)
    pair = read((X, np.array(["u", "v", "u"])))
    assert (pair.target, pair.y.tolist()) == ("target", ["u", "v", "u"])
    fields = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", int), ("b", float)])
    assert read(fields).columns == ("a", "b")
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert read({"m": masked, "x": [1, 2]}).schema["m"].missing == 1


def test_mixed_values() -> None:
    odd = {"v": [1, "a", None, 2.5], "d": [decimal.Decimal("1.5"), None, None, None]}
    table = read(odd)
    assert table.frame["v"].to_list() == ["1", "a", None, "2.5"]
    assert table.frame["d"].to_list()[0] == 1.5
    assert read({"big": [2**70, 1, 2], "x": [1, 2, 3]}).schema["big"].kind == "numeric"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros(3), r"shape \(3,\) is not a table"),
        (np.zeros((2, 2, 2)), "not a table; expected .rows, columns."),
        (np.zeros((0, 2)), "but no row"),
        (np.zeros((2, 0)), "no columns"),
        (np.zeros((2, 2), dtype=complex), "complex numbers"),
        ({}, "no columns"),
        ([], "is not a table"),
        ({"a": 3}, "column 'a' must be a sequence of values, got int"),
        ({"a": "abc"}, "must be a sequence of values, got str"),
        ({"a": [1], "b": [1, 2]}, "have one length"),
        ((np.zeros((2, 1)), [1, 2, 3]), "X has 2 rows but y has 3"),
        (object(), "cannot read a object as a table"),
        (pl.DataFrame({"a": [[[1]], [[2]]]}), "no column of plain values"),
    ],
)
def test_what_is_no_table(source: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(source)


def test_sparse_stays_sparse() -> None:
    matrix = sp.random_array((20, 500), density=0.01, rng=np.random.default_rng(0), format="coo")
    table = SparseTable(matrix, y=np.arange(20))
    assert sp.issparse(table.matrix)
    assert table.matrix.format == "csr"
    assert (table.n_rows, table.n_columns, len(table.names)) == (20, 500, 500)
    part = table.take([3, 1])
    assert part.y is not None
    assert part.y.tolist() == [3, 1]
    np.testing.assert_array_equal(part.matrix.toarray(), matrix.toarray()[[3, 1]])
    with pytest.raises(DataError, match="wrap it in data.SparseTable"):
        read(matrix)
    with pytest.raises(DataError, match="already numbers"):
        Preparation().fit(table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(2),), "SciPy sparse matrix, got ndarray"),
        ((sp.eye_array(2) * np.nan,), "NaN or infinite"),
        ((sp.csr_array((0, 3)),), "is empty"),
        ((sp.eye_array(2), [1, 2, 3]), "y has shape"),
        ((sp.eye_array(2), None, ["a", "a"]), "2 different column names"),
        ((sp.eye_array(2) * 1j,), "real numbers"),
    ],
)
def test_bad_sparse_tables(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        SparseTable(*arguments)  # type: ignore[arg-type]
