"""Verdicts on fits, the floor of noise, and remedies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from groundstate.errors import DataError
from groundstate.evaluate import diagnose, noise_floor
from groundstate.evaluate.curves.remedies import remedies


def waves(n: int, seed: int, noise: float = 0.3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, 1))
    return x, np.sin(2 * x[:, 0]) + noise * rng.normal(size=n)


@pytest.mark.parametrize("seed", range(4))
def test_a_line_underfits_a_wave(seed: int) -> None:
    found = diagnose(LinearRegression(), *waves(200, seed))
    assert found.verdict == "underfit" and found.excess is not None and found.excess.low > 0
    larger = [r for r in found.remedies if r.name == "larger model"]
    assert larger and larger[0].risk < found.test.estimate
    # helped only where the paired difference is larger than its error, as at three of these seeds
    assert larger[0].fell == (larger[0].change.high < 0) and larger[0].fell == (seed != 3)


@pytest.mark.parametrize("seed", range(4))
def test_advice_needs_a_measured_fall_of_the_error_on_new_rows(seed: int) -> None:
    """Pruning narrows the gap of a tree on noise; that is no help unless new rows gain."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    found = diagnose(DecisionTreeClassifier(random_state=0), X, y)
    tried = [r for r in found.remedies if r.change is not None]
    assert tried and all(r.fell == (r.change.high < 0) for r in tried)
    for remedy in (r for r in tried if r.risk is not None):
        assert remedy.change.estimate == pytest.approx(remedy.risk - found.test.estimate)
    told = found.to_dict()["remedies"]
    assert [r["fell"] for r in told] == [r.fell for r in found.remedies]
    if found.verdict == "overfit":
        assert found.gap.low > 0  # "learned their noise" is said of a measured gap alone


@pytest.mark.parametrize("seed", range(4))
def test_degree_15_on_20_points_overfits(seed: int) -> None:
    x, y = waves(20, seed)
    model = make_pipeline(PolynomialFeatures(15), LinearRegression())
    found = diagnose(model, x / 3, y)
    assert found.verdict == "overfit" and found.gap.low > 0
    by_name = {r.name: r for r in found.remedies}
    assert set(by_name) == {"more data", "smaller model", "regularise"}
    assert by_name["smaller model"].fell and by_name["regularise"].fell
    assert "degree=7" in by_name["smaller model"].command


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_on_a_line_is_good(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    found = diagnose(LinearRegression(), X, X.sum(1) + rng.normal(size=300))
    assert found.verdict == "good" and found.remedies == ()
    assert found.to_dict()["verdict"] == "good" and "mostly noise" in str(found)


def test_trees_overfit_and_prune() -> None:
    x, y = waves(300, 0, noise=1.0)
    found = diagnose(DecisionTreeRegressor(random_state=0), x, y)
    assert found.verdict == "overfit" and found.train.estimate == 0
    prune = [r for r in found.remedies if r.name == "prune"]
    assert any(r.fell and r.risk < found.test.estimate for r in prune)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    labels = np.where(rng.random(300) < 0.2, X[:, 0] < 0, X[:, 0] > 0)
    assert diagnose(DecisionTreeClassifier(random_state=0), X, labels).verdict == "overfit"
    kind = diagnose(KNeighborsClassifier(25), X, labels)
    assert kind.verdict == "good" and kind.metric == "zero_one"


def test_a_stump_on_a_checkerboard_underfits() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(600, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    assert diagnose(DecisionTreeClassifier(max_depth=1), X, y).verdict in ("underfit", "both")
    assert diagnose(DecisionTreeClassifier(max_depth=1), X, y, floor=0.02).verdict != "good"


def test_a_class_seen_twice() -> None:
    rng = np.random.default_rng(6)
    y = np.r_[np.zeros(40, int), np.ones(40, int), [2, 2]]
    X = rng.normal(size=(82, 2)) + y[:, None]
    found = diagnose(KNeighborsClassifier(5), X, y, loss="log_loss")
    assert np.isfinite(found.test.estimate) and found.floor is None


def test_too_few_rows_to_say() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8, 1))
    found = diagnose(LinearRegression(), X, X[:, 0] + rng.normal(size=8), try_remedies=False)
    assert found.verdict in ("too little data to say", "good", "overfit")
    wide = found.gap.estimate > 0.2 * found.test.estimate
    assert (found.verdict == "too little data to say") == (wide and found.gap.low <= 0)
    with pytest.raises(DataError, match="four rows"):
        diagnose(LinearRegression(), X[:3], X[:3, 0])


def test_the_floor_finds_the_noise() -> None:
    x, y = waves(3000, 4)
    near = noise_floor(x, y)
    assert near is not None and near.method == "nearest neighbour"
    assert near.risk.low < 0.09 < near.risk.high
    absolute = noise_floor(x, y, "absolute")
    assert absolute is not None
    assert absolute.risk.estimate == pytest.approx(0.3 * np.sqrt(2 / np.pi), abs=0.02)
    rng = np.random.default_rng(5)
    grid = np.repeat(np.arange(100.0), 5)[:, None]
    again = [noise_floor(grid, np.sin(grid[:, 0]) + 0.5 * rng.normal(size=500)) for _ in range(60)]
    assert {floor.method for floor in again if floor} == {"repeated x"}
    assert np.mean([f.risk.estimate for f in again if f]) == pytest.approx(0.25, abs=0.008)
    assert sum(0.25 in f.risk for f in again if f) >= 53
    labels = np.where(rng.random(3000) < 0.1, x[:, 0] > 0, x[:, 0] <= 0)
    share = noise_floor(x, labels, "zero_one")
    assert share is not None and share.risk.estimate == pytest.approx(0.1, abs=0.02)
    assert noise_floor(np.ones((5, 1)), np.arange(5.0)) is None
    with pytest.raises(ValueError, match="loss must be"):
        noise_floor(x, y, "log_loss")


def test_remedies_are_settings_the_model_has() -> None:
    from groundstate import MLPRegressor

    commands = [r.command for r in remedies(MLPRegressor(hidden_layer_sizes=(8, 4)), True, False)]
    assert "diagnose(estimator.set_params(hidden_layer_sizes=(4, 2)), X, y)" in commands
    assert any("dropout=0.3" in c for c in commands) and any("alpha=" in c for c in commands)
    up = list(remedies(MLPRegressor(hidden_layer_sizes=(8, 4)), False, True))
    assert any("hidden_layer_sizes=(16, 8)" in r.command for r in up)


def test_remedies_are_judged_with_the_weights_of_the_rows() -> None:
    """Rows of no weight change nothing, whatever they say."""
    x, y = waves(120, 7, noise=1.0)
    far = np.arange(120) % 4 == 0
    weight = np.where(far, 0.0, 1.0)
    folds = [(np.flatnonzero(np.arange(120) % 3 != k), np.flatnonzero(np.arange(120) % 3 == k))
             for k in range(3)]  # fmt: skip
    model = DecisionTreeRegressor(random_state=0)
    found = [
        diagnose(model, x, np.where(far, y + shift, y), cv=folds, sample_weight=weight, floor=1.0)
        for shift in (0.0, 1000.0)
    ]
    risks = [[r.risk for r in each.remedies if r.risk is not None] for each in found]
    assert len(risks[0]) >= 2
    np.testing.assert_allclose(risks[0], risks[1])
    assert found[0].excess is not None and found[1].excess is not None
    assert found[0].excess.estimate == pytest.approx(found[1].excess.estimate)
    assert [r.fell for r in found[0].remedies] == [r.fell for r in found[1].remedies]


def test_the_target_inside_a_table_finds_no_neighbours() -> None:
    from groundstate.data import read

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=300)
    alone, inside = noise_floor(X, y), noise_floor(read((X, y), target="target"), y)
    assert alone is not None and inside is not None
    assert inside.risk.estimate == pytest.approx(alone.risk.estimate, rel=1e-12)
    assert inside.risk.estimate > 0.9  # the noise is 1
