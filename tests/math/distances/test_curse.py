"""Volumes and distances in many dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.math.distances import curse


def test_worked_numbers() -> None:
    assert curse.coverage(1e12, 100) == pytest.approx(7.89e-19, rel=1e-3)
    assert [curse.grid_neighbors(d) for d in range(1, 7)] == [2, 4, 6, 8, 10, 12]
    assert curse.grid_neighbors(2, side=5) == 4
    for d, share in ((2, 0.785398), (10, 0.002490), (20, 2.46e-8)):
        assert curse.ball_in_cube(d) == pytest.approx(share, rel=5e-4)
    assert curse.edge_length(0.1, 10) == pytest.approx(0.794, abs=5e-4)
    assert curse.edge_length(0.1, 100) == pytest.approx(0.977, abs=5e-4)
    for eps, d in ((0.01, 1000), (0.5, 3), (1e-12, 5)):
        assert curse.shell(eps, d) == pytest.approx(1 - (1 - eps) ** d, rel=1e-3)
    assert curse.shell(1.0, 4) == 1.0


def test_contrast_is_the_mean_over_queries() -> None:
    rng = np.random.default_rng(0)
    X, Q = rng.random((50, 3)), rng.random((7, 3))
    D = np.linalg.norm(Q[:, None] - X, axis=2)
    assert curse.contrast(X, Q) == pytest.approx(((D.max(1) - D.min(1)) / D.min(1)).mean())
    D = np.linalg.norm(X[:, None] - X, axis=2) + np.diag(np.full(50, np.inf))
    far = np.where(np.isinf(D), 0, D).max(1)
    assert curse.contrast(X) == pytest.approx(((far - D.min(1)) / D.min(1)).mean())


def test_noise_columns_are_seeded_and_beside() -> None:
    X = np.arange(6.0).reshape(3, 2)
    wide = curse.noise_features(X, 4, 5.0, random_state=1)
    np.testing.assert_array_equal(wide[:, :2], X)
    np.testing.assert_array_equal(wide, curse.noise_features(X, 4, 5.0, random_state=1))
    many = curse.noise_features(np.zeros((5000, 1)), 2, 5.0, random_state=0)[:, 1:]
    np.testing.assert_allclose(many.std(0), 5.0, rtol=0.05)


def test_errors_teach() -> None:
    with pytest.raises(ValueError, match="whole number from 1 up, got 0"):
        curse.coverage(10, 0)
    with pytest.raises(ValueError, match="odd side"):
        curse.grid_neighbors(2, 4)
    with pytest.raises(ValueError, match="too many to count"):
        curse.grid_neighbors(30)
    with pytest.raises(ValueError, match="share of the radius"):
        curse.shell(2.0, 3)
    with pytest.raises(ValueError, match=r"share must lie"):
        curse.edge_length(-1.0, 3)
    with pytest.raises(ValueError, match="rows of one width"):
        curse.contrast(np.zeros((3, 2)), np.zeros((3, 1)))
