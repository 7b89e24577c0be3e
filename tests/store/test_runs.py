"""Checkpoints and run folders survive failure at any moment."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from groundstate.errors import StoreError
from groundstate.store import Checkpoints, RunDir, StoreWarning, latest, load


def test_last_k_are_kept_and_the_newest_is_found(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "run", keep=3)
    assert checkpoints.latest() is None
    for step in range(0, 50, 5):
        checkpoints.write(step, {"step": step, "theta": np.full(3, step)})
    assert [int(p.name[11:23]) for p in checkpoints.paths()] == [35, 40, 45]
    found = latest(tmp_path / "run")
    assert found is not None and found.step == 45 and found.state["theta"].tolist() == [45] * 3


def test_damaged_newest_falls_back_with_a_warning(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(1, {"a": 1})
    newest = checkpoints.write(2, {"a": 2})
    newest.write_bytes(newest.read_bytes()[:100])
    with pytest.warns(StoreWarning, match=r"checkpoint-000000000002\.gs"):
        found = checkpoints.latest()
    assert found is not None and found.state == {"a": 1}


def test_going_back_drops_the_abandoned_branch(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=3)
    for step in (1, 2, 3):
        checkpoints.write(step, {"a": step})
    checkpoints.write(2, {"a": 20})
    found = checkpoints.latest()
    assert found is not None and found.state == {"a": 20}


def test_training_state_continues_exactly(tmp_path: Path) -> None:
    def run(state: dict[str, Any] | None, steps: int) -> dict[str, Any]:
        stream = torch.Generator()
        w = torch.zeros(5, requires_grad=True)
        optimiser = torch.optim.Adam([w], lr=0.1)
        if state is None:
            stream.manual_seed(0)
        else:
            stream.set_state(state["stream"])
            with torch.no_grad():
                w.copy_(state["w"])
            optimiser.load_state_dict(state["optimiser"])
        for _ in range(steps):
            optimiser.zero_grad()
            (w - torch.randn(5, generator=stream)).square().sum().backward()
            optimiser.step()
        stored = {
            "w": w.detach(),
            "optimiser": optimiser.state_dict(),
            "stream": stream.get_state(),
        }
        return stored

    Checkpoints(tmp_path).write(7, run(None, 7))
    found = latest(tmp_path)
    assert found is not None
    assert torch.equal(run(found.state, 5)["w"], run(None, 12)["w"])


def test_killed_while_writing(tmp_path: Path) -> None:
    """A writer killed at a random moment leaves a readable newest checkpoint."""
    code = f"""
import itertools, numpy as np
from groundstate.store import Checkpoints
checkpoints = Checkpoints({str(tmp_path)!r}, keep=2)
for step in itertools.count():
    checkpoints.write(step, {{"theta": np.full(200_000, step)}})
    print(step, flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= 12:
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    found = latest(tmp_path)
    assert found is not None and found.step >= 12
    assert (found.state["theta"] == found.step).all()
    Checkpoints(tmp_path, keep=1).write(10**6, {})
    assert os.listdir(tmp_path) == ["checkpoint-000001000000.gs"]


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="at least 1, got 0"):
        Checkpoints(tmp_path, keep=0)
    with pytest.raises(StoreError, match="got -1"):
        Checkpoints(tmp_path).write(-1, {})
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot make the folder"):
        Checkpoints(tmp_path / "file").write(1, {})


def write_run(path: Path, text: str) -> None:
    with RunDir(path) as run:
        run.write_text("report.html", text)
        run.write_json("report.json", {"text": text})
        run.write_text("plots/a.svg", text)
        run.save("model.gs", {"theta": text})


def content(path: Path) -> dict[str, str]:
    return {
        str(p.relative_to(path)): p.read_text("latin-1") for p in path.rglob("*") if p.is_file()
    }


def test_run_is_replaced_as_a_whole(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    write_run(out, "one")
    (out / "notes.txt").write_text("mine")
    with RunDir(out) as run:
        assert (out / "report.html").read_text() == "one", "the old run stays until the end"
        run.write_text("report.html", "two")
    assert sorted(content(out)) == ["notes.txt", "report.html", "run.json"]
    assert (out / "report.html").read_text() == "two"
    assert os.listdir(out.parent) == ["out"]


def test_error_inside_keeps_the_old_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_run(out, "one")
    before = content(out)
    with pytest.raises(ZeroDivisionError), RunDir(out) as run:
        run.write_text("report.html", "two")
        raise ZeroDivisionError
    with pytest.raises(StoreError, match="value"), RunDir(out) as run:
        run.save("model.gs", print)
    assert content(out) == before and os.listdir(tmp_path) == ["out"]
    assert load(out / "model.gs") == {"theta": "one"}


@pytest.mark.parametrize("failing", [1, 2])
def test_failed_rename_keeps_the_old_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    out = tmp_path / "out"
    write_run(out, "one")
    rename, calls = os.rename, iter(range(1, 9))

    def fail(a: Any, b: Any) -> None:
        if next(calls) == failing:
            raise OSError(28, "No space left on device")
        rename(a, b)

    monkeypatch.setattr(os, "rename", fail)
    # where folders cannot change names in one step
    monkeypatch.setattr("groundstate.store.rundir.exchange", lambda a, b: False)
    with pytest.raises(StoreError, match="No space left on device; the previous run is unchanged"):
        write_run(out, "two")
    assert (out / "report.html").read_text() == "one" and os.listdir(tmp_path) == ["out"]


def test_power_cut_between_the_two_renames(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_run(out, "one")
    os.rename(out, tmp_path / ".out.old")
    with pytest.raises(ZeroDivisionError), RunDir(out):
        raise ZeroDivisionError
    assert (out / "report.html").read_text() == "one"
    shutil.copytree(out, tmp_path / ".out.old")
    write_run(out, "two")
    assert os.listdir(tmp_path) == ["out"]


def test_other_peoples_folders_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(StoreError, match="a folder that is not a groundstate run"):
        write_run(tmp_path / "thesis", "one")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        write_run(tmp_path / "file", "one")
    assert content(tmp_path) == {"thesis/chapter.tex": "years of work", "file": "x"}
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "empty", "one")


def test_a_place_that_takes_no_folder_is_found_early(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="cannot write the run .*nothing was written"):
        RunDir(tmp_path / "file" / "out").check()
    if Path("/proc").is_dir():  # where permissions promise what the system does not keep
        with pytest.raises(StoreError, match="cannot write the run '/proc/nope'"):
            RunDir("/proc/nope").check()
    RunDir(tmp_path / "new" / "deep" / "out").check()
    assert [p.name for p in tmp_path.iterdir()] == ["file"]  # looking leaves nothing behind


def test_file_names_stay_inside(tmp_path: Path) -> None:
    for name in ("../a", "/a", "", "run.json"):
        with (
            pytest.raises(StoreError, match="not the name of a file"),
            RunDir(tmp_path / "o") as run,
        ):
            run.write_text(name, "x")
    with pytest.raises(StoreError, match="inside 'with"):
        RunDir(tmp_path / "o").file("a")
    assert os.listdir(tmp_path) == []
