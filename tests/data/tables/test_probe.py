"""The helper process takes the blow of a damaged binary file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from groundstate.data import read
from groundstate.data.tables.guard import guarded
from groundstate.data.tables.probe import Probe
from groundstate.errors import DataError


def test_good_and_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1, 2]}).write_parquet(path)
    probe = Probe()
    try:
        assert probe.problem(str(path), "parquet") == ""
        path.write_bytes(path.read_bytes()[:-3])
        assert probe.problem(str(path), "parquet") != ""
    finally:
        probe.close()


def test_a_helper_that_dies_is_an_answer_and_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1, 2]}).write_parquet(path)
    probe = Probe()
    try:
        assert probe.problem(str(path), "parquet") == ""
        child = probe._child
        assert child is not None
        child.kill()
        child.wait()
        assert probe.problem(str(path), "parquet") == ""
        assert probe._child is not child
    finally:
        probe.close()


def test_a_helper_that_never_answers_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundstate.data.tables.probe._SECONDS", 0.05)
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(path)
    probe = Probe()
    try:  # starting Python takes longer than the limit
        assert "too much memory or time" in probe.problem(str(path), "parquet")
        assert probe._child is None
    finally:
        probe.close()


def test_nothing_is_left_running(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1, 2], "b": [3, 4]}).write_parquet(path)
    code = (
        "import sys; from groundstate.data import read; from groundstate.data.tables.probe import PROBE;"
        f"read({str(path)!r}); print(PROBE._child.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_panics_are_swallowed_and_interrupts_are_not() -> None:
    panic = type("PanicException", (BaseException,), {})
    with guarded() as attempt:
        raise panic("out of range")
    assert attempt.problem == "out of range"
    for error in (KeyboardInterrupt, SystemExit, DataError("bad table")):
        with pytest.raises(error if isinstance(error, type) else DataError), guarded():
            raise error


def test_a_file_that_asks_for_terabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    words = [f"a string too long to be stored in place {i}" for i in range(2000)]
    pl.DataFrame({"a": words}).write_ipc(path, compression="zstd")
    raw = bytearray(path.read_bytes())
    magic = b"\x28\xb5\x2f\xfd"
    start = raw.index(magic, raw.index(magic) + 1)  # compressed words, their size just before
    raw[start - 8 : start] = (1 << 47).to_bytes(8, "little")
    path.write_bytes(raw)
    with pytest.raises(DataError, match="needs too much memory or time"):
        read(path)
