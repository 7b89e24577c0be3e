"""``groundstate.study``: the command in Python, and the object it returns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import groundstate
from groundstate.cli.app import app
from groundstate.errors import DataError
from groundstate.studies import Study

QUICK: Any = {"tune": 0, "seeds": 0, "bootstrap": 0, "test": 0.3, "ledger": "none"}


@pytest.fixture(scope="module")
def found() -> Study:
    return groundstate.study("iris", model="LogisticRegression,GaussianNB", **QUICK)


def test_what_it_holds(found: Study) -> None:
    assert found.chosen in ("LogisticRegression", "GaussianNB")
    assert found.scores["accuracy"].low > 0.8 and found.better_than_dummy
    assert found.leaderboard.best.name == found.chosen and len(found.leaderboard) == 3
    assert isinstance(found.model, groundstate.TablePredictor)
    assert found.model.predict("iris").shape == (150,)
    assert found.verdict.split("\n") == found.facts["verdict"]


def test_it_prints_in_a_few_lines(found: Study) -> None:
    lines = repr(found).split("\n")
    assert lines[0] == "Study of iris: 150 rows, 5 columns, target 'target'"
    assert 6 <= len(lines) <= 12 and lines[1].split() == ["model", "brier", "held-out", "rows"]
    assert "<table>" in found._repr_html_() and len(repr(found.found)) < 400


def test_the_report_is_that_of_the_command(found: Study, tmp_path: Path) -> None:
    page = found.report(tmp_path / "python")
    assert page.name == "report.html" and page.stat().st_size > 10_000
    words = "fit iris -m LogisticRegression,GaussianNB --tune 0 --seeds 0 --bootstrap 0 --test 0.3"
    done = CliRunner().invoke(app, [*words.split(), "-o", str(tmp_path / "command")])
    assert done.exit_code == 0, done.stderr
    for name in ("report.json", "model.gs", "reproduce.py"):
        own, other = (tmp_path / kind / name for kind in ("python", "command"))
        assert own.read_bytes() == other.read_bytes(), name
    rows = np.asarray(groundstate.load(tmp_path / "python" / "model.gs").predict("iris"))
    assert np.array_equal(rows, found.model.predict("iris"))


def test_the_script_gives_the_numbers_again(found: Study, tmp_path: Path) -> None:
    found.report(tmp_path / "run", keep_model=False)
    assert not (tmp_path / "run" / "model.gs").exists()
    script = [sys.executable, str(tmp_path / "run" / "reproduce.py")]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert json.loads(done.stdout)["scores"] == found.facts["scores"]


def test_rows_from_memory_and_options_of_the_command() -> None:
    rng = np.random.default_rng(0)
    frame = {"a": rng.normal(size=90), "w": np.ones(90)}
    frame["y"] = 3 * frame["a"] + rng.normal(size=90)
    found = groundstate.study(
        frame, "y", model="Ridge", weights="w", budget="30s", seed=3, workers=1,
        **{**QUICK, "test": "0.3"},
    )  # fmt: skip
    assert found.facts["design"]["weights"] == "w" and found.scores["r2"].estimate > 0.8


def test_grades_are_values_where_the_metric_is_one_of_values() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    grades = np.clip(np.round(6 + x + 0.3 * rng.normal(size=120)), 3, 9).astype(int)
    frame = {"x": x, "grade": grades}
    labels = groundstate.study(frame, "grade", model="GaussianNB", **QUICK)
    values = groundstate.study(frame, "grade", model="Ridge", metric="rmse", **QUICK)
    assert (
        "accuracy" in labels.scores and "rmse" in values.scores and "accuracy" not in values.scores
    )
    assert values.scores["rmse"].estimate < 0.6
    assert any("read as values" in note for note in values.facts["data"]["notes"])
    with pytest.raises(DataError, match="metric for regression"):
        groundstate.study({**frame, "grade": grades > 6}, "grade", metric="rmse")


def test_without_a_target() -> None:
    found = groundstate.study("rings", "none", model="GaussianMixture")
    assert found.chosen == "GaussianMixture(8, diag)" and "8 groups" in found.verdict
    assert "no target" in repr(found)


def test_refused_as_by_the_command() -> None:
    with pytest.raises(DataError, match="60s, 2m or 1h"):
        groundstate.study("iris", budget="soon")
    with pytest.raises(TypeError, match="no option 'models'; did you mean 'model'"):
        groundstate.study("iris", models="Ridge")
    with pytest.raises(TypeError, match="no option 'zzz'; there are model, "):
        groundstate.study("iris", zzz=1)
    with pytest.raises(DataError, match="5 or more"):
        groundstate.study({"a": [1.0, 2.0], "b": ["x", "y"]}, "b")


def test_the_name_is_the_function_whatever_was_imported() -> None:
    code = "import groundstate.study.design, groundstate; print(groundstate.study.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "study\n", done.stderr


def test_a_folder_does_not_hide_a_built_in_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").mkdir()  # the output of an earlier ``fit iris --out iris``
    assert groundstate.study("iris", model="GaussianNB", **QUICK).facts["data"]["name"] == "iris"
    with pytest.raises(DataError, match="folder"):
        groundstate.data.read("./iris")
