"""A preparation and an estimator as one model."""

from __future__ import annotations

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
from groundstate.errors import DataError, Unsupported
from groundstate.models.restored import restored
from groundstate.models.table import TablePredictor


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
