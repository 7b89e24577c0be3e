"""Aleatoric and epistemic parts; capacity curves and parameter counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from groundstate.errors import DataError
from groundstate.evaluate import capacity_curve, parameter_count, uncertainty

rng = np.random.default_rng(0)


def test_two_members() -> None:
    found = uncertainty(np.array([[[0.9, 0.1]], [[0.5, 0.5]]]))
    parts = [float(v[0]) for v in (found.total, found.aleatoric, found.epistemic)]
    assert parts == pytest.approx([0.610864, 0.509115, 0.101749], abs=1e-6)
    same = uncertainty(np.array([[[0.7, 0.3]]] * 3))
    assert same.epistemic[0] == 0
    sure = uncertainty(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    assert sure.aleatoric[0] == 0 and sure.epistemic[0] == pytest.approx(np.log(2))


def test_regression_adds_variances() -> None:
    said = rng.normal(size=(7, 5))
    own = rng.uniform(size=(7, 5))
    found = uncertainty(said, variance=own)
    np.testing.assert_allclose(found.total, own.mean(0) + said.var(0))
    np.testing.assert_allclose(found.epistemic, said.var(0))
    assert (uncertainty(said).aleatoric == 0).all()
    assert "for want of data" in str(found)


def test_ensembles_of_all_kinds() -> None:
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y)
    found = uncertainty(forest, X)
    np.testing.assert_allclose(found.mean, forest.predict_proba(X))
    assert (found.epistemic >= 0).all() and (found.aleatoric > 0).any()
    bags = BaggingRegressor(max_features=2, n_estimators=5, random_state=0).fit(X, X[:, 0])
    np.testing.assert_allclose(uncertainty(bags, X).mean, bags.predict(X))
    processes = [GaussianProcessRegressor(alpha=0.1).fit(X[i::2], X[i::2, 0]) for i in (0, 1)]
    spread = uncertainty(processes, X)
    stds = [m.predict(X, return_std=True)[1] ** 2 for m in processes]
    np.testing.assert_allclose(spread.aleatoric, np.mean(stds, 0))
    with pytest.raises(DataError, match="added up"):
        uncertainty(GradientBoostingRegressor(n_estimators=3).fit(X, X[:, 0]), X)
    with pytest.raises(DataError, match="has no members"):
        uncertainty(LinearRegression().fit(X, X[:, 0]), X)
    with pytest.raises(DataError, match="pass the rows"):
        uncertainty(forest)


def test_our_ensembles_and_dropout() -> None:
    from groundstate import MLPClassifier, MLPRegressor
    from groundstate.models.ensembles.seeds.networks import Ensemble

    X = rng.normal(size=(60, 2))
    net: dict[str, Any] = {
        "hidden_layer_sizes": (6,), "max_iter": 3, "n_iter_no_change": float("inf"),
        "random_state": 0,
    }  # fmt: skip
    several = Ensemble(MLPRegressor(**net), 3, random_state=0).fit(X, X[:, 0])
    found = uncertainty(several, X)
    np.testing.assert_allclose(found.mean, several.predict(X), rtol=1e-4, atol=1e-5)
    assert found.epistemic.mean() > 0
    thin = MLPClassifier(dropout=0.3, **net).fit(X, X[:, 0] > 0)
    masks = uncertainty(thin, X, n_samples=10)
    assert masks.kind == "entropy" and masks.epistemic.mean() > 0


def test_an_ensemble_behind_a_preparation_answers_in_units_of_the_target() -> None:
    from groundstate import GaussianProcessRegressor, MLPRegressor
    from groundstate import RandomForestClassifier as Forest
    from groundstate.models.tables.table import TablePredictor

    X = rng.normal(size=(60, 2))
    rows = {"a": X[:, 0], "b": X[:, 1]}
    forest = TablePredictor(Forest(5, random_state=0)).fit(rows, X[:, 0] > 0)
    np.testing.assert_allclose(uncertainty(forest, rows).mean, forest.predict_proba(rows))
    y = 700 + 50 * X[:, 0] + rng.normal(size=60)
    net = MLPRegressor(dropout=0.3, max_iter=30, n_iter_no_change=float("inf"), random_state=0)
    masks = uncertainty(TablePredictor(net).fit(rows, y), rows, n_samples=20, variance=25.0)
    assert masks.mean.mean() == pytest.approx(700, abs=25)
    np.testing.assert_allclose(masks.aleatoric, 25)
    np.testing.assert_allclose(masks.total, masks.aleatoric + masks.epistemic)
    small = uncertainty(TablePredictor(net).fit(rows, y / 64), rows, n_samples=20)
    np.testing.assert_allclose(masks.epistemic, 64**2 * small.epistemic)
    process = TablePredictor(GaussianProcessRegressor(alpha=0.1)).fit(rows, y)
    spread = uncertainty([process, process], rows)
    std = process.predict(rows, return_std=True)[1]
    np.testing.assert_allclose(spread.aleatoric, std**2)


def features(p: int) -> Any:
    directions = np.random.default_rng(7).normal(size=(6, 200))
    draw = FunctionTransformer(lambda X: np.maximum(X @ directions[:, :p], 0))
    return make_pipeline(draw, LinearRegression(fit_intercept=False))


def test_random_features_interpolate_from_p_equal_n() -> None:
    g = np.random.default_rng(1)
    X = g.normal(size=(160, 6))
    truth = np.sin(X[:, 0]) + X[:, 1]
    y = truth + 0.3 * g.normal(size=160)
    found = capacity_curve(
        features, [5, 10, 20, 39, 40, 41, 60, 100, 200], X, y, train_size=40, truth=truth
    )
    assert found.threshold == 40 and found.n == 40
    assert found.parameters.tolist() == [5, 10, 20, 39, 40, 41, 60, 100, 200]
    assert found.peak in (39, 40, 41) and found.second_descent == 200
    np.testing.assert_allclose(found.test.mean(1), found.variance + found.bias_and_noise)
    assert found.bias is not None and found.norm.mean(1).argmax() in (3, 4, 5)
    assert "falls again until 200" in str(found)
    low = capacity_curve(features, [5, 10], X, y, train_size=40)
    assert low.threshold is None and low.second_descent is None


def test_alexnet_has_fifty_parameters_per_image() -> None:
    import torch
    from torch import nn

    with torch.device("meta"):
        net = nn.Sequential(
            nn.Conv2d(3, 64, 11, 4, 2), nn.Conv2d(64, 192, 5, 1, 2), nn.Conv2d(192, 384, 3, 1, 1),
            nn.Conv2d(384, 256, 3, 1, 1), nn.Conv2d(256, 256, 3, 1, 1),
            nn.Linear(256 * 6 * 6, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 1000),
        )  # fmt: skip
    count = parameter_count(net)
    assert count == 61_100_840 and round(count / 1.2e6, 1) == 50.9


def test_capacity_errors() -> None:
    X = np.zeros((20, 6))
    with pytest.raises(ValueError, match="ascending"):
        capacity_curve(features, [3, 2], X, np.zeros(20))
    with pytest.raises(DataError, match="train_size"):
        capacity_curve(features, [3], rng.normal(size=(20, 6)), np.zeros(20), train_size=40)
    assert parameter_count(object()) == -1
