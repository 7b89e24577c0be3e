"""Shapley values: exact by the definition, by the axioms and beside `shap`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression as PeerLinear
from sklearn.neighbors import KNeighborsRegressor as PeerNeighbors

import groundstate as gs
from groundstate.data import read
from groundstate.errors import DataError, NotApplicable
from groundstate.evaluate import shapley_values

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6))
X[rng.random(X.shape) < 0.05] = np.nan
Z = np.nan_to_num(X)
Y = 2 * Z[:, 0] + Z[:, 1] * Z[:, 2] + (Z[:, 3] > 0)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-1, 1.5])]
ROWS, BACK = X[:5], X[100:118]

TREES = {
    "tree": (gs.DecisionTreeRegressor(max_depth=6), Y),
    "classes": (gs.DecisionTreeClassifier(), LABELS),
    "forest": (gs.RandomForestRegressor(8, random_state=0), Y),
    "forest of classes": (gs.RandomForestClassifier(8, random_state=0), LABELS),
    "extra": (gs.ExtraTreesClassifier(8, random_state=0), LABELS),
    "boosted": (gs.GradientBoostingRegressor(n_estimators=12), Y),
    "histogram": (gs.HistGradientBoostingRegressor(max_iter=12), Y),
    "poisson": (gs.HistGradientBoostingRegressor(max_iter=12, loss="poisson"), np.abs(Y)),
    "histogram of classes": (gs.HistGradientBoostingClassifier(max_iter=8), LABELS),
    "two classes": (gs.HistGradientBoostingClassifier(max_iter=8), Y > 0),
    "boosted classes": (gs.GradientBoostingClassifier(n_estimators=5), LABELS),
}


class Raw:
    """The scores themselves as a regressor's values, for the definition."""

    classes_ = None

    def __init__(self, model: Any) -> None:
        self.model, self.fitted_ = model, True

    def fit(self, X: Any, y: Any) -> Raw:
        return self

    def __sklearn_tags__(self) -> Any:
        return gs.Ridge().__sklearn_tags__()

    def predict(self, rows: Any) -> Any:
        x = self.model._rows(rows)[0]
        return self.model.energy_.raw(x).numpy()


@pytest.mark.parametrize("name", TREES)
def test_trees_are_exact(name: str) -> None:
    model, target = TREES[name]
    model = model.fit(X, target)
    found = shapley_values(model, ROWS, BACK)
    assert found.method == "trees" and found.exact
    asked: Any = model if found.units in ("value", "probability") else Raw(model)
    told = asked.predict_proba(ROWS) if found.units == "probability" else asked.predict(ROWS)
    whole = found.base + found.values.sum(1)
    np.testing.assert_allclose(whole, np.reshape(told, whole.shape), atol=1e-10)  # efficiency
    oracle = shapley_values(asked, ROWS, BACK, method="enumerate")
    np.testing.assert_allclose(found.values, oracle.values, atol=1e-10)
    np.testing.assert_allclose(found.base, oracle.base, atol=1e-10)


def test_boosted_rows_by_hand() -> None:
    """The definition written out, with none of our code but ``predict``.

    A boosted model of another library that agrees on every training row may still have taken other
    cuts of equal gain, and then answers mixed rows otherwise: its values differ, and both are right.
    """
    from itertools import combinations
    from math import factorial

    d, x, back = 4, Z[3, :4], Z[200:220, :4]
    model = gs.GradientBoostingRegressor(n_estimators=20, max_depth=4).fit(Z[:, :4], Y)

    def v(players: tuple[int, ...]) -> float:
        mixed = back.copy()
        mixed[:, list(players)] = x[list(players)]
        return float(np.mean(model.predict(mixed)))

    phi = np.zeros(d)
    for j in range(d):
        others = [i for i in range(d) if i != j]
        for size in range(d):
            share = factorial(size) * factorial(d - size - 1) / factorial(d)
            for some in combinations(others, size):
                phi[j] += share * (v((*some, j)) - v(some))
    found = shapley_values(model, x[None], back)
    assert found.method == "trees"
    np.testing.assert_allclose(found.values[0, :, 0], phi, atol=1e-10)


def test_parity_with_shap() -> None:
    """TreeExplainer(model, X[:50], feature_perturbation="interventional").shap_values(X[100:102]) of
    shap 0.51.0 and scikit-learn's DecisionTreeRegressor(max_depth=3) and
    GradientBoostingRegressor(n_estimators=10, random_state=0) on load_diabetes.
    """
    data, y = load_diabetes(return_X_y=True)
    tree = gs.DecisionTreeRegressor(max_depth=3).fit(data, y)
    found = shapley_values(tree, data[100:102], data[:50])
    assert found.base[0] == pytest.approx(143.20726004727118, abs=1e-8)
    peer = [
        [-2.3866667175, 0, 40.4919638062, 0, 0, 0, -2.03484375, 0, 29.2937106323, 0],
        [0, 0, -26.4276394653, 0, 0, 0, -10.3437890625, 0, -23.0667854309, 0],
    ]
    np.testing.assert_allclose(found.values[:, :, 0], peer, atol=2e-5)  # shap adds up in float32
    boosted = gs.GradientBoostingRegressor(n_estimators=10, random_state=0).fit(data, y)
    found = shapley_values(boosted, data[101:102], data[:50])
    assert found.base[0] == pytest.approx(145.21323468430217, abs=1e-8)
    row = [0.0, 0.0, -16.1438106656, 3.7472157371, 0.062961359, 0.160909574, -4.3429241538,
           -0.4621852171, -15.0187784839, 0.5553785944]  # fmt: skip
    np.testing.assert_allclose(found.values[0, :, 0], row, atol=2e-5)


def test_axioms() -> None:
    doubled = np.column_stack([Z[:, 0], Z[:, 0], Z[:, 1], np.zeros(len(Z))])
    forest = gs.RandomForestRegressor(10, random_state=0, max_features=1).fit(doubled, Y)
    found = shapley_values(forest, doubled[:9], doubled[50:80])
    assert (found.values[:, 3] == 0).all()  # dummy
    order = [2, 0, 3, 1]
    turned = gs.DecisionTreeRegressor(max_depth=2).fit(Z[:, order], Y)
    plain = gs.DecisionTreeRegressor(max_depth=2).fit(Z[:, :4], Y)
    a = shapley_values(plain, Z[:9, :4], Z[50:80, :4]).values
    b = shapley_values(turned, Z[:9][:, order], Z[50:80][:, order]).values
    np.testing.assert_allclose(a[:, order], b, atol=1e-12)


def test_weights_of_the_background_are_repetition_and_order_is_nothing() -> None:
    model = gs.RandomForestRegressor(8, random_state=0).fit(X, Y)
    weight = rng.integers(0, 4, len(BACK))
    a = shapley_values(model, ROWS, BACK, sample_weight=weight)
    b = shapley_values(model, ROWS, np.repeat(BACK, weight, 0)[::-1])
    np.testing.assert_allclose(a.values, b.values, atol=1e-12)
    np.testing.assert_allclose(a.base, b.base, atol=1e-12)
    one = [shapley_values(model, ROWS[i : i + 1], BACK).values[0] for i in range(len(ROWS))]
    np.testing.assert_allclose(shapley_values(model, ROWS, BACK).values, one, atol=1e-12)


def test_linear_models_in_closed_form() -> None:
    W = np.array([1.0, -2.0, 0.5, 0.0, 3.0, 1.0])
    model = gs.LinearRegression().fit(Z, Z @ W + 4)
    found = shapley_values(model, Z[:4], Z[50:70])
    assert found.method == "linear" and found.exact
    np.testing.assert_allclose(found.values[:, :, 0], W * (Z[:4] - Z[50:70].mean(0)), atol=1e-9)
    np.testing.assert_allclose(found.base, [Z[50:70].mean(0) @ W + 4], atol=1e-9)
    oracle = shapley_values(model, Z[:4], Z[50:70], method="enumerate")
    np.testing.assert_allclose(found.values, oracle.values, atol=1e-9)
    for several in (LABELS, Y > 0):
        classes = gs.LogisticRegression().fit(Z, several)
        why = shapley_values(classes, Z[:4], Z[50:70])
        told = np.reshape(classes.decision_function(Z[:4]), why.prediction.shape)
        assert why.units == ("log-odds" if several.dtype == bool else "score")
        np.testing.assert_allclose(why.base + why.values.sum(1), told, atol=1e-6)
    peer = PeerLinear().fit(Z, Y)
    assert shapley_values(peer, Z[:4], Z[50:70]).method == "linear"


def test_samples_are_near_the_truth_within_their_errors() -> None:
    model = PeerNeighbors(5).fit(Z, Y)
    exact = shapley_values(model, Z[:6], Z[50:66], method="enumerate")
    found = shapley_values(model, Z[:6], Z[50:66], n_pairs=192)
    assert found.method == "sample" and not found.exact
    assert found.standard_error is not None
    np.testing.assert_allclose(found.base + found.values.sum(1), found.prediction, atol=1e-10)
    np.testing.assert_allclose(found.base, exact.base, atol=1e-12)
    off = np.abs(found.values - exact.values) / found.standard_error
    assert np.mean(off < 2) > 0.9 and off.max() < 5
    again = shapley_values(model, Z[:6], Z[50:66], n_pairs=192)
    np.testing.assert_array_equal(found.values, again.values)
    alone = shapley_values(model, Z[2:3], Z[50:66], n_pairs=192)
    np.testing.assert_allclose(found.values[2:3], alone.values, atol=1e-12)


def test_additive_models_have_no_sampling_error() -> None:
    model = gs.Ridge(alpha=1e-6).fit(Z, Y)
    found = shapley_values(model, Z[:3], Z[50:58], method="sample", n_pairs=16)
    exact = shapley_values(model, Z[:3], Z[50:58])
    np.testing.assert_allclose(found.values, exact.values, atol=1e-9)


def _table(n: int = 200) -> tuple[pl.DataFrame, Any]:
    draw = np.random.default_rng(1)
    rows = pl.DataFrame(
        {
            "size": np.where(draw.random(n) < 0.1, np.nan, draw.normal(size=n)),
            "colour": draw.choice(["red", "blue", "green"], n),
            "when": [f"2024-{1 + i % 12:02d}-11" for i in range(n)],
            "id": [f"row {i}" for i in range(n)],
        }
    ).with_columns(pl.col("size").fill_nan(None))
    y = rows["size"].fill_null(0.0).to_numpy() + 2.0 * (rows["colour"] == "red").to_numpy()
    return rows, y


@pytest.mark.parametrize(
    "inner", [gs.RandomForestRegressor(8, random_state=0), gs.Ridge(), gs.KNeighborsRegressor()]
)
def test_columns_of_a_table_are_the_players(inner: Any) -> None:
    rows, y = _table()
    table = read(rows)
    model = gs.TablePredictor(inner).fit(table, y)
    found = model.explain(table.head(4), table.take(np.arange(40, 60)))
    assert found.columns == ("size", "colour", "when", "id")
    told = model.predict(table.head(4))
    np.testing.assert_allclose(found.base + found.values.sum(1), told[:, None], atol=1e-8)
    assert (found.values[:, 3] == 0).all()  # left out by the model
    oracle = model.explain(table.head(4), table.take(np.arange(40, 60)), method="enumerate")
    error = 1e-8 if found.exact else 5 * np.max(found.standard_error)  # type: ignore[type-var]
    np.testing.assert_allclose(found.values, oracle.values, atol=error)


def test_kept_background_is_saved_with_the_model(tmp_path: Any) -> None:
    rows, y = _table()
    model = gs.TablePredictor(gs.RandomForestRegressor(5, random_state=0)).fit(rows, y)
    with pytest.raises(DataError, match="keep_background"):
        model.explain(rows.head(2))
    first = model.keep_background(rows, 20).explain(rows.head(2))
    again = gs.load(model.save(tmp_path / "m.gs")).explain(rows.head(2))
    np.testing.assert_array_equal(first.values, again.values)
    turned = model.keep_background(rows[::-1], 20).explain(rows.head(2))
    np.testing.assert_allclose(first.values, turned.values, atol=1e-12)
    words = first.sentence(0)
    assert " = " in words and first.top(0)[0]["column"] in words


def test_bad_input_is_refused_in_one_sentence() -> None:
    model = gs.DecisionTreeRegressor(max_depth=2).fit(X, Y)
    with pytest.raises(DataError, match="6 columns and background 5"):
        shapley_values(model, X[:2], X[:9, :5])
    with pytest.raises(DataError, match="n ≥ 1"):
        shapley_values(model, X[:2], X[:0])
    with pytest.raises(DataError, match="sample_weight"):
        shapley_values(model, X[:2], X[:9], sample_weight=-np.ones(9))
    with pytest.raises(NotApplicable, match="coefficients"):
        shapley_values(model, X[:2], X[:9], method="linear")
    with pytest.raises(DataError, match="method is"):
        shapley_values(model, X[:2], X[:9], method="kernel")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["boosted", "histogram"])
def test_cells_on_a_threshold_are_on_the_side_that_the_model_says(name: str) -> None:
    """Rounded cells often are a threshold, which rows cast to float32, as `shap` 0.51.0 casts those of
    scikit-learn's boosting, miss: .02 to .5 in some columns of some rows there."""
    draw = np.random.default_rng(3)
    rows = draw.normal(size=(200, 4)).round(2)
    target = 2 * rows[:, 0] + rows[:, 1] * rows[:, 2] + 0.3 * draw.normal(size=200)
    model = TREES[name][0].__class__(
        **{"histogram": {"max_iter": 12}, "boosted": {"n_estimators": 12}}[name]
    )
    model.fit(rows, target)
    thresholds = model.energy_.nodes.threshold.numpy()
    assert np.isin(rows, thresholds).any()
    exact, definition = (
        shapley_values(model, rows[:20], rows[100:130], method=way)
        for way in ("trees", "enumerate")
    )
    np.testing.assert_allclose(exact.values, definition.values, atol=1e-9)


def test_cells_that_are_already_there_are_not_asked_for() -> None:
    """Of columns of few levels most steps of an order change nothing."""
    levels = np.random.default_rng(4).integers(0, 2, (90, 6)).astype(float)
    model = PeerNeighbors(5).fit(levels, levels[:, 0] * levels[:, 1] + levels[:, 2])
    asked: list[int] = []

    class Counted:
        def __init__(self) -> None:
            self.fitted_ = True

        def fit(self, X: Any, y: Any) -> Counted:
            return self

        def __sklearn_tags__(self) -> Any:
            return gs.Ridge().__sklearn_tags__()

        def predict(self, rows: Any) -> Any:
            asked.append(len(rows))
            return model.predict(rows)

    counted: Any = Counted()
    found = shapley_values(counted, levels[:20], levels[50:66], method="sample", n_pairs=64)
    assert sum(asked) < 0.6 * (20 * 2 * 5 * 64)
    exact = shapley_values(counted, levels[:20], levels[50:66], method="enumerate")
    assert found.standard_error is not None
    off = np.abs(found.values - exact.values) / np.maximum(found.standard_error, 1e-9)
    assert np.mean(off < 2) > 0.9
    np.testing.assert_allclose(found.base + found.values.sum(1), found.prediction, atol=1e-10)


def test_few_rows_are_exact_and_many_are_sampled_less() -> None:
    model = PeerNeighbors(5).fit(Z, Y)
    assert shapley_values(model, Z[:4], Z[50:66]).method == "enumerate"
    shares: list[float] = []
    many = shapley_values(model, np.repeat(Z, 12, 0), Z[50:66], progress=shares.append)
    assert many.method == "sample" and many.standard_error is not None
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)
    more = shapley_values(model, Z, Z[50:66], n_pairs=64)
    assert more.standard_error is not None
    assert more.standard_error.mean() < many.standard_error.mean()


@pytest.mark.parametrize(
    "name",
    [
        "SVC",
        "GaussianProcessClassifier",
        pytest.param("TabularMLPClassifier", marks=pytest.mark.slow),
    ],
)
def test_a_table_of_usual_size_is_explained_soon(name: str) -> None:
    """344 rows of seven columns: no model takes more than seconds, and errors are small."""
    draw = np.random.default_rng(5)
    rows = pl.DataFrame(
        {
            **{f"x{j}": draw.normal(size=344) for j in range(5)},
            "town": draw.choice(["a", "b", "c"], 344),
            "sex": draw.choice(["f", "m"], 344),
        }
    )
    y = np.where(rows["x0"].to_numpy() + (rows["town"] == "a").to_numpy() > 0.4, "yes", "no")
    model = gs.TablePredictor(getattr(gs, name)(random_state=0)).fit(rows, y)
    model.keep_background(rows)
    start = time.process_time()
    found = model.explain(rows)
    assert time.process_time() - start < 40
    assert found.standard_error is not None
    top = [found.top(i)[0] for i in range(344)]
    assert np.mean([part["column"] in ("x0", "town") for part in top]) > 0.9
