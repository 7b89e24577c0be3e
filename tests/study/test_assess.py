"""The whole assessment: designs, one look, baselines, same numbers for any number of workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from groundstate import study
from groundstate.data import load
from groundstate.errors import DataError
from groundstate.study import report_facts
from groundstate.study.assess import Assessment, assess
from groundstate.study.design import choose_design
from groundstate.study.tuning import Search

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
    found = assess("GaussianNB", "iris", seeds=0, bootstrap=0, folds=2)
    assert found.design.kind == "nested" and len(found.truth) == 150
    assert found.design.repeats == 5 and len(found.design.sides) == 10
    for r in range(5):
        tested = np.concatenate([test for _, test in found.design.sides[2 * r : 2 * r + 2]])
        assert sorted(tested.tolist()) == list(range(150))
    assert found.ledger["log"][:3] == ["outer fold 1", "outer fold 2", "outer fold 1, repeat 2"]
    assert "mean of 5 repeats" in found.scores["accuracy"].method
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


def test_settings_are_taken_when_their_gain_is_sure() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    y = 2.0 * X[:, 0] + 2.0 * rng.normal(size=60)
    found = assess("Ridge", X, y, tuner=Search(8), folds=3, **QUICK)
    made = found.developed
    assert made.tuned is not None and len(made.tuned.trials) == 8
    assert made.params == made.tuned.params and found.model.estimator_.alpha > 1.0
    few = assess("Ridge", X[:, :1], y, tuner=Search(8), folds=3, **QUICK)
    assert not few.developed.params and "one standard error" in few.developed.untuned
    assert few.model.estimator_.alpha == 1.0


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
    assert found.scores["accuracy"].estimate > 0.8 and found.chosen == "GaussianNB"
    assert {"refits", "the learning curve"} <= set(found.unfinished)
    assert found.curve is None and found.variation is None


def test_ledger_counts_other_models_not_the_same_one_again(tmp_path: Any) -> None:
    path = tmp_path / "looks.jsonl"
    first = assess("GaussianNB", "iris", test=0.3, ledger=path, **QUICK)
    again = assess("GaussianNB", "iris", test=0.3, ledger=path, **QUICK)
    other = assess("KNeighborsClassifier", "iris", test=0.3, ledger=path, **QUICK)
    assert [f.ledger["looks"] for f in (first, again, other)] == [1, 1, 2]
    wide, plain = other.ledger["simultaneous"], other.scores["accuracy"]
    assert wide["lo"] < plain.low and len(path.read_text().splitlines()) == 3


def test_a_second_look_at_the_same_rows_from_memory_is_seen() -> None:
    X, y = blobs(120, seed=77)
    first = assess("GaussianNB", X, y, test=0.3, **QUICK)
    again = assess("GaussianNB", X, y, test=0.3, **QUICK)
    other = assess("LinearSVC", X, y, test=0.3, **QUICK)
    assert [f.ledger["looks"] for f in (first, again, other)] == [1, 1, 2]
    assert first.ledger["clean"] and not other.ledger["clean"]
    unseen = assess("LinearSVC", X, y, test=0.3, ledger=None, **QUICK)
    assert unseen.ledger["looks"] == 1 and not unseen.ledger["recorded"]


def test_looks_at_a_file_are_kept_beside_it(tmp_path: Any) -> None:
    X, y = blobs(120, seed=78)
    path = tmp_path / "rows.csv"
    lines = [f"{a},{b},{c},{label}" for (a, b, c), label in zip(X, y)]
    path.write_text("\n".join(["a,b,c,label", *lines]) + "\n")
    for name, looks in (("GaussianNB", 1), ("LinearSVC", 2)):
        found = assess(name, path, target="label", test=0.3, **QUICK)
        assert found.ledger["looks"] == looks
    assert len((tmp_path / "rows.csv.ledger.jsonl").read_text().splitlines()) == 2


def test_rows_of_a_class_that_training_lacks_are_wrong_and_nothing_more(tmp_path: Any) -> None:
    X, y = blobs(60, seed=79)
    path = tmp_path / "test.csv"
    pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "x2": X[:, 2],
                  "target": ["maybe", *y[1:]]}).write_csv(path)  # fmt: skip
    rows, labels = blobs(120, seed=80)
    found = assess("LogisticRegression", rows, labels, test=str(path), **QUICK)
    told = report_facts(found)
    assert told["classes"] == ["maybe", "no", "yes"] and 0 < told["energy"]["gap_positive"] < 1


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


def test_weights_are_rows_everywhere() -> None:
    """Every row twice, and every row of weight two, give the same assessment."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    options: Any = {"test": 0.25, "seeds": 1, "bootstrap": 4, "folds": 3}
    one = assess("Ridge", X, y, sample_weight=np.full(60, 2.0), **options)
    plain = assess("Ridge", X, y, **options)
    assert one.variation is not None and plain.variation is not None
    assert one.judged.tolist() == plain.judged.tolist()
    # the same model: weights of two are no other penalty than twice the rows
    twice = np.repeat(np.setdiff1d(np.arange(60), one.judged), 2)
    from groundstate import Ridge
    from groundstate.models.tables.table import TablePredictor

    again = TablePredictor(Ridge()).fit(one.table.take(twice))
    np.testing.assert_allclose(one.model.predict(one.table), again.predict(one.table), rtol=1e-9)
    # twice the rows judge: what chance does to the score is smaller by the root of two
    assert one.variation["test"] == pytest.approx(plain.variation["test"] / np.sqrt(2), rel=0.05)


def test_refits_and_curves_use_the_weights() -> None:
    """Rows of weight zero say nothing: neither to fits, nor to seeds, resamples or curves."""
    from sklearn.linear_model import LinearRegression

    from groundstate.evaluate import diagnose, learning_curve, pipeline_bootstrap, retrain
    from groundstate.evaluate.intervals.variation import variation_report

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1))
    wild = np.arange(120) % 3 == 0
    y = X[:, 0] + 0.1 * rng.normal(size=120) + np.where(wild, 50.0, 0.0)
    weight = np.where(wild, 0.0, 1.0)
    model, parts = LinearRegression(), (np.arange(80), np.arange(80, 120))
    risks = [
        retrain(model, X, y, parts, sample_weight=weight).scores.mean,
        pipeline_bootstrap(model, X, y, 5, sample_weight=weight).estimate,
        variation_report(model, X, y, 1, 3, split=parts, sample_weight=weight).scores.mean,
        float(learning_curve(model, X, y, repeats=2, sample_weight=weight).test[-1].mean()),
        diagnose(model, X, y, sample_weight=weight, try_remedies=False).test.estimate,
    ]
    assert max(risks) < 0.05


def test_fractional_weights_are_relative() -> None:
    from sklearn.linear_model import LinearRegression

    from groundstate.evaluate import pipeline_bootstrap

    X, _ = blobs(60)
    target = X[:, 0] * 2 + X[:, 1]
    rng = np.random.default_rng(1)
    weight = rng.random(60)
    one, two = (
        pipeline_bootstrap(LinearRegression(), X, target, 4, sample_weight=w)
        for w in (weight, weight / 1000)
    )
    np.testing.assert_allclose(one.scores.values, two.scores.values, rtol=1e-6, atol=1e-25)


def test_models_without_weights_get_whole_ones_as_rows() -> None:
    X, y = blobs(80)
    found = assess(
        "KNeighborsClassifier", X, y, sample_weight=1.0 + (np.arange(80) % 2), test=0.3, **QUICK
    )
    assert found.chosen == "KNeighborsClassifier" and not found.board[found.chosen].notes


def test_rows_on_both_sides_are_a_leak(tmp_path: Any) -> None:
    import polars as pl

    X, y = blobs(80)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    frame[50:].write_csv(tmp_path / "test.csv")
    options: Any = {"target": "y", "test": str(tmp_path / "test.csv"), **QUICK}
    clean = assess("GaussianNB", frame[:50], **options)
    assert not clean.leaks and clean.ledger["log"] == ["report"]
    leaky = assess("GaussianNB", frame[:60], **options)
    assert [f.code for f in leaky.leaks] == ["shared_rows"]
    assert leaky.findings[0].value == 10


def test_later_training_rows_groups_and_shift_are_found(tmp_path: Any) -> None:
    import polars as pl

    X, y = blobs(120)
    when = np.arange(120)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "who": when // 4, "when": when, "y": y})
    moved = frame[90:].with_columns(pl.col("b") + 9.0, pl.col("when") - 60)
    moved.write_csv(tmp_path / "test.csv")
    options: Any = {"target": "y", "test": str(tmp_path / "test.csv"), **QUICK}
    found = assess("GaussianNB", frame[:90], time="when", **options)
    codes = {f.code for f in found.findings}
    assert {"time_order", "shift", "extrapolation"} <= codes and found.leaks
    grouped = assess("GaussianNB", frame[:92], groups="who", **options)
    assert "shared_groups" in {f.code for f in grouped.leaks}


def test_folds_keep_equal_features_together_unless_they_are_usual() -> None:
    from groundstate.compute.random import Key

    X, y = blobs(100)
    X[50:60] = X[:10]
    y[50:60] = np.where(y[:10] == "yes", "no", "yes")  # copies that contradict
    made = choose_design(X, y, task="classification", kind="nested", key=Key.of(0))
    for train, test in made.sides:
        assert not {tuple(r) for r in X[train].tolist()} & {tuple(r) for r in X[test].tolist()}
    found = assess("GaussianNB", X, y, **QUICK)
    assert not found.leaks
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 2, size=(100, 3)).astype(float)
    usual = assess("GaussianNB", coarse, y, **QUICK)
    codes = {f.code for f in usual.findings}
    assert "repeated_rows" in codes and not usual.leaks


def test_budget_cuts_repeats_and_says_so() -> None:
    found = assess("GaussianNB", "iris", seeds=0, bootstrap=0, budget=0.01)
    assert found.design.repeats == 1 and len(found.design.sides) == 5
    assert any(part.startswith("repeats of the judging: 1 of 5") for part in found.skipped)
    assert any("learning curve" in part for part in found.skipped)


def test_slow_candidates_are_repeated_less_by_a_rule_without_a_clock() -> None:
    from groundstate.study.candidates import candidates_of
    from groundstate.study.design import Size, usual_repeats

    quick = candidates_of("LogisticRegression", "classification")
    assert usual_repeats(quick, Size(150), 5, 10) == 5
    assert usual_repeats(candidates_of("auto", "classification"), Size(3000), 5, 10) < 5


def test_a_constant_that_not_every_fold_chose_is_beside_itself_and_may_be_as_good() -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(60, 2))
    rows = {"a": X[:, 0], "b": X[:, 1], "y": 0.25 * X[:, 0] + rng.normal(size=60)}
    found = study(rows, "y", model="Ridge", quick=True, ledger=None).found
    assert found.chosen == "dummy" and len(found.chosen_in_folds) == 2
    recipe, constant = found.scores["r2"], found.baselines["dummy"]["r2"]
    assert recipe.estimate < -0.1 < constant.estimate < 0.02
    assert recipe.low < 0 < recipe.high  # what the constant explains on rows to come
    assert "folds" in recipe.method and "folds" not in constant.method
    assert found.skill.estimate < 0
