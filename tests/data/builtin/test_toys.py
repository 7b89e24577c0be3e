"""Toy clouds: seeded, with the moments their pages state."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from groundstate.data import (
    make_anisotropic,
    make_elongated,
    make_half_circle,
    make_ring,
    roll_arc_length,
)


def test_moments() -> None:
    half = make_half_circle(20_000, random_state=0)
    np.testing.assert_allclose(half.mean(0), [0, 2 / np.pi], atol=0.02)
    assert np.linalg.norm(half, axis=1).std() == pytest.approx(0.03, rel=0.05)
    ring = make_ring(20_000, random_state=0)
    np.testing.assert_allclose(np.cov(ring.T), 0.5 * (9 + 0.04) * np.eye(2), atol=0.1)
    rows, y = make_elongated(20_000, n_outliers=100, random_state=0)
    np.testing.assert_allclose(rows[y > 0].std(0), [10, 1], rtol=0.03)
    assert (np.abs(rows[y < 0, 1]) == 6).all() and (y < 0).sum() == 100
    turned, _ = make_elongated(50, angle=np.pi / 2, random_state=0)
    plain, _ = make_elongated(50, random_state=0)
    np.testing.assert_allclose(turned, plain @ [[0, 1], [-1, 0]], atol=1e-12)


def test_seeds_and_scikit_learn() -> None:
    np.testing.assert_array_equal(make_ring(9, random_state=1), make_ring(9, random_state=1))
    assert not np.array_equal(make_ring(9, random_state=1), make_ring(9, random_state=2))
    blobs, y = make_blobs(1500, random_state=170)
    X, labels = make_anisotropic()
    np.testing.assert_allclose(X, blobs @ [[0.6, -0.6], [-0.4, 0.8]])
    np.testing.assert_array_equal(labels, y)


def test_arc_length_of_the_roll() -> None:
    t = np.linspace(1.5 * np.pi, 4.5 * np.pi, 20_001)
    curve = np.column_stack([t * np.cos(t), t * np.sin(t)])
    summed = np.linalg.norm(np.diff(curve, axis=0), axis=1).sum()
    assert roll_arc_length(t[-1]) - roll_arc_length(t[0]) == pytest.approx(summed, rel=1e-6)


def test_bad_numbers_are_named() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        make_ring(0)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        make_half_circle(3, noise=-1)
