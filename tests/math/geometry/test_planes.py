"""Planes and the bound on what a plane may promise."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.errors import ShapeError
from groundstate.math.geometry.planes import hyperplane, plane_distance
from groundstate.math.stats.vc_bound import vc_bound


def test_worked_numbers() -> None:
    plane = hyperplane([3.0, 4.0], -5.0)
    assert plane.dimension == 1
    assert -1 * plane.signed_distance([0.0, 0.0]) == pytest.approx(1.0)
    np.testing.assert_allclose(plane.project([0.0, 0.0]), [0.6, 0.8])
    assert abs(hyperplane([3.0, 4.0], -10.0).signed_distance(np.zeros(2))) == pytest.approx(2.0)
    assert plane_distance([3.0, 4.0], 1.0, -1.0) == pytest.approx(0.4)


def test_feet_are_on_the_plane_and_nearest() -> None:
    rng = np.random.default_rng(0)
    plane = hyperplane(rng.normal(size=5), 0.7)
    X = rng.normal(size=(40, 5))
    feet = plane.project(X)
    np.testing.assert_allclose(plane.signed_distance(feet), 0.0, atol=1e-12)
    d = plane.signed_distance(X)
    np.testing.assert_allclose(np.linalg.norm(X - feet, axis=1), np.abs(d))
    np.testing.assert_allclose(plane.project(feet), feet, atol=1e-12)


@pytest.mark.parametrize("c", [2.0, 1e-200, 1e200, -3.0])
def test_multiples_are_the_same_plane_up_to_sign(c: float) -> None:
    rng = np.random.default_rng(1)
    w, X = rng.normal(size=3), rng.normal(size=(10, 3))
    one, many = hyperplane(w, 0.4), hyperplane(c * w, c * 0.4)
    np.testing.assert_allclose(many.signed_distance(X), np.sign(c) * one.signed_distance(X))
    np.testing.assert_allclose(many.project(X), one.project(X), atol=1e-12)


def test_margin_is_the_closest_row() -> None:
    plane = hyperplane([1.0, 0.0])
    X = np.array([[2.0, 1.0], [-0.5, 3.0], [4.0, 0.0]])
    assert plane.margin(X, [1, -1, 1]) == pytest.approx(0.5)
    assert plane.margin(X, [1, 1, 1]) == pytest.approx(-0.5)
    with pytest.raises(ValueError, match=r"signs -1 and \+1"):
        plane.margin(X, [0, 1, 1])


def test_no_plane_without_a_normal() -> None:
    with pytest.raises(ValueError, match="not zero"):
        hyperplane([0.0, 0.0], 1.0)
    with pytest.raises(ShapeError, match="2 coordinates"):
        hyperplane([1.0, 2.0]).project([1.0, 2.0, 3.0])


def test_bound_on_the_risk() -> None:
    assert vc_bound(0.0, 1000, 3, 0.05) == pytest.approx(0.163978, abs=1e-6)
    assert vc_bound(0.1, 1000, 3, 0.05) == pytest.approx(0.263978, abs=1e-6)
    assert vc_bound(0.0, 4000, 3) < vc_bound(0.0, 1000, 3) < vc_bound(0.0, 1000, 30)
    assert vc_bound(0.0, 1000, 3, 0.001) > vc_bound(0.0, 1000, 3, 0.1)
    for bad in ({"risk": 1.5}, {"h": 0}, {"delta": 0.0}, {"n": 0}):
        with pytest.raises(ValueError, match="got"):
            vc_bound(**{"risk": 0.1, "n": 100, "h": 3, "delta": 0.1, **bad})
