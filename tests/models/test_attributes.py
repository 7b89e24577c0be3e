"""What the learned attributes say is what is predicted: written values count, or are refused."""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse
from tests.contracts.test_estimator import QUICK

import groundstate as gs
from groundstate.models.learned import Learned
from groundstate.models.rows.kinds import KINDS
from groundstate.registry import models

# names of scikit-learn that hold parameters: on no estimator are they a copy
PARAMETERS = ("coef_", "intercept_", "coefs_", "intercepts_", "means_", "cluster_centers_",
              "components_", "dual_coef_", "weights_", "theta_", "var_", "class_log_prior_",
              "feature_log_prob_", "precisions_cholesky_", "support_vectors_")  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "SVC": {"kernel": "linear"},
    "BayesianGaussianMixture": {"n_components": 3},
    "GaussianMixture": {"n_components": 3},
    "LocallyAdaptiveNormal": {"n_components": 2, "n_points": 9, "n_nodes": 36, "max_iter": 1},
    "MixtureModel": {"n_components": 3},
    "ObjectDetector": {"max_epochs": 1},
    "Segmenter": {"max_epochs": 2},
}

NORMALISED = ("class_log_prior_", "feature_log_prob_", "weights_", "priors_", "class_prior_")


def learned(cls: Any) -> list[str]:
    names = {n for base in cls.__mro__ for n, v in vars(base).items() if isinstance(v, Learned)}
    return sorted(names)


def table(row: Any, classes: int) -> tuple[Any, Any]:
    if row.rows != "table":
        X = KINDS[row.rows].example(60)
        target = row.obj()._example_target(X)
        if target is None and row.obj._takes_target:
            target = np.arange(60) % classes
        return X, target
    rng = np.random.default_rng(0)
    X = rng.uniform(0.2, 1.0, size=(60, 4))
    score = X @ np.array([1.0, -2.0, 0.5, 1.0]) + 0.1 * rng.normal(size=60)
    if row.name in ("CategoricalNB", "BernoulliRBM"):
        X = np.round(X)
    if row.role == "regressor":
        return X, 1.0 + np.exp(score)
    return X, np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def fitted(name: str, classes: int = 3) -> tuple[Any, Any]:
    row = models[name]
    X, y = table(row, classes)
    model = row.obj(**QUICK.get(name, {}) | SETTINGS.get(name, {}))
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y), X


def answers(model: Any, X: Any) -> list[Any]:
    asked = ("predict", "decision_function", "predict_proba", "transform", "score_samples",
             "mahalanobis")  # fmt: skip
    found = []
    for name in asked:
        if hasattr(model, name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = getattr(model, name)(X)
                if isinstance(value, list) and len({np.shape(v) for v in value}) > 1:
                    value = np.concatenate(value)  # of sequences, each of its own length
                found.append(np.array(value, dtype=float))
    if hasattr(model, "_flat_target"):
        found.append(np.array(model.energy(X, np.ones(len(X)))))
    if model.rows == "series":
        found.append(np.array(model.energy(X)))
    return found


def same(a: list[Any], b: list[Any]) -> bool:
    return all(np.array_equal(u, v, equal_nan=True) for u, v in zip(a, b, strict=True))


def changed(name: str, value: Any) -> Any:
    """Another value of the same kind: positive stays positive, logarithms stay below zero."""
    if isinstance(value, list):
        return [changed(name, v) for v in value]
    factor = np.linspace(0.4, 0.9, np.size(value) or 1).reshape(np.shape(value))
    return np.asarray(value) * factor + (0.0 if "_log_" in name or "cholesky" in name else 0.05)


LONG = ("LocallyAdaptiveNormal",)  # a shortest curve for every pair
CASES = [
    pytest.param(row.name, name, classes, marks=[pytest.mark.slow] * (row.name in LONG))
    for row in models
    for name in learned(row.obj)
    for classes in ((2, 3) if row.role == "classifier" else (3,))
]


@pytest.mark.parametrize(("model_name", "name", "classes"), CASES)
def test_assigned_values_count_or_are_refused(model_name: str, name: str, classes: int) -> None:
    model, X = fitted(model_name, classes)
    if not hasattr(model, name):
        return
    before, value = answers(model, X), changed(name, getattr(model, name))
    try:
        setattr(model, name, value)
    except (AttributeError, ValueError) as error:
        assert name.rstrip("_") in str(error)
        assert same(before, answers(model, X))
        return
    if name not in NORMALISED:
        mine = getattr(model, name)
        pairs = zip(mine, value, strict=True) if isinstance(value, list) else [(mine, value)]
        for one, given in pairs:
            np.testing.assert_allclose(one, given, rtol=1e-5)
    assert not same(before, answers(model, X))


@pytest.mark.parametrize(("model_name", "name", "classes"), CASES)
def test_values_written_in_place_count_or_are_refused(
    model_name: str, name: str, classes: int
) -> None:
    model, X = fitted(model_name, classes)
    value = getattr(model, name, 0.0)
    value = value[0] if isinstance(value, list) else value
    if np.ndim(value) == 0:
        return
    before = answers(model, X)
    try:
        value[...] = changed(name, value)
    except ValueError as error:
        assert name.rstrip("_") in str(error)
        assert same(before, answers(model, X))
        return
    assert not same(before, answers(model, X))


@pytest.mark.parametrize("name", models.names())
def test_no_parameter_is_kept_twice(name: str) -> None:
    model, _ = fitted(name)
    copies = [n for n in PARAMETERS if n in vars(model) and not issparse(vars(model)[n])]
    assert not copies


def test_zeros_written_to_a_linear_model() -> None:
    for name in ("LinearRegression", "Ridge", "LogisticRegression", "LinearSVC"):
        model, X = fitted(name, classes=2)
        model.coef_[:] = 0
        model.intercept_ = np.zeros_like(model.intercept_)
        found = (
            model.decision_function(X) if name[:2] == "Lo" or "SVC" in name else model.predict(X)
        )
        np.testing.assert_array_equal(found, 0.0)
        model.coef_ += 1.0
        model.coef_ *= 2.0
        np.testing.assert_allclose(np.asarray(model.coef_), 2.0)


def test_a_sparse_coef_is_written_through() -> None:
    model, X = fitted("LogisticRegression")
    dense = model.coef_.copy()
    before = model.predict_proba(X)
    model.sparsify()
    assert issparse(model.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.coef_ = model.coef_ * 0
    assert not same([before], [model.predict_proba(X)])
    model.coef_ = dense
    assert not issparse(model.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_an_array_of_the_wrong_shape_is_refused() -> None:
    model, _ = fitted("Ridge")
    with pytest.raises(ValueError, match=r"coef_ has shape \(4,\), got an array of \(3,\)"):
        model.coef_ = np.zeros(3)
    with pytest.raises(ValueError, match="without intercept_"):
        gs.Ridge(fit_intercept=False).fit(np.eye(3), np.arange(3.0)).intercept_ = 1.0
    mlp, _ = fitted("MLPRegressor")
    with pytest.raises(ValueError, match="coefs_ holds 2 arrays"):
        mlp.coefs_ = [np.zeros((4, 100))]


def test_an_array_put_in_the_place_of_a_layer_counts() -> None:
    model, X = fitted("MLPClassifier")
    before, weights = answers(model, X), model.coefs_
    weights[0] = np.zeros_like(weights[0])
    assert (model.coefs_[0] == 0).all() and (weights[0] == 0).all()
    assert not same(before, answers(model, X))
    weights[0][:] = 0.5
    assert (model.coefs_[0] == 0.5).all()
    with pytest.raises(ValueError, match="coefs_ holds 2 arrays"):
        weights[:] = weights[:1]
    with pytest.raises(ValueError, match=r"coefs_\[1\] has shape"):
        model.coefs_[1] = np.zeros(7)
    now = answers(model, X)
    own = deepcopy(weights)
    own[0] = np.ones_like(own[0])
    assert same(now, answers(model, X))
    tables, X = fitted("CategoricalNB")
    with pytest.raises(AttributeError, match="feature_log_prob_"):
        tables.feature_log_prob_[0] = np.zeros_like(tables.feature_log_prob_[0])


def test_copies_of_an_attribute_belong_to_their_owner() -> None:
    model, X = fitted("LinearSVC", classes=2)
    before = answers(model, X)
    own = model.coef_.copy()
    own[:] = 0
    assert same(before, answers(model, X))


def test_attributes_live_on_after_saving(tmp_path: Any) -> None:
    model, X = fitted("LogisticRegression", classes=2)
    model.coef_[:] = [[1.0, 2.0, 3.0, 4.0]]
    again = gs.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.coef_, [[1.0, 2.0, 3.0, 4.0]])
    again.coef_[:] = 0
    assert len(np.unique(again.predict_proba(X)[:, 1])) == 1
