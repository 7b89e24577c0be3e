"""Bagging, voting, seeds and snapshots: averages of members, exact weights, out-of-bag answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression as ForeignLogistic
from sklearn.linear_model import Ridge as ForeignRidge
from sklearn.naive_bayes import GaussianNB as ForeignBayes
from sklearn.neighbors import KNeighborsRegressor as ForeignNeighbours
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as ForeignTree

import groundstate
from groundstate import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GaussianNB,
    LinearSVC,
    LogisticRegression,
    RandomForestRegressor,
    Ridge,
    SeedEnsembleClassifier,
    SeedEnsembleRegressor,
    SnapshotEnsembleClassifier,
    SnapshotEnsembleRegressor,
    VotingClassifier,
    VotingRegressor,
)
from groundstate.errors import DataError, Unsupported
from groundstate.math.stats.committees import ensemble_decomposition

A, LABEL = load_breast_cancer(return_X_y=True)
A, LABEL = A[:200, :8], LABEL[:200]
B, TARGET = load_diabetes(return_X_y=True)
B, TARGET = B[:150], TARGET[:150]
RNG = np.random.default_rng(0)


def repeated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole weights, and the rows they stand for in another order."""
    weight = RNG.integers(0, 4, n).astype(float)
    return weight, RNG.permutation(np.repeat(np.arange(n), weight.astype(int)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_samples": 0.5},
        {"bootstrap": False, "max_samples": 0.5},
        {"max_features": 0.5, "bootstrap_features": True},
        {"estimator": GaussianNB()},
        {"estimator": ForeignTree(max_depth=3)},
    ],
    ids=["trees", "half", "cut", "columns", "bayes", "foreign"],
)
def test_weight_is_repetition(options: dict[str, Any]) -> None:
    """A weight of 2 is the row twice, draw by draw."""
    weight, index = repeated(len(A))
    model = BaggingClassifier(n_estimators=5, random_state=0, **options)
    weighted = model.fit(A, LABEL, sample_weight=weight).predict_proba(A)
    again = model.fit(A[index], LABEL[index]).predict_proba(A)
    np.testing.assert_allclose(weighted, again, atol=1e-9)


def test_members_without_weights_get_the_rows() -> None:
    weight, index = repeated(len(B))
    model = BaggingRegressor(ForeignNeighbours(3), 4, random_state=0)
    weighted = model.fit(B, TARGET, sample_weight=weight).predict(B)
    np.testing.assert_allclose(weighted, model.fit(B[index], TARGET[index]).predict(B))
    share = BaggingRegressor(ForeignNeighbours(3), 4, bootstrap=False, random_state=0)
    with pytest.raises(DataError, match="takes no sample_weight"):
        share.fit(B, TARGET, sample_weight=np.full(len(B), 0.5))


def test_members_are_the_average() -> None:
    model = BaggingRegressor(n_estimators=4, max_features=0.5, random_state=0).fit(B, TARGET)
    parts = [m.predict(B[:, own]) for m, own in zip(model.estimators_, model.estimators_features_)]
    np.testing.assert_allclose(model.predict(B), np.mean(parts, 0))
    assert all(len(own) == 5 for own in model.estimators_features_)
    found = ensemble_decomposition(np.array(parts), TARGET)
    assert found.member == pytest.approx(found.ensemble + found.variance)
    assert found.ensemble < found.member


def test_bags_are_draws_with_replacement() -> None:
    model = BaggingClassifier(n_estimators=6, random_state=0).fit(A, LABEL)
    assert all(len(rows) == len(A) for rows in model.estimators_samples_)
    distinct = np.mean([len(set(rows.tolist())) / len(A) for rows in model.estimators_samples_])
    assert distinct == pytest.approx(1 - (1 - 1 / 200) ** 200, abs=0.03)
    half = BaggingClassifier(n_estimators=2, bootstrap=False, max_samples=0.5, random_state=0)
    assert [len(set(r.tolist())) for r in half.fit(A, LABEL).estimators_samples_] == [100, 100]


def test_without_draws_members_are_identical() -> None:
    model = BaggingRegressor(n_estimators=3, bootstrap=False, random_state=0).fit(B, TARGET)
    single = DecisionTreeRegressor().fit(B, TARGET).predict(B)
    for one in model.estimators_:
        np.testing.assert_allclose(one.predict(B), single)


def test_variance_falls_with_members() -> None:
    spread = []
    for members in (1, 8):
        told = [
            BaggingRegressor(n_estimators=members, random_state=s).fit(B[:100], TARGET[:100]).predict(B[100:])
            for s in range(6)
        ]  # fmt: skip
        spread.append(np.var(told, axis=0).mean())
    assert spread[1] < 0.4 * spread[0]


def test_out_of_bag() -> None:
    model = BaggingClassifier(n_estimators=40, oob_score=True, random_state=0).fit(A, LABEL)
    distribution = model.oob_decision_function_
    seen = ~np.isnan(distribution[:, 0])
    np.testing.assert_allclose(distribution[seen].sum(1), 1)
    assert model.oob_score_ == np.mean(distribution[seen].argmax(1) == LABEL[seen])
    theirs = peer.BaggingClassifier(n_estimators=40, oob_score=True, random_state=0).fit(A, LABEL)
    assert model.oob_score_ == pytest.approx(theirs.oob_score_, abs=0.05)
    # by hand: the members that did not see a row
    outside = [set(range(len(A))) - set(rows.tolist()) for rows in model.estimators_samples_]
    own = [m.predict_proba(A[:1])[0] for m, out in zip(model.estimators_, outside) if 0 in out]
    np.testing.assert_allclose(distribution[0], np.mean(own, 0))
    values = BaggingRegressor(n_estimators=20, oob_score=True, random_state=0).fit(B, TARGET)
    assert values.oob_prediction_.shape == TARGET.shape and values.oob_score_ > 0.1
    with pytest.raises(ValueError, match="oob_score needs bootstrap=True"):
        BaggingClassifier(bootstrap=False, oob_score=True).fit(A, LABEL)


def test_jobs_order_and_warm_start() -> None:
    model = BaggingRegressor(n_estimators=4, random_state=0).fit(B, TARGET)
    expected = model.predict(B)
    order = RNG.permutation(len(B))
    twins = [
        BaggingRegressor(n_estimators=4, n_jobs=2, random_state=0).fit(B, TARGET),
        BaggingRegressor(n_estimators=4, random_state=0).fit(B[order], TARGET[order]),
        BaggingRegressor(n_estimators=2, warm_start=True, random_state=0).fit(B, TARGET)
        .set_params(n_estimators=4).fit(B, TARGET),
    ]  # fmt: skip
    for twin in twins:
        np.testing.assert_allclose(twin.predict(B), expected)


def test_rows_outside_the_bag_of_kept_members_count() -> None:
    options: dict[str, Any] = {"oob_score": True, "random_state": 0}
    at_once = BaggingRegressor(n_estimators=6, **options).fit(B, TARGET)
    later = BaggingRegressor(n_estimators=3, warm_start=True, **options).fit(B, TARGET)
    later.set_params(n_estimators=6).fit(B, TARGET)
    np.testing.assert_allclose(later.oob_prediction_, at_once.oob_prediction_)


def test_votes_of_members_without_probabilities() -> None:
    model = BaggingClassifier(LinearSVC(), 5, random_state=0).fit(A[:100], LABEL[:100])
    votes = np.mean([m.predict(A) for m in model.estimators_], 0)
    np.testing.assert_allclose(model.predict_proba(A)[:, 1], votes, atol=1e-12)


def test_a_bag_may_miss_a_class() -> None:
    y = np.array(["a"] * 60 + ["b"] * 60 + ["rare"])
    X = np.r_[RNG.normal(0, 1, (60, 2)), RNG.normal(4, 1, (60, 2)), [[9.0, -9.0]]]
    for member in (LogisticRegression(), ForeignTree()):
        p = BaggingClassifier(member, 6, random_state=0).fit(X, y).predict_proba(X)
        assert p.shape == (121, 3)
        np.testing.assert_allclose(p.sum(1), 1)


def test_saved_with_members_of_ours_and_refused_with_others(tmp_path: Path) -> None:
    model = BaggingClassifier(n_estimators=3, max_features=0.5, random_state=0).fit(A, LABEL)
    loaded = groundstate.load(model.save(tmp_path / "bag.gs"))
    np.testing.assert_array_equal(loaded.predict_proba(A), model.predict_proba(A))
    with pytest.raises(AttributeError, match="not kept in files"):
        _ = loaded.estimators_samples_


# --- voting --------------------------------------------------------------------------------

PARTS: list[tuple[str, Any]] = [
    ("lines", make_pipeline(StandardScaler(), ForeignLogistic())),
    ("bayes", ForeignBayes()),
    ("tree", ForeignTree(max_depth=3, random_state=0)),
]


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("weights", [None, [3, 1, 1]])
def test_votes_like_the_peer(voting: str, weights: Any) -> None:
    ours = VotingClassifier(PARTS, voting=voting, weights=weights).fit(A, LABEL)
    theirs = peer.VotingClassifier(PARTS, voting=voting, weights=weights).fit(A, LABEL)
    np.testing.assert_array_equal(ours.predict(A), theirs.predict(A))
    np.testing.assert_allclose(ours.transform(A), theirs.transform(A), atol=1e-12)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    if voting == "soft":
        np.testing.assert_allclose(ours.predict_proba(A), theirs.predict_proba(A), atol=1e-12)
    else:
        assert not hasattr(ours, "predict_proba")


def test_values_like_the_peer() -> None:
    parts = [("ridge", ForeignRidge()), ("near", ForeignNeighbours(4))]
    ours = VotingRegressor(parts, weights=[1, 2]).fit(B, TARGET)
    theirs = peer.VotingRegressor(parts, weights=[1, 2]).fit(B, TARGET)
    np.testing.assert_allclose(ours.predict(B), theirs.predict(B))
    np.testing.assert_allclose(ours.transform(B), theirs.transform(B))


def test_average_loss_is_at_most_the_mean_members_loss() -> None:
    model = VotingClassifier(PARTS, voting="soft").fit(A[:100], LABEL[:100])
    rows = np.arange(100, 200)
    distribution = model.transform(A[rows]).reshape(100, 3, 2)
    own = np.maximum(distribution[np.arange(100), :, LABEL[rows]], 1e-12)
    assert -np.log(own.mean(1)).mean() <= -np.log(own).mean()
    assert model.energy(A[rows], LABEL[rows]).mean() <= -np.log(own).mean() + 1e-9


def test_parameters_of_members() -> None:
    model = VotingClassifier(PARTS, voting="soft").set_params(tree="drop", bayes__var_smoothing=0.1)
    model.fit(A, LABEL)
    assert len(model.estimators_) == 2 and model.named_estimators_.tree == "drop"
    assert model.named_estimators_.bayes.var_smoothing == 0.1
    with pytest.raises(ValueError, match="must be equal; got 1 weights, 3 estimators"):
        VotingClassifier(PARTS, weights=[1]).fit(A, LABEL)
    with pytest.raises(ValueError, match="should be a classifier"):
        VotingClassifier([("no", Ridge())]).fit(A, LABEL)


# --- seeds and snapshots -------------------------------------------------------------------


def test_seeds_differ_and_average() -> None:
    tree = DecisionTreeClassifier(max_features=2)
    model = SeedEnsembleClassifier(tree, 8, random_state=0).fit(A[:100], LABEL[:100])
    foreign = SeedEnsembleClassifier(ForeignTree(), 8, random_state=0).fit(A[:100], LABEL[:100])
    assert len({m.random_state for m in foreign.estimators_}) == 8
    distributions = [m.predict_proba(A) for m in model.estimators_]
    np.testing.assert_allclose(model.predict_proba(A), np.mean(distributions, 0), atol=1e-12)
    errors = [np.square(p[:, 1] - LABEL).mean() for p in distributions]  # convex in p
    assert np.square(model.predict_proba(A)[:, 1] - LABEL).mean() < np.mean(errors)
    same = SeedEnsembleRegressor(Ridge(), 3).fit(B, TARGET)  # nothing random: all members equal
    np.testing.assert_allclose(same.predict(B), Ridge().fit(B, TARGET).predict(B))


def test_snapshots_wander_about_the_minimum() -> None:
    iris, species = load_iris(return_X_y=True)
    model = SnapshotEnsembleClassifier(n_snapshots=12, random_state=0).fit(iris, species)
    own = LogisticRegression().fit(iris, species)
    weights = np.array([m.W.detach().numpy() for m in model.members_])
    assert len(model) == 12 and len(np.unique(weights.reshape(12, -1), axis=0)) == 12
    assert np.abs(weights.mean(0) - own.coef_).max() < 0.5
    p = model.predict_proba(iris)
    losses = -model.energy_.member_log_distribution(0, model._rows(iris)[0]).detach().numpy()
    each = [losses[np.arange(150), species].mean()]
    for m in range(1, 12):
        distribution = (
            -model.energy_.member_log_distribution(m, model._rows(iris)[0]).detach().numpy()
        )
        each.append(distribution[np.arange(150), species].mean())
    assert -np.log(p[np.arange(150), species]).mean() <= np.mean(each) + 1e-12


def test_snapshots_of_values() -> None:
    X = RNG.normal(size=(80, 2))
    y = X @ [1.0, -1.0] + 0.2 * RNG.normal(size=80)
    model = SnapshotEnsembleRegressor(batch_size=4, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(Unsupported, match="no energy with gradients"):
        SnapshotEnsembleRegressor(ForeignRidge()).fit(X, y)


def test_inside_the_peers_stacks() -> None:
    regressors = [("bag", BaggingRegressor(random_state=0)), ("forest", RandomForestRegressor(5))]
    stack = peer.StackingRegressor(regressors, ForeignRidge(), cv=3).fit(B, TARGET)
    assert stack.score(B, TARGET) > 0.3
    classifiers = [("vote", VotingClassifier(voting="soft")), ("line", LogisticRegression())]
    ours = peer.StackingClassifier(classifiers, LogisticRegression(), cv=3).fit(A, LABEL)
    assert ours.score(A, LABEL) > 0.85
