"""Histogram boosting: worked numbers, parity with scikit-learn, missing values, categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn import ensemble as peer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split

from groundstate import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from groundstate.energy.trees.boosted import BoostedEnergy
from groundstate.learn import Naive, fit
from groundstate.learn.solvers.boosting.histogram.grower import Limits
from groundstate.learn.solvers.boosting.newton import HistogramBoosting
from groundstate.learn.solvers.trees.bins_numba import Bins, column_edges

RNG = np.random.default_rng(0)
# few distinct values: both libraries then cut at the same places
X = np.round(RNG.normal(size=(1200, 5)), 1)
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * RNG.normal(size=1200)


def toy(leaves: int, rows: list[float] | None = None) -> tuple[BoostedEnergy, np.ndarray]:
    x = torch.tensor(rows or [0.0, 1.0, 2.0, 3.0]).double()[:, None]
    y = torch.tensor([1.0, 2.0, 2.0, 4.0]).double()[: len(x), None]
    energy = BoostedEnergy(1).double()
    solver = HistogramBoosting(1, 1.0, Limits(leaves, min_weight=1.0))
    fit(energy, {"x": x, "y": y}, Naive(), solver)
    return energy, energy.nodes.tree(0)


def test_worked_split() -> None:
    """y = 1, 2, 2, 4 at x = 0..3: gains 1.041667, 1.125, 2.041667; leaves −.583333 and 1.75."""
    _, tree = toy(2)
    assert tree.threshold[0] == 2.5
    assert tree.impurity[0] == pytest.approx(2.041667, abs=1e-6)  # inner nodes keep their gain
    np.testing.assert_allclose(tree.value[1:, 0], [-0.583333, 1.75], atol=1e-6)
    g = -(np.array([1.0, 2.0, 2.0, 4.0]) - 2.25)
    gains = [0.5 * (g[:k].sum() ** 2 / k + g[k:].sum() ** 2 / (4 - k)) for k in (1, 2, 3)]
    np.testing.assert_allclose(gains, [1.041667, 1.125, 2.041667], atol=1e-6)


def test_learning_rate_example() -> None:
    """88, 76, 56 with the third row apart, ν = .1: 73.333, then (74.98, 74.98, 70.04)."""
    x, y = np.array([[0.0], [0.0], [1.0]]), np.array([88.0, 76.0, 56.0])
    model = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=1).fit(x, y)
    assert float(model.energy_.b) == pytest.approx(73.333, abs=1e-3)
    np.testing.assert_allclose(model.predict(x), [74.98, 74.98, 70.04], atol=6e-3)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
def test_values_like_the_peer(loss: str) -> None:
    y = np.exp(Y) if loss in ("poisson", "gamma") else Y
    ours = HistGradientBoostingRegressor(loss=loss, max_iter=20).fit(X, y)
    theirs = peer.HistGradientBoostingRegressor(loss=loss, max_iter=20).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_like_the_peer(classes: int) -> None:
    y = np.digitize(Y, [0.0, 1.0][: classes - 1])
    ours = HistGradientBoostingClassifier(max_iter=15).fit(X, y)
    theirs = peer.HistGradientBoostingClassifier(max_iter=15).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_absolute_error_like_the_peer() -> None:
    """Gradients are ±1 and gains tie, so only the loss can be compared."""
    found = [
        np.abs(model(loss="absolute_error", max_iter=40).fit(X, Y).predict(X) - Y).mean()
        for model in (HistGradientBoostingRegressor, peer.HistGradientBoostingRegressor)
    ]
    assert found[0] == pytest.approx(found[1], rel=0.03)


def test_quantile_covers_its_share() -> None:
    model = HistGradientBoostingRegressor(loss="quantile", quantile=0.9, max_iter=60).fit(X, Y)
    assert (model.predict(X) >= Y).mean() == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
def test_held_out_loss_within_the_peer(load: object) -> None:
    A, a = load(return_X_y=True)  # type: ignore[operator]
    A, B, a, b = train_test_split(A, a, random_state=0, stratify=a)
    settings = {"max_iter": 30, "early_stopping": False}
    ours = HistGradientBoostingClassifier(**settings).fit(A, a)  # type: ignore[arg-type]
    theirs = peer.HistGradientBoostingClassifier(**settings).fit(A, a)
    assert log_loss(b, ours.predict_proba(B)) <= 1.05 * log_loss(b, theirs.predict_proba(B))


def test_weight_is_repetition_with_random_columns_and_early_stopping() -> None:
    w = RNG.integers(0, 4, len(X)).astype(float)
    index = RNG.permutation(np.repeat(np.arange(len(X)), w.astype(int)))
    settings = {"max_features": 0.5, "random_state": 3, "early_stopping": True, "max_iter": 30}
    weighted = HistGradientBoostingRegressor(**settings).fit(X, Y, sample_weight=w)  # type: ignore[arg-type]
    repeated = HistGradientBoostingRegressor(**settings).fit(X[index], Y[index])  # type: ignore[arg-type]
    assert weighted.n_iter_ == repeated.n_iter_
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-10, atol=1e-10)


def test_one_side_sampling() -> None:
    """Few rows per tree, nearly the same answer; a weight is still a repetition."""
    whole = HistGradientBoostingRegressor(max_iter=40).fit(X, Y).score(X, Y)
    some = HistGradientBoostingRegressor(max_iter=40, goss=(0.2, 0.2), random_state=0).fit(X, Y)
    assert some.score(X, Y) > whole - 0.05
    assert some.energy_.nodes.tree(0).rows[0] == pytest.approx(0.4 * len(X), rel=0.15)
    w = RNG.integers(0, 4, len(X)).astype(float)
    index = RNG.permutation(np.repeat(np.arange(len(X)), w.astype(int)))
    settings = {"goss": True, "random_state": 1, "max_iter": 10, "min_samples_leaf": 5}
    weighted = HistGradientBoostingRegressor(**settings).fit(X, Y, sample_weight=w)  # type: ignore[arg-type]
    repeated = HistGradientBoostingRegressor(**settings).fit(X[index], Y[index])  # type: ignore[arg-type]
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="together at most one"):
        HistGradientBoostingRegressor(goss=(0.9, 0.5)).fit(X, Y)


def test_weights_that_are_no_counts_still_split() -> None:
    w = RNG.uniform(0.1, 1.0, len(X))
    small = HistGradientBoostingRegressor(max_iter=20).fit(X, Y, sample_weight=w / w.sum())
    large = HistGradientBoostingRegressor(max_iter=20).fit(X, Y, sample_weight=w * 7)
    assert small.score(X, Y) > 0.8
    np.testing.assert_allclose(small.predict(X), large.predict(X), atol=1e-6)


def test_threads_change_nothing() -> None:
    A = RNG.normal(size=(9000, 30))
    b = (A[:, 0] + A[:, 1] ** 2 > 0.5).astype(int)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = HistGradientBoostingClassifier(max_iter=5).fit(A, b).predict_proba(A)
        torch.set_num_threads(2)
        both = HistGradientBoostingClassifier(max_iter=5).fit(A, b).predict_proba(A)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(alone, both)


def test_missing_is_learned_by_one_split() -> None:
    A = X.copy()
    A[RNG.random(len(A)) < 0.3, 2] = np.nan
    gone = np.isnan(A[:, 2]).astype(float)
    model = HistGradientBoostingRegressor(max_iter=1, learning_rate=1.0, max_leaf_nodes=2)
    assert model.fit(A, gone).score(A, gone) == pytest.approx(1.0)


def test_unseen_missing_goes_to_the_larger_side() -> None:
    A = np.r_[np.zeros(30), np.ones(60)][:, None]
    model = HistGradientBoostingRegressor(max_iter=1, learning_rate=1.0).fit(A, A[:, 0])
    assert model.predict([[np.nan]])[0] == pytest.approx(1.0)


def test_missing_like_the_peer() -> None:
    A = X.copy()
    A[RNG.random(A.shape) < 0.2] = np.nan
    ours = HistGradientBoostingRegressor(max_iter=20).fit(A, Y)
    theirs = peer.HistGradientBoostingRegressor(max_iter=20).fit(A, Y)
    np.testing.assert_allclose(ours.predict(A), theirs.predict(A), atol=1e-5)


def levels(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    code = RNG.integers(0, k, n)
    return code, RNG.normal(size=k)[code] * 2 + 0.3 * RNG.normal(size=n)


def test_categories_beat_ordinal_coding() -> None:
    code, y = levels(4000, 50)
    train, test = slice(0, 3000), slice(3000, None)
    settings = {"max_iter": 10, "max_leaf_nodes": 8}
    as_number = HistGradientBoostingRegressor(**settings).fit(code[train, None], y[train])  # type: ignore[arg-type]
    as_level = HistGradientBoostingRegressor(**settings, categorical_features=[0])  # type: ignore[arg-type]
    as_level.fit(code[train, None], y[train])
    assert as_level.score(code[test, None], y[test]) > as_number.score(code[test, None], y[test])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_by_dtype(library: str) -> None:
    code, y = levels(1000, 12)
    names = [f"level {c}" for c in code]
    if library == "pandas":
        frame = pd.DataFrame({"a": pd.Categorical(names), "b": X[:1000, 0]})
        odd = pd.DataFrame({"a": pd.Categorical(["nobody", None]), "b": [0.0, 0.0]})
    else:
        frame = pl.DataFrame({"a": pl.Series(names, dtype=pl.Categorical), "b": X[:1000, 0]})
        odd = pl.DataFrame(
            {"a": pl.Series(["nobody", None], dtype=pl.Categorical), "b": [0.0, 0.0]}
        )
    model = HistGradientBoostingRegressor().fit(frame, y)
    assert model.is_categorical_.tolist() == [True, False] and model.score(frame, y) > 0.9
    unseen = model.predict(odd)
    assert unseen[0] == unseen[1]  # an unknown level is a missing one


def test_ten_thousand_categories() -> None:
    code = RNG.integers(0, 10_000, 20_000)
    y = (code % 2).astype(float)
    model = HistGradientBoostingRegressor(max_iter=3, categorical_features=[0])
    assert np.isfinite(model.fit(code[:, None], y).predict(code[:50, None])).all()


def test_monotone_and_interaction_constraints() -> None:
    model = HistGradientBoostingRegressor(max_iter=30, monotonic_cst=[0, 1, 0, 0, 0]).fit(X, Y)
    line = np.repeat(X[:40], 20, 0)
    line[:, 1] = np.tile(np.linspace(-3, 3, 20), 40)
    assert (np.diff(model.predict(line).reshape(40, 20)) >= -1e-12).all()
    free = HistGradientBoostingRegressor(max_iter=10, interaction_cst="no_interactions").fit(X, Y)
    for t in range(10):
        feature = free.energy_.nodes.tree(t).feature
        assert len(set(feature[feature >= 0].tolist())) <= 1


def test_early_stopping_warm_start_and_stages() -> None:
    noisy = RNG.normal(size=len(X))
    stopped = HistGradientBoostingRegressor(early_stopping=True, random_state=0).fit(X, noisy)
    assert stopped.n_iter_ < 100 and len(stopped.validation_score_) == stopped.n_iter_ + 1
    model = HistGradientBoostingRegressor(max_iter=10, warm_start=True).fit(X, Y)
    model.set_params(max_iter=20).fit(X, Y)
    whole = HistGradientBoostingRegressor(max_iter=20).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-12)
    stages = list(whole.staged_predict(X))
    assert len(stages) == 20
    np.testing.assert_allclose(stages[-1], whole.predict(X), atol=1e-12)
    losses = [np.mean((s - Y) ** 2) for s in stages]
    assert (np.diff(losses) <= 1e-12).all()


def test_bins_are_weighted_quantiles() -> None:
    x = np.arange(10.0)
    np.testing.assert_allclose(column_edges(x, None, 255), np.arange(9) + 0.5)
    w = np.array([5.0] + [1.0] * 5 + [0.0] * 4)
    twin = np.repeat(x, w.astype(int))
    np.testing.assert_array_equal(column_edges(x, w, 4), column_edges(twin, None, 4))
    wild = np.r_[RNG.normal(size=500), 1e12, -1e12, np.nan][:, None]
    bins = Bins.of(wild, None, 255)
    code = np.empty((1, 503), np.uint8)
    bins.encode(wild, code)
    np.testing.assert_array_equal(code[0, :-1], np.searchsorted(bins.edges[0], wild[:-1, 0]))
    assert code[0, -1] == 255


def test_real_table_with_errors_that_teach() -> None:
    A, a = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="needs positive y"):
        HistGradientBoostingRegressor(loss="gamma").fit(A, a - 200)
    with pytest.raises(ValueError, match="monotonic_cst has 2 entries, but X has 10 features"):
        HistGradientBoostingRegressor(monotonic_cst=[0, 1]).fit(A, a)
    with pytest.raises(ValueError, match="needs quantile="):
        HistGradientBoostingRegressor(loss="quantile").fit(A, a)


LABEL = (Y > 1).astype(int)
TIMES = RNG.integers(1, 4, 400)


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": "balanced"},
        {"class_weight": {0: 1.0, 1: 3.3}, "goss": True},
        {"class_weight": "balanced", "early_stopping": True},
        {"early_stopping": True, "scoring": "accuracy", "n_iter_no_change": 2, "max_iter": 15},
    ],
)
def test_weight_is_repetition_with_weights_of_classes_and_scores(options: dict[str, Any]) -> None:
    model = HistGradientBoostingClassifier(**{"max_iter": 4, "random_state": 0, **options})
    rows, label = X[:400], LABEL[:400]
    weighted = model.fit(rows, label, TIMES).predict_proba(X)
    repeated = model.fit(np.repeat(rows, TIMES, 0), np.repeat(label, TIMES)).predict_proba(X)
    np.testing.assert_allclose(repeated, weighted, atol=1e-12)


def test_classes_weigh_in_gradients_and_not_in_counts() -> None:
    settings: dict[str, Any] = {
        "class_weight": {0: 1, 1: 20},
        "max_iter": 5,
        "min_samples_leaf": 30,
    }
    ours = HistGradientBoostingClassifier(**settings).fit(X, LABEL)
    theirs = peer.HistGradientBoostingClassifier(**settings).fit(X, LABEL)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


def test_rows_to_watch_like_the_peer() -> None:
    settings: dict[str, Any] = {"early_stopping": True, "n_iter_no_change": 3}
    seen = {"X_val": X[800:], "y_val": Y[800:]}
    ours = HistGradientBoostingRegressor(**settings).fit(X[:800], Y[:800], **seen)
    theirs = peer.HistGradientBoostingRegressor(**settings).fit(X[:800], Y[:800], **seen)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.validation_score_, theirs.validation_score_, atol=1e-6)
    scored = ours.set_params(scoring="r2").fit(X[:800], Y[:800], **seen)
    stages = [r2_score(Y[800:], stage) for stage in scored.staged_predict(X[800:])]
    np.testing.assert_allclose(scored.validation_score_[1:], stages)
    label = np.array(["a", "b"])[LABEL]
    watch = HistGradientBoostingClassifier(max_iter=3)
    assert watch.fit(X, label, X_val=X[:50], y_val=label[:50]).do_early_stopping_
    with pytest.raises(ValueError, match="come together"):
        watch.fit(X, label, X_val=X)
    with pytest.raises(ValueError, match="labels not seen in fit"):
        watch.fit(X, label, X_val=X[:2], y_val=["a", "c"])
    with pytest.raises(ValueError, match="early_stopping=False"):
        watch.set_params(early_stopping=False).fit(X, label, X_val=X, y_val=label)


def test_frames_are_scored_without_a_warning_and_one_column_has_no_pairs() -> None:
    frame = pd.DataFrame({"a": X[:200, 0], "b": pd.Categorical(LABEL[:200].astype(str))})
    model = HistGradientBoostingClassifier(early_stopping=True, scoring="accuracy", max_iter=3)
    assert list(model.fit(frame, LABEL[:200]).feature_names_in_) == ["a", "b"]
    alone = HistGradientBoostingRegressor(interaction_cst="pairwise", max_iter=3)
    free = HistGradientBoostingRegressor(max_iter=3).fit(X[:, :1], Y)
    np.testing.assert_array_equal(alone.fit(X[:, :1], Y).predict(X[:, :1]), free.predict(X[:, :1]))
