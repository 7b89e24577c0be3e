"""`fit_many`: the fits one after the other, whatever program they are made by."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression as Peer
from sklearn.neighbors import KNeighborsClassifier as Weightless
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import groundstate as gs
from groundstate.data import read
from groundstate.errors import DataError, NotApplicable, ShapeError
from groundstate.evaluate.board import ranking
from groundstate.evaluate.board.ranking import rank
from groundstate.models.population import many
from groundstate.models.population.many import fit_together, has_program
from groundstate.models.tables.table import TablePredictor
from groundstate.models.traits import Traits

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 4)) * [1.0, 5.0, 0.2, 1.0] + 3.0
y = X[:, 0] + 0.3 * X[:, 1] + 0.2 * rng.normal(size=90)
labels = np.array(["a", "b"])[(y > np.median(y)).astype(int)]
FOLDS = np.ones((3, 90))
for f in range(3):
    FOLDS[f, f::3] = 0

TASKS = {"classification": labels, "regression": y}
PROGRAMS: dict[str, tuple[Any, str]] = {
    "ridge": (gs.Ridge(), "alpha"),
    "lasso": (gs.Lasso(), "alpha"),
    "elastic net": (gs.ElasticNet(), "alpha"),
    "kernel ridge": (gs.KernelRidge(kernel="rbf", gamma=0.1), "alpha"),
    "logistic": (gs.LogisticRegression(), "C"),
    "svc": (gs.SVC(gamma=0.1), "C"),
    "network": (
        gs.MLPRegressor(hidden_layer_sizes=(3,), max_iter=3, n_iter_no_change=np.inf),
        "alpha",
    ),
}


def answers(model: Any, rows: Any) -> Any:
    return getattr(model, "decision_function", model.predict)(rows)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", ["plain", "pipeline", "table"])
def test_folds_and_settings_are_single_fits(name: str, way: str) -> None:
    model, setting = PROGRAMS[name]
    target = labels if hasattr(model, "decision_function") else y
    rows: Any = X
    if way == "pipeline":
        model, setting = (
            make_pipeline(StandardScaler(), model),
            f"{model.__class__.__name__.lower()}__{setting}",
        )
    if way == "table":
        rows = read({f"c{j}": X[:, j] for j in range(4)})
        model, setting = TablePredictor(model), f"estimator__{setting}"
    seeds = {n: 0 for n in model.get_params() if n.endswith("random_state")}
    settings = [{setting: v, **seeds} for v in (0.1, 1.0, 10.0)]
    assert has_program(model)
    together = fit_together(model, rows, target, FOLDS, settings)
    many_of_them = gs.fit_many(model, rows, target, FOLDS, settings)
    for one, same, weight, changes in zip(together, many_of_them, FOLDS, settings, strict=True):
        at = np.flatnonzero(weight)
        alone = many._alone(model, rows, target, weight, changes)
        assert one.get_params()[setting] == changes[setting]
        assert np.array_equal(answers(one, rows), answers(same, rows))
        assert_allclose(answers(one, rows), answers(alone, rows), rtol=0, atol=1e-5)
        assert len(at) == 60


def test_weights_settings_and_what_they_must_agree_in() -> None:
    assert len(gs.fit_many(gs.Ridge(), X, y)) == 1
    assert [m.alpha for m in gs.fit_many(gs.Ridge(), X, y, np.ones(90), [{"alpha": 2.0}] * 3)] == [
        2.0
    ] * 3
    with pytest.raises(ShapeError, match=r"weights must be \(P, 90\) or \(90,\)"):
        gs.fit_many(gs.Ridge(), X, y, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="2 settings for 3 rows of weights"):
        gs.fit_many(gs.Ridge(), X, y, FOLDS, [{}, {}])


def test_models_without_a_program_are_fitted_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "groundstate.models.population.many")
    for model, theirs in zip(gs.fit_many(Peer(), X, y, 2 * FOLDS), FOLDS, strict=True):
        at = np.flatnonzero(theirs)
        assert_allclose(model.coef_, Peer().fit(X[at], y[at]).coef_)
    assert "LinearRegression declares no program" in caplog.text
    twice = gs.fit_many(Weightless(1), X, labels, 2 * FOLDS)
    assert twice[0].n_samples_fit_ == 120  # rows that count twice are there twice
    with pytest.raises(DataError, match="takes no sample_weight"):
        gs.fit_many(Weightless(1), X, labels, 0.5 * FOLDS)
    caplog.clear()
    one_class = np.where(labels == "a", 1.0, 0.0)
    found = gs.fit_many(gs.GaussianNB(), X, labels, np.stack([one_class, np.ones(90)]))
    assert [len(m.classes_) for m in found] == [1, 2]
    gs.fit_many(gs.Ridge(positive=True), X, y, FOLDS)
    assert "Ridge is fitted one by one: another solver" in caplog.text


def broken(*given: Any, **more: Any) -> Any:
    raise RuntimeError("a defect in the program")


class Broken(gs.Ridge):
    traits = Traits(program=broken)


class BrokenClassifier(gs.LogisticRegression):
    traits = Traits(program=broken)


def test_a_defect_of_a_program_is_seen_everywhere() -> None:
    from groundstate.evaluate import cross_validate, learning_curve, retrain
    from groundstate.evaluate.splits.pipeline_bootstrap import pipeline_bootstrap
    from groundstate.tune import Tune

    model = Broken()
    split = np.arange(60), np.arange(60, 90)
    calls = [
        lambda: gs.fit_many(model, X, y, FOLDS),
        lambda: cross_validate(model, X, y, cv=3),
        lambda: cross_validate(make_pipeline(StandardScaler(), model), X, y, cv=3),
        lambda: retrain(model.set_params(solver="auto"), X, y, split, 3),
        lambda: pipeline_bootstrap(model, X, y, 3),
        lambda: learning_curve(model, X, y, [30, 60], repeats=2),
        lambda: gs.BaggingRegressor(model, 3, random_state=0).fit(X, y),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="a defect in the program"):
            call()
    with pytest.raises(DataError, match="RuntimeError: a defect in the program"):
        Tune(model, n_trials=4, cv=3).fit(X, y)
    table = read({f"c{j}": X[:, j] for j in range(4)})
    found = rank({"broken": TablePredictor(BrokenClassifier()), "fine": TablePredictor(gs.GaussianNB())},
                 table, labels, task="classification", cv=3)  # fmt: skip
    assert found.board["broken"].notes == ("failed: RuntimeError: a defect in the program",)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_defect_inside_each_program_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from groundstate.models.kernels import ridge_members as kernel_ridge_members
    from groundstate.models.linear.least_squares import ridge_members
    from groundstate.models.linear.logistic import members as logistic_members
    from groundstate.models.linear.sparse import members as sparse_members
    from groundstate.models.networks import population
    from groundstate.models.svm import svc_members

    inside: dict[str, tuple[Any, str]] = {
        "ridge": (ridge_members, "_sums"),
        "lasso": (sparse_members, "solve_path"),
        "elastic net": (sparse_members, "solve_path"),
        "kernel ridge": (kernel_ridge_members, "ridge_folds"),
        "logistic": (logistic_members, "fold_paths"),
        "svc": (svc_members, "smo_path"),
        "network": (population, "fit_members"),
    }
    monkeypatch.setattr(*inside[name], broken)
    model, _ = PROGRAMS[name]
    target = labels if hasattr(model, "decision_function") else y
    with pytest.raises(RuntimeError, match="a defect in the program"):
        gs.fit_many(model, X, target, FOLDS)


def test_a_program_that_takes_no_such_case_says_why() -> None:
    with pytest.raises(NotApplicable, match="members cannot differ in solver"):
        fit_together(gs.Ridge(), X, y, None, [{"solver": "svd"}, {}])
    with pytest.raises(NotApplicable, match="its own fit refuses"):
        fit_together(gs.Ridge(), X, y, None, [{"alpha": -1.0}, {}])
    with pytest.raises(ValueError, match="alpha"):
        gs.fit_many(gs.Ridge(), X, y, settings=[{"alpha": -1.0}, {}])


def ranked(task: Any, n_jobs: int) -> Any:
    table = read({f"c{j}": X[:, j] for j in range(4)})
    kind = "classifier" if task == "classification" else "regressor"
    models = {
        name: TablePredictor(model)
        for name, (model, _) in PROGRAMS.items()
        if get_tags(model).estimator_type == kind
    }
    return rank(models, table, TASKS[task], task=task, cv=3, n_jobs=n_jobs, refit=False)


@pytest.mark.parametrize("task", TASKS)
def test_the_folds_of_every_family_are_one_program_on_the_main_road(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(*given: Any) -> Any:
        raise AssertionError("fitted one by one")

    monkeypatch.setattr(ranking, "_fold", alone)
    assert np.isfinite([entry.score for entry in ranked(task, 1).board.entries]).all()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_programs_give_the_same_for_any_number_of_workers(task: str) -> None:
    one, two = ranked(task, 1), ranked(task, 2)
    for name, said in one.predictions.items():
        assert np.array_equal(said.values, two.predictions[name].values), name
        if said.ranking is not None:
            assert np.array_equal(said.ranking, two.predictions[name].ranking), name


def test_sparse_softmax_folds_converge_and_are_single_fits() -> None:
    from sklearn.datasets import load_iris

    rows, species = load_iris(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    order = np.random.default_rng(0).permutation(150)
    folds = np.ones((5, 150))
    for f in range(5):
        folds[f, order[f::5]] = 0
    model = gs.LogisticRegression(l1_ratio=0.5, C=10.0)
    for one, weight in zip(fit_together(model, rows, species, folds, [{}] * 5), folds, strict=True):
        alone = gs.LogisticRegression(l1_ratio=0.5, C=10.0).fit(
            rows[weight > 0], species[weight > 0]
        )
        assert one.history_.converged and alone.history_.converged
        assert_allclose(one.predict_proba(rows), alone.predict_proba(rows), atol=1e-7)
