"""The covariance of columns."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate import stats

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3)) + 5


def test_it_is_that_of_numpy() -> None:
    for ddof in (0, 1):
        np.testing.assert_allclose(stats.cov(X, ddof), np.cov(X, rowvar=False, ddof=ddof))
    np.testing.assert_allclose(stats.cov(X, 0) * 9 / 8, stats.cov(X))
    assert stats.cov(X[:, 0]) == pytest.approx(X[:, 0].var(ddof=1))
    weight = np.array([1, 2, 1, 3, 1, 0, 1, 1, 2])
    twice = stats.cov(np.repeat(X, weight, 0))
    np.testing.assert_allclose(stats.cov(X, sample_weight=weight), twice)


def test_one_over_n_is_too_small() -> None:
    rows = RNG.normal(size=(200_000, 5, 1))
    assert stats.cov(rows, ddof=0).mean() == pytest.approx(0.8, abs=0.005)
    assert stats.cov(rows).mean() == pytest.approx(1.0, abs=0.006)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="ddof=1 needs more rows"):
        stats.cov(X[:1])
    with pytest.raises(ValueError, match="sample_weight must be 9 numbers"):
        stats.cov(X, sample_weight=[1.0])
    with pytest.raises(ValueError, match="X must be rows"):
        stats.cov([])
