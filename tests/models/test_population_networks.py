"""Folds and grids of networks fitted at once equal the fits one after the other."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from groundstate.errors import ShapeError
from groundstate.models.linear.ridge import Ridge
from groundstate.models.networks.mlp_classifier import MLPClassifier
from groundstate.models.networks.mlp_regressor import MLPRegressor
from groundstate.models.networks.population import population_folds

PARAMS = [
    {"alpha": 1e-4, "learning_rate_init": 1e-3, "random_state": 0},
    {"alpha": 1.0, "learning_rate_init": 1e-2, "random_state": 1},
    {"alpha": 0.0, "learning_rate_init": 3e-3, "random_state": 2, "hidden_layer_sizes": (5,)},
]


def case(name: str) -> tuple[Any, Any, Any]:
    if name == "values":
        X, y = load_diabetes(return_X_y=True)
        y = (y - y.mean()) / y.std()
        return X * 20, y, MLPRegressor(solver="sgd", hidden_layer_sizes=(6,), max_iter=6)
    load = load_iris if name == "classes" else load_breast_cancer
    X, y = load(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    return X, y, MLPClassifier((6,), max_iter=6, activation="tanh", batch_size=50)


def folds(n: int) -> np.ndarray[Any, Any]:
    weights = np.ones((3, n))
    for f in range(3):
        weights[f, f::3] = 0
    return weights


@pytest.mark.parametrize("name", ["classes", "two classes", "values"])
def test_members_equal_single_fits(name: str) -> None:
    X, y, base = case(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few epochs
        models = base._fit_population(X, y, folds(len(X)), PARAMS)
        assert models is not None
        for model, weight, params in zip(models, folds(len(X)), PARAMS, strict=True):
            alone = base.__class__(**{**base.get_params(), **params}).fit(
                X, y, sample_weight=weight
            )
            for a, b in zip(model.coefs_, alone.coefs_, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
            np.testing.assert_allclose(model.loss_curve_, alone.loss_curve_, rtol=1e-9)
            assert (model.n_iter_, model.t_) == (alone.n_iter_, alone.t_)
            assert model.score(X, y) == pytest.approx(alone.score(X, y), abs=1e-9)


def test_each_rests_by_itself() -> None:
    X, y, base = case("classes")
    base.set_params(max_iter=400, n_iter_no_change=2, tol=1e-3)
    params = [{"learning_rate_init": v, "random_state": 0} for v in (0.3, 0.01)]
    models = base._fit_population(X, y, None, params)
    alone = [base.__class__(**{**base.get_params(), **p}).fit(X, y) for p in params]
    assert models is not None
    assert [m.n_iter_ for m in models] == [m.n_iter_ for m in alone]
    assert models[0].n_iter_ != models[1].n_iter_ < 400


def test_what_cannot_go_side_by_side_goes_one_after_the_other() -> None:
    X, y, base = case("classes")
    base.set_params(solver="lbfgs", random_state=0, max_iter=200)
    assert base._fit_population(X, y) is None
    (model,) = population_folds(base, X, y)
    assert model.score(X, y) > 0.9
    ridges = population_folds(Ridge(), X, y, params=[{"alpha": 1.0}, {"alpha": 1e6}])
    assert abs(ridges[0].coef_).max() > 100 * abs(ridges[1].coef_).max()
    with pytest.raises(ShapeError, match=r"weights must be \(P, 150\) or \(150,\)"):
        population_folds(base, X, y, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="2 settings for 3 rows of weights"):
        population_folds(base, X, y, folds(150), [{}, {}])


@pytest.mark.parametrize("bagged", [False, True])
def test_committees_of_networks_are_one_program(
    bagged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundstate import BaggingClassifier, SeedEnsembleClassifier

    X, y, base = case("two classes")
    base.set_params(n_iter_no_change=np.inf)
    kind = BaggingClassifier if bagged else SeedEnsembleClassifier
    counted: list[int] = []
    once = MLPClassifier._fit_population

    def spy(self: Any, X: Any, y: Any, weights: Any, params: Any) -> Any:
        counted.append(len(params))
        return once(self, X, y, weights, params)

    monkeypatch.setattr(MLPClassifier, "_fit_population", spy)
    together = kind(base, 4, random_state=0).fit(X, y)
    assert counted == [4]
    monkeypatch.setattr(MLPClassifier, "_fit_population", lambda *a: None)
    alone = kind(base, 4, random_state=0).fit(X, y)
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), rtol=0, atol=1e-9)
