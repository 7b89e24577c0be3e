"""Sequences from what people have: long tables, padded arrays, windows of series."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from groundstate.compute.rows import Ragged
from groundstate.data import read_long, rows_of
from groundstate.data.sequences.series import series_of
from groundstate.data.sequences.windows import ends, windows
from groundstate.errors import DataError

TEXT = """id,time,a,b,target
7,2024-01-02,1.5,2,up
7,2024-01-01,2.5,3,up
3,2024-01-01,4,5,down
7,2024-02-01,6,7,up
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "long.csv"
    file.write_text(TEXT)
    return file


def test_a_long_table_becomes_sequences_in_the_order_of_time(path: Path) -> None:
    found = read_long(path)
    assert found.names == ("a", "b") and found.ids.tolist() == [7, 3]
    assert found.rows.lengths.tolist() == [3, 1]
    assert found.rows.values.tolist() == [[2.5, 3], [1.5, 2], [6, 7], [4, 5]]
    assert found.y.tolist() == ["up", "down"] and len(found.times) == 4
    assert "with targets" in repr(found)
    for frame in (pl.read_csv(path), pd.read_csv(path)):
        assert torch.equal(read_long(frame).rows.values, found.rows.values)
    assert rows_of(str(path), "sequence").rows.lengths.tolist() == [3, 1]


def test_columns_can_have_other_names(tmp_path: Path) -> None:
    frame = pl.DataFrame({"who": ["x", "x"], "at": [2, 1], "v": [1.0, 2.0], "label": [0, 0]})
    found = read_long(frame, id="who", time="at", target="label")
    assert found.rows.values[:, 0].tolist() == [2.0, 1.0] and found.y.tolist() == [0]
    assert read_long(frame, id="who", target=None, features=["v"]).names == ("v",)
    one = read_long(pl.DataFrame({"v": [1.0, 2.0]}))
    assert one.ids is None and one.times is None and one.y is None and len(one.rows) == 1


def test_long_tables_that_cannot_be_are_refused() -> None:
    with pytest.raises(DataError, match=r"the time 1 of a is there twice"):
        read_long({"id": ["a", "a"], "time": [1, 1], "v": [1.0, 2.0]})
    with pytest.raises(DataError, match="has the targets 0 and 1"):
        read_long({"id": ["a", "a"], "v": [1.0, 2.0], "target": [0, 1]})
    with pytest.raises(DataError, match="'v' holds words"):
        read_long({"id": ["a", "b"], "v": ["x", "y"]})
    with pytest.raises(DataError, match="no column 'w'"):
        read_long({"id": ["a", "b"], "v": [1.0, 2.0]}, features=["w"])
    with pytest.raises(DataError, match="no column is left"):
        read_long({"id": ["a", "b"], "time": [1, 2]})


def test_padded_arrays_with_lengths() -> None:
    x = np.arange(12.0).reshape(2, 3, 2)
    found = rows_of((x, [1, 3]), "sequence").rows
    assert found.lengths.tolist() == [1, 3] and found.values.tolist()[1] == [6.0, 7.0]
    with pytest.raises(DataError, match="0 to 3, got"):
        rows_of((x, [1, 4]), "sequence")


def test_windows_touch_the_end_and_stay_in_their_series() -> None:
    rows = Ragged.of([torch.arange(7.0)[:, None], 100 + torch.arange(5.0)[:, None]])
    made = windows(rows, 3, 2)
    assert made.row.tolist() == [0, 0, 0, 1] and made.start.tolist() == [0, 1, 2, 0]
    assert made.past[-1, :, 0].tolist() == [100, 101, 102]
    assert made.future[2, :, 0].tolist() == [5, 6]
    apart = windows(rows, 3, 2, stride=2)
    assert apart.start.tolist() == [0, 2, 0]
    every = windows(Ragged.of([torch.arange(8.0)[:, None]]), 3, 2, stride=2)
    assert every.start.tolist() == [1, 3]  # the last one touches the end
    assert ends(rows, 2)[..., 0].tolist() == [[5, 6], [103, 104]]
    with pytest.raises(
        DataError, match="series 1 has 5 items, but 4 to look back and 2 to look ahead"
    ):
        windows(rows, 4, 2)
    with pytest.raises(ValueError, match="stride must be"):
        windows(rows, 3, 2, 0)


def test_series_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "series.csv"
    file.write_text("time,value\n3,30\n1,10\n2,20\n")
    found = series_of(file)
    assert found.single and found.flat and found.rows.values[:, 0].tolist() == [10, 20, 30]
    assert found.names == ("value",)
    with pytest.raises(DataError, match="series 1 holds NaN"):
        series_of([[1.0, 2.0], [np.nan]])
    with pytest.raises(DataError, match="the same columns"):
        series_of([np.ones((3, 2)), np.ones((3, 1))])
