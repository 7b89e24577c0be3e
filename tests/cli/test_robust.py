"""Full disks and killed processes: the previous report and the ledger stay, searches go on."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundstate.evaluate.audit.ledger import Ledger
from groundstate.report import folder, write
from groundstate.store import RunDir
from groundstate.study import assess_tuned

QUICK = ("--test", "0.25", "--tune", "0", "--seeds", "0", "--bootstrap", "0")


class Disk:
    """Counts what is written through Python's files, and fails or dies at one of the writes."""

    def __init__(self, at: int | None, then: Callable[[], None]) -> None:
        self.at, self.then, self.count, self.open = at, then, 0, io.open

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = str(kwargs.get("mode", args[1] if len(args) > 1 else "r"))
        stream = self.open(*args, **kwargs)
        return Stream(stream, self) if set(mode) & set("wa+x") else stream


class Stream:
    """A file whose writes are counted."""

    def __init__(self, stream: Any, disk: Disk) -> None:
        self.stream, self.disk = stream, disk

    def write(self, data: Any) -> int:
        if self.disk.count == self.disk.at:
            self.stream.write(data[: len(data) // 2])  # a part gets through
            self.stream.flush()
            self.disk.then()
        self.disk.count += 1
        return int(self.stream.write(data))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *rest: Any) -> None:
        self.stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def contents(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(root.iterdir())}


@pytest.fixture(scope="module")
def found() -> Any:
    return assess_tuned("iris", models="GaussianNB", test=0.25, seeds=0, bootstrap=0)


@pytest.fixture
def previous(found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds an earlier run; pictures are drawn once for all attempts, as are the rows
    that a model keeps: polars does not run in a process that was forked beside its threads."""
    with RunDir(tmp_path / "out") as run:
        run.write_json("report.json", {"previous": True})
    drawn, kept = folder.report(found), folder.kept_with_model(found)
    monkeypatch.setattr(folder, "report", lambda *_: drawn)
    monkeypatch.setattr(folder, "kept_with_model", lambda _: kept)
    return tmp_path / "out"


def attempt(found: Any, out: Path, disk: Disk) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", disk)
        with RunDir(out) as run:
            write(found, run, "iris")


def test_a_full_disk_at_any_write_leaves_the_previous_run(found: Any, previous: Path) -> None:
    from groundstate.errors import StoreError

    before, at = contents(previous), 0
    while True:
        disk = Disk(at, full)
        try:
            attempt(found, previous, disk)
        except StoreError as error:
            assert "No space left on device" in str(error)
            assert contents(previous) == before
            assert [p.name for p in previous.parent.iterdir()] == ["out"]
            at += 1
        else:
            break
    assert at == disk.count >= 6  # model, report, page, script, times, list of files
    assert {"model.gs", "report.html", "report.json"} < set(contents(previous))


def test_a_process_killed_at_any_write_leaves_the_previous_run(found: Any, previous: Path) -> None:
    before, at, ended = contents(previous), 0, 1
    while ended:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions warn of forks beside threads
            child = os.fork()
        if not child:
            attempt(found, previous, Disk(at, die))
            os._exit(0)
        ended = os.waitpid(child, 0)[1]
        if ended:
            assert ended == signal.SIGKILL and contents(previous) == before
            at += 1
    assert at >= 6 and "report.html" in contents(previous)
    with RunDir(previous) as run:
        run.write_text("report.json", "{}")
    assert [p.name for p in previous.parent.iterdir()] == ["out"]  # what the dead left is gone


def test_folders_change_names_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no moment without a report, and systems that cannot do so get by."""
    out = tmp_path / "out"
    for text in ("first", "second"):
        with RunDir(out) as run:
            run.write_text("report.html", text)
    monkeypatch.setattr("groundstate.store.rundir.exchange", lambda a, b: False)
    with RunDir(out) as run:
        run.write_text("report.html", "third")
    assert (out / "report.html").read_text() == "third" and len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_leaves_the_ledger(tmp_path: Path) -> None:
    from groundstate.errors import StoreError

    book = Ledger(tmp_path / "looks.jsonl")
    book.record([[0.0], [1.0]], [0, 1], "first", scores={"accuracy": 0.5})
    before = book.path.read_bytes()  # type: ignore[union-attr]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", Disk(0, full))
        with pytest.raises(StoreError, match="cannot write to the ledger .* No space left"):
            book.record([[0.0], [1.0]], [0, 1], "second", scores={"accuracy": 0.5})
    assert Path(book.path).read_bytes() == before and book.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        io.open = Disk(0, die)  # type: ignore[assignment]
        book.record([[0.0], [1.0]], [0, 1], "second", scores={"accuracy": 0.5})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert len(book.looks()) == 1 and book.verify()  # half a line is no look
    book.record([[0.0], [1.0]], [0, 1], "third", scores={"accuracy": 0.5})
    assert [look.model for look in book.looks()] == ["first", "third"] and book.verify()


def test_a_full_disk_is_one_sentence_and_code_2(call: Any, mixed: Path, tmp_path: Path) -> None:
    out, book = tmp_path / "out", tmp_path / "looks.jsonl"
    command = ("assess", mixed, "-t", "bought", "-m", "GaussianNB", "-o", out, *QUICK)
    assert call(*command, "--ledger", book).code == 0
    before, looks = contents(out), book.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", Disk(1, full))  # the look is written, the report is not
        done = call(*command, "--ledger", book, "--seed", "1")
    assert done.code == 2 and done.error.count("\n") == 1
    assert "No space left on device; the previous run is unchanged" in done.error
    assert contents(out) == before
    assert book.read_bytes().startswith(looks) and Ledger(book).verify()


KILLED = """
import os, signal, sys
from groundstate.cli.app import app
from groundstate.study.race.stages import Stages
Stages._tune = lambda self: os.kill(os.getpid(), signal.SIGKILL)
app(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_fit_leaves_its_last_stage_and_begins_anew(call: Any, tmp_path: Path) -> None:
    options = ("-m", "Ridge,Lasso,KNeighborsRegressor", "--tune", "4", "--thorough")
    options += ("--seeds", "0", "--bootstrap", "0", "--test", "0.25")
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert call("fit", "diabetes", "-o", whole, *options).code == 0
    command = [sys.executable, "-c", KILLED, "fit", "diabetes", "-o", str(out), *options]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    left = json.loads((out / "report.json").read_text())
    assert "tuning" in left["unfinished"] and (out / "model.gs").exists()
    assert call("fit", "diabetes", "-o", out, *options).code == 0
    first, second = (json.loads((p / "report.json").read_text()) for p in (whole, out))
    assert second == first and not first["unfinished"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "whole"]
