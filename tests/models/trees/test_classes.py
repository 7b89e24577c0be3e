"""Trees and forests whose classes weigh, and that predict several labels at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import ensemble as peers
from sklearn import tree as peer

import groundstate
from groundstate import (
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

R = np.random.default_rng(3)
X = R.normal(size=(150, 3))
Y = np.c_[
    X[:, 0] + 0.3 * R.normal(size=150) > 0,
    np.digitize(X[:, 1] + X[:, 2] + 0.3 * R.normal(size=150), [-0.5, 0.8]),
].astype(int)
RARE = (X[:, 0] + X[:, 1] + 0.7 * R.normal(size=150) > 1.6).astype(int)
WEIGHT = R.integers(1, 4, 150)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize(
    "options",
    [
        {"max_depth": 3},
        {"min_samples_leaf": 6, "ccp_alpha": 0.01},
        {"min_samples_leaf": 4, "min_impurity_decrease": 0.02},
        {"max_depth": 3, "class_weight": [{0: 1, 1: 3}, {0: 1, 1: 2, 2: 1}]},
    ],
)
def test_several_labels_like_the_peer(criterion: str, options: dict[str, Any]) -> None:
    ours = DecisionTreeClassifier(criterion=criterion, **options).fit(X, Y)
    theirs = peer.DecisionTreeClassifier(criterion=criterion, random_state=0, **options).fit(X, Y)
    for own, other in zip(ours.predict_proba(X), theirs.predict_proba(X)):
        np.testing.assert_allclose(own, other, atol=1e-12)
    np.testing.assert_allclose(ours.tree_.value, theirs.tree_.value, atol=1e-12)
    np.testing.assert_allclose(ours.tree_.impurity, theirs.tree_.impurity, atol=1e-9)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-9)
    assert (ours.n_outputs_, ours.n_classes_) == (2, [2, 3])


def test_several_labels_are_words_energies_and_files(tmp_path: Path) -> None:
    words = np.stack([np.array(["no", "yes"])[Y[:, 0]], np.array(["a", "b", "c"])[Y[:, 1]]], 1)
    model = DecisionTreeClassifier(max_depth=3).fit(X, words)
    found = model.predict(X)
    assert found.shape == (150, 2) and set(found[:, 1]) == {"a", "b", "c"}
    p = model.predict_proba(X)
    rows = np.arange(150)
    expected = -np.log(p[0][rows, Y[:, 0]]) - np.log(p[1][rows, Y[:, 1]])
    np.testing.assert_allclose(model.energy(X, words), expected)
    np.testing.assert_array_equal(model.infer({"x": X}, "y"), found)
    assert model.score(X, words) == (found == words).all(1).mean()
    assert not hasattr(model, "decision_function")
    loaded = groundstate.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), found)
    with pytest.raises(ValueError, match="output 1 of y holds labels not seen in fit"):
        model.energy(X[:1], [["no", "d"]])


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_forests_of_several_labels(kind: Any) -> None:
    options: dict[str, Any] = {"bootstrap": True, "random_state": 0, "class_weight": "balanced"}
    model = kind(30, oob_score=True, **options).fit(X, Y)
    assert model.oob_decision_function_.shape == (150, 3, 2)
    assert 0.5 < model.oob_score_ < model.score(X, Y)
    mean = np.mean([tree.predict_proba(X)[1] for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X)[1], mean)
    weighted = kind(5, **options).fit(X, Y, WEIGHT)
    repeated = kind(5, **options).fit(np.repeat(X, WEIGHT, 0), np.repeat(Y, WEIGHT, 0))
    more = kind(2, warm_start=True, **options).fit(X, Y).set_params(n_estimators=5).fit(X, Y)
    at_once = kind(5, **options).fit(X, Y)
    for o in range(2):
        one, other = weighted.predict_proba(X)[o], repeated.predict_proba(X)[o]
        np.testing.assert_allclose(one, other, atol=1e-12)
        np.testing.assert_array_equal(more.predict_proba(X)[o], at_once.predict_proba(X)[o])


@pytest.mark.parametrize("factor", [0.05, 1.0, 20.0])
def test_a_common_factor_of_the_classes_changes_nothing(factor: float) -> None:
    for model in (
        DecisionTreeClassifier(min_samples_leaf=8, min_samples_split=20),
        RandomForestClassifier(5, min_samples_leaf=5, random_state=0),
    ):
        plain = model.fit(X, RARE).predict_proba(X)
        weighted = model.set_params(class_weight={0: factor, 1: factor}).fit(X, RARE)
        np.testing.assert_allclose(weighted.predict_proba(X), plain, atol=1e-12)


@pytest.mark.parametrize("balance", ["balanced", "balanced_subsample", {0: 1, 1: 50}])
def test_draws_do_not_look_at_the_weights_of_classes(balance: Any) -> None:
    model = RandomForestClassifier(40, class_weight=balance, oob_score=True, random_state=0)
    model.fit(X, RARE)
    assert not np.isnan(model.oob_decision_function_).any()  # rare rows are outside too
    plain = RandomForestClassifier(40, random_state=0).fit(X, RARE)
    assert model.predict_proba(X)[:, 1].sum() > plain.predict_proba(X)[:, 1].sum() - 2
    repeated = np.repeat(X, WEIGHT, 0), np.repeat(RARE, WEIGHT)
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        own = kind(4, class_weight=balance, min_samples_leaf=4, random_state=1)
        weighted = own.fit(X, RARE, WEIGHT).predict_proba(X)
        np.testing.assert_allclose(own.fit(*repeated).predict_proba(X), weighted, atol=1e-12)


def test_weights_of_classes_like_the_peer() -> None:
    settings: dict[str, Any] = {"class_weight": "balanced", "max_depth": 3}
    ours = DecisionTreeClassifier(**settings).fit(X, RARE)
    theirs = peer.DecisionTreeClassifier(**settings, random_state=0).fit(X, RARE)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    tree = DecisionTreeClassifier(class_weight="balanced", min_samples_leaf=9)
    weighted = tree.fit(X, RARE, WEIGHT).predict_proba(X)
    again = tree.fit(np.repeat(X, WEIGHT, 0), np.repeat(RARE, WEIGHT)).predict_proba(X)
    np.testing.assert_allclose(again, weighted, atol=1e-12)
    with pytest.raises(ValueError, match="one dict per output"):
        DecisionTreeClassifier(class_weight={0: 1, 1: 2}).fit(X, Y)


def test_members_have_the_settings_of_the_forest() -> None:
    model = RandomForestClassifier(3, min_samples_leaf=4, max_leaf_nodes=6, random_state=0)
    member = model.fit(X, RARE).estimators_[0]
    assert (member.min_samples_leaf, member.max_leaf_nodes, member.max_features) == (4, 6, "sqrt")
    assert ExtraTreesClassifier().estimator_.splitter == "random"
    theirs = peers.RandomForestClassifier(3, random_state=0).fit(X, RARE)
    path, start = model.decision_path(X)
    assert type(theirs.decision_path(X)) is tuple and path.shape == (150, start[-1])
    np.testing.assert_array_equal(np.diff(start), [one.tree_.node_count for one in model])
    np.testing.assert_array_equal(path[:, start[1] : start[2]].toarray(),
                                  model.estimators_[1].decision_path(X).toarray())  # fmt: skip
    column = RandomForestRegressor(20, oob_score=True, random_state=0).fit(X, X[:, :1])
    assert column.oob_prediction_.shape == (150, 1) and column.oob_score_ > 0.9
