"""Folds, seeds and resamples of networks as one program equal the fits one after the other."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from groundstate.errors import NotApplicable
from groundstate.evaluate.intervals.retrain import retrain
from groundstate.evaluate.splits.cross_validate import cross_validate
from groundstate.evaluate.splits.pipeline_bootstrap import pipeline_bootstrap
from groundstate.evaluate.splits.population import fit_rows
from groundstate.models.networks import population
from groundstate.models.networks.mlp_classifier import MLPClassifier
from groundstate.models.networks.mlp_regressor import MLPRegressor

pytestmark = pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
Counted = list[int]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """How many members each call of the program had."""
    calls: Counted = []
    once = population.fit_members

    def spy(*given: Any) -> Any:
        calls.append(0)
        found = once(*given)
        calls[-1] = len(found)
        return found

    monkeypatch.setattr(population, "fit_members", spy)
    return calls


def refuse(*given: Any) -> Any:
    raise NotApplicable("each alone")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda: monkeypatch.setattr(population, "fit_members", refuse)


def case(name: str) -> tuple[Any, Any, Any]:
    if name == "values":
        X, y = load_diabetes(return_X_y=True)
        model: Any = MLPRegressor(hidden_layer_sizes=(8,), max_iter=5, random_state=0)
        return X * 20, (y - y.mean()) / y.std(), model
    X, y = (load_iris if name == "whole" else load_breast_cancer)(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    settings: dict[str, Any] = {"batch_size": 500} if name == "whole" else {"batch_size": 64}
    if name == "early":
        settings |= {"early_stopping": True, "max_iter": 30, "n_iter_no_change": 2, "tol": 1e-3}
    if name == "dropout":
        settings |= {"dropout": 0.3}
    model = MLPClassifier((8,), activation="tanh", **{"max_iter": 8, **settings})
    return X, y, make_pipeline(StandardScaler(), model) if name == "pipeline" else model


NAMES = ["values", "whole", "classes", "early", "dropout", "pipeline"]


@pytest.mark.parametrize("name", NAMES)
def test_folds(name: str, counted: Counted, alone: Any) -> None:
    X, y, model = case(name)
    scoring = None if name in ("values", "early") else "neg_log_loss"
    together = cross_validate(model, X, y, cv=4, scoring=scoring)
    assert counted == [4]
    alone()
    loop = cross_validate(model, X, y, cv=4, scoring=scoring)
    np.testing.assert_allclose(together.scores.values, loop.scores.values, rtol=0, atol=1e-5)
    assert together.predictions is not None and loop.predictions is not None
    np.testing.assert_allclose(together.predictions, loop.predictions, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_seeds(name: str, counted: Counted, alone: Any) -> None:
    X, y, model = case(name)
    split = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
    loss: Any = None if name == "values" else "log_loss"
    together = retrain(model, X, y, split, 3, loss=loss)
    assert counted == [3]
    alone()
    loop = retrain(model, X, y, split, 3, loss=loss)
    np.testing.assert_allclose(together.scores.values, loop.scores.values, rtol=1e-5)
    assert together.disagreement == pytest.approx(loop.disagreement, abs=1e-5)
    if name == "classes":
        again = retrain(model, X, y, split, 2, loss=loss, repeat_same_seed=1)
        assert again.hardware_sd == 0.0


@pytest.mark.parametrize("name", ["values", "whole", "classes", "pipeline"])
def test_resamples(name: str, counted: Counted, alone: Any) -> None:
    X, y, model = case(name)
    loss: Any = None if name == "values" else "log_loss"
    together = pipeline_bootstrap(model, X, y, 4, loss=loss)
    assert counted == [4]
    alone()
    loop = pipeline_bootstrap(model, X, y, 4, loss=loss)
    np.testing.assert_allclose(together.scores.values, loop.scores.values, rtol=1e-5)
    assert together.estimate == pytest.approx(loop.estimate, rel=1e-5)


def test_weights_of_rows(counted: Counted, alone: Any) -> None:
    X, y, model = case("classes")
    params = {"sample_weight": 1.0 + (np.arange(len(X)) % 3)}
    together = cross_validate(model, X, y, cv=3, scoring="neg_log_loss", params=params)
    assert counted == [3]
    alone()
    loop = cross_validate(model, X, y, cv=3, scoring="neg_log_loss", params=params)
    np.testing.assert_allclose(together.scores.values, loop.scores.values, rtol=0, atol=1e-5)


def test_a_choice_without_a_class_is_fitted_alone(counted: Counted) -> None:
    X, y, model = case("whole")
    rows = [np.arange(100), np.arange(150)]
    with pytest.raises(NotApplicable, match="lack a class"):
        fit_rows(model, X, y, rows)
    with pytest.raises(NotApplicable, match="one fit is no population"):
        fit_rows(model, X, y, [rows[1]])
    assert not counted
    found = fit_rows(model, X, y, [rows[1], rows[1][::2]])
    assert [m.n_iter_ for m in found] == [8, 8]


def test_ten_seeds_cost_less_than_a_fifth(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = MLPClassifier((16, 16), batch_size=32, max_iter=20, n_iter_no_change=100)
    split = np.arange(900), np.arange(900, 1000)
    once, spent = population.fit_members, {"together": np.inf, "one by one": np.inf}
    retrain(model, X, y, split, 2)  # compiles
    for _ in range(2):
        for who, fit, seeds in (("together", once, 10), ("one by one", refuse, 2)):
            monkeypatch.setattr(population, "fit_members", fit)
            start = time.process_time()
            retrain(model, X, y, split, seeds)
            spent[who] = min(spent[who], (time.process_time() - start) / seeds)
    assert 5 * spent["together"] < spent["one by one"], spent
