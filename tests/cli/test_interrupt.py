"""Ctrl-C in a process of its own: what was found is kept, and nothing is half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WHOLE = {"model.gs", "report.html", "report.json", "reproduce.py", "run.json", "timing.json"}
LONG = 600.0  # seconds, on a machine that is busy


def _hears() -> None:
    """A shell lets commands in the background, such as these tests, ignore what Ctrl-C sends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def fit(folder: Path, *options: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "groundstate", "fit", "iris", "-o", "out", "--ledger", "none"]
    run = subprocess.Popen(
        [*command, "--budget", "300s", *options], cwd=folder, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env},
        preexec_fn=_hears,
    )  # fmt: skip
    try:
        yield run
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()


def stop(run: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and the last words after what a terminal sends to all processes of a command."""
    os.killpg(run.pid, signal.SIGINT)
    error = run.communicate(timeout=LONG)[1]
    return run.returncode, error


def first_answer(run: subprocess.Popen[str]) -> str:
    assert run.stdout is not None
    return next((line for line in run.stdout if line.startswith("first answer")), "")


def until(condition: object, run: subprocess.Popen[str]) -> None:
    end = time.monotonic() + LONG
    while not condition():  # type: ignore[operator]
        assert run.poll() is None and time.monotonic() < end
        time.sleep(0.5)


def whole_or_nothing(folder: Path) -> str | None:
    """The stage that the folder holds; None where there is none."""
    left = {p.name for p in folder.iterdir()}
    if left == set():
        return None
    assert left == {"out"} and {p.name for p in (folder / "out").iterdir()} == WHOLE
    return str(json.loads((folder / "out" / "report.json").read_text())["stage"])


@pytest.mark.slow
def test_while_it_loads(tmp_path: Path) -> None:
    with fit(tmp_path) as run:
        time.sleep(0.5)
        code, error = stop(run)
    assert code in (130, -signal.SIGINT)  # the second before Python runs our first line
    assert "Traceback" not in error or code == -signal.SIGINT
    assert whole_or_nothing(tmp_path) is None


@pytest.mark.slow
def test_an_answer_that_was_printed_is_kept(tmp_path: Path) -> None:
    """Its report is being written then, or was not begun."""
    with fit(tmp_path) as run:
        assert first_answer(run)
        code, error = stop(run)
    assert code == 130, error
    assert "Traceback" not in error
    assert "holds the study as far as 'first answer'; missing: the other candidates" in error
    assert error.endswith("error: stopped; nothing half-written is left\n")
    assert whole_or_nothing(tmp_path) == "first answer"


@pytest.mark.slow
def test_workers_end_with_it(tmp_path: Path) -> None:
    with fit(tmp_path, "--workers", "2") as run:
        assert first_answer(run)
        until(lambda: (tmp_path / "out").exists(), run)
        until(lambda: "LokyProcess" in _commands(run.pid), run)
        code, error = stop(run)
        end = time.monotonic() + 60
        while _commands(run.pid) and time.monotonic() < end:
            time.sleep(0.2)
        assert not _commands(run.pid)
    assert code == 130, error
    assert "Traceback" not in error
    assert whole_or_nothing(tmp_path) == "first answer"


@pytest.mark.slow
def test_what_was_compiled_before_stays_good(tmp_path: Path) -> None:
    """In the middle of a compilation; the next run finds what is there and goes on."""
    compiled, folder = tmp_path / "compiled", tmp_path / "study"
    folder.mkdir()
    forest = ("--model", "RandomForestClassifier", "--quick", "--budget", "none")
    with fit(folder, *forest, NUMBA_CACHE_DIR=str(compiled)) as run:
        until(lambda: any(compiled.rglob("*.nbc")), run)
        code, error = stop(run)
    assert code == 130, error
    assert "Traceback" not in error
    assert whole_or_nothing(folder) is None
    with fit(folder, *forest, NUMBA_CACHE_DIR=str(compiled)) as run:
        run.communicate(timeout=LONG)
        assert run.returncode == 0
    assert whole_or_nothing(folder) == "done"


def _commands(group: int) -> str:
    """The command lines of the processes of a group that still run."""
    listed = subprocess.run(
        ["ps", "-eww", "-o", "pgid,stat,args"], capture_output=True, text=True, check=True
    )
    rows = (line.split(None, 2) for line in listed.stdout.splitlines()[1:])
    return "\n".join(a for g, s, a in rows if int(g) == group and not s.startswith("Z"))
