"""Learning and validation curves, their forecasts and crossings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.model_selection import validation_curve as sklearn_curve
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from groundstate.errors import DataError
from groundstate.evaluate import learning_curve, power_law, validation_curve
from groundstate.evaluate.curves.learning_curve import shuffled_parts


def waves(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = rng.uniform(-1, 1, (n, 1))
    return x, np.sin(3 * x[:, 0]) + 0.3 * rng.normal(size=n)


def linear(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    X = rng.normal(size=(n, 5))
    return X, X.sum(1) + rng.normal(size=n)


def polynomial(degree: int) -> Any:
    return make_pipeline(PolynomialFeatures(degree), LinearRegression())


def test_curves_of_small_and_large_models_cross() -> None:
    X, y = waves(np.random.default_rng(0), 400)
    sizes = [15, 25, 50, 100, 200, 320]
    small = learning_curve(polynomial(1), X, y, sizes)
    large = learning_curve(polynomial(10), X, y, sizes)
    at = small.crossing(large)
    assert at is not None and 15 < at < 100
    assert small.test.mean(1)[0] < large.test.mean(1)[0]
    assert small.test.mean(1)[-1] > large.test.mean(1)[-1]
    assert small.crossing(small) is None
    with pytest.raises(DataError, match="same sizes"):
        small.crossing(learning_curve(polynomial(1), X, y, [15, 25]))


def test_variance_halves_when_the_rows_double() -> None:
    curve = learning_curve(
        LinearRegression(), generator=linear, sizes=[50, 100, 200, 400], repeats=100
    )
    ratio = curve.variance[1:] / curve.variance[:-1]
    # σ²(p + 1)/(n − p − 2): a little more than halves
    exact = 6 / (np.array([50, 100, 200, 400]) - 7)
    np.testing.assert_allclose(curve.variance, exact, rtol=0.15)
    np.testing.assert_allclose(ratio, 0.5, atol=0.08)


def test_variance_from_a_table_is_that_of_fresh_rows() -> None:
    X, y = linear(np.random.default_rng(1), 2000)
    curve = learning_curve(LinearRegression(), X, y, [50, 100, 800, 1600], repeats=60)
    np.testing.assert_allclose(curve.variance, 6 / (curve.n - 7), rtol=0.3)


def test_forecast_reaches_the_noise() -> None:
    curve = learning_curve(
        LinearRegression(), generator=linear, sizes=[20, 30, 50, 80, 130], repeats=40
    )
    risk = {n: 1 + 6 / (n - 7) for n in (260, 520)}
    for n, truth in risk.items():
        found = curve.at(n)
        assert found.low < truth < found.high and found.estimate == pytest.approx(truth, rel=0.06)
    told = curve.to_dict()
    assert [p["n"] for p in told["forecast"]["points"]] == [260, 520]
    assert len(told["test"]) == 5 and "forecast" in str(curve)


def test_power_law_recovers_its_parameters_and_covers() -> None:
    n = np.array([20, 40, 80, 160, 320])
    exact = power_law(n, 0.3 + 2.0 * n**-0.7)
    assert (exact.a, exact.b, exact.c) == pytest.approx((0.3, 2.0, 0.7), abs=5e-3)
    assert exact.rows_for(0.35) == pytest.approx((2 / 0.05) ** (1 / 0.7), rel=0.05)
    assert exact.rows_for(0.2) == np.inf
    rng, hits = np.random.default_rng(0), 0
    for i in range(60):
        risks = (0.3 + 2.0 * n**-0.7)[:, None] + 0.05 * rng.normal(size=(5, 12))
        found = power_law(n, risks, random_state=i, n_resamples=200).at(640)
        hits += found.low <= 0.3 + 2.0 * 640**-0.7 <= found.high
    assert hits >= 50  # the percentile bootstrap of twelve repeats
    rising = power_law(n, np.linspace(1, 2, 5))
    assert rising.b == 0 and rising.a == pytest.approx(1.5)
    with pytest.raises(DataError, match="three sizes"):
        power_law([1, 2], [[1.0], [2.0]])


def test_validation_curve_is_scikit_learns() -> None:
    X, y = waves(np.random.default_rng(2), 120)
    ours = validation_curve(KNeighborsRegressor(), X, y, "n_neighbors", [1, 9, 80], repeats=3)
    from groundstate.compute.random import Key

    trains, tests = shuffled_parts(KNeighborsRegressor(), X, y, 3, 0.2, None, Key.of(0))
    train, test = sklearn_curve(
        KNeighborsRegressor(), X, y, param_name="n_neighbors", param_range=[1, 9, 80],
        cv=list(zip(trains, tests, strict=True)), scoring="neg_mean_squared_error",
    )  # fmt: skip
    np.testing.assert_allclose(ours.train, -train)
    np.testing.assert_allclose(ours.test, -test)
    assert ours.best == 9 and "n_neighbors=9" in str(ours)
    assert ours.bands()["test"][0].method == "corrected t"
    first = next(ShuffleSplit(3, test_size=0.2, random_state=0).split(X))
    assert len(tests[0]) == len(first[1])


def test_small_parts_of_classes_know_every_class() -> None:
    rng = np.random.default_rng(3)
    y = np.r_[np.zeros(90, int), np.ones(6, int), np.full(4, 2)]
    X = rng.normal(size=(100, 2)) + y[:, None]
    curve = learning_curve(LogisticRegression(), X, y, [4, 40, 80], repeats=4)
    assert curve.metric == "zero_one" and np.isfinite(curve.test).all()


def test_networks_train_side_by_side() -> None:
    from groundstate import MLPRegressor
    from groundstate.models.networks.population import network_members
    from groundstate.models.traits import Traits

    X, y = waves(np.random.default_rng(4), 60)
    calls = []

    def program(*given: Any) -> Any:
        calls.append(len(given[3]))
        return network_members(*given)

    class Watched(MLPRegressor):
        traits = Traits(program=program)

    model = Watched(hidden_layer_sizes=(4,), max_iter=5, n_iter_no_change=float("inf"))
    curve = learning_curve(model, X, y, [20, 48], repeats=3)
    assert calls == [6] and curve.test.shape == (2, 3) and curve.forecast is None

    class Looped(MLPRegressor):
        traits = Traits(program=None)

    alone = Looped(hidden_layer_sizes=(4,), max_iter=5, n_iter_no_change=float("inf"))
    one_by_one = learning_curve(alone, X, y, [20, 48], repeats=3)
    np.testing.assert_allclose(curve.test, one_by_one.test, rtol=1e-6)


def test_errors() -> None:
    X, y = waves(np.random.default_rng(5), 50)
    with pytest.raises(DataError, match="two repeats"):
        learning_curve(LinearRegression(), X, y, repeats=1)
    with pytest.raises(DataError, match="40 training rows"):
        learning_curve(LinearRegression(), X, y, [10, 45])
    with pytest.raises(DataError, match="numbers of rows"):
        learning_curve(LinearRegression(), generator=waves)
    with pytest.raises(DataError, match="table X, y"):
        learning_curve(LinearRegression())
