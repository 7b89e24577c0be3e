"""``predict``, ``infer`` and ``sample`` on a saved model."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris

import groundstate
from groundstate import data

QUICK = ("--test", "0.25", "--tune", "0", "--seeds", "0", "--bootstrap", "0")


def frame(text: str) -> pl.DataFrame:
    return pl.read_csv(io.StringIO(text))


def test_predict_prints_a_column_named_like_the_target(
    call: Any, fitted: Path, mixed: Path
) -> None:
    done = call("predict", fitted / "model.gs", mixed)
    assert done.code == 0
    said = frame(done.out)
    model = groundstate.load(fitted / "model.gs")
    assert said.columns == ["bought"] and said.height == 180
    assert said["bought"].to_list() == model.predict(data.read(mixed)).tolist()


def test_rows_without_a_target_and_unseen_labels_are_predicted(
    call: Any, fitted: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.csv"
    new.write_text("noise,colour,when,age\n0.1,violet,2021-03-01,62\n0.2,red,2030-01-01,\n")
    done = call("predict", fitted / "model.gs", new)
    assert done.code == 0, done.error
    assert frame(done.out).height == 2


def test_rows_whose_target_is_empty_are_predicted_too(
    call: Any, fitted: Path, mixed: Path, tmp_path: Path
) -> None:
    lines = mixed.read_text().splitlines()
    new = tmp_path / "new.csv"
    new.write_text("\n".join([lines[0], *(line.rsplit(",", 1)[0] + "," for line in lines[1:9])]))
    assert frame(call("predict", fitted / "model.gs", new).out).height == 8


def test_missing_column_is_named(call: Any, fitted: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("colour,when,aeg\nred,2021-01-01,3\n")
    done = call("predict", fitted / "model.gs", new)
    assert done.code == 2 and "lacks the columns 'age', 'noise'" in done.error


def test_probabilities_sum_to_one_and_go_with_the_labels(call: Any, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    path = groundstate.LogisticRegression().fit(X, y).save(tmp_path / "m.gs")
    done = call("predict", path, "iris", "--proba", "--json")
    rows = done.json
    assert list(rows[0]) == ["y", "p(0)", "p(1)", "p(2)"]
    table = np.array([[row[f"p({k})"] for k in range(3)] for row in rows])
    np.testing.assert_allclose(table.sum(1), 1)
    assert table.argmax(1).tolist() == [row["y"] for row in rows]


def test_no_probabilities_is_said(call: Any, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    path = groundstate.LinearSVC().fit(X, y).save(tmp_path / "m.gs")
    done = call("predict", path, "iris", "--proba")
    assert done.code == 2 and "LinearSVC gives no probabilities" in done.error


def test_a_bare_estimator_needs_its_columns(call: Any, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    path = groundstate.LogisticRegression().fit(X, y).save(tmp_path / "m.gs")
    done = call("predict", path, "wine")
    assert done.code == 2 and "fitted on 4 columns and 'wine' has 13" in done.error


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_answers_go_to_files(
    suffix: str, call: Any, fitted: Path, mixed: Path, tmp_path: Path
) -> None:
    out = tmp_path / f"p{suffix}"
    done = call("predict", fitted / "model.gs", mixed, "--out", out)
    assert done.code == 0 and done.out == f"180 rows written to {out}\n"
    assert data.read(out).n_rows == 180


def test_other_formats_are_refused(call: Any, fitted: Path, mixed: Path, tmp_path: Path) -> None:
    done = call("predict", fitted / "model.gs", mixed, "--out", tmp_path / "p.xlsx")
    assert done.code == 2 and ".csv, .jsonl or .parquet" in done.error


def test_infer_minimum_is_the_prediction(call: Any, fitted: Path, mixed: Path) -> None:
    best = call("infer", fitted / "model.gs", mixed, "--free", "bought")
    by_letter = call("infer", fitted / "model.gs", mixed, "--free", "y", "--mode", "min")
    assert best.code == 0 and best.out == by_letter.out
    assert best.out == call("predict", fitted / "model.gs", mixed).out


def test_infer_marginal_is_the_free_energy(call: Any, fitted: Path, mixed: Path) -> None:
    done = call("infer", fitted / "model.gs", mixed, "--free", "y", "--mode", "marginal", "--json")
    model = groundstate.load(fitted / "model.gs")
    found = [row["free_energy"] for row in done.json]
    np.testing.assert_allclose(found, model.energy(data.read(mixed)))


def test_infer_samples_by_seed(call: Any, fitted: Path, mixed: Path) -> None:
    def draws(*options: object) -> str:
        command = ("infer", fitted / "model.gs", mixed, "--free", "y", "--mode", "sample")
        done = call(*command, "-n", 3, *options)
        assert done.code == 0, done.error
        return str(done.out)

    one, again, other = draws(), draws(), draws("--seed", 1)
    assert one == again and one != other
    said = frame(one)
    assert said.columns == [f"bought draw {i}" for i in (1, 2, 3)]
    assert set(said.to_series(0).to_list()) <= {"yes", "no"}


def test_infer_teaches_what_can_be_asked(call: Any, fitted: Path, mixed: Path) -> None:
    model = fitted / "model.gs"
    cases = {
        ("--free", "z"): "is no variable of",
        ("--free", "x"): "has no distribution of the rows",
        ("--free", "y", "--mode", "best"): "--mode is min, marginal or sample, got 'best'",
        ("--free", "y", "-T", "0"): "positive number",
    }
    for options, words in cases.items():
        done = call("infer", model, mixed, *options)
        assert done.code == 2 and words in done.error and done.error.count("\n") == 1
    assert call("infer", model, mixed).code == 2


def test_dummy_has_no_energy(call: Any, tmp_path: Path) -> None:
    out = tmp_path / "o"
    assert call("fit", "iris", "-m", "dummy", "-o", out, *QUICK).code == 3
    done = call("infer", out / "model.gs", "iris", "--free", "y")
    assert done.code == 2 and "DummyClassifier has no energy" in done.error


def test_sample_needs_a_distribution_of_the_rows(call: Any, fitted: Path) -> None:
    done = call("sample", fitted / "model.gs")
    assert done.code == 2 and "no row can be drawn from it" in done.error
    assert json.loads((fitted / "report.json").read_text())["chosen"] in done.error


def test_a_folder_that_fit_wrote_is_its_model(call: Any, mixed: Path, fitted: Path) -> None:
    for command in (("predict",), ("score",)):
        named, whole = (call(*command, at, mixed, "--json") for at in (fitted / "model.gs", fitted))
        assert named.code == whole.code == 0 and named.json == whole.json
    twice = call("compare", fitted, fitted / "model.gs", mixed)
    assert twice.code == 2 and "two different models" in twice.error
    nothing = call("predict", mixed.parent, mixed)
    assert nothing.code == 2 and "is not a file" in nothing.error


@pytest.fixture(scope="module")
def density(call: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a distribution of rows and labels."""
    out = tmp_path_factory.mktemp("density") / "out"
    assert call("fit", "iris", "-m", "GaussianNB", "-o", out, *QUICK).code == 0
    return out / "model.gs"


def test_sample_gives_rows_of_the_table(call: Any, density: Path) -> None:
    done = call("sample", density, "-n", 200, "--seed", 3)
    rows, iris = frame(done.out), data.load("iris").frame
    assert done.code == 0 and rows.columns == iris.columns and rows.height == 200
    again, other = call("sample", density, "-n", 200, "--seed", 3), call("sample", density)
    assert again.out == done.out and other.out != done.out and frame(other.out).height == 10
    for name in iris.columns[:-1]:
        assert abs(rows[name].mean() - iris[name].mean()) < 0.5 * iris[name].std()
    mean = rows.group_by("target").agg(pl.col("petal length (cm)").mean()).sort("target")
    assert mean["petal length (cm)"].is_sorted()  # setosa, versicolor, virginica


def test_inferred_x_is_like_its_label(call: Any, density: Path) -> None:
    done = call("infer", density, "iris", "--free", "x", "--mode", "sample")
    rows = frame(done.out)
    assert done.code == 0 and rows.columns == list(data.load("iris").features.columns)
    model = groundstate.load(density)
    assert np.mean(model.predict(rows) == data.load("iris").y) > 0.9


@pytest.mark.parametrize("mode", ["min", "sample"])
def test_inferred_x_keeps_the_cells_that_are_there(
    call: Any, density: Path, tmp_path: Path, mode: str
) -> None:
    iris = data.load("iris").frame
    name = "petal length (cm)"
    holes = pl.when(pl.int_range(pl.len()) % 2 == 0).then(None).otherwise(pl.col(name)).alias(name)
    iris.with_columns(holes).write_csv(tmp_path / "holes.csv")
    done = call("infer", density, tmp_path / "holes.csv", "--free", "x", "--mode", mode)
    rows = frame(done.out)
    assert done.code == 0 and rows.height == 150, done.error
    for column in rows.columns:
        own = np.asarray(iris[column]), np.asarray(rows[column])
        known = np.arange(150) % 2 == 1 if column == name else np.ones(150, bool)
        assert np.array_equal(own[0][known], own[1][known])
    filled, truth = np.asarray(rows[name])[::2], np.asarray(iris[name])[::2]
    assert np.corrcoef(filled, truth)[0, 1] > 0.9


def test_bits_do_not_become_columns(call: Any, tmp_path: Path) -> None:
    out = tmp_path / "o"
    assert call("fit", "iris", "-m", "BernoulliNB", "-o", out, *QUICK).code == 0
    done = call("sample", out / "model.gs")
    assert done.code == 2 and "BernoulliNB draws Binary(4)" in done.error


def test_without_a_target_groups_rows_and_draws(call: Any, tmp_path: Path) -> None:
    out = tmp_path / "o"
    done = call("fit", "rings", "-t", "none", "-m", "GaussianMixture", "-o", out)
    assert done.code == 0 and "It sees 8 groups" in done.out
    model = out / "model.gs"
    groups = frame(call("predict", model, "rings").out)
    assert groups.columns == ["group"] and groups["group"].n_unique() == 8
    assert frame(call("sample", model, "-n", 5).out).columns == ["x0", "x1"]
    density = frame(call("infer", model, "rings", "--free", "z", "--mode", "marginal").out)
    assert density.height == 800
    centre = call("infer", model, "rings", "--free", "x")
    assert centre.code == 0 and frame(centre.out).columns == ["x0", "x1"], centre.error
