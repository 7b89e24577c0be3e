"""A table without a target."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from groundstate import GaussianMixture, data
from groundstate.errors import DataError, Unsupported
from groundstate.models.tables.table import TablePredictor
from groundstate.report import write
from groundstate.store import RunDir
from groundstate.study import Survey, compare_densities, survey, survey_facts
from groundstate.study.densities import density_models


@pytest.fixture(scope="module")
def rings() -> Survey:
    return survey("rings", models="GaussianMixture")


def test_groups_of_a_ring_are_found(rings: Survey) -> None:
    assert rings.chosen == "GaussianMixture(8)" and rings.board.tied == ("GaussianMixture(8)",)
    assert rings.groups is not None
    truth = data.load("rings").y
    for group in range(8):  # each group is one of the eight clouds
        assert np.bincount(truth[rings.groups == group]).max() >= 98


def test_scores_are_minus_the_mean_log_density(rings: Survey) -> None:
    rest = rings.table.take(rings.split.test_rows)
    expected = -float(np.mean(rings.model.score_samples(rest)))
    assert rings.scores["mean_nll"].estimate == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(rings.energies, rings.model.energy(rings.table), rtol=1e-8)


def test_target_of_a_table_is_left_out() -> None:
    found = survey("iris", models="GaussianMixture")
    assert "target" not in found.table.columns and found.table.n_rows == 150


def test_an_odd_row_is_found() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 2))
    rows[37] = [9.0, -9.0]
    told = survey_facts(survey({"a": rows[:, 0], "b": rows[:, 1]}, models="ProbabilisticPCA"))
    assert told["outliers"][0]["row"] == 38 and "number 38" in told["verdict"][2]
    assert told["groups"] == [] and "not by groups" in told["verdict"][1]


def test_one_cloud_is_one_group() -> None:
    rng = np.random.default_rng(1)
    rows = {"a": rng.normal(size=150), "b": rng.normal(size=150)}
    told = survey_facts(survey(rows, models="GaussianMixture"))
    assert told["chosen"] == "GaussianMixture(1)" and "one group" in told["verdict"][1]


def test_candidates_fit_the_table() -> None:
    few = data.read(np.random.default_rng(0).normal(size=(12, 3)))
    assert list(density_models("auto", few)) == [
        "GaussianMixture(1)",
        "GaussianMixture(2)",
        "ProbabilisticPCA(1)",
        "ProbabilisticPCA(2)",
    ]
    with pytest.raises(Unsupported, match="KMeans is a clusterer without a density"):
        density_models("KMeans", few)
    with pytest.raises(Unsupported, match="did you mean 'GaussianMixture'"):
        density_models("GaussianMixtur", few)


def test_failures_become_notes_and_all_failing_is_an_error() -> None:
    rows = data.load("rings").features.head(60)
    sizes = {k: TablePredictor(GaussianMixture(int(k))) for k in ("1", "500")}
    board = compare_densities(sizes, rows)
    assert board.best.name == "1" and board["500"].notes[0].startswith("failed: ")
    with pytest.raises(DataError, match="no candidate could be fitted; failed: "):
        compare_densities({"500": sizes["500"]}, rows)


@pytest.mark.slow
def test_folder_page_and_script(rings: Survey, tmp_path: Path) -> None:
    with RunDir(tmp_path / "out") as run:
        told = write(rings, run, "rings")
    assert told == json.loads((tmp_path / "out" / "report.json").read_text())
    again = survey_facts(survey("rings", models="GaussianMixture"))
    assert json.dumps({**again, "pictures": told["pictures"]}) == json.dumps(told)
    text = (tmp_path / "out" / "report.html").read_text()
    assert not re.search(r"https?:|<script|<img", text) and "The least typical rows" in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    script = tmp_path / "out" / "reproduce.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    again = json.loads(done.stdout)
    assert all(again[name] == told[name] for name in ("chosen", "candidates", "scores"))
