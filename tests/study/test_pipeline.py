"""The preparation of columns inside every fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from groundstate.errors import DataError
from groundstate.evaluate import cross_validate
from groundstate.evaluate.pipeline import default_pipeline

N = 120


@pytest.fixture
def rows() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    frame = pd.DataFrame(
        {
            "number": np.where(np.arange(N) % 9 == 0, np.nan, x),
            "colour": rng.choice(["red", "blue", "green"], N),
            "town": [f"town {i % 30}" for i in range(N)],
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "remark": [f"row number {i} says {'good' if x[i] > 0 else 'bad'} things {i % 13}"
                       for i in range(N)],
            "key": [f"id-{i:05d}" for i in range(N)],
            "same": 1,
        }
    )  # fmt: skip
    return frame, (x > 0).astype(int)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(20, random_state=0)]
)
def test_every_kind_of_column_is_prepared(rows: Any, model: Any) -> None:
    X, y = rows
    made = default_pipeline(X, model)
    assert set(made.dropped_) == {"key", "same"}
    assert not hasattr(made, "classes_")
    assert cross_val_score(made, X, y, cv=3).mean() > 0.9
    fitted = made.fit(X, y)
    kinds = {name: encoder.kind for name, encoder in fitted.preparation_.encoders_.items()}
    trees = isinstance(model, RandomForestClassifier)
    assert kinds == {
        "number": "numeric",
        "colour": "ordinal" if trees else "category",
        "town": "ordinal" if trees else "target",
        "when": "date",
        "remark": "text" if trees else "terms",  # as the model takes sparse rows
    }
    prepared = fitted.prepare(X)
    assert np.isfinite(prepared if trees else prepared.toarray()).all()
    names = fitted.preparation_.feature_names_out()
    assert {"number missing", "when year", "when month", "when weekday", "when elapsed"} <= set(
        names
    )
    assert sum(name.startswith("remark topic") for name in names) == (50 if trees else 0)
    scale = fitted.preparation_.encoders_["number"].scale
    assert (scale == 1) == trees


def test_what_is_new_at_prediction_time_is_no_error(rows: Any) -> None:
    X, y = rows
    for model in (LogisticRegression(), RandomForestClassifier(5)):
        made = default_pipeline(X, model).fit(X, y)
        new = X.head(3).copy()
        new["colour"], new["town"], new["remark"] = "violet", "nowhere", None
        assert made.predict(new).shape == (3,)


class Spy(TransformerMixin, BaseEstimator):
    """Remembers the rows it was fitted to."""

    seen: list[set[float]] = []

    def fit(self, X: Any, y: Any = None) -> Spy:
        Spy.seen.append(set(np.asarray(X)[:, 0].tolist()))
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_statistics_of_a_fold_never_see_its_test_rows() -> None:
    X = np.arange(40.0)[:, None]
    Spy.seen = []
    found = cross_validate(make_pipeline(Spy(), Ridge()), X, X[:, 0], cv=4)
    assert len(Spy.seen) == 4
    for seen, (train, test) in zip(Spy.seen, found.folds):
        assert seen == set(X[train, 0].tolist()) and not seen & set(X[test, 0].tolist())


def test_medians_come_from_training_rows(rows: Any) -> None:
    X, y = rows
    made = clone(default_pipeline(X, LogisticRegression())).fit(X[:60], y[:60])
    median = made.preparation_.encoders_["number"].median
    assert median == pytest.approx(float(X["number"][:60].median()))


def test_it_is_saved_without_pickle_and_asked_about_raw_rows(rows: Any, tmp_path: Any) -> None:
    import groundstate

    X, y = rows
    for model in (groundstate.LogisticRegression(), groundstate.RandomForestClassifier(3)):
        made = default_pipeline(X, model).fit(X, y)
        same = groundstate.load(made.save(tmp_path / "model.gs"))
        assert same.dropped_ == ["key", "same"]
        np.testing.assert_array_equal(same.predict_proba(X), made.predict_proba(X))
        new = X.head(2).astype({"colour": object}).assign(colour="violet", town=None)
        np.testing.assert_array_equal(same.predict(new), made.predict(new))


@pytest.mark.parametrize("design", ["holdout", "nested"])
def test_no_part_of_an_assessment_prepares_rows_with_statistics_of_their_own(
    design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comparison, tuning, folds, seeds, resamples and curves: every preparation."""
    from groundstate.data import Preparation
    from groundstate.study.assess import assess
    from groundstate.study.design import HeldRows
    from groundstate.study.tuning import Search

    log: list[Any] = []
    fit, transform, look = Preparation.fit_transform, Preparation.transform, HeldRows.look

    def ids(table: Any) -> frozenset[Any]:
        return frozenset(table.frame["x"].to_list())

    def spied(self: Any, table: Any, *args: Any, **more: Any) -> Any:
        self.rows = ids(table)
        log.append(("fit", self.rows))
        return fit(self, table, *args, **more)

    def asked(self: Any, table: Any) -> Any:
        log.append(("ask", self.rows, ids(table)))
        return transform(self, table)

    def opened(self: Any, purpose: str) -> Any:
        log.append(("look", ids(self._X.take(self.rows))))
        return look(self, purpose)

    monkeypatch.setattr(Preparation, "fit_transform", spied)
    monkeypatch.setattr(Preparation, "transform", asked)
    monkeypatch.setattr(HeldRows, "look", opened)
    rng = np.random.default_rng(0)
    X = {"x": rng.normal(size=60), "town": [f"t{i % 24}" for i in range(60)]}
    y = np.where(X["x"] + 0.3 * rng.normal(size=60) > 0, "up", "down")
    test = 0.25 if design == "holdout" else None
    found = assess(
        LogisticRegression(), pd.DataFrame(X), y, design=design, test=test, folds=2, repeats=1,
        tuner=Search(2), seeds=2, bootstrap=3,
    )  # fmt: skip
    assert found.developed.tuned is not None and found.variation is not None
    assert found.curve is not None and found.diagnosis is not None
    for _, seen, rows in (entry for entry in log if entry[0] == "ask"):
        assert rows <= seen or not rows & seen  # all known to the fit, or all new to it
    looks = [i for i, entry in enumerate(log) if entry[0] == "look"]
    assert len(looks) == (1 if design == "holdout" else 0)  # folds are judged by fits without them
    start = 0
    for at in looks:  # nothing that was learned before a look knew its rows
        held = log[at][1]
        before = [entry[1] for entry in log[start:at] if entry[0] == "fit"]
        assert len(before) > 5 and not any(held & rows for rows in before)
        start = at


def test_a_pipeline_is_left_alone_and_nothing_usable_is_said() -> None:
    own = make_pipeline(Ridge())
    assert default_pipeline(pd.DataFrame({"a": [1.0, 2.0]}), own) is own
    with pytest.raises(DataError, match="no usable column"):
        default_pipeline(pd.DataFrame({"a": [1] * 9}), Ridge())
