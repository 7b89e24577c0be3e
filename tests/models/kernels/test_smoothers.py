"""Kernel smoothers: the worked example, the edge of the data, and the bandwidth."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons

from groundstate import KernelClassifier, KernelRegressor
from groundstate.errors import DataError
from groundstate.math.kernels import RBF, Linear

THREE = np.array([[0.0], [1.0], [3.0]]), np.array([0.0, 1.0, 2.0])


def test_worked_example() -> None:
    model = KernelRegressor(RBF(1.0)).fit(*THREE)
    assert model.predict([[1.0]])[0] == pytest.approx(0.729488, abs=1e-6)
    plain = KernelRegressor(RBF(1.0), normalize=False).fit(*THREE)
    assert plain.predict([[1.0]])[0] == pytest.approx(1.270671, abs=1e-6)


def test_far_away_the_nearest_row_answers() -> None:
    model = KernelRegressor(RBF(0.01)).fit(*THREE)
    np.testing.assert_array_equal(model.predict([[-1e6], [1.9], [1e6]]), [0.0, 1.0, 2.0])
    label = KernelClassifier(RBF(0.01)).fit(THREE[0], ["a", "b", "c"])
    assert label.predict([[-1e6], [1e6]]).tolist() == ["a", "c"]


def test_the_sign_of_the_plain_sum_decides_between_two_classes() -> None:
    X, y = make_moons(80, noise=0.2, random_state=0)
    t = 2 * y - 1
    model = KernelClassifier(RBF(0.4), normalize=False).fit(X, t)
    total = RBF(0.4)(X) @ t
    np.testing.assert_array_equal(model.predict(X), np.where(total > 0, 1, -1))
    shares = KernelClassifier(RBF(0.4)).fit(X, t)
    np.testing.assert_array_equal(shares.predict(X), model.predict(X))
    np.testing.assert_allclose(shares.predict_proba(X).sum(1), 1.0)


def test_leaving_one_out_by_hand() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (50, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)

    def error(scale: float) -> float:
        K = RBF(scale)(X)
        np.fill_diagonal(K, 0.0)
        return float(np.mean((K @ y / K.sum(1) - y) ** 2))

    model = KernelRegressor().fit(X, y)
    best = error(model.kernel_.length_scale)
    assert model.history_.objective[-1] == pytest.approx(best, rel=1e-6)
    assert best <= min(error(s) for s in np.geomspace(0.05, 5, 60)) + 1e-9


def test_weights_are_repetitions_also_for_the_bandwidth() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=60)
    weight = rng.integers(0, 4, 60)
    index = rng.permutation(np.repeat(np.arange(60), weight))
    a = KernelRegressor().fit(X, y, sample_weight=weight)
    b = KernelRegressor().fit(X[index], y[index])
    assert a.kernel_ == b.kernel_
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_targets_does_not_matter(unit: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    one, other = (KernelRegressor().fit(X, v) for v in (y, unit * y))
    np.testing.assert_allclose(other.predict(X), unit * one.predict(X), atol=1e-6 * unit)
    assert other.history_.objective[-1] == pytest.approx(unit**2 * one.history_.objective[-1])


def test_the_nearest_row_is_the_nearest_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)) + 1e6, rng.normal(size=80)
    asked = X + 0.1  # beyond the reach of the kernel
    model = KernelRegressor(RBF(1e-3)).fit(X, y)
    nearest = ((asked[:, None] - X) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(model.predict(asked), y[nearest])


def test_shares_by_a_kernel_with_negative_values_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = KernelClassifier(Linear()).fit(X, X[:, 0] > 0)
    with pytest.raises(DataError, match="nowhere negative, which Linear"):
        model.predict_proba(X)
    model = KernelClassifier(Linear(), normalize=False).fit(X, X[:, 0] > 0)
    assert model.score(X, X[:, 0] > 0) > 0.8
