"""The whole assessment: designs, one look, baselines, same numbers for any number of workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from groundstate.data import load
from groundstate.errors import DataError
from groundstate.evaluate import Assessment, assess
from groundstate.evaluate.design import choose_design
from groundstate.evaluate.develop import Tuned

QUICK: Any = {"seeds": 0, "bootstrap": 0, "repeats": 1}


def blobs(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, "yes", "no")


def test_design_by_size() -> None:
    from groundstate.compute.random import Key

    for n, kind in ((1500, "nested"), (2100, "holdout")):
        X, y = blobs(n)
        found = choose_design(X, y, task="classification", key=Key.of(0))
        assert found.kind == kind
    X, y = blobs(2100)
    rare = np.where(np.arange(2100) % 100 == 0, "rare", y)  # 2 in the test part
    assert choose_design(X, rare, task="classification", key=Key.of(0)).kind == "nested"
    cut = choose_design(X, y, task="classification", key=Key.of(0))
    assert len(cut.split[1]) == pytest.approx(210, abs=2) and cut.validation is not None
    assert len(cut.validation) == pytest.approx(420, abs=2)


@pytest.fixture(scope="module")
def large() -> Assessment:
    return assess("LogisticRegression", *blobs(2100), **QUICK)


def test_large_tables_are_judged_once_on_a_tenth(large: Assessment) -> None:
    assert large.design.kind == "holdout" and large.ledger["log"] == ["report"]
    assert large.better_than_dummy and large.skill.low > 0
    assert large.bound is not None and large.bound["value"] > large.bound["risk"]
    assert set(large.baselines) == {"dummy", "stump", "linear"}


def test_interval_holds_the_score_that_sklearn_gives(large: Assessment) -> None:
    from sklearn.metrics import accuracy_score, log_loss

    rows = large.table.take(large.judged)
    value = accuracy_score(rows.y, large.model.predict(rows))
    found = large.scores["accuracy"]
    assert found.estimate == pytest.approx(value) and found.low <= value <= found.high
    value = log_loss(rows.y, large.model.predict_proba(rows))
    assert large.scores["log_loss"].estimate == pytest.approx(value)


def test_sets_for_single_rows_hold_the_truth(large: Assessment) -> None:
    assert large.calibration is not None
    cover = large.calibration["coverage"]
    assert cover["kind"] == "set" and cover["lo"] <= 0.9 <= cover["hi"] + 0.02


def test_small_tables_judge_every_row_by_others() -> None:
    found = assess("GaussianNB", "iris", seeds=0, bootstrap=0)
    assert found.design.kind == "nested" and len(found.truth) == 150
    assert found.design.repeats == 5 and len(found.design.sides) == 25
    for r in range(5):
        tested = np.concatenate([test for _, test in found.design.sides[5 * r : 5 * r + 5]])
        assert sorted(tested.tolist()) == list(range(150))
    assert found.scores["accuracy"].method.endswith("mean of 5 repeats")
    assert not any("repeats" in part for part in found.skipped)
    assert found.bound is not None and found.bound["value"] is None


@pytest.mark.slow
def test_same_seed_same_numbers_for_any_number_of_workers() -> None:
    one, two = (
        assess("GaussianNB,KNeighborsClassifier", "iris", n_jobs=n, **QUICK) for n in (1, 2)
    )
    assert one.scores == two.scores and one.board.to_json(times=False) == two.board.to_json(
        times=False
    )
    assert one.chosen_in_folds == two.chosen_in_folds


def test_settings_found_in_a_fold_come_from_its_training_rows() -> None:
    seen: list[int] = []

    def tuner(recipe: Any, X: Any, y: Any, *rest: Any) -> Tuned | str:
        seen.append(len(y))
        return Tuned({"estimator__alpha": 3.0}, 1e9, {}, [], {})

    found = assess("Ridge", "diabetes", tuner=tuner, folds=3, **QUICK)
    assert len(seen) == 4 and max(seen[:3]) < 442 == seen[3]
    assert found.developed.params == {"estimator__alpha": 3.0}
    assert found.model.estimator_.alpha == 3.0


def test_noise_is_not_better_than_the_dummy() -> None:
    rng = np.random.default_rng(1)
    found = assess("GaussianNB", rng.normal(size=(200, 3)), rng.integers(2, size=200), **QUICK)
    assert not found.better_than_dummy and found.skill.low <= 0


def test_groups_never_cross_and_weights_are_rows() -> None:
    X, y = blobs(120)
    group = np.repeat(np.arange(30), 4)
    found = assess("GaussianNB", X, y, groups=group, **QUICK)
    for train, test in found.design.sides:
        assert not set(group[train]) & set(group[test])


def test_the_latest_rows_judge() -> None:
    X, y = blobs(300)
    when = np.random.default_rng(0).permutation(300)
    found = assess("GaussianNB", X, y, time=when, **QUICK)
    train, test = found.design.split
    assert when[train].max() < when[test].min()


def test_a_pipeline_and_any_estimator_take_part() -> None:
    from sklearn.ensemble import RandomForestClassifier

    table = load("iris")
    found = assess(RandomForestClassifier(5), table, test=0.3, **QUICK)
    assert found.chosen == "RandomForestClassifier"
    named = assess("sklearn.naive_bayes:GaussianNB", table, test=0.3, **QUICK)
    assert named.chosen == "GaussianNB" and named.settings.spec.startswith("sklearn.")


def test_costs_move_the_threshold() -> None:
    X, y = blobs(200)
    found = assess("GaussianNB", X, y, positive="yes", cost_fp=1.0, cost_fn=9.0, **QUICK)
    assert found.decision is not None and found.decision["threshold"] == pytest.approx(0.1)
    assert found.decision["mean_cost"] <= found.decision["always_no"]


def test_budget_leaves_parts_out_and_says_so() -> None:
    found = assess("GaussianNB", "iris", test=0.3, budget=0.01)
    assert any("--bootstrap" in part for part in found.skipped)
    assert found.curve is None and found.variation is not None


def test_ledger_counts_other_models_not_the_same_one_again(tmp_path: Any) -> None:
    path = tmp_path / "looks.jsonl"
    first = assess("GaussianNB", "iris", test=0.3, ledger=path, **QUICK)
    again = assess("GaussianNB", "iris", test=0.3, ledger=path, **QUICK)
    other = assess("KNeighborsClassifier", "iris", test=0.3, ledger=path, **QUICK)
    assert [f.ledger["looks"] for f in (first, again, other)] == [1, 1, 2]
    wide, plain = other.ledger["simultaneous"], other.scores["accuracy"]
    assert wide["lo"] < plain.low and len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"design": "twice"}, "auto, holdout or nested"),
        ({"level": 2.0}, "between 0 and 1"),
        ({"budget": -1.0}, "positive number of seconds"),
        ({"positive": "maybe"}, "two classes"),
        ({"test": 1.5}, "between 0 and 1"),
        ({"groups": "petal"}, "petal"),
        ({"groups": [1, 2]}, "one per row"),
        ({"bootstrap": -1}, "0 or more"),
    ],
)
def test_bad_settings(changes: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        assess("GaussianNB", "iris", **{**QUICK, **changes})


def test_what_is_no_estimator_is_refused() -> None:
    with pytest.raises(DataError, match="not an estimator"):
        assess(object(), "iris")
    with pytest.raises(DataError, match="module:Class"):
        assess("no_such_module:Thing", "iris")
