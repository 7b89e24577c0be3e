"""Learn, Tune and the final model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_digits, load_iris, make_regression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import groundstate
from groundstate.errors import DataError, Unsupported
from groundstate.tune import Choice, Learn, Real, Space, Tune, Whole
from groundstate.tune.driver import open_study

IRIS = load_iris(return_X_y=True)


def ridge_rows(n: int = 80, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_regression(n, d, noise=20.0, random_state=0)
    return X, y


def values(search: Tune) -> list[float | None]:
    return [trial.value for trial in search.study_.trials]


def test_learn_is_a_function_of_rows_settings_and_seed() -> None:
    X, y = IRIS
    learn = Learn(groundstate.RandomForestClassifier(n_estimators=5))
    first = learn((X, y), {"min_samples_leaf": 3}, random_state=1)
    second = learn((X, y), {"min_samples_leaf": 3}, random_state=1)
    other = learn((X, y), {"min_samples_leaf": 3}, random_state=2)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert (first.predict_proba(X) != other.predict_proba(X)).any()
    told = first.provenance_
    assert told["params"] == {"min_samples_leaf": 3} and told["seed"] == 1
    assert told["seconds"] > 0 and told["rows"] == 150 and "numpy" in told["versions"]
    assert told["data"] == second.provenance_["data"]
    assert told["data"] != learn((X[1:], y[1:]), random_state=1).provenance_["data"]


def test_checkpoint_is_kept_by_validation_risk() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = X[:, 0] + 2.0 * rng.normal(size=120)  # nearly noise: boosting overfits at once
    model = groundstate.GradientBoostingRegressor(n_estimators=60, max_depth=4, random_state=0)
    kept = Learn(model, checkpoints=6)((X[:60], y[:60]), validation=(X[60:], y[60:]))
    full = Learn(model)((X[:60], y[:60]))
    assert kept.provenance_["steps"] < 60
    assert kept.score(X[60:], y[60:]) > full.score(X[60:], y[60:])
    assert kept.score(X[:60], y[:60]) < full.score(X[:60], y[:60])  # by training loss: the last


def test_checkpoints_need_a_warm_start() -> None:
    with pytest.raises(DataError, match="leave checkpoints at 0"):
        Learn(groundstate.SVC(), checkpoints=3)(IRIS, validation=(IRIS[0] + 1, IRIS[1]))


def test_same_winner_as_grid_search_on_the_same_folds() -> None:
    X, y = ridge_rows()
    alphas = [0.01, 0.1, 1.0, 10.0, 100.0]
    cv = KFold(5, shuffle=True, random_state=0)
    theirs = GridSearchCV(groundstate.Ridge(), {"alpha": alphas}, cv=cv).fit(X, y)
    ours = Tune(groundstate.Ridge(), {"alpha": alphas}, sampler="grid", cv=cv).fit(X, y)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-12)
    assert len(ours.study_.trials) == 5
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10)
    at = {row["alpha"]: i for i, row in enumerate(ours.cv_results_["params"])}
    for i, row in enumerate(theirs.cv_results_["params"]):
        for k in range(5):
            name = f"split{k}_test_score"
            mine = ours.cv_results_[name][at[row["alpha"]]]
            assert mine == pytest.approx(theirs.cv_results_[name][i], abs=1e-12)


def test_overlap_of_training_and_validation_rows_raises() -> None:
    X, y = ridge_rows()
    with pytest.raises(DataError, match="3 rows are both in the training and in the validation"):
        Tune(groundstate.Ridge(), n_trials=2).fit(X, y, validation=(X[:3], y[:3]))
    with pytest.raises(DataError, match="not both"):
        Tune(groundstate.Ridge(), cv=3).fit(X, y, validation=(X[:3] + 1, y[:3]))


def test_validation_rows_judge_and_refit_uses_all() -> None:
    X, y = ridge_rows()
    search = Tune(groundstate.Ridge(), n_trials=6).fit(X[:60], y[:60], validation=(X[60:], y[60:]))
    hold = clone(groundstate.Ridge(**search.best_params_)).fit(X[:60], y[:60])
    assert search.best_score_ == pytest.approx(hold.score(X[60:], y[60:]), abs=1e-9)
    whole = groundstate.Ridge(**search.best_params_).fit(X, y)
    np.testing.assert_allclose(search.best_estimator_.coef_, whole.coef_, rtol=1e-8)
    assert search.best_estimator_.provenance_["rows"] == 80
    assert search.best_estimator_.provenance_["data"] == Learn(whole)((X, y)).provenance_["data"]
    kept = Tune(groundstate.Ridge(), n_trials=6, refit=False)
    kept.fit(X, y, validation=np.arange(60, 80))
    assert kept.best_params_ == search.best_params_
    np.testing.assert_allclose(kept.best_estimator_.coef_, hold.coef_, rtol=1e-8)


@pytest.mark.slow
def test_same_trials_for_any_number_of_workers() -> None:
    X, y = IRIS
    space = {"max_depth": Whole(1, 6), "min_samples_leaf": Whole(1, 20)}
    model = groundstate.DecisionTreeClassifier(random_state=0)
    runs = [Tune(model, space, n_trials=18, cv=3, n_jobs=n, pruner="median") for n in (1, 2)]
    one, two = (run.fit(X, y) for run in runs)
    assert values(one) == values(two)
    assert [t.params for t in one.study_.trials] == [t.params for t in two.study_.trials]
    assert [t.state for t in one.study_.trials] == [t.state for t in two.study_.trials]


def test_killed_and_resumed_study_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    X, y = ridge_rows()
    options: dict[str, Any] = {"n_trials": 16, "cv": 3, "random_state": 3}
    whole = Tune(groundstate.Ridge(), **options).fit(X, y)
    path = tmp_path / "study.db"
    Tune(groundstate.Ridge(), storage=path, **{**options, "n_trials": 13}).fit(X, y)
    study = optuna.load_study(study_name="groundstate", storage=f"sqlite:///{path}")
    study.ask()  # a process that dies with a trial in hand
    resumed = Tune(groundstate.Ridge(), storage=path, **options).fit(X, y)
    done = [t for t in resumed.study_.trials if t.state == optuna.trial.TrialState.COMPLETE]
    assert len(done) == 16
    assert sorted(t.value for t in done) == sorted(v for v in values(whole) if v is not None)
    assert resumed.best_params_ == whole.best_params_
    again = Tune(groundstate.Ridge(), storage=path, **options).fit(X, y)  # nothing left to do
    assert len(again.study_.trials) == len(resumed.study_.trials)


@pytest.mark.slow
def test_processes_on_one_study_walk_the_path_of_one(tmp_path: Path) -> None:
    X, y = ridge_rows()
    options: dict[str, Any] = {"n_trials": 14, "cv": 2, "random_state": 3, "batch": 2}
    alone = Tune(groundstate.Ridge(), **options).fit(X, y)
    code = (
        "import sys, groundstate; from sklearn.datasets import make_regression\n"
        "from groundstate.tune import Tune\n"
        "X, y = make_regression(80, 20, noise=20.0, random_state=0)\n"
        f"Tune(groundstate.Ridge(), storage=sys.argv[1], shared=True, **{options!r}).fit(X, y)\n"
    )
    path = tmp_path / "study.db"
    open_study(path, "groundstate")  # creating the tables is Optuna's and no race of ours
    workers = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    study = optuna.load_study(study_name="groundstate", storage=f"sqlite:///{path}")
    found = [t.value for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    np.testing.assert_allclose(found, values(alone), rtol=1e-12)


class Fragile(RegressorMixin, BaseEstimator):
    """Fails for half of its settings."""

    def __init__(self, level: float = 0.0) -> None:
        self.level = level

    def fit(self, X: Any, y: Any) -> Fragile:
        if self.level > 0.5:
            raise RuntimeError("the level is too high")
        self.mean_ = float(np.mean(y)) + self.level
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


def test_failed_fits_are_recorded_not_fatal() -> None:
    X, y = ridge_rows()
    search = Tune(Fragile(), {"level": Real(0.0, 1.0)}, n_trials=20, cv=2).fit(X, y)
    state = search.cv_results_["state"]
    assert (state == "fail").any() and (state == "complete").any()
    notes = [note for note in search.cv_results_["error"] if note]
    assert notes[0] == "RuntimeError: the level is too high"
    assert search.best_params_["level"] < 0.5
    with pytest.raises(DataError, match="could be fitted; RuntimeError: the level is too high"):
        Tune(Fragile(), {"level": Real(0.6, 1.0)}, n_trials=3, cv=2).fit(X, y)


class Mistaken(Fragile):
    def fit(self, X: Any, y: Any) -> Mistaken:
        raise KeyError("level")


def test_a_mistake_in_a_program_ends_the_search() -> None:
    with pytest.raises(KeyError, match="level") as seen:
        Tune(Mistaken(), {"level": Real(0.0, 1.0)}, n_trials=2, cv=2).fit(*ridge_rows())
    assert "raised by Mistaken" in seen.value.__notes__[0]


def test_unknown_parameter_raises_before_any_fit() -> None:
    with pytest.raises(DataError, match="Ridge has no parameter 'alfa'; did you mean 'alpha'"):
        Tune(groundstate.Ridge(), {"alfa": Real(0.1, 1.0)}).fit(*ridge_rows())


def test_pipelines_ensembles_seeds_and_the_summary() -> None:
    X, y = IRIS
    model = make_pipeline(StandardScaler(), groundstate.DecisionTreeClassifier())
    space = Space({"decisiontreeclassifier__max_depth": Whole(1, 5)})
    search = Tune(
        model, space, n_trials=5, cv=3, seeds_per_trial=2, n_models=3, scoring="neg_log_loss"
    ).fit(X, y)
    assert len(search.best_estimator_.models_) == 3
    assert search.predict(X).shape == (150,) and search.predict_proba(X).shape == (150, 3)
    assert np.shape(search.study_.best_trial.user_attrs["risks"]) == (3, 2)
    assert len({p["seed"][0] for p in search.best_estimator_.provenance_}) == 3
    lines = search.summary_.splitlines()
    assert len(lines) == 2 and "too high" in lines[1]


def test_choices_may_be_objects() -> None:
    X, y = IRIS
    model = make_pipeline(StandardScaler(), groundstate.GaussianNB())
    steps = [groundstate.GaussianNB(), groundstate.LinearDiscriminantAnalysis()]
    search = Tune(model, {"gaussiannb": steps}, sampler="grid", cv=3).fit(X, y)
    assert search.best_params_["gaussiannb"] is steps[1]
    assert len(search.study_.trials) == 2


def test_conditional_space() -> None:
    X, y = IRIS

    def space(trial: Any) -> dict[str, Any]:
        kernel = trial.suggest_categorical("kernel", ["rbf", "poly"])
        found = {"kernel": kernel, "C": trial.suggest_float("C", 0.1, 10.0, log=True)}
        if kernel == "poly":
            found["degree"] = trial.suggest_int("degree", 2, 4)
        return found

    search = Tune(groundstate.SVC(), space, n_trials=14, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert any("degree" in row for row in search.cv_results_["params"])


def test_weight_two_is_the_row_twice() -> None:
    X, y = ridge_rows(40)
    weight = np.where(np.arange(40) % 3 == 0, 2, 1)
    twice = np.repeat(np.arange(40), weight)
    options: dict[str, Any] = {"n_trials": 12, "cv": 3, "scoring": "neg_mean_squared_error"}
    weighted = Tune(groundstate.Ridge(), **options).fit(X, y, sample_weight=weight)
    repeated = Tune(groundstate.Ridge(), **options).fit(X[twice], y[twice])
    np.testing.assert_allclose(values(weighted), values(repeated), rtol=1e-6)


def test_logistic_settings_and_folds_are_one_population() -> None:
    X, y = IRIS
    search = Tune(groundstate.LogisticRegression(tol=1e-8), n_trials=12, cv=3).fit(X, y)
    for row, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        assert 0.3 < score <= 1.0 and row["C"] > 0
    strong = groundstate.LogisticRegression(tol=1e-8, **search.best_params_).fit(X, y)
    np.testing.assert_allclose(search.predict_proba(X), strong.predict_proba(X), atol=1e-5)


def test_gradient_finds_what_a_fine_grid_finds() -> None:
    X, y = ridge_rows(60, 6)
    options: dict[str, Any] = {"cv": 3, "scoring": "neg_mean_squared_error"}
    fine = Tune(
        groundstate.Ridge(), {"alpha": list(np.geomspace(1e-2, 1e3, 30))}, sampler="grid",
        n_trials=30, **options,
    ).fit(X, y)  # fmt: skip
    space = {"alpha": Real(1e-2, 1e3, log=True)}
    slope = Tune(groundstate.Ridge(), space, sampler="gradient", n_trials=20, **options).fit(X, y)
    assert slope.best_score_ >= fine.best_score_ - 1e-4 * abs(fine.best_score_)
    assert len(slope.study_.trials) < 20
    with pytest.raises(Unsupported, match="take sampler='smbo'"):
        Tune(groundstate.SVC(), sampler="gradient").fit(*IRIS)


def test_gradient_for_logistic_regression() -> None:
    X, y = IRIS
    space = {"C": Real(1e-3, 1e3, log=True)}
    model = groundstate.LogisticRegression(tol=1e-9)
    found = Tune(model, space, sampler="gradient", n_trials=12, cv=3, scoring="neg_log_loss")
    grid = Tune(model, {"C": list(np.geomspace(1e-3, 1e3, 13))}, sampler="grid", cv=3,
                scoring="neg_log_loss").fit(X, y)  # fmt: skip
    assert found.fit(X, y).best_score_ >= grid.best_score_ - 1e-4


@pytest.mark.parametrize("sampler", ["random", "qmc", "tpe", "cem", "smbo"])
def test_samplers_by_name(sampler: str) -> None:
    X, y = ridge_rows()
    search = Tune(groundstate.Ridge(), sampler=sampler, n_trials=12, cv=2).fit(X, y)
    assert len(search.study_.trials) == 12
    best = np.minimum.accumulate([float(v) for v in values(search) if v is not None])
    assert (np.diff(best) <= 0).all() and search.best_score_ == -best[-1]


def test_unknown_names_say_what_there_is() -> None:
    X, y = ridge_rows()
    with pytest.raises(DataError, match="sampler is one of smbo, cem"):
        Tune(groundstate.Ridge(), sampler="bayes", n_trials=2).fit(X, y)
    with pytest.raises(DataError, match="pruner is None, one of median"):
        Tune(groundstate.Ridge(), pruner="fast", n_trials=2).fit(X, y)
    with pytest.raises(DataError, match="fidelity is None or 'rows'"):
        Tune(groundstate.Ridge(), fidelity="cols", n_trials=2).fit(X, y)
    with pytest.raises(DataError, match="has nothing to tune"):
        Tune(groundstate.ID3Classifier(), n_trials=2).fit(X, y)


def test_checkpoints_report_steps_and_refit_scales_them() -> None:
    X, y = ridge_rows()
    model = groundstate.GradientBoostingRegressor(n_estimators=40, random_state=0)
    space = {"learning_rate": Real(0.2, 0.9), "max_depth": Choice(2, 3)}
    search = Tune(model, space, n_trials=3, checkpoints=4).fit(X[:60], y[:60])
    best = search.study_.best_trial
    assert sorted(best.intermediate_values) == [10, 20, 30, 40]
    assert best.value == min(best.intermediate_values.values())
    kept = best.user_attrs["steps"]
    train = search.best_estimator_.provenance_["rows"] / (60 * 0.8)
    assert search.best_estimator_.n_estimators == round(kept * train)


def test_rows_double_and_pruning_saves_most_of_the_cost() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    space = {"C": Real(1e-3, 1e2, log=True), "gamma": Real(1e-5, 1e1, log=True)}
    options: dict[str, Any] = {"n_trials": 50, "sampler": "random", "rungs": 5}
    full = Tune(groundstate.SVC(), space, **options).fit(X, y)
    fast = Tune(groundstate.SVC(), space, fidelity="rows", pruner="halving", **options).fit(X, y)
    assert fast.cv_results_["rows"].sum() <= 0.4 * full.cv_results_["rows"].sum()
    error = np.sqrt(full.best_score_ * (1 - full.best_score_) / 120)
    assert fast.best_score_ >= full.best_score_ - max(error, 1e-9)
