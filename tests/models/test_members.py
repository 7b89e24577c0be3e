"""Folds and strengths fitted as one program are the fits one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from groundstate import (
    SVC,
    ElasticNet,
    KernelRidge,
    Lasso,
    LogisticRegression,
    Ridge,
    TablePredictor,
    data,
)
from groundstate.errors import NotApplicable, NotConverged
from groundstate.evaluate.splits.population import fit_rows
from groundstate.models.population.many import fit_many, fit_together


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, np.sin(X).sum(1) + 0.1 * rng.normal(size=120)


def refused(model: Any, X: Any, y: Any, weights: Any = None, settings: Any = ({},)) -> None:
    with pytest.raises(NotApplicable):
        fit_together(model, X, y, weights, list(settings))


def _agree(model: Any, X: Any, y: Any, settings: list[dict[str, Any]], rtol: float) -> None:
    folds = [train for train, _ in KFold(3).split(X)]
    rows = [train for train in folds for _ in settings]
    params = [one for _ in folds for one in settings]
    found = fit_rows(model, X, y, rows, params)
    for one, at, changes in zip(found, rows, params, strict=True):
        alone = type(model)(**{**model.get_params(), **changes}).fit(X[at], y[at])
        assert one.get_params() == alone.get_params()
        assert set(vars(one)) == set(vars(alone))
        assert_allclose(one.predict(X), alone.predict(X), rtol=rtol, atol=rtol * np.abs(y).max())


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize("strengths", [2, 12])
def test_kernel_ridge(table: tuple[Any, Any], kernel: str, strengths: int) -> None:
    settings = [{"alpha": float(a)} for a in np.logspace(-3, 3, strengths)]
    _agree(KernelRidge(kernel=kernel, gamma=0.2), *table, settings, 1e-8)


def test_kernel_ridge_of_several_kernels(table: tuple[Any, Any]) -> None:
    settings = [{"alpha": a, "gamma": g} for a in (0.1, 1.0) for g in (0.1, 1.0)]
    _agree(KernelRidge(kernel="rbf"), *table, settings, 1e-8)


def test_a_row_twice_is_a_weight_of_two(table: tuple[Any, Any]) -> None:
    X, y = table
    settings = [{"alpha": float(a)} for a in np.logspace(-2, 2, 6)]
    weights = np.ones((6, len(X)))
    weights[:, ::3] = 2.0
    model = KernelRidge(kernel="rbf", gamma=0.2)
    weighted = fit_together(model, X, y, weights, settings)
    twice = np.r_[np.arange(len(X)), np.arange(0, len(X), 3)]
    repeated = fit_together(model, X[twice], y[twice], None, settings)
    for one, other in zip(weighted, repeated, strict=True):
        assert_allclose(one.predict(X), other.predict(X), rtol=1e-8, atol=1e-8)


def test_settings_that_members_cannot_share_are_left_to_single_fits(
    table: tuple[Any, Any],
) -> None:
    X, y = table
    model = KernelRidge(kernel="rbf")
    refused(model, X, y, None, [{"alpha": -1.0}])
    refused(model, X, np.c_[y, y], None, [{}])
    refused(KernelRidge(kernel="precomputed"), X @ X.T, y, None, [{}])
    refused(KernelRidge(device="cpu"), X, y, None, [{}])


@pytest.mark.parametrize("intercept", [True, False])
def test_ridge(table: tuple[Any, Any], intercept: bool) -> None:
    X, y = table
    settings = [{"alpha": float(a)} for a in np.logspace(-6, 3, 7)]
    _agree(Ridge(fit_intercept=intercept), X * np.logspace(-4, 4, 4) + 1.0, y, settings, 1e-8)


def test_ridge_takes_weights_and_several_targets(table: tuple[Any, Any]) -> None:
    X, y = table
    Y = np.c_[y, X[:, 0]]
    rng = np.random.default_rng(1)
    for weights in (rng.integers(0, 3, (4, 120)), np.repeat(rng.integers(0, 3, (4, 3)) + 1, 40, 1)):
        found = fit_many(Ridge(), X, Y, weights)
        for one, w in zip(found, weights, strict=True):
            alone = Ridge().fit(X, Y, sample_weight=w)
            assert_allclose(one.coef_, alone.coef_, rtol=1e-9)
            assert_allclose(one.intercept_, alone.intercept_, rtol=1e-9)


def test_ridge_leaves_wide_tables_and_other_solvers_to_single_fits(table: tuple[Any, Any]) -> None:
    X, y = table
    refused(Ridge(), X[:4], y[:4], None, [{}])
    refused(Ridge(positive=True), X, y, None, [{}])
    refused(Ridge(), X, y, None, [{"alpha": 0.0}])


@pytest.mark.parametrize("model", [Lasso(tol=1e-11), ElasticNet(l1_ratio=0.3, tol=1e-11)])
@pytest.mark.parametrize("columns", [4, 150])
def test_lasso_and_elastic_net(table: tuple[Any, Any], model: Any, columns: int) -> None:
    X, y = table
    others = np.random.default_rng(2).normal(size=(len(X), columns - 4))
    settings = [{"alpha": float(a)} for a in np.logspace(-1, 0, 5)]
    _agree(model, np.c_[X, others] + 5.0, y, settings, 1e-5)


def test_lasso_takes_weights_targets_and_other_settings(table: tuple[Any, Any]) -> None:
    X, y = table
    Y = np.c_[y, X[:, 0]]
    weights = np.random.default_rng(1).integers(0, 3, (4, 120))
    params: list[dict[str, Any]] = [
        {"alpha": 0.1}, {"positive": True, "alpha": 0.1}, {"fit_intercept": False}, {"alpha": 0.02}
    ]  # fmt: skip
    found = fit_together(Lasso(tol=1e-12), X, Y, weights, params)
    for one, w, p in zip(found, weights, params, strict=True):
        alone = Lasso(tol=1e-12, **p).fit(X, Y, sample_weight=w)
        assert_allclose(one.coef_, alone.coef_, atol=1e-6)
        assert_allclose(one.intercept_, alone.intercept_, atol=1e-6)
        assert np.max(one.dual_gap_) <= 1e-12 * Y.var(0).max() * 2


def test_lasso_without_l1_is_left_to_single_fits(table: tuple[Any, Any]) -> None:
    refused(Lasso(), *table, None, [{"alpha": 0.0}])
    refused(ElasticNet(), *table, None, [{"l1_ratio": 0.0}])


def test_members_that_stop_early_say_so(table: tuple[Any, Any]) -> None:
    X, y = table
    slow = X @ np.ones((4, 4)) + 1e-3 * X
    with pytest.warns(NotConverged, match="2 of 2 fits did not reach"):
        fit_together(Lasso(max_iter=1, tol=1e-14), slow, y, None, [{"alpha": 1e-4}] * 2)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_logistic_regression(table: tuple[Any, Any], classes: int, ratio: float) -> None:
    X, y = table
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.8] if classes == 3 else [0.1])]
    model = LogisticRegression(tol=1e-7, l1_ratio=ratio)
    settings = [{"C": float(c), "random_state": i} for i, c in enumerate((3.0, 0.1, 0.01))]
    folds = [train for train, _ in KFold(3).split(X)]
    rows = [train for train in folds for _ in settings]
    params = [one for _ in folds for one in settings]
    found = fit_rows(model, X, labels, rows, params)
    for one, at, changes in zip(found, rows, params, strict=True):
        alone = LogisticRegression(**{**model.get_params(), **changes}).fit(X[at], labels[at])
        assert set(vars(one)) == set(vars(alone))
        assert one.classes_.tolist() == alone.classes_.tolist()
        assert_allclose(one.coef_, alone.coef_, atol=1e-5)
        assert_allclose(one.predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_logistic_members_that_need_a_fit_of_their_own(table: tuple[Any, Any]) -> None:
    X, y = table
    labels = (y > 0).astype(int)
    model = LogisticRegression()
    refused(model, X, labels, None, [{"C": np.inf}])
    refused(model, X, labels, labels[None] * 1.0, [{}])  # one class only
    refused(LogisticRegression(solver="sgd"), X, labels, None, [{}])
    refused(LogisticRegression(class_weight="balanced"), X, labels)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", [{}, {"gamma": 0.2}, {"kernel": "linear"}])
def test_svc(table: tuple[Any, Any], classes: int, kernel: dict[str, Any]) -> None:
    X, y = table
    labels = np.digitize(y, [-0.5, 0.8] if classes == 3 else [0.1])
    model = SVC(tol=1e-7, **kernel)
    settings = [{"C": c} for c in (3.0, 0.02, 0.3)]  # in any order
    folds = [train for train, _ in KFold(3).split(X)]
    rows = [train for train in folds for _ in settings]
    params = [one for _ in folds for one in settings]
    found = fit_rows(model, X, labels, rows, params)
    for one, at, changes in zip(found, rows, params, strict=True):
        alone = SVC(**{**model.get_params(), **changes}).fit(X[at], labels[at])
        assert set(vars(one)) == set(vars(alone)) and one.shape_fit_ == alone.shape_fit_
        assert one.support_.tolist() == alone.support_.tolist()
        assert_allclose(one.decision_function(X), alone.decision_function(X), atol=1e-5)
        assert_allclose(one.report().dual, alone.report().dual, rtol=1e-6)
        assert one.report().kkt.max() <= 1e-7


def test_svc_takes_weights_and_begins_where_the_last_ended(table: tuple[Any, Any]) -> None:
    X, y = table
    labels = (y > 0.1).astype(int)
    weights = np.random.default_rng(3).integers(0, 3, (1, 120)).repeat(8, 0)
    Cs = np.logspace(-1, 3, 8)
    model = SVC(kernel="linear", tol=1e-6)
    found = fit_together(model, X, labels, weights, [{"C": c} for c in Cs])
    steps = 0
    for one, C in zip(found, Cs, strict=True):
        alone = SVC(kernel="linear", tol=1e-6, C=C).fit(X, labels, sample_weight=weights[0])
        assert_allclose(one.coef_, alone.coef_, atol=1e-4)
        steps += alone.n_iter_
    assert 2 * sum(one.n_iter_ for one in found) < steps


def test_svc_members_that_need_a_fit_of_their_own(table: tuple[Any, Any]) -> None:
    X, y = table
    labels = (y > 0).astype(int)
    refused(SVC(), X, labels, None, [{"C": np.inf}])
    refused(SVC(kernel="precomputed"), X @ X.T, labels, None, [{}])
    refused(SVC(class_weight="balanced"), X, labels, None, [{}])
    with pytest.warns(NotConverged, match="1 of 1 machines"):
        fit_together(SVC(max_iter=2), X, labels, None, [{}])


def test_recipes_whose_columns_are_terms_of_a_text_are_fitted_alone() -> None:
    said = [
        f"{'good' if i % 2 else 'bad'} film number {i % 17} of this long week" for i in range(40)
    ]
    rows = data.read({"said": said, "x": np.arange(40.0), "y": np.arange(40.0)}, target="y")
    model = TablePredictor(Ridge(), schema=rows.schema)
    with pytest.raises(NotApplicable, match="sparse"):
        fit_together(model, rows.features, np.arange(40.0), np.ones((2, 40)), [{}, {}])
