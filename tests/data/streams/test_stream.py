"""Chunks of a file are the file."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundstate.data import read, stream
from groundstate.errors import DataError

ROWS = 1000


def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "x": rng.normal(size=ROWS),
            "word": rng.choice(["one", "two, three", 'say "four"\nfive'], ROWS),
            "y": rng.integers(0, 3, ROWS),
        }
    )


def write(path: Path) -> Path:
    data = frame()
    if path.suffix == ".csv":
        data.write_csv(path)
    elif path.suffix == ".tsv":
        data.write_csv(path, separator="\t")
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(data.write_csv().encode()))
    elif path.suffix == ".parquet":
        data.write_parquet(path, row_group_size=300)
    elif path.suffix == ".arrow":
        data.write_ipc(path)
    elif path.suffix == ".arrows":
        data.write_ipc_stream(path)
    elif path.suffix == ".json":
        data.write_json(path)
    else:
        data.write_ndjson(path)
    return path


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.arrow", "t.arrows", "t.jsonl", "t.json"]
)
@pytest.mark.parametrize("rows", [64, 999, 5000])
def test_chunks_together_are_the_table(name: str, rows: int, tmp_path: Path) -> None:
    path = write(tmp_path / name)
    parts = list(stream(path, rows, target="y"))
    whole = read(path, target="y")
    assert max(part.n_rows for part in parts) <= rows
    assert pl.concat([part.frame for part in parts]).equals(whole.frame)
    assert all(part.schema.names == whole.columns for part in parts)
    assert {part.target for part in parts} == {"y"}


def test_blocks_smaller_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.csv")
    want = read(path).frame
    monkeypatch.setattr("groundstate.data.streams.stream._BLOCK", 997)
    assert pl.concat([part.frame for part in stream(path, 100)]).equals(want)


def test_the_first_chunk_fixes_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,x\n2,y\n" * 10 + "oops,z\n4,x\n")
    *_, last = stream(path, 20)
    assert last.schema["a"].kind == "numeric"
    assert last.frame["a"].to_list()[-2:] == [None, 4]
    assert any("'oops'" in note for note in last.notes)


def test_a_known_schema_and_rows_without_a_target(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,u\n2,v\n" * 10 + "3,\n" * 30 + "4,u\n")
    schema = read(path, target="y").schema
    parts = list(stream(path, 10, schema=schema))
    assert sum(part.n_rows for part in parts) == 21
    assert {part.target for part in parts} == {"y"}


def test_blank_separated_text(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(f"  {i}   {i * i} " for i in range(30)) + "\n")
    got = pl.concat([part.frame for part in stream(path, 7)])
    assert got["x1"].to_list() == [i * i for i in range(30)]


def test_errors_name_the_line_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 50 + "3\n" + "1,2\n" * 50)
    with pytest.raises(DataError, match="line 52 of 't.csv' has 1 field"):
        list(stream(path, 20))
    broken = tmp_path / "t.parquet"
    broken.write_bytes(b"PAR1" + b"\0" * 40 + b"PAR1")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        list(stream(broken))
    with pytest.raises(DataError, match="chunk_rows must be a positive"):
        list(stream(path, 0))
    with pytest.raises(DataError, match="no file"):
        list(stream(tmp_path / "none.csv"))


def test_tables_in_memory_stream_too() -> None:
    parts = list(stream("iris", 40))
    assert [part.n_rows for part in parts] == [40, 40, 40, 30]
