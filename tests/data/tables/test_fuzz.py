"""Ten thousand damaged files: each ends in a clean error or a table, quickly."""

from __future__ import annotations

import gzip
import io
import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundstate.data import Preparation, Table, read
from groundstate.data.tables.delimited import find_layout, parse_fast, parse_reference, tidy
from groundstate.data.tables.sniff import to_utf8
from groundstate.errors import DataError

FILES_PER_FORMAT = 1000
SLOWEST = 20.0  # seconds; a damaged file is refused in milliseconds, a hang is not


def _frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n = 24
    return pl.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "income": np.round(rng.normal(50, 9, n), 2),
            "city": rng.choice(["Bern", "Zürich", "St. Gallen"], n),
            "since": np.datetime64("2020-01-01") + rng.integers(0, 900, n),
            "note": [None if i % 5 == 0 else f'said "yes, {i}"\nand left' for i in range(n)],
            "y": rng.choice(["a", "b"], n),
        }
    )


def _seeds() -> dict[str, bytes]:
    frame = _frame()
    plain = frame.drop("note")
    rows = [json.dumps(row, default=str) for row in frame.to_dicts()]
    buffers: dict[str, io.BytesIO] = {}
    for name in ("csv", "tsv", "semi", "parquet", "parquet_plain", "arrow", "arrow_zstd", "ipcs"):
        buffers[name] = io.BytesIO()
    frame.write_csv(buffers["csv"])
    plain.write_csv(buffers["tsv"], separator="\t")
    plain.write_csv(buffers["semi"], separator=";")
    frame.write_parquet(buffers["parquet"])
    plain.write_parquet(buffers["parquet_plain"], compression="uncompressed")
    frame.write_ipc(buffers["arrow"])
    plain.write_ipc(buffers["arrow_zstd"], compression="zstd")
    plain.write_ipc_stream(buffers["ipcs"])
    seeds = {name: buffer.getvalue() for name, buffer in buffers.items()}
    seeds["jsonl"] = "\n".join(rows).encode()
    seeds["json"] = f"[{','.join(rows)}]".encode()
    seeds["gz"] = gzip.compress(seeds["tsv"], mtime=0)
    return seeds


SEEDS = _seeds()
TEXT = ("csv", "tsv", "semi", "jsonl", "json", "gz")
BINARY = ("parquet", "parquet_plain", "arrow", "arrow_zstd", "ipcs")
INSERTS = (
    b"\0",
    b'"',
    b"\n",
    b"\r",
    b",",
    b"\t",
    b";",
    b"\xff\xfe",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"{",
    b"[" * 3000,
    b"9" * 5000,
    b"1e999999",
    b"-inf",
    b"x" * 200_000,
    b"," * 2000,
    b"\n" * 2000,
    b"PAR1",
)


def mutate(content: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """A few changed bytes, or one to three larger injuries."""
    out = bytearray(content)
    if rng.random() < 0.6:
        low, high = (32, 127) if rng.random() < 0.5 else (0, 256)
        for _ in range(int(rng.integers(1, 4))):
            out[int(rng.integers(0, len(out)))] = int(rng.integers(low, high))
        return bytes(out)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(out) + 1))
        what = int(rng.integers(0, 6))
        if what == 0:  # cut the end
            del out[at:]
        elif what == 1:  # cut the middle
            del out[at : at + int(rng.integers(1, 40))]
        elif what == 2:  # put something in
            out[at:at] = INSERTS[int(rng.integers(0, len(INSERTS)))]
        elif what == 3:  # repeat a piece
            out[at:at] = out[at : at + int(rng.integers(1, 60))]
        elif what == 4:  # continue as another file
            other = others[int(rng.integers(0, len(others)))]
            out[at:] = other[int(rng.integers(0, len(other))) :]
        else:  # noise
            out[at : at + 16] = rng.bytes(16)
    return bytes(out)


def survive(path: Path, content: bytes) -> str:
    """Read one damaged file; anything but a `Table` or a one-line `DataError` fails the test."""
    path.write_bytes(content)
    start = time.process_time()
    try:
        table = read(path)
        assert isinstance(table, Table)
        assert table.n_rows > 0
        assert table.n_columns > 0
        assert table.frame.columns == list(table.columns)
        outcome = "table"
    except DataError as error:
        assert "\n" not in str(error).replace("\\n", "")
        assert str(error)
        outcome = "error"
    assert time.process_time() - start < SLOWEST
    return outcome


@pytest.mark.parametrize("name", [*TEXT, *BINARY])
def test_damaged_files_end_cleanly(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng([7, list(SEEDS).index(name)])
    names = list(SEEDS)
    outcomes = {"table": 0, "error": 0}
    for i in range(FILES_PER_FORMAT):
        # every fifth file carries the name of another format
        suffix = name if i % 5 else names[int(rng.integers(0, len(names)))]
        content = mutate(SEEDS[name], list(SEEDS.values()), rng)
        outcomes[survive(tmp_path / f"t.{suffix}", content)] += 1
    assert sum(outcomes.values()) == FILES_PER_FORMAT
    assert outcomes["error"] > 0
    assert outcomes["table"] > 0


@pytest.mark.parametrize("name", ["csv", "tsv", "semi"])
def test_fast_parser_agrees_with_the_reference_on_damaged_text(name: str) -> None:
    rng = np.random.default_rng(11)
    compared = 0
    for _ in range(400):
        content = mutate(SEEDS[name], [SEEDS["csv"], SEEDS["tsv"]], rng)
        try:
            raw, separator = tidy(to_utf8(content, "auto", "t")[0], "auto")
            layout = find_layout(raw, separator, "auto", frozenset({""}), "t")
        except DataError:
            continue
        fast = parse_fast(raw, layout)
        if fast is not None:
            slow = parse_reference(raw, layout, "t")
            assert fast.fill_null("").equals(slow.fill_null("")), content
            compared += 1
    assert compared > 100


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_are_no_table_or_a_preparable_one(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([3, seed])
    for i in range(60):
        letters = np.frombuffer(b'0123456789,;\t\n\r" .-abE/:%', dtype=np.uint8)
        size = int(rng.integers(1, 300))
        content = rng.bytes(size) if i % 3 == 0 else bytes(rng.choice(letters, size))
        path = tmp_path / "noise.csv"
        if survive(path, content) == "table":
            table = read(path)
            try:
                X = Preparation().fit_transform(table)
            except DataError:
                continue
            assert np.isfinite(X).all()
            assert X.shape[0] == table.n_rows
