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


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(20)])
def test_every_kind_of_column_is_prepared(rows: Any, model: Any) -> None:
    X, y = rows
    made = default_pipeline(X, model)
    assert set(made.dropped_) == {"key", "same"}
    assert not hasattr(made, "classes_")
    assert cross_val_score(made, X, y, cv=3).mean() > 0.9
    parts = {name for name, _, _ in made.named_steps["columns"].transformers}
    trees = isinstance(model, RandomForestClassifier)
    assert ("levels" in parts) == (not trees) and {"numeric", "category", "date"} <= parts
    out = made.fit(X, y).named_steps["columns"].transform(X)
    assert np.isfinite(out).all()


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
    median = made.named_steps["columns"].named_transformers_["numeric"][0].statistics_[0]
    assert median == pytest.approx(float(X["number"][:60].median()))


def test_a_pipeline_is_left_alone_and_nothing_usable_is_said() -> None:
    own = make_pipeline(Ridge())
    assert default_pipeline(pd.DataFrame({"a": [1.0, 2.0]}), own) is own
    with pytest.raises(DataError, match="no usable column"):
        default_pipeline(pd.DataFrame({"a": [1] * 9}), Ridge())
