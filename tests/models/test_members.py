"""Folds and strengths fitted as one program are the fits one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from groundstate import KernelRidge, Ridge
from groundstate.evaluate.together import fit_together


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, np.sin(X).sum(1) + 0.1 * rng.normal(size=120)


def _agree(model: Any, X: Any, y: Any, settings: list[dict[str, Any]], rtol: float) -> None:
    folds = [train for train, _ in KFold(3).split(X)]
    rows = [train for train in folds for _ in settings]
    params = [one for _ in folds for one in settings]
    found = fit_together(model, X, y, rows, params)
    assert found is not None
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
    weighted = model._fit_population(X, y, weights, settings)
    twice = np.r_[np.arange(len(X)), np.arange(0, len(X), 3)]
    repeated = model._fit_population(X[twice], y[twice], None, settings)
    assert weighted is not None and repeated is not None
    for one, other in zip(weighted, repeated, strict=True):
        assert_allclose(one.predict(X), other.predict(X), rtol=1e-8, atol=1e-8)


def test_settings_that_members_cannot_share_are_left_to_single_fits(
    table: tuple[Any, Any],
) -> None:
    X, y = table
    model = KernelRidge(kernel="rbf")
    assert model._fit_population(X, y, None, [{"alpha": -1.0}]) is None
    assert model._fit_population(X, np.c_[y, y], None, [{}]) is None
    assert KernelRidge(kernel="precomputed")._fit_population(X @ X.T, y, None, [{}]) is None
    assert KernelRidge(device="cpu")._fit_population(X, y, None, [{}]) is None


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
        found = Ridge()._fit_population(X, Y, weights)
        assert found is not None
        for one, w in zip(found, weights, strict=True):
            alone = Ridge().fit(X, Y, sample_weight=w)
            assert_allclose(one.coef_, alone.coef_, rtol=1e-9)
            assert_allclose(one.intercept_, alone.intercept_, rtol=1e-9)


def test_ridge_leaves_wide_tables_and_other_solvers_to_single_fits(table: tuple[Any, Any]) -> None:
    X, y = table
    assert Ridge()._fit_population(X[:4], y[:4], None, [{}]) is None
    assert Ridge(positive=True)._fit_population(X, y, None, [{}]) is None
    assert Ridge()._fit_population(X, y, None, [{"alpha": 0.0}]) is None
