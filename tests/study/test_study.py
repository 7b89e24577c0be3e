"""The main job and its facts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from groundstate import data
from groundstate.errors import DataError, Unsupported
from groundstate.report import write
from groundstate.store import RunDir
from groundstate.study import assess_tuned, report_facts
from groundstate.study.assess import Assessment as Study
from groundstate.study.candidates import chosen_models
from groundstate.study.facts import confusion, energies, fingerprint


@pytest.fixture(scope="module")
def iris() -> Study:
    return assess_tuned(
        "iris",
        models="LogisticRegression,LinearSVC",
        random_state=1,
        test=0.25,
        seeds=2,
        bootstrap=4,
    )


@pytest.fixture(scope="module")
def diabetes() -> Study:
    return assess_tuned(
        "diabetes", models="Ridge,LinearRegression", design="holdout", seeds=2, bootstrap=4
    )


def test_copies_of_a_row_stay_on_one_side() -> None:
    table = data.load("iris")
    twice = table.take(np.repeat(np.arange(table.n_rows), 2))
    for design in ("holdout", "nested"):
        found = assess_tuned(twice, models="dummy", design=design, repeats=1)
        for train, test in found.design.sides:
            known = set(twice.features.take(train).frame.rows())
            assert not known & set(twice.features.take(test).frame.rows())


def test_choice_uses_training_rows_only() -> None:
    """Other labels on the test rows leave the ranking and the chosen model as they are."""
    table = data.load("diabetes")
    first = assess_tuned(
        table, models="Ridge,KNeighborsRegressor", test=0.2, seeds=0, bootstrap=0, tune=3
    )
    rest = first.judged
    y = table.y.astype(float).copy()
    y[rest] = y[rest][::-1] + 7
    other = data.read((table.features.frame, y), target="target")
    other = other.with_target("target")
    again = assess_tuned(
        other, models="Ridge,KNeighborsRegressor", test=0.2, seeds=0, bootstrap=0, tune=3
    )
    assert again.design.split[1].tolist() == rest.tolist()
    assert again.chosen == first.chosen and again.developed.params == first.developed.params
    assert [e.cv_scores for e in again.board] == [e.cv_scores for e in first.board]
    assert again.scores["r2"] != first.scores["r2"]


def test_test_rows_are_opened_once_and_every_look_is_logged(iris: Study) -> None:
    assert iris.ledger["log"] == ["report"] and iris.ledger["looks"] == 1
    nested = assess_tuned("iris", models="dummy", design="nested", folds=3, repeats=1)
    assert nested.ledger["log"] == ["outer fold 1", "outer fold 2", "outer fold 3"]


def test_preparation_never_saw_the_test_rows(iris: Study) -> None:
    train = iris.table.take(iris.design.split[0])
    state = iris.model.preparation_.to_state()["encoders"]["petal width (cm)"]
    assert state["mean"] == pytest.approx(train.frame["petal width (cm)"].mean())


def test_test_intervals_are_wilson_for_accuracy_and_bootstrap_for_the_rest(iris: Study) -> None:
    methods = {name: found.method for name, found in iris.scores.items()}
    assert methods.pop("accuracy") == "wilson"
    for name, method in methods.items():  # rows without a mistake leave nothing to resample
        perfect = iris.scores[name].estimate == 1
        assert method == ("wilson by class" if perfect else "bca")
    for found in iris.scores.values():
        assert found.low <= found.estimate <= found.high


def test_confusion_counts_every_test_row_once(iris: Study) -> None:
    cells = confusion(iris)
    assert cells.sum() == len(iris.truth)
    share = np.trace(cells) / cells.sum()
    assert share == pytest.approx(iris.scores["accuracy"].estimate)


def test_energy_gap_is_positive_where_the_answer_is_right(iris: Study) -> None:
    gap = energies(iris)
    assert gap is not None
    np.testing.assert_array_equal(gap > 0, iris.prediction.values == iris.truth)


def test_energy_of_regression_is_half_the_squared_error(diabetes: Study) -> None:
    found = energies(diabetes)
    assert found is not None
    error = diabetes.truth - diabetes.prediction.values
    np.testing.assert_allclose(found, error**2 / 2, rtol=1e-8)


def test_facts_are_plain_json_and_the_same_again(diabetes: Study) -> None:
    told = report_facts(diabetes)
    text = json.dumps(told, allow_nan=False)
    again = report_facts(
        assess_tuned(
            "diabetes", models="Ridge,LinearRegression", design="holdout", seeds=2, bootstrap=4,
            n_jobs=2,
        )
    )  # fmt: skip
    assert json.dumps(again, allow_nan=False) == text
    assert told["weights"][0]["weight"] >= told["weights"][-1]["weight"] > 0
    assert told["model"]["explanation"]["energy"]["name"] == "SquaredEnergy"


def test_weights_name_the_informative_column() -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=200), rng.normal(size=200)
    rows = {"noise": noise, "signal": 100 * x, "y": 3 * x + 0.1 * noise}
    found = assess_tuned(rows, "y", models="Ridge", design="holdout", seeds=0, bootstrap=0)
    told = report_facts(found)
    assert told["weights"][0]["column"] == "signal"


def test_fingerprint_follows_the_content() -> None:
    one = data.read({"a": [1, 2], "b": ["x", "y"]})
    other = data.read({"a": [1, 3], "b": ["x", "y"]})
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)


def test_stages_are_told_and_timed() -> None:
    said: list[str] = []
    found = assess_tuned("iris", models="dummy", repeats=1, progress=said.append)
    assert list(dict.fromkeys(said)) == list(found.seconds)
    assert "simple models to compare with" in said


def test_settings_are_checked_before_the_work() -> None:
    with pytest.raises(DataError, match="has no target to predict"):
        assess_tuned({"a": [1, 2, 3], "b": [1, 2, 4]})
    with pytest.raises(Unsupported, match="is one of values by a metric such as r2"):
        chosen_models("Ridge", "classification")
    with pytest.raises(Unsupported, match="name at least one model"):
        assess_tuned("iris", models=" , ")
    with pytest.raises(DataError, match="between 0 and 1, got 0"):
        assess_tuned("iris", test=0)


def test_target_with_missing_values_sets_rows_aside() -> None:
    rng = np.random.default_rng(1)
    y = np.where(np.arange(80) % 8 == 0, np.nan, rng.normal(size=80))
    found = assess_tuned(
        {"x": rng.normal(size=80), "y": y}, "y", models="Ridge", repeats=1, seeds=0, bootstrap=0
    )
    assert found.table.n_rows == 70
    assert "missing_target" in {finding.code for finding in found.findings}


def test_models_with_a_limit_leave_large_tables_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from groundstate.registry import ModelRow, Registry
    from groundstate.registry import models as registered
    from groundstate.study import candidates

    rows = Registry("model", ModelRow, None)
    shared = {"family": "linear", "task": "regression", "role": "regressor"}
    rows.register(**shared)(registered["Ridge"].obj)
    rows.register(max_rows=100, **shared)(registered["LinearRegression"].obj)
    monkeypatch.setattr(candidates, "registered", rows)
    found = {n: list(candidates.chosen_models("all", "regression", n_rows=n)) for n in (100, 101)}
    assert found == {100: ["LinearRegression", "Ridge", "dummy"], 101: ["Ridge", "dummy"]}
    by_name = candidates.chosen_models("LinearRegression", "regression", n_rows=101)
    assert list(by_name) == ["LinearRegression", "dummy"]


def test_auto_is_one_model_of_each_kind_and_large_tables_get_fewer() -> None:
    from groundstate.study.candidates import chosen_models

    small = list(chosen_models("auto", "classification", n_rows=20_000))
    large = list(chosen_models("auto", "classification", n_rows=20_001))
    huge = list(chosen_models("auto", "regression", n_rows=10**6))
    assert {"LogisticRegression", "HistGradientBoostingClassifier", "MLPClassifier"} < set(large)
    left_out = {"RandomForestClassifier", "ExtraTreesClassifier", "KNeighborsClassifier"}
    assert set(small) - set(large) == left_out
    assert all(
        hasattr(m, "predict_proba") for m in chosen_models("auto", "classification").values()
    )
    assert huge == ["Ridge", "HistGradientBoostingRegressor", "dummy"]


def test_a_model_of_another_library_is_assessed_and_its_file_left_out(tmp_path: Path) -> None:
    found = assess_tuned(
        "iris", models="sklearn.naive_bayes:GaussianNB", repeats=1, seeds=1, bootstrap=5
    )
    with RunDir(tmp_path / "out") as run:
        told = write(found, run, "iris")
    assert told["chosen"] == "GaussianNB" and told["scores"]["accuracy"]["value"] > 0.9
    assert any("GaussianNB is another library's model" in part for part in told["skipped"])
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"report.json", "reproduce.py"}
    assert not (tmp_path / "out" / "model.gs").exists()
