"""``groundstate fit``: the folder, the screen, and the same bytes every time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groundstate
from groundstate.models.tables.table import TablePredictor

MODELS = "LogisticRegression,LinearSVC"
QUICK = ("--test", "0.25", "--tune", "2", "--seeds", "2", "--bootstrap", "3")
FILES = ["model.gs", "report.html", "report.json", "reproduce.py", "run.json", "timing.json"]
GROUNDSTATE = str(Path(sys.executable).with_name("groundstate"))


def outside(*command: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        timeout=120,
        check=False,
    )


def test_folder_holds_model_report_numbers_and_script(fitted: Path) -> None:
    assert sorted(p.name for p in fitted.iterdir()) == FILES
    told = json.loads((fitted / "report.json").read_text())
    assert told["ledger"]["log"] == ["report"] and len(told["verdict"]) == 3
    assert told["design"]["development"] == 135 and told["design"]["judged"] == 45
    assert told["data"]["target"] == "bought" and told["task"] == "classification"
    kinds = {c["name"]: c["kind"] for c in told["data"]["types"]}
    assert kinds["id"] == "id" and kinds["always"] == "constant" and kinds["when"] == "date"
    assert told["design"]["models"][-1] == "dummy"


def test_all_candidates_are_those_of_the_registry_and_a_dummy() -> None:
    from groundstate.registry import models
    from groundstate.study.candidates import chosen_models, shortlist, takes_any_number

    for task, role in (("classification", "classifier"), ("regression", "regressor")):
        fitting = [row for row in models if row.role == role and row.rows == "table"]
        found = chosen_models("all", task)
        assert list(found)[-1] == "dummy"
        unasked = {row.name for row in fitting if row.auto and takes_any_number(row.obj)}
        assert set(found) == unasked | {"dummy"}
        assert list(chosen_models("auto", task)) == [*shortlist(task), "dummy"]


def test_auto_compares_one_of_each_kind(call: Any, tmp_path: Path) -> None:
    from groundstate.study.candidates import chosen_models

    quick = ("--test", "0.3", "--folds", 2, "--tune", 0, "--seeds", 0, "--bootstrap", 0)
    told = call("fit", "iris", "--json", "-o", tmp_path / "o", *quick).json
    expected = list(chosen_models("auto", "classification"))
    assert told["design"]["models"] == expected
    compared = {e["name"] for e in told["candidates"]["entries"]}
    late = set(expected) - compared  # a busy machine leaves dear ones out, and says so
    assert compared - {"ensemble"} <= set(expected)
    assert all(name in " ".join(told["skipped"]) for name in late)
    assert all(e["score"] is not None for e in told["candidates"]["entries"])
    assert told["chosen"] != "dummy" and "dummy" not in told["comparison"]["tied"]


def test_only_the_chosen_model_and_the_dummy_saw_the_test_rows(fitted: Path) -> None:
    told = json.loads((fitted / "report.json").read_text())
    seen = {e["name"] for e in told["candidates"]["entries"] if e["test_score"] is not None}
    assert seen == {told["chosen"], "dummy"}


def test_saved_model_gives_the_reported_test_score(fitted: Path, mixed: Path) -> None:
    from groundstate import data
    from groundstate.study import assess_tuned

    told = json.loads((fitted / "report.json").read_text())
    model = groundstate.load(fitted / "model.gs")
    assert isinstance(model, TablePredictor)
    table = data.read(mixed, target="bought")
    rest = table.take(assess_tuned(table, models="dummy", test=0.25).judged)
    accuracy = float(np.mean(model.predict(rest) == rest.y))
    assert accuracy == pytest.approx(told["scores"]["accuracy"]["value"], rel=1e-9)


def test_screen_ends_with_verdict_and_place(call: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call("fit", "iris", "-t", "target", "--out", out, "-m", "LogisticRegression", *QUICK)
    assert done.code == 0
    assert re.fullmatch(r"(\d+% [^\n]*\n)*", done.error)  # lines of a slow machine
    *_, last = done.out.splitlines()
    assert last == f"report: {out}/report.html"
    told = json.loads((out / "report.json").read_text())
    assert all(sentence in done.out for sentence in told["verdict"])
    assert told["verdict"][0].startswith("LogisticRegression predicts 'target' right in ")
    assert "\x1b" not in done.out  # no colours or progress in a pipe


def test_json_is_the_report_and_nothing_else(call: Any, tmp_path: Path) -> None:
    models = ("-m", "Ridge,KNeighborsRegressor")
    done = call(
        "fit", "diabetes", "--json", "--metric", "mae", "-o", tmp_path / "o", *models, *QUICK
    )
    told = done.json
    assert done.code == 0 and told["task"] == "regression"
    assert told["design"]["metric"] == "mae" and told["out"] == str(tmp_path / "o")
    stored = json.loads((tmp_path / "o" / "report.json").read_text())
    assert {**stored, "out": told["out"]} == told
    assert told["scores"]["mae"]["lo"] < told["baselines"]["dummy"]["mae"]["value"]


def test_a_second_run_replaces_the_first_and_keeps_notes(call: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("fit", "iris", "--out", out, "--model", "LinearSVC", *QUICK).code == 0
    (out / "notes.txt").write_text("mine")
    assert call("fit", "iris", "--out", out, "--model", "dummy", *QUICK).code == 3
    told = json.loads((out / "report.json").read_text())
    assert told["chosen"] == "dummy" and (out / "notes.txt").read_text() == "mine"
    assert told["verdict"][1].startswith("No model did better")
    assert [p for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_pure_noise_is_called_noise_and_leaves_with_3(call: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "noise.csv"
    rows = [f"{a:.3f},{b:.3f},{c}" for a, b, c in
            zip(rng.normal(size=120), rng.normal(size=120), rng.integers(0, 2, 120))]  # fmt: skip
    path.write_text("a,b,coin\n" + "\n".join(rows) + "\n")
    done = call("fit", path, "-t", "coin", "--json", "-m", MODELS, "-o", tmp_path / "o", *QUICK)
    told = done.json
    assert done.code == 3 and not told["baselines"]["better_than_dummy"]
    assert told["baselines"]["skill"]["lo"] <= 0
    assert "do not rely on it" in told["verdict"][1] or "do not help" in told["verdict"][1]


@pytest.mark.slow
def test_same_seed_same_bytes_in_another_process_with_two_workers(
    mixed: Path, fitted: Path, tmp_path: Path
) -> None:
    command = [
        GROUNDSTATE,
        "fit",
        mixed,
        "-t",
        "bought",
        "-m",
        MODELS,
        "-o",
        tmp_path / "o",
        *QUICK,
    ]
    done = outside(*command, "--workers", 2, PYTHONHASHSEED="7", OMP_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr
    assert all(re.match(r"\d+% ", line) for line in done.stderr.splitlines())  # how far it is
    for file in ("report.json", "report.html", "model.gs", "reproduce.py"):
        assert (tmp_path / "o" / file).read_bytes() == (fitted / file).read_bytes(), file


def test_another_seed_is_another_split(
    call: Any, mixed: Path, fitted: Path, tmp_path: Path
) -> None:
    command = ("fit", mixed, "-t", "bought", "-m", MODELS, "--json", "--ledger", "none", *QUICK)
    done = call(*command, "-o", tmp_path / "o", "--seed", 1)
    first = json.loads((fitted / "report.json").read_text())
    assert done.json["candidates"]["entries"] != first["candidates"]["entries"]


@pytest.mark.slow
def test_script_gives_the_same_numbers(fitted: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(fitted / "reproduce.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    again, told = json.loads(done.stdout), json.loads((fitted / "report.json").read_text())
    assert all(again[name] == told[name] for name in ("chosen", "candidates", "scores", "verdict"))


def test_report_json_holds_no_time_path_or_machine(fitted: Path, mixed: Path) -> None:
    text = (fitted / "report.json").read_text()
    assert str(mixed.parent) not in text and "second" not in text and "workers" not in text
    assert str(mixed) in (fitted / "reproduce.py").read_text()
    assert json.loads((fitted / "timing.json").read_text())["stages"]


def test_rows_on_both_sides_leave_with_4_when_strict(
    call: Any, mixed: Path, tmp_path: Path
) -> None:
    lines = mixed.read_text().splitlines()
    (tmp_path / "train.csv").write_text("\n".join(lines[:141]) + "\n")
    (tmp_path / "test.csv").write_text("\n".join([lines[0], *lines[101:]]) + "\n")
    options = ("-t", "bought", "-m", "GaussianNB", "--tune", 0, "--seeds", 0, "--bootstrap", 0)
    done = call(
        "assess", tmp_path / "train.csv", "--test", tmp_path / "test.csv", "--strict",
        "-o", tmp_path / "o", *options,
    )  # fmt: skip
    assert done.code == 4 and "40 test rows also stand among the training rows" in done.error
