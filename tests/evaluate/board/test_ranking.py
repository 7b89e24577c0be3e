"""Candidates are ranked on rows they have not seen, the same way on any number of workers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from groundstate import MLPClassifier
from groundstate.data import read
from groundstate.errors import DataError, NotApplicable
from groundstate.evaluate import Entry, Standings, score, train_test
from groundstate.evaluate.board import ranking
from groundstate.evaluate.board.ranking import rank
from groundstate.evaluate.pipeline import default_pipeline

X, codes = load_iris(return_X_y=True)
y = np.array(["setosa", "versicolor", "virginica"])[codes]
# iris holds one flower twice
CLASSIFIERS: dict[str, Any] = {
    "dummy": DummyClassifier(),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(n_estimators=5),
    "perceptron": make_pipeline(StandardScaler(), Perceptron()),
}


class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X: Any, y: Any) -> Broken:
        raise RuntimeError("no\nluck")


def test_classification() -> None:
    result = rank(CLASSIFIERS, X, y, task="classification", key=1)
    board = result.board
    assert result.chosen == board.best.name == next(iter(board)).name != "dummy"
    assert {"logistic"} <= set(board.tied) and not board["dummy"].tied_with_best
    entry = board["logistic"]
    assert entry.low < entry.score < entry.high and len(entry.cv_scores) == 5
    assert entry.score == pytest.approx(
        np.mean(y == result.classes[result.predictions["logistic"].values])
    )
    sizes = [len(part.test_rows) for part in result.folds]
    assert entry.score == pytest.approx(np.average(entry.cv_scores, weights=sizes))
    assert result.model.predict(X[:1]).tolist() == ["setosa"]
    assert not hasattr(CLASSIFIERS[result.chosen], "classes_"), "candidates are never changed"


def test_one_worker_or_two() -> None:
    one, two = (rank(CLASSIFIERS, X, y, task="classification", key=2, n_jobs=n) for n in (1, 2))
    assert one.board.to_json(times=False) == two.board.to_json(times=False)
    for name in CLASSIFIERS:
        assert np.array_equal(one.predictions[name].values, two.predictions[name].values)


@pytest.mark.parametrize("seed", [None, 3])
def test_folds_of_a_network_are_one_program_with_the_numbers_of_single_fits(
    seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = read(pd.DataFrame(X, columns=list("abcd")))
    inner = MLPClassifier((8,), max_iter=15, n_iter_no_change=np.inf, random_state=seed)
    network = default_pipeline(table, inner)
    weight = np.where(np.arange(150) % 3 == 0, 2.0, 1.0)

    def ranked(n_jobs: int = 1) -> Any:
        return rank(
            {"network": network, "dummy": DummyClassifier()}, table, y, task="classification",
            key=5, sample_weight=weight, n_jobs=n_jobs,
        )  # fmt: skip

    single: list[Any] = []
    one_fold = ranking._fold
    monkeypatch.setattr(ranking, "_fold", lambda *a: single.append(a[0]) or one_fold(*a))
    together, shared = ranked(), ranked(2)
    assert single and network not in single

    def none(*_: Any) -> Any:
        raise NotApplicable("asked for")

    monkeypatch.setattr(ranking, "fit_rows", none)
    alone = ranked()
    for name in ("network", "dummy"):
        said = together.predictions[name].probability
        assert np.array_equal(said, shared.predictions[name].probability)
        np.testing.assert_allclose(said, alone.predictions[name].probability, atol=1e-5)


def test_adding_a_candidate_changes_no_other() -> None:
    alone = rank({"forest": CLASSIFIERS["forest"]}, X, y, task="classification", key=2)
    together = rank(CLASSIFIERS, X, y, task="classification", key=2)
    assert alone.board["forest"].cv_scores == together.board["forest"].cv_scores


def test_regression_with_a_frame() -> None:
    data = load_diabetes(as_frame=True)
    split = train_test(data.data, data.target, test=0.2, key=0)
    rows, held = split.train_rows, split.test_rows
    train = data.data.iloc[rows], data.target.iloc[rows]
    candidates = {"mean": DummyRegressor(), "ridge": Ridge(0.1)}
    result = rank(candidates, *train, task="regression", metric="rmse")
    assert result.chosen == "ridge" and result.board.tied == ("ridge",)
    assert 50 < result.board["ridge"].score < 60 < result.board["mean"].score
    test = score(result.model, data.data.iloc[held], data.target.iloc[held], metric="rmse")
    assert test.low < test.estimate < test.high


def test_whole_weights_are_repetitions() -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    candidates = {
        "pipeline": CLASSIFIERS["logistic"],
        "neighbours": KNeighborsClassifier(3, weights="distance"),  # takes no weights
    }
    a = rank(candidates, X, y, task="classification", sample_weight=weight, key=3)
    b = rank(candidates, X[rows], y[rows], task="classification", key=3)
    for name in candidates:
        assert a.board[name].score == pytest.approx(b.board[name].score)
        assert a.board[name].low == pytest.approx(b.board[name].low)
    half = rank(candidates, X, y, task="classification", sample_weight=np.full(len(y), 0.5))
    assert "takes no sample_weight" in half.board["neighbours"].notes[0]


def test_failures_become_notes() -> None:
    candidates = {"broken": Broken(), "dummy": DummyClassifier()}
    result = rank(candidates, X, y, task="classification")
    broken = result.board["broken"]
    assert broken.failed and broken.notes == ("failed: RuntimeError: no luck",)
    assert [entry.name for entry in result.board] == ["dummy", "broken"]
    with pytest.raises(DataError, match="no candidate could be fitted; failed: RuntimeError"):
        rank({"broken": Broken()}, X, y, task="classification")


class Mistaken(ClassifierMixin, BaseEstimator):
    def fit(self, X: Any, y: Any) -> Mistaken:
        raise AttributeError("no such thing")


def test_a_mistake_in_a_program_is_seen() -> None:
    with pytest.raises(AttributeError, match="no such thing") as seen:
        rank({"dummy": DummyClassifier(), "mistaken": Mistaken()}, X, y, task="classification")
    assert "raised by Mistaken" in seen.value.__notes__[0]


def test_warnings_become_notes() -> None:
    short = {"short": LogisticRegression(max_iter=1), "dummy": DummyClassifier()}
    result = rank(short, X, y, task="classification", refit=False)
    assert "converge" in result.board["short"].notes[0] and result.model is None


def test_metric_that_a_candidate_cannot_give() -> None:
    result = rank(CLASSIFIERS, X, y, task="classification", metric="log_loss")
    assert result.board["perceptron"].notes == (
        "perceptron gives no probability, which log_loss needs",
    )
    assert result.board["perceptron"].failed and result.chosen == "logistic"


def test_rare_class_absent_from_a_fold() -> None:
    labels = y.copy()
    labels[:1] = "rare"
    result = rank(
        {"l": CLASSIFIERS["logistic"]}, X, labels, task="classification", metric="log_loss"
    )
    assert result.classes.tolist()[0] == "rare" and math.isfinite(result.board["l"].score)


def test_a_table_of_the_data_room() -> None:
    from groundstate.data import read

    table = read(pd.DataFrame(X, columns=list("abcd")).assign(kind=y), target="kind")

    class Matrix(BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Matrix:
            self.n_ = X.n_columns
            return self

        def transform(self, X: Any) -> Any:
            return X.matrix()

    model = make_pipeline(Matrix(), LogisticRegression(max_iter=1000))
    result = rank({"a": model}, table.features, table.y, task="classification")
    assert result.board.best.score > 0.9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates": {}}, "no candidates"),
        ({"metric": "rmse"}, "rmse is a metric for regression"),
        ({"y": np.zeros(150)}, "single class"),
        ({"y": y[:3]}, r"expected one target per row, \(150,\)"),
        ({"task": "regression"}, "regression needs a target of numbers"),
        ({"task": "regression", "y": np.full(150, np.nan)}, "missing or infinite"),
        ({"X": np.ones((150, 1)), "y": np.ones(150), "task": "regression"}, "1 different row"),
    ],
)
def test_bad_input(changes: dict[str, Any], message: str) -> None:
    arguments = {"candidates": CLASSIFIERS, "X": X, "y": y, "task": "classification", **changes}
    with pytest.raises(DataError, match=message):
        rank(**arguments)


def test_leaderboard_order_and_round_trip() -> None:
    rows = (
        Entry("a", 3.0, 2.0, 4.0, (3.0, math.nan), 0.5, True, ("slow",)),
        Entry("b", math.nan, math.nan, math.nan, notes=("failed",)),
        Entry("c", 1.0, 0.5, 1.5, test_score=9.0),
    )
    board = Standings(rows, "rmse", greater_is_better=False)
    assert [entry.name for entry in board] == ["c", "a", "b"] and len(board) == 3
    back = Standings.from_json(board.to_json())
    assert back.to_json() == board.to_json() and back["b"].failed and back["c"].test_score == 9.0
    assert "fit_seconds" not in board.to_json(times=False)
    assert Standings.from_json(board.to_json(times=False))["a"].fit_seconds == 0.0
    worse = board.with_entry("c", test_score=100.0)
    assert worse.best.name == "c", "the test score never changes the order"
    with pytest.raises(DataError, match="no candidate is called 'z'"):
        board["z"]
    with pytest.raises(DataError, match="same name"):
        Standings((rows[0], rows[0]), "rmse")
    with pytest.raises(DataError, match="not a stored leaderboard"):
        Standings.from_json("{}")
    with pytest.raises(DataError, match="not a stored leaderboard"):
        Standings.from_json("{")
    with pytest.raises(DataError, match="no candidate could be scored"):
        _ = Standings((rows[1],), "rmse").best
