"""Importance by shuffling: parity, groups, weights, order, coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.inspection import permutation_importance as peer

import groundstate as gs
from groundstate.data import read
from groundstate.errors import DataError
from groundstate.evaluate import association, column_groups, permutation_importance

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
Y = 2 * X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=400)
TRAIN, TEST = slice(0, 250), slice(250, 400)
FOREST = gs.RandomForestRegressor(15, random_state=0).fit(X[TRAIN], Y[TRAIN])


def test_means_are_those_of_scikit_learn() -> None:
    found = permutation_importance(FOREST, X[TEST], Y[TEST], groups=None, n_repeats=30)
    told = peer(
        FOREST, X[TEST], Y[TEST], scoring="neg_mean_squared_error", n_repeats=30, random_state=0
    )
    for j in range(4):
        error = 4 * (told.importances_std[j] + found.each[found.groups.index((f"x{j}",))].std())
        assert found[f"x{j}"].estimate == pytest.approx(
            told.importances_mean[j], abs=error / 30**0.5 + 1e-9
        )
    assert found.base == pytest.approx(np.mean((FOREST.predict(X[TEST]) - Y[TEST]) ** 2))


def test_linear_truth_is_twice_the_variance() -> None:
    """E rise of the squared error when column j is shuffled: 2 w_j² Var x_j."""
    rows = np.random.default_rng(1).normal(size=(4000, 3))
    w = np.array([1.0, 0.5, 0.0])
    model = gs.LinearRegression().fit(rows, rows @ w)
    found = permutation_importance(model, rows, rows @ w, groups=None)
    for j in range(3):
        truth = 2 * w[j] ** 2 * rows[:, j].var()
        assert found[f"x{j}"].low - 1e-9 <= truth <= found[f"x{j}"].high + 1e-9


def test_columns_that_go_together_count_by_their_sum() -> None:
    """E rise = 2 Var Σ_{j in group} w_j x_j: neither column alone is said to be useless, or counted twice."""
    draw = np.random.default_rng(2)
    first = draw.normal(size=4000)
    rows = np.stack([first, first + 0.1 * draw.normal(size=4000), draw.normal(size=4000)], 1)
    w = np.array([1.0, -0.5, 0.7])
    model = gs.LinearRegression().fit(rows, rows @ w)
    found = permutation_importance(model, rows, rows @ w, groups=[("x0", "x1"), ("x2",)])
    for inside in ([0, 1], [2]):
        part, truth = found[f"x{inside[0]}"], 2 * (rows[:, inside] @ w[inside]).var()
        assert part.low <= truth <= part.high
        assert part.estimate == pytest.approx(truth, rel=0.05)
    alone = permutation_importance(model, rows, rows @ w, groups=None)
    assert alone["x0"].estimate + alone["x1"].estimate > 4 * found["x0"].estimate


def test_intervals_cover_the_truth() -> None:
    covered = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        rows = draw.normal(size=(80, 2))
        y = rows[:, 0] + draw.normal(size=80)
        model = _Fixed()
        found = permutation_importance(model, rows, y, groups=None, random_state=seed)["x0"]
        covered += found.low <= 2.0 <= found.high
    assert 52 <= covered <= 60


class _Fixed:
    """f(x) = x₀."""

    def __init__(self) -> None:
        self.fitted_ = True

    def __sklearn_tags__(self) -> Any:
        return gs.Ridge().__sklearn_tags__()

    def fit(self, X: Any, y: Any) -> _Fixed:
        return self

    def predict(self, rows: Any) -> Any:
        return np.asarray(rows)[:, 0]


def test_a_weight_of_two_is_the_row_twice_and_order_is_nothing() -> None:
    weight = rng.integers(0, 3, 150)
    a = permutation_importance(FOREST, X[TEST], Y[TEST], sample_weight=weight)
    rows = np.repeat(np.arange(250, 400), weight)
    rows = rng.permutation(rows)
    b = permutation_importance(FOREST, X[rows], Y[rows])
    assert a.groups == b.groups
    for (_, one), (_, two) in zip(a, b, strict=True):
        assert one.estimate == pytest.approx(two.estimate, abs=1e-12)
        assert one.low == pytest.approx(two.low, abs=1e-12)
    real = permutation_importance(FOREST, X[TEST], Y[TEST], sample_weight=weight + 0.5)
    assert real["x0"].low > 0


def test_columns_that_go_together_are_shuffled_together() -> None:
    twice = np.column_stack([X, X[:, 0] + 0.05 * rng.normal(size=400)])
    model = gs.RandomForestRegressor(15, max_features=1, random_state=0).fit(twice[TRAIN], Y[TRAIN])
    together = permutation_importance(model, twice[TEST], Y[TEST])
    assert together.groups[0] == ("x0", "x4")
    alone = permutation_importance(model, twice[TEST], Y[TEST], groups=None)
    assert together["x4"].estimate > 1.5 * max(alone["x0"].estimate, alone["x4"].estimate)
    named = permutation_importance(model, twice[TEST], Y[TEST], groups={"a": ["x0", "x4"]})
    assert named.groups == (("x0", "x4"),)
    assert named["x0"].estimate == pytest.approx(together["x0"].estimate)
    with pytest.raises(DataError, match="no column 'z'"):
        permutation_importance(model, twice[TEST], Y[TEST], groups=[["z"]])


def test_classes_and_tables_of_mixed_columns() -> None:
    n = 300
    rows = pl.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": rng.choice(["red", "blue", "green"], n),
            "noise": rng.choice(["u", "v"], n),
        }
    )
    y = np.where((rows["colour"] == "red").to_numpy() ^ (rng.random(n) < 0.1), "yes", "no")
    table = read(rows)
    for inner in (gs.RandomForestClassifier(10, random_state=0), gs.LogisticRegression(), gs.SVC()):
        model = gs.TablePredictor(inner).fit(table.take(np.arange(200)), y[:200])
        found = permutation_importance(model, table.take(np.arange(200, 300)), y[200:])
        assert found.groups[0] == ("colour",) and found["colour"].low > 0
        assert found.loss == ("accuracy" if isinstance(inner, gs.SVC) else "brier")
        assert found["noise"].low <= 0.02
    wrong = np.where(y == "yes", "maybe", y)
    with pytest.raises(DataError, match="knows no class maybe"):
        permutation_importance(model, table, wrong)


def test_association_of_every_kind() -> None:
    n = 2000
    a = rng.normal(size=n)
    label = np.where(a > 0, "high", "low")
    free = rng.choice(["p", "q"], n)
    found = association(
        pl.DataFrame({"a": a, "b": -np.exp(a), "label": label, "copy": label, "free": free})
    )
    assert found[0, 1] == pytest.approx(1)
    assert 0.8 < found[0, 2] < 0.9  # √3/2 for a cut at the median
    assert found[0, 2] == pytest.approx(3**0.5 / 2, abs=0.01)
    assert found[2, 3] == pytest.approx(1, abs=1e-3)
    assert found[:4, 4].max() < 0.08
    groups = column_groups(pl.DataFrame({"a": a, "b": -a, "c": free}))
    assert groups == [("a", "b"), ("c",)]
    assert column_groups(np.ones((5, 1))) == [("x0",)]


def test_bad_input() -> None:
    with pytest.raises(DataError, match="one target per row"):
        permutation_importance(FOREST, X[TEST], Y[:3])
    with pytest.raises(DataError, match="no mean over rows"):
        permutation_importance(FOREST, X[TEST], Y[TEST], metric="r2")
