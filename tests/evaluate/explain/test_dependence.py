"""Partial dependence and single curves: parity with scikit-learn, categories, weights."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.inspection import partial_dependence as peer

import groundstate as gs
from groundstate.data import read
from groundstate.errors import DataError
from groundstate.evaluate import partial_dependence

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=120)


@pytest.mark.parametrize("individual", [False, True])
def test_parity_of_values(individual: bool) -> None:
    model = gs.RandomForestRegressor(10, random_state=0).fit(X, Y)
    kind = "both" if individual else "average"
    told = peer(model, X, [0], kind=kind, grid_resolution=15, method="brute")
    found = partial_dependence(model, X, 0, grid_resolution=15, individual=individual)
    # scikit-learn's percentiles are those of scipy.stats.mstats.mquantiles
    found = partial_dependence(model, X, 0, grid=told["grid_values"][0], individual=individual)
    np.testing.assert_allclose(found.average[:, 0], told["average"][0], atol=1e-10)
    if individual:
        assert found.individual is not None
        np.testing.assert_allclose(found.individual[:, :, 0], told["individual"][0], atol=1e-10)


def test_parity_of_probabilities() -> None:
    model = gs.LogisticRegression().fit(X, Y > 0.5)
    told = peer(model, X, [1], kind="average", response_method="predict_proba")
    found = partial_dependence(model, X, "x1", grid=told["grid_values"][0])
    np.testing.assert_allclose(found.average[:, 1], told["average"][0], atol=1e-10)
    np.testing.assert_allclose(found.average.sum(1), 1)
    assert found.units == "probability"


def test_columns_of_a_table() -> None:
    n = 120
    rows = pl.DataFrame(
        {"size": X[:, 0], "colour": rng.choice(["red", "blue"], n), "count": rng.integers(0, 4, n)}
    )
    y = 3.0 * (rows["colour"] == "red").to_numpy() + rows["count"].to_numpy()
    model = gs.TablePredictor(gs.Ridge(alpha=1e-8)).fit(rows, y)
    by_colour = partial_dependence(model, rows, "colour")
    gap = dict(zip(by_colour.grid, by_colour.average[:, 0], strict=True))
    assert gap["red"] - gap["blue"] == pytest.approx(3, abs=1e-5)
    by_count = partial_dependence(model, read(rows), "count")
    assert by_count.grid == [0, 1, 2, 3]
    np.testing.assert_allclose(np.diff(by_count.average[:, 0]), 1, atol=1e-5)
    grid = partial_dependence(model, rows, "size", grid_resolution=7).grid
    assert len(grid) == 7
    np.testing.assert_allclose([grid[0], grid[-1]], np.quantile(X[:, 0], [0.05, 0.95]))
    assert by_colour.to_dict()["outputs"] == ["value"]


def test_weights_are_repetition() -> None:
    model = gs.DecisionTreeRegressor(max_depth=4).fit(X, Y)
    weight = rng.integers(0, 3, len(X))
    a = partial_dependence(model, X, 0, grid=[0.0, 1.0], sample_weight=weight).average
    b = partial_dependence(model, np.repeat(X, weight, 0), 0, grid=[0.0, 1.0]).average
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_bad_input() -> None:
    model = gs.Ridge().fit(X, Y)
    with pytest.raises(DataError, match="no column 'z'"):
        partial_dependence(model, X, "z")
    with pytest.raises(DataError, match="no value to set"):
        partial_dependence(model, X, 0, grid=[])
