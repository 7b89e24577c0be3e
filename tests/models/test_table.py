"""A preparation and an estimator as one model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import groundstate
from groundstate import LinearSVC, LogisticRegression, Ridge, data
from groundstate.errors import DataError, NotApplicable, Unsupported
from groundstate.math.kernels import RBF
from groundstate.models.population.many import fit_together
from groundstate.models.tables.restored import restored
from groundstate.models.tables.table import TablePredictor
from groundstate.models.traits import asks_scaled_target


def rows(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    size = rng.normal(size=n)
    colour = rng.choice(["red", "blue"], n)
    label = np.where(size + (colour == "red") > 0.3, "big", "small")
    size[::11] = np.nan
    return {"size": size, "colour": colour, "count": rng.integers(0, 9, n), "label": label}


@pytest.fixture(scope="module")
def table() -> data.Table:
    return data.read(rows(), target="label")


@pytest.fixture(scope="module")
def model(table: data.Table) -> TablePredictor:
    return TablePredictor(LogisticRegression()).fit(table)


def test_target_is_taken_from_the_table_and_is_no_feature(model: TablePredictor) -> None:
    assert model.target_ == "label" and model.classes_.tolist() == ["big", "small"]
    assert model.feature_names_in_.tolist() == ["size", "colour", "count"]
    names = ["size", "size missing", "colour=blue", "colour=red", "count"]
    assert model.preparation_.feature_names_out() == names


def test_tables_frames_and_dicts_give_the_same_answers(
    model: TablePredictor, table: data.Table
) -> None:
    expected = model.predict(table)
    features = {k: v for k, v in rows().items() if k != "label"}
    for new in (features, pd.DataFrame(features), pl.DataFrame(features), table.features):
        np.testing.assert_array_equal(model.predict(new), expected)
    # the order of columns and further columns do not matter
    shuffled = pd.DataFrame({"extra": 1.0, **dict(reversed(features.items()))}, index=range(60))
    np.testing.assert_array_equal(model.predict(shuffled), expected)


def test_answers_are_the_estimators_on_prepared_rows(
    model: TablePredictor, table: data.Table
) -> None:
    X = model.prepare(table)
    inner = model.estimator_
    np.testing.assert_allclose(model.predict_proba(table), inner.predict_proba(X))
    np.testing.assert_allclose(model.energy(table), inner.energy(X))
    np.testing.assert_allclose(model.energy(table, table.y), inner.energy(X, table.y))
    np.testing.assert_allclose(model.decision_function(table), inner.decision_function(X))
    assert model.score(table) == inner.score(X, table.y)


def test_weight_two_is_the_row_twice(table: data.Table) -> None:
    weight = 1.0 + (np.arange(table.n_rows) % 3)
    twice = table.take(np.repeat(np.arange(table.n_rows), weight.astype(int)))
    one = TablePredictor(Ridge()).fit(table, table.frame["count"].to_numpy() * 1.0, weight)
    two = TablePredictor(Ridge()).fit(twice, twice.frame["count"].to_numpy() * 1.0)
    np.testing.assert_allclose(one.predict(table), two.predict(table), rtol=1e-8)
    assert one.preparation_.to_state() == two.preparation_.to_state()


def test_infer_speaks_of_the_target_by_name(model: TablePredictor, table: data.Table) -> None:
    best = model.infer(table, "label")
    np.testing.assert_array_equal(best, model.predict(table))
    np.testing.assert_array_equal(model.infer({"x": table}, "y"), best)
    np.testing.assert_allclose(model.infer(table, "label", "marginal"), model.energy(table))
    draws = model.infer(table, ("label",), "sample", n=4, random_state=0)
    assert set(draws) == {"label"} and draws["label"].shape == (4, 60)


def test_methods_are_those_of_the_estimator(table: data.Table) -> None:
    svc = TablePredictor(LinearSVC())
    assert not hasattr(svc, "predict_proba") and not hasattr(svc, "sample")
    assert hasattr(svc, "energy")
    assert not hasattr(TablePredictor(DummyRegressor()), "energy")
    assert is_classifier(svc) and is_regressor(TablePredictor(Ridge()))
    with pytest.raises(NotFittedError):
        svc.predict(table)


def test_clone_and_parameters(table: data.Table) -> None:
    made = TablePredictor(LogisticRegression(C=3.0), max_categories=4)
    copy = clone(made).set_params(estimator__C=0.5)
    assert made.estimator.C == 3.0 and copy.max_categories == 4
    copy.fit(table)
    assert copy.estimator_.C == 0.5 and not hasattr(copy.estimator, "energy_")


def test_scikit_learn_cross_validates_it() -> None:
    frame = pd.DataFrame(rows())
    scores = cross_val_score(
        TablePredictor(LogisticRegression()), frame.drop(columns="label"), frame["label"], cv=3
    )
    assert scores.mean() > 0.8


def test_save_and_load(model: TablePredictor, table: data.Table, tmp_path: Path) -> None:
    path = model.save(tmp_path / "m.gs")
    same = groundstate.load(path)
    assert isinstance(same, TablePredictor) and same.schema_ == model.schema_
    np.testing.assert_array_equal(same.predict_proba(table), model.predict_proba(table))
    assert same.save(tmp_path / "n.gs").read_bytes() == path.read_bytes()


def test_errors_teach(model: TablePredictor, table: data.Table) -> None:
    with pytest.raises(DataError, match="X has 60 rows but y has 3"):
        TablePredictor(Ridge()).fit(table, [1, 2, 3])
    with pytest.raises(DataError, match="lacks the columns 'colour', 'count'"):
        model.predict({"size": [1.0]})

    class Weightless(DummyRegressor):
        def fit(self, X: Any, y: Any) -> Any:
            return super().fit(X, y)

    with pytest.raises(Unsupported, match="Weightless takes no sample_weight"):
        TablePredictor(Weightless()).fit(table, np.ones(60), np.ones(60))


def test_restored_undoes_the_preparation() -> None:
    frame = pl.DataFrame(
        {
            "n": [1, 5, None, 3],
            "v": [0.5, -1.0, 2.25, 0.0],
            "c": ["a", None, "b", "a"],
            "d": ["2024-01-05", "2024-02-01", "2023-12-31", "2024-01-01"],
        }
    )
    table = data.read(frame)
    prep = data.Preparation().fit(table)
    back = restored(prep, prep.transform(table))
    assert back["n"].to_list() == [1, 5, None, 3] and back["c"].to_list() == ["a", None, "b", "a"]
    np.testing.assert_allclose(back["v"].to_numpy(), [0.5, -1.0, 2.25, 0.0], atol=1e-12)
    assert [str(day.date()) for day in back["d"]] == frame["d"].to_list()


SMALL: dict[str, Any] = {
    "hidden_layer_sizes": (8,), "activation": "tanh", "learning_rate_init": 0.02, "max_iter": 80,
    "n_iter_no_change": np.inf, "random_state": 0,
}  # fmt: skip
NEEDY = {
    "network": groundstate.MLPRegressor(**SMALL),
    "distribution": groundstate.MLPRegressor("normal", **SMALL),
    "kernel": groundstate.KernelRidge(alpha=0.1),
    "process": groundstate.GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=0.1),
}


def far(n: int = 60) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """A target a thousand spreads from zero."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 2))
    return {"a": x[:, 0], "b": x[:, 1]}, 5000 + 4 * x[:, 0] - 3 * x[:, 1] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("estimator", NEEDY.values(), ids=NEEDY)
def test_answers_do_not_depend_on_the_units_of_the_target(estimator: Any) -> None:
    X, y = far()
    one = TablePredictor(estimator).fit(X, y)
    two = TablePredictor(estimator).fit(X, 1000 * (y - 5000))
    assert one.target_scale_ is not None and one.score(X, y) > 0.5
    back = two.predict(X) / 1000 + 5000
    np.testing.assert_allclose(one.predict(X), back, rtol=0, atol=0.02)
    plain = TablePredictor(estimator, scale_target=False).fit(X, y)
    assert plain.target_scale_ is None and plain.score(X, y) < one.score(X, y) - 0.1


@pytest.mark.parametrize("name", ["distribution", "process"])
def test_the_energy_of_a_distribution_is_a_log_density_in_the_units_of_the_target(
    name: str,
) -> None:
    X, y = far()
    model = TablePredictor(NEEDY[name]).fit(X, y)
    grid = np.linspace(4900, 5100, 4001)
    row = {k: np.full(len(grid), v[0]) for k, v in X.items()}
    density = np.exp(-model.energy(row, grid))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
    if name == "distribution":  # the density is over outcomes, whose mean is the prediction
        mean = np.trapezoid(density * grid, grid)
        assert mean == pytest.approx(float(model.predict(X)[0]), abs=1e-2)
    np.testing.assert_allclose(model.energy(X), 0, atol=1e-5)  # marginalised over y
    np.testing.assert_allclose(model.infer(X, "y", "marginal"), model.energy(X), atol=1e-6)


def test_any_other_energy_is_that_of_the_scaled_target() -> None:
    X, y = far()
    model = TablePredictor(NEEDY["network"]).fit(X, y)
    s = float(model.target_scale_.scale)
    expected = ((y - model.predict(X)) / s) ** 2 / 2
    np.testing.assert_allclose(model.energy(X, y), expected, rtol=1e-3, atol=1e-6)
    # the sum over all y knows that dy is s times as long
    free = -0.5 * np.log(2 * np.pi) - np.log(s)
    np.testing.assert_allclose(model.energy(X), free, rtol=1e-5)
    hot = -2 * (0.5 * np.log(2 * np.pi * 2) + np.log(s))
    np.testing.assert_allclose(model.infer(X, "y", "marginal", T=2.0), hot, rtol=1e-5)


def test_intervals_deviations_draws_and_best_values_come_in_units_of_the_target() -> None:
    X, y = far()
    distribution = TablePredictor(NEEDY["distribution"]).fit(X, y)
    ends = distribution.predict_interval(X, 0.9)
    assert ends.shape == (60, 2) and ((ends[:, 0] < y) & (y < ends[:, 1])).mean() > 0.75
    draws = distribution.infer(X, "y", "sample", n=400, random_state=0)
    inside = (ends[:, 0] < draws.reshape(400, 60)) & (draws.reshape(400, 60) < ends[:, 1])
    assert inside.mean() == pytest.approx(0.9, abs=0.01)
    process = TablePredictor(NEEDY["process"]).fit(X, y)
    mean, std = process.predict(X, return_std=True)
    np.testing.assert_allclose(mean, process.predict(X))
    inner = process.estimator_.predict(process.prepare(X), return_std=True)[1]
    np.testing.assert_allclose(std, inner * np.std(y))
    spread = process.predict(X, return_cov=True)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(spread)), std, rtol=1e-6)
    best = process.infer(X, "y")
    np.testing.assert_allclose(np.ravel(best), mean, rtol=1e-6)
    with pytest.raises(Unsupported, match="predict of Ridge has no option 'return_std'"):
        TablePredictor(Ridge()).fit(X, y).predict(X, return_std=True)


def test_a_scaled_target_respects_weights_and_is_kept_in_the_file(tmp_path: Path) -> None:
    X, y = far()
    weight = 1.0 + np.arange(60) % 3
    rows = np.repeat(np.arange(60), weight.astype(int))
    kernel = NEEDY["kernel"]
    one = TablePredictor(kernel).fit(X, y, weight)
    two = TablePredictor(kernel).fit({k: v[rows] for k, v in X.items()}, y[rows])
    assert one.target_scale_.mean == two.target_scale_.mean  # to the last bit
    assert one.target_scale_.scale == two.target_scale_.scale
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9)
    same = groundstate.load(one.save(tmp_path / "m.gs"))
    assert same.target_scale_.scale == one.target_scale_.scale
    np.testing.assert_array_equal(same.predict(X), one.predict(X))
    np.testing.assert_array_equal(same.energy(X, y), one.energy(X, y))


def test_several_targets_are_scaled_one_by_one() -> None:
    X, y = far()
    both = np.stack([y, -100 * y], 1)
    model = TablePredictor(NEEDY["kernel"]).fit(X, both)
    answers = model.predict(X)
    np.testing.assert_allclose(answers[:, 1], -100 * answers[:, 0], rtol=1e-9)
    np.testing.assert_allclose(answers[:, 0], TablePredictor(NEEDY["kernel"]).fit(X, y).predict(X))


def test_who_asks_for_a_scaled_target() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVR

    asked = (*NEEDY.values(), make_pipeline(groundstate.KernelRidge()))
    asked += (groundstate.BaggingRegressor(groundstate.MLPRegressor()),)
    assert all(asks_scaled_target(each) for each in asked)
    unasked = (
        Ridge(), groundstate.RandomForestRegressor(), groundstate.MixtureDensityRegressor(),
        groundstate.MLPRegressor("poisson"), groundstate.MLPClassifier(), LogisticRegression(),
        groundstate.GaussianProcessRegressor(normalize_y=True), groundstate.KNeighborsRegressor(),
        SVR(),  # declares nothing: its target is scaled where scale_target=True asks for it
    )  # fmt: skip
    assert not any(asks_scaled_target(each) for each in unasked)
    X, y = far()
    with pytest.raises(Unsupported, match="scale_target=True is for regressors"):
        TablePredictor(LogisticRegression(), scale_target=True).fit(X, y > 5000)
    with pytest.raises(DataError, match="scale_target needs a target of numbers"):
        TablePredictor(Ridge(), scale_target=True).fit(X, ["a"] * 60)


def test_a_network_learns_diabetes_as_well_as_its_neighbours() -> None:
    table = data.read("diabetes", target="target")
    frame, y = table.features.frame.to_pandas(), table.y.astype(float)
    found = {
        type(model).__name__: cross_val_score(TablePredictor(model), frame, y, cv=5).mean()
        for model in (Ridge(), groundstate.MLPRegressor(n_iter_no_change=np.inf, random_state=0))
    }
    assert found["MLPRegressor"] > found["Ridge"] - 0.05 > 0.4


def test_draws_of_outcomes_are_asked_for_by_infer() -> None:
    X, y = far()
    model = TablePredictor(groundstate.MixtureDensityRegressor(1, max_iter=5, random_state=0))
    model.fit(X, y)
    with pytest.raises(Unsupported, match=r"draws the outcome of given rows .* infer\(rows, 'y'"):
        model.sample(3)
    assert np.asarray(model.infer(X, "y", "sample", n=3, random_state=0)).shape[:2] == (3, 60)


@pytest.mark.parametrize("kind", ["labels", "values"])
def test_many_fits_to_a_table_are_the_fits_one_after_the_other(kind: str) -> None:
    from groundstate import MLPClassifier, MLPRegressor

    rng = np.random.default_rng(0)
    frame = {
        "size": rng.normal(size=90),
        "town": rng.choice(["a", "b", "c"], 90),
        "y": rng.choice(["u", "v"], 90) if kind == "labels" else rng.normal(50, 9, 90),
    }
    table = data.read(frame).with_target("y")
    y = np.asarray(table.y)
    weights = np.ones((4, 90))
    for fold in range(3):
        weights[fold, fold * 30 : fold * 30 + 30] = 0
    weights[3, ::2] = 2
    model = MLPClassifier if kind == "labels" else MLPRegressor
    recipe = TablePredictor(
        model(hidden_layer_sizes=(5,), max_iter=4, n_iter_no_change=9, random_state=0)
    )
    params = [{"estimator__alpha": alpha} for alpha in (1e-4, 1e-2, 1.0, 1e-4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit_together(recipe, table, y, weights, params)
        for member, weight, own in zip(found, weights, params, strict=True):
            rows = np.flatnonzero(weight)
            alone = clone(recipe).set_params(**own)
            some = None if (weight[rows] == 1).all() else weight[rows]
            alone.fit(table.take(rows), y[rows], some)
            ask = "predict_proba" if kind == "labels" else "predict"
            np.testing.assert_allclose(
                getattr(member, ask)(table), getattr(alone, ask)(table), rtol=1e-9
            )
            assert member.get_params()["estimator__alpha"] == own["estimator__alpha"]
    with pytest.raises(NotApplicable, match="another solver"):
        fit_together(TablePredictor(Ridge(solver="svd")), table, np.arange(90.0), weights, [{}] * 4)


def test_text_is_sparse_for_models_that_take_it_and_dense_for_others(tmp_path: Path) -> None:
    from scipy.sparse import issparse

    rng = np.random.default_rng(0)
    good, bad = ["superb", "lovely", "crisp"], ["dull", "broken", "stale"]
    y = rng.choice(["pos", "neg"], 80)
    said = [
        f"the {rng.choice(good if k == 'pos' else bad)} one of day {i}" for i, k in enumerate(y)
    ]
    rows = {"said": said, "size": rng.normal(size=80)}
    for estimator in (groundstate.LogisticRegression(), groundstate.ComplementNB()):
        model = TablePredictor(estimator).fit(rows, y)
        assert issparse(model.prepare(rows)) and model.score(rows, y) == 1.0
        model.save(tmp_path / "m.gs")
        again = groundstate.load(tmp_path / "m.gs")
        np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    trees = TablePredictor(groundstate.DecisionTreeClassifier()).fit(rows, y)
    assert not issparse(trees.prepare(rows))
    assert not issparse(
        TablePredictor(groundstate.LogisticRegression(), sparse=False).fit(rows, y).prepare(rows)
    )
