"""Capacity past interpolation: least norms, thresholds, and the sweep over sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from groundstate import MLPRegressor
from groundstate.errors import DataError
from groundstate.evaluate.curves.capacity_sweep import capacity_sweep
from groundstate.math.linalg.min_norm import (
    interpolation_threshold,
    min_norm_solution,
    solution_norm,
)


def wide() -> tuple[np.ndarray, np.ndarray]:
    g = np.random.default_rng(0)
    return g.standard_normal((20, 60)), g.standard_normal(20)


def descent(X: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    rate = 1 / np.linalg.norm(X, 2) ** 2
    for _ in range(3000):
        theta = theta - rate * X.T @ (X @ theta - y)
    return theta


def test_descent_from_zero_finds_the_least_norm() -> None:
    X, y = wide()
    found = min_norm_solution(X, y)
    assert found == pytest.approx(np.linalg.pinv(X) @ y, abs=1e-12)
    assert np.abs(descent(X, y, np.zeros(60)) - found).max() < 1e-12
    other = found + np.linalg.svd(X)[2][-1]  # also interpolates
    assert np.allclose(X @ other, y) and solution_norm(other) > solution_norm(found)


def test_descent_from_elsewhere_keeps_what_no_row_sees() -> None:
    X, y = wide()
    start = np.random.default_rng(1).standard_normal(60)
    P = np.linalg.pinv(X)
    want = P @ y + (np.eye(60) - P @ X) @ start
    assert min_norm_solution(X, y, start) == pytest.approx(want, abs=1e-12)
    assert np.abs(descent(X, y, start) - want).max() < 1e-12
    both = min_norm_solution(X, np.column_stack([y, -y]))
    assert both.shape == (60, 2) and both[:, 0] == pytest.approx(-both[:, 1])


class RandomFeatures:
    """ReLU features that are drawn, and a least-norm last layer."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed = size, seed

    def features(self, X: np.ndarray) -> np.ndarray:
        W = np.random.default_rng(self.seed).standard_normal((self.size, X.shape[1]))
        return np.maximum(X @ W.T, 0.0) / np.sqrt(self.size)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.coef_ = min_norm_solution(self.features(X), y)

    def predict(self, X: np.ndarray) -> Any:
        return self.features(X) @ self.coef_


def test_sweep_over_sizes() -> None:
    g = np.random.default_rng(3)
    X, w = g.standard_normal((240, 10)), g.standard_normal(10)
    y = X @ w / np.sqrt(10) + 0.3 * g.standard_normal(240)
    sizes = [10, 20, 40, 80, 400]
    sweep = capacity_sweep(RandomFeatures, sizes, (X[:40], y[:40], X[40:], y[40:]), seeds=8)
    assert sweep.n == 40 and sweep.train.shape == (5, 8)
    assert bool((sweep.train[3:] < 1e-10).all())  # beyond n the rows are fitted exactly
    assert sweep.threshold in (40, 80)
    table = {int(row["size"]): row for row in sweep.table()}
    assert table[40]["test"] > 3 * max(table[10]["test"], table[400]["test"])  # the peak
    assert table[40]["norm"] > 2 * table[400]["norm"]
    assert len(sweep.plot().axes) == 2
    one = capacity_sweep(RandomFeatures, [10], (X[:40], y[:40], X[40:], y[40:]), seeds=[3])
    assert one.train.shape == (1, 1) and one.threshold is None


def test_networks_train_as_a_population() -> None:
    g = np.random.default_rng(0)
    X, y = g.standard_normal((60, 3)), g.standard_normal(60)
    calls = 0

    class Counted(MLPRegressor):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            nonlocal calls
            calls += 1
            return super().fit(X, y, sample_weight)

    def make(kind: Any) -> Any:
        return lambda size, seed: kind(
            hidden_layer_sizes=(size,),
            max_iter=3,
            batch_size=16,
            random_state=seed,
            n_iter_no_change=np.inf,
        )

    data = (X[:40], y[:40], X[40:], y[40:])
    sweep = capacity_sweep(make(Counted), [2, 5], data, seeds=2)
    alone = MLPRegressor(
        hidden_layer_sizes=(5,), max_iter=3, batch_size=16, random_state=1, n_iter_no_change=np.inf
    ).fit(X[:40], y[:40])
    assert calls == 0
    error = float(np.square(np.asarray(alone.predict(X[40:])) - y[40:]).mean())
    assert sweep.test[1, 1] == pytest.approx(error, rel=1e-4)
    assert sweep.norm.shape == (2, 2) and bool(np.isfinite(sweep.norm).all())


def test_bad_sweeps_are_refused() -> None:
    X, y = wide()
    with pytest.raises(ValueError, match="sizes must be ascending"):
        capacity_sweep(RandomFeatures, [4, 2], (X, y, X, y))
    with pytest.raises(DataError, match="rows differ: X_train 20, y_train 19"):
        capacity_sweep(RandomFeatures, [4], (X, y[:-1], X, y))
    with pytest.raises(DataError, match="NaN or infinity"):
        min_norm_solution([[np.nan]], [1.0])
    with pytest.raises(DataError, match=r"start must have shape \(60,\)"):
        min_norm_solution(X, y, np.zeros(3))
    assert interpolation_threshold([1, 2], [1.0, 1.0]) is None
    assert interpolation_threshold([1, 2, 3], [0.0, 1.0, 0.0]) == 3
    assert solution_norm([np.array([3.0]), np.array([[4.0]])]) == 5.0
