"""Cross-validation, leave-one-out, nested tuning against scikit-learn and refits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import linear_model as lm
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold
from sklearn.model_selection import cross_validate as theirs
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import groundstate as gs
from groundstate.errors import DataError, Unreliable
from groundstate.evaluate import cross_validate, loo, nested_cv, one_standard_error

rng = np.random.default_rng(0)
X, y = load_iris(return_X_y=True)


def test_equals_sklearn_on_the_same_folds() -> None:
    model = lm.LogisticRegression(max_iter=500)
    found = cross_validate(model, X, y, cv=5)
    peer = theirs(model, X, y, cv=found.folds)["test_score"]
    assert np.abs(found.scores.values - peer).max() < 1e-12
    assert found.mean == pytest.approx(peer.mean()) and found.predictions is not None
    assert found.mean == pytest.approx(np.mean(found.predictions == y))
    custom = StratifiedKFold(4, shuffle=True, random_state=3)
    ours = cross_validate(model, X, y, cv=custom, scoring="neg_log_loss")
    assert np.allclose(
        ours.scores.values, theirs(model, X, y, cv=custom, scoring="neg_log_loss")["test_score"]
    )


def test_each_row_is_tested_once() -> None:
    x = rng.normal(size=(53, 2))
    target = x[:, 0] + rng.normal(size=53)
    found = cross_validate(lm.Ridge(), x, target, cv=5)
    tested = np.concatenate([test for _, test in found.folds])
    assert np.array_equal(np.sort(tested), np.arange(53))
    trained = np.bincount(np.concatenate([train for train, _ in found.folds]))
    assert (trained == 4).all()
    sizes = [len(test) for _, test in found.folds]
    assert max(sizes) - min(sizes) <= 1
    assert found.mean == pytest.approx(np.average(found.scores.values, weights=sizes))
    score = "neg_mean_squared_error"
    each = cross_validate(lm.Ridge(), x, target, cv=53, scoring=score)
    peer = theirs(lm.Ridge(), x, target, cv=LeaveOneOut(), scoring=score)["test_score"]
    assert each.mean == pytest.approx(peer.mean())
    sums = cross_validate(lm.Ridge(), x, target, scoring=score, aggregate="fold_sum")
    assert sums.mean == pytest.approx(each.mean * 53 / 5, rel=0.2)


def test_numbers_of_folds_are_cut_on_the_weight_line() -> None:
    order = rng.permutation(150)
    again = {}
    for at in (np.arange(150), order):
        found = cross_validate(gs.GaussianNB(), X[at], y[at], cv=5)
        for train, test in found.folds:
            assert not {r.tobytes() for r in X[at][train]} & {r.tobytes() for r in X[at][test]}
        again[len(again)] = sorted(sorted(at[test].tolist()) for _, test in found.folds)
    assert again[0] == again[1]  # the order of the rows does not matter


def test_corrected_error_and_repeats() -> None:
    found = cross_validate(DecisionTreeClassifier(), X, y, cv=5, repeats=3)
    assert len(found.scores) == 15
    naive = found.scores.std / np.sqrt(15)
    assert found.standard_error / naive == pytest.approx(np.sqrt(1 + 15 * 30 / 120))
    again = cross_validate(DecisionTreeClassifier(), X, y, cv=5, repeats=3)
    assert np.array_equal(found.scores.values, again.scores.values)
    assert " to " in str(found)
    with pytest.raises(DataError, match="between 2 and the 150"):
        cross_validate(lm.Ridge(), X, y, cv=1)


def test_groups_and_time() -> None:
    people = np.repeat(np.arange(200), 2)
    trait = rng.normal(size=200)
    x = np.repeat(trait, 2)[:, None] + 1e-4 * rng.normal(size=(400, 1))
    label = np.repeat(rng.integers(2, size=200), 2)
    plain = cross_validate(KNeighborsClassifier(1), x, label, cv=5)
    grouped = cross_validate(KNeighborsClassifier(1), x, label, cv=5, groups=people)
    for train, test in grouped.folds:
        assert not set(people[train]) & set(people[test])
    assert plain.mean > grouped.mean + 0.2  # the person leaks
    assert grouped.design_effect == pytest.approx(2.0, abs=0.25)
    when = rng.permutation(400)
    past = cross_validate(lm.Ridge(), x, x[:, 0], cv=4, time=when, gap=3)
    for train, test in past.folds:
        assert when[train].max() + 3 < when[test].min()
    assert past.predictions is None


def test_one_standard_error_rule() -> None:
    assert one_standard_error([0.7, 0.88, 0.9, 0.89], [0.03] * 4, [1, 2, 3, 4]) == 1
    assert one_standard_error([0.3, 0.12, 0.1], [0.03] * 3, [1, 2, 3], greater=False) == 1


def test_loo_numbers() -> None:
    found = loo(gs.LinearRegression(), np.arange(1.0, 5)[:, None], [1, 2, 2, 4])
    assert found.mse == pytest.approx(0.742630, abs=1e-6)
    assert found.train_mse == pytest.approx(0.175) and found.gcv == pytest.approx(0.7)
    assert found.method == "exact" and " to " in str(found)


SMOOTHERS = {
    "ols": gs.LinearRegression(),
    "no intercept": gs.LinearRegression(fit_intercept=False),
    "ridge": gs.Ridge(2.0),
    "kernel ridge": gs.KernelRidge(alpha=0.5, kernel="rbf"),
    "process": gs.GaussianProcessRegressor(alpha=0.3, optimizer=None),
    "spline": gs.SmoothingSplineRegressor(lam=0.3),
}
PEERS = {
    "ols": lm.LinearRegression(),
    "no intercept": lm.LinearRegression(fit_intercept=False),
    "ridge": lm.Ridge(2.0),
    "kernel ridge": KernelRidge(alpha=0.5, kernel="rbf"),
}


@pytest.mark.parametrize("name", SMOOTHERS)
def test_loo_equals_refits(name: str) -> None:
    model = SMOOTHERS[name]
    x = np.random.default_rng(1).normal(size=(20, 1 if "spline" in name else 2))
    target = x[:, 0] + np.random.default_rng(2).normal(size=20)
    found = loo(model, x, target)
    assert found.method == "exact"
    from sklearn.base import clone

    refits = [
        target[i]
        - float(
            np.ravel(clone(model).fit(np.delete(x, i, 0), np.delete(target, i)).predict(x[[i]]))[0]
        )
        for i in range(20)
    ]
    assert found.errors == pytest.approx(np.array(refits), abs=1e-10)
    if name in PEERS:
        theirs = loo(PEERS[name], x, target)  # declares nothing: fitted without every row
        assert theirs.method == "refits"
        assert theirs.errors == pytest.approx(found.errors, abs=1e-10)


def test_settings_that_are_not_linear_in_y_are_refitted() -> None:
    x = np.random.default_rng(1).normal(size=(20, 2))
    for model in (
        gs.Ridge(positive=True),
        gs.GaussianProcessRegressor(normalize_y=True, optimizer=None),
    ):
        assert loo(model, x, x[:, 0]).method == "refits"


def test_loo_of_others_is_refitted() -> None:
    x, target = X[:30], X[:30, 0] + rng.normal(size=30)
    found = loo(KNeighborsRegressor(3), x, target)
    assert found.method == "refits" and found.gcv is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loo(lm.Lasso(0.1), x, target)
    with pytest.warns(Unreliable, match="fitted 1001 times"):
        big = rng.normal(size=(1001, 1))
        loo(_Constant(), big, big[:, 0])


class _Constant(lm.LinearRegression):
    def fit(self, X, y):  # type: ignore[no-untyped-def]
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):  # type: ignore[no-untyped-def]
        return np.full(len(X), self.mean_)


def test_nested_tuning_of_noise_finds_nothing() -> None:
    noise = rng.normal(size=(60, 1000))
    label = rng.integers(2, size=60)
    recipe = make_pipeline(SelectKBest(f_classif, k=20), KNeighborsClassifier())
    space = {"kneighborsclassifier__n_neighbors": [1, 5, 15]}
    inside = nested_cv(recipe, space, noise, label, outer=5, inner=3)
    assert abs(inside.scores.mean - 0.5) < 0.2
    best = SelectKBest(f_classif, k=20).fit(noise, label).transform(noise)
    outside = nested_cv(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]}, best, label)
    assert outside.scores.mean > inside.scores.mean + 0.2 and outside.scores.mean > 0.75
    assert len(inside.chosen) == 5 and 0 < max(inside.stability.values()) <= 1
    assert inside.optimism > -0.2 and "inner score" in str(inside)


def test_nested_search_can_be_replaced() -> None:
    from sklearn.model_selection import GridSearchCV

    folds = KFold(3, shuffle=True, random_state=0)
    target = X[:, 0] + 0.1 * rng.normal(size=150)
    grid = {"alpha": [0.1, 100.0]}
    ours = nested_cv(
        lm.Ridge(), grid, X, target, outer=folds, search=lambda m, key: GridSearchCV(m, grid, cv=4)
    )
    from sklearn.model_selection import cross_val_score

    peer = cross_val_score(GridSearchCV(lm.Ridge(), grid, cv=4), X, target, cv=folds)
    assert np.allclose(ours.scores.values, peer)


def test_matrices_of_pairs_are_cut_on_both_sides() -> None:
    g = np.random.default_rng(0)
    X = g.normal(size=(60, 3))
    label = (X[:, 0] > 0).astype(int)
    distance = ((X[:, None] - X) ** 2).sum(-1) ** 0.5
    kernel = np.exp(-(distance**2) / 3)
    for by_rows, by_pairs, table in (
        (gs.KNeighborsClassifier(), gs.KNeighborsClassifier(metric="precomputed"), distance),
        (gs.SVC(gamma=1 / 3), gs.SVC(kernel="precomputed"), kernel),
    ):
        one = cross_validate(by_rows, X, label, random_state=0)
        other = cross_validate(by_pairs, table, label, cv=one.folds, random_state=0)
        np.testing.assert_array_equal(one.scores.values, other.scores.values)
        np.testing.assert_array_equal(one.predictions, other.predictions)
