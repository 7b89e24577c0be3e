"""Smoothing splines, and basis expansions in a pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.interpolate import CubicSpline, make_smoothing_spline
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

from groundstate import LinearRegression, SmoothingSplineRegressor, load
from groundstate.learn.solvers.linear.spline import smoothing_spline

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 3, 60))
y = np.sin(2 * x) + 0.2 * rng.normal(size=60)
X = x[:, None]


@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_parity_with_scipy(lam: float, weighted: bool) -> None:
    w = rng.uniform(0.5, 2, 60) if weighted else None
    model = SmoothingSplineRegressor(lam).fit(X, y, sample_weight=w)
    peer = make_smoothing_spline(x, y, w, lam)
    at = np.linspace(x[0], x[-1], 200)
    np.testing.assert_allclose(model.predict(at[:, None]), peer(at), atol=1e-7)


def test_cross_validation_is_scipys() -> None:
    model = SmoothingSplineRegressor().fit(X, y)
    np.testing.assert_allclose(model.predict(X), make_smoothing_spline(x, y)(x), atol=1e-3)


def test_stiff_is_a_line_and_loose_interpolates() -> None:
    line = LinearRegression().fit(X, y)
    far = np.array([[-3.0], [1.0], [9.0]])
    stiff = SmoothingSplineRegressor(1e12).fit(X, y)
    np.testing.assert_allclose(stiff.predict(far), line.predict(far), atol=1e-6)
    for lam in (0.0, 1e-14):
        np.testing.assert_allclose(SmoothingSplineRegressor(lam).fit(X, y).predict(X), y, atol=1e-4)
    at = np.linspace(x[0], x[-1], 50)
    natural = CubicSpline(x, y, bc_type="natural")
    np.testing.assert_allclose(
        SmoothingSplineRegressor(0.0).fit(X, y).predict(at[:, None]), natural(at), atol=1e-8
    )


def test_straight_outside_the_range() -> None:
    model = SmoothingSplineRegressor(0.01).fit(X, y)
    for at in (np.array([3.5, 4.0, 4.5]), np.array([-1.5, -1.0, -0.5])):
        np.testing.assert_allclose(np.diff(model.predict(at[:, None]), n=2), 0, atol=1e-9)


def test_ties_and_weights_are_merged() -> None:
    coarse = np.round(x, 1)
    index = np.repeat(np.arange(60), 1 + np.arange(60) % 3)
    a = SmoothingSplineRegressor().fit(coarse[:, None], y, sample_weight=1 + np.arange(60) % 3)
    b = SmoothingSplineRegressor().fit(coarse[index][:, None], y[index])
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-8)
    assert len(a.knots_[0]) == len(np.unique(coarse))


def test_units_of_x_do_not_matter() -> None:
    told = SmoothingSplineRegressor().fit(X, y).predict(X)
    for scale in (1e-9, 1e9):
        np.testing.assert_allclose(
            SmoothingSplineRegressor().fit(X * scale, y).predict(X * scale), told, atol=1e-6
        )


def test_the_minimum_is_a_minimum() -> None:
    """Moving any value raises the penalised sum of squares."""
    t, z, w, lam = x[:12], y[:12], rng.uniform(0.5, 2, 12), 1e-3
    g, _ = smoothing_spline(t, z, w, lam)

    def cost(values: np.ndarray) -> float:
        second = CubicSpline(t, values, bc_type="natural")(t, 2)
        rough = np.diff(t) / 3 * (second[:-1] ** 2 + second[:-1] * second[1:] + second[1:] ** 2)
        return float(w @ (z - values) ** 2 + lam * rough.sum())

    for j in range(12):
        for step in (1e-3, -1e-3):
            moved = g.copy()
            moved[j] += step
            assert cost(moved) > cost(g)


def test_several_columns_add_up() -> None:
    rows = rng.uniform(-2, 2, size=(300, 3))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1] ** 2 + 0.1 * rng.normal(size=300)
    model = SmoothingSplineRegressor().fit(rows, target)
    assert model.score(rows, target) > 0.98
    probe = np.zeros((5, 3))
    probe[:, 2] = np.linspace(-1.5, 1.5, 5)
    assert np.ptp(model.predict(probe)) < 0.2  # the third column says nothing
    assert len(model.knots_) == 3


def test_few_points_and_storage(tmp_path: object) -> None:
    for n in (1, 2, 3, 4):
        model = SmoothingSplineRegressor().fit(X[:n], y[:n])
        assert np.isfinite(model.predict(X)).all()
    model = SmoothingSplineRegressor().fit(X, y)
    again = load(model.save(f"{tmp_path}/spline.gs"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_polynomials_are_linear_in_their_parameters() -> None:
    curve = make_pipeline(PolynomialFeatures(3, include_bias=False), LinearRegression()).fit(X, y)
    np.testing.assert_allclose(curve.predict(X), Polynomial.fit(x, y, 3)(x), atol=1e-8)
    few = make_pipeline(PolynomialFeatures(5, include_bias=False), LinearRegression())
    np.testing.assert_allclose(
        few.fit(X[:60:10], y[:60:10]).predict(X[:60:10]), y[:60:10], atol=1e-6
    )
    spline = make_pipeline(SplineTransformer(6), LinearRegression()).fit(X, y)
    assert spline.score(X, y) > 0.9
