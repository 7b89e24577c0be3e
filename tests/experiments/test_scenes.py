"""What the supervised experiments share does what its words say."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate import RandomForestRegressor
from groundstate.compute.random import Key
from groundstate.experiments.supervised.scenes import (
    clouds,
    friedman,
    is_falling,
    plane,
    slope,
    tree_answers,
)


def test_clouds_take_the_classes_in_turn() -> None:
    X, y = clouds(Key.of(0).numpy(), [[0.0, 0.0], [10.0, 0.0]], 1e-9, 5)
    assert y.tolist() == [0, 1, 0, 1, 0]
    np.testing.assert_allclose(X[1::2], [[10.0, 0.0]] * 2, atol=1e-7)


def test_friedman_is_the_usual_function() -> None:
    x, y, mean = friedman(Key.of(0).numpy(), 20_000, noise=0.5)
    assert x.shape == (20_000, 10) and 0 <= x.min() <= x.max() <= 1
    assert mean.var() == pytest.approx(23.8, rel=0.03)
    assert (y - mean).std() == pytest.approx(0.5, rel=0.03)


def test_slope_and_falling() -> None:
    n = np.array([1.0, 2.0, 4.0])
    assert slope(n, 5 / n**2) == pytest.approx(-2)
    assert is_falling([3, 2, 2]) and not is_falling([3, 2, 2.1])
    assert is_falling([3, 2, 2.1], slack=0.1)


def test_trees_of_a_forest_average_to_its_answer() -> None:
    X, y, _ = friedman(Key.of(1).numpy(), 60)
    forest = RandomForestRegressor(7, random_state=0).fit(X, y)
    answers = tree_answers(forest, X[:9])
    assert answers.shape == (7, 9)
    np.testing.assert_allclose(answers.mean(0), forest.predict(X[:9]), rtol=1e-12)


def test_plane_surrounds_the_rows() -> None:
    a, b, grid = plane(np.array([[0.0, 0.0], [1.0, 2.0]]), n=3, margin=1.0)
    assert a.tolist() == [-1.0, 0.5, 2.0] and b.tolist() == [-1.0, 1.0, 3.0]
    assert grid.shape == (9, 2) and grid[1].tolist() == [0.5, -1.0]
