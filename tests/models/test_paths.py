"""The way of inference: where it starts, that it follows the energy, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest

import groundstate as gs
from groundstate.errors import ShapeError, Unsupported
from groundstate.models.paths import inference_path

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 0.6, (80, 3)), RNG.normal(3, 0.8, (80, 3))])
Y = np.repeat([0, 1], 80)


@pytest.mark.parametrize("steps", ["newton", "adam"])
def test_a_way_ends_at_a_minimum_of_the_free_columns(steps: str) -> None:
    model = gs.GaussianMixture(2, random_state=0).fit(X)
    way = inference_path(model, [2.0, 4.0, 1.0], [0, 2], steps=steps, max_iter=300)
    assert np.allclose(way.x[0], [2, 4, 1]) and (way.x[:, 1] == 4).all()
    assert np.allclose(way.energy, model.energy(way.x))
    end = np.tile(way.x[-1], (50, 1))
    end[:, [0, 2]] += RNG.normal(0, 0.05, (50, 2))
    assert model.energy(end).min() > way.energy[-1] - 1e-3


def test_given_a_label_the_energy_of_that_label_falls() -> None:
    model = gs.QuadraticDiscriminantAnalysis().fit(X, Y)
    way = inference_path(model, [0.0, 0.0, 0.0], [0, 1, 2], y=1)
    assert np.allclose(way.energy, model.energy(way.x, np.ones(len(way))))
    assert np.allclose(way.x[-1], X[Y == 1].mean(0), atol=1e-4) and way.converged


def test_free_y_is_prediction() -> None:
    model = gs.Ridge().fit(X[:, :2], X[:, 2])
    way = inference_path(model, [1.0, 2.0], [], y=9.0, free_y=True)
    assert way.y is not None and way.y[0] == 9
    assert way.y[-1] == pytest.approx(model.predict([[1.0, 2.0]])[0])
    assert (np.diff(way.energy) < 0).all() and "InferencePath(" in repr(way)


def test_a_generator_descends_in_the_units_of_its_rows() -> None:
    model = gs.NormalizingFlow(max_iter=2, random_state=0).fit(100 + 20 * X[:, :2])
    way = inference_path(model, [180.0, 60.0], [0, 1])
    assert np.allclose(way.x[0], [180, 60])
    assert np.allclose(way.energy, model.energy(way.x))
    assert way.energy[-1] < way.energy[0]


def test_what_cannot_be_descended_says_so() -> None:
    forest = gs.RandomForestClassifier(3, random_state=0).fit(X, Y)
    with pytest.raises(Unsupported, match="no gradient"):
        inference_path(forest, X[0], [0, 1], y=1)
    with pytest.raises(Unsupported, match="no real y"):
        inference_path(forest, X[0], [0], free_y=True)
    mixture = gs.GaussianMixture(2, random_state=0).fit(X)
    with pytest.raises(ShapeError, match="nothing is free"):
        inference_path(mixture, X[0], [])
    with pytest.raises(ShapeError, match="column 7"):
        inference_path(mixture, X[0], [7])
    with pytest.raises(ValueError, match="steps must be"):
        inference_path(mixture, X[0], [0], steps="long")
