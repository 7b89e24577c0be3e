"""Forests: averages of trees, rows drawn on the weight line, out-of-bag answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
)
from sklearn.model_selection import cross_val_score

from groundstate import (
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from groundstate.models.trees.grown import tried_columns

RNG = np.random.default_rng(0)
X, Y = make_friedman1(300, noise=1.0, random_state=0)
FORESTS = [RandomForestRegressor, ExtraTreesRegressor]


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
@pytest.mark.parametrize("name", ["RandomForestClassifier", "ExtraTreesClassifier"])
def test_classes_as_good_as_the_peer(name: str, load: object) -> None:
    A, a = load(return_X_y=True)  # type: ignore[operator]
    A, a = A[:700], a[:700]
    ours = {
        "RandomForestClassifier": RandomForestClassifier,
        "ExtraTreesClassifier": ExtraTreesClassifier,
    }
    mine = cross_val_score(ours[name](40, random_state=0), A, a, cv=3)
    theirs = cross_val_score(getattr(peer, name)(40, random_state=0), A, a, cv=3)
    error = np.sqrt(theirs.mean() * (1 - theirs.mean()) / len(A))
    assert mine.mean() >= theirs.mean() - 2 * error - 1e-9


@pytest.mark.parametrize("name", ["RandomForestRegressor", "ExtraTreesRegressor"])
def test_values_as_good_as_the_peer(name: str) -> None:
    ours = {m.__name__: m for m in FORESTS}[name]
    for A, a in ((X, Y), load_diabetes(return_X_y=True)):
        mine = cross_val_score(ours(40, random_state=0), A, a, cv=3)
        theirs = cross_val_score(getattr(peer, name)(40, random_state=0), A, a, cv=3)
        assert mine.mean() >= theirs.mean() - 0.05


@pytest.mark.parametrize("make", FORESTS)
def test_weight_is_repetition_with_bootstrap(make: type) -> None:
    w = RNG.integers(0, 4, 300).astype(float)
    index = RNG.permutation(np.repeat(np.arange(300), w.astype(int)))
    settings = {"n_estimators": 12, "bootstrap": True, "max_features": 3, "random_state": 0}
    weighted = make(**settings).fit(X, Y, sample_weight=w)
    repeated = make(**settings).fit(X[index], Y[index])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-10)


def test_jobs_and_order_change_nothing() -> None:
    one = RandomForestRegressor(10, random_state=0, n_jobs=1).fit(X, Y).predict(X)
    two = RandomForestRegressor(10, random_state=0, n_jobs=2).fit(X, Y).predict(X)
    np.testing.assert_array_equal(one, two)
    order = RNG.permutation(300)
    moved = RandomForestRegressor(10, random_state=0).fit(X[order], Y[order]).predict(X)
    np.testing.assert_allclose(one, moved, rtol=1e-12)


def test_out_of_bag() -> None:
    model = RandomForestRegressor(60, oob_score=True, random_state=0).fit(X, Y)
    held_out = cross_val_score(RandomForestRegressor(60, random_state=0), X, Y, cv=5).mean()
    assert model.oob_score_ == pytest.approx(held_out, abs=0.08)
    assert model.oob_prediction_.shape == (300,) and model.score(X, Y) > model.oob_score_ + 0.1
    label = (np.median(Y) < Y).astype(int)
    votes = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, label)
    np.testing.assert_allclose(votes.oob_decision_function_.sum(1), 1.0)
    assert 0.7 < votes.oob_score_ < 1.0
    with pytest.raises(ValueError, match="oob_score needs bootstrap=True"):
        RandomForestRegressor(bootstrap=False, oob_score=True).fit(X, Y)


def test_breimans_choices() -> None:
    for p, classes, values in ((10, 3, 3), (100, 10, 33)):
        assert tried_columns(RandomForestClassifier(preset="breiman"), p) == classes
        assert tried_columns(RandomForestRegressor(preset="breiman"), p) == values
    model = RandomForestRegressor(5, preset="breiman", random_state=0).fit(X, Y)
    for tree in model.estimators_:
        view = tree.tree_
        assert view.weighted_n_node_samples[view.children_left >= 0].min() > 5


def test_all_columns_is_bagging_and_none_drawn_is_one_tree() -> None:
    same = RandomForestRegressor(3, bootstrap=False, random_state=0).fit(X, Y)
    tree = DecisionTreeRegressor().fit(X, Y)
    np.testing.assert_allclose(same.predict(X), tree.predict(X))


def test_average_of_members() -> None:
    model = RandomForestClassifier(7, random_state=0).fit(X, Y > 14)
    members = np.mean([tree.predict_proba(X) for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), members, atol=1e-12)
    assert len(model) == 7 and model.apply(X).shape == (300, 7)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[:5].sum() > 0.7  # the last five are noise


def test_warm_start_adds_the_same_trees() -> None:
    model = RandomForestRegressor(4, warm_start=True, random_state=0).fit(X, Y)
    model.set_params(n_estimators=9).fit(X, Y)
    whole = RandomForestRegressor(9, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_variance_falls_with_members() -> None:
    spread = []
    for size in (1, 20):
        fits = [RandomForestRegressor(size, random_state=s).fit(X, Y).predict(X) for s in range(6)]
        spread.append(np.var(fits, axis=0).mean())
    assert spread[1] < spread[0] / 8


def test_missing_values_and_max_samples() -> None:
    A = X.copy()
    A[RNG.random(A.shape) < 0.1] = np.nan
    model = RandomForestRegressor(20, max_samples=0.5, random_state=0).fit(A, Y)
    assert model.score(A, Y) > 0.6
    assert model.estimators_[0].tree_.weighted_n_node_samples[0] == 150


def test_members_of_a_stack() -> None:
    parts = [
        ("forest", RandomForestRegressor(10, random_state=0)),
        ("tree", DecisionTreeRegressor()),
    ]
    stack = peer.StackingRegressor(parts, cv=3).fit(X, Y)
    assert stack.score(X, Y) > 0.7
    label = Y > 14
    votes = [("a", RandomForestClassifier(8, random_state=0)), ("b", ExtraTreesClassifier(8))]
    assert peer.StackingClassifier(votes, cv=3).fit(X, label).score(X, label) > 0.9
