"""StackingClassifier and StackingRegressor: parity with scikit-learn, folds, weights, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.ensemble as peers
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    make_multilabel_classification,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import groundstate
from groundstate import StackingClassifier, StackingRegressor

IRIS, CANCER = load_iris(return_X_y=True), load_breast_cancer(return_X_y=True)
X, Y = load_diabetes(return_X_y=True)
CLASSIFIERS = [
    ("bayes", GaussianNB()),
    ("out", "drop"),
    ("lines", LogisticRegression(max_iter=1000, tol=1e-6)),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
]
REGRESSORS = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
FINAL = LogisticRegression(max_iter=2000, tol=1e-8)
SETTINGS = [
    {},
    {"passthrough": True},
    {"stack_method": "predict"},
    {"cv": 3},
    {"cv": KFold(4, shuffle=True, random_state=0)},
]


@pytest.mark.parametrize("rows", [IRIS, CANCER], ids=["iris", "cancer"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_classes_equal_scikit_learn(rows, settings) -> None:
    rows, y = scale(rows[0]), np.array(["a", "b", "c"])[rows[1]]
    ours = StackingClassifier(CLASSIFIERS, FINAL, **settings).fit(rows, y)
    peer = peers.StackingClassifier(CLASSIFIERS, FINAL, **settings).fit(rows, y)
    np.testing.assert_allclose(ours.transform(rows), peer.transform(rows), atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(rows), peer.predict(rows))
    assert ours.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    assert ours.stack_method_ == peer.stack_method_
    assert ours.named_estimators_["out"] == "drop" and len(ours.estimators_) == 3


@pytest.mark.parametrize("settings", [{}, {"passthrough": True, "cv": 3}])
def test_values_equal_scikit_learn(settings) -> None:
    final = Ridge(0.5)
    ours = StackingRegressor(REGRESSORS, final, **settings).fit(X, Y)
    peer = peers.StackingRegressor(REGRESSORS, final, **settings).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-8)
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), rtol=1e-10)


def test_default_final_estimators_are_scikit_learn_s() -> None:
    ours, peer = StackingRegressor(REGRESSORS).fit(X, Y), peers.StackingRegressor(REGRESSORS)
    np.testing.assert_allclose(ours.predict(X), peer.fit(X, Y).predict(X), rtol=1e-5)
    assert type(ours.final_estimator_).__name__ == "RidgeCV"
    rows, y = IRIS
    ours, peer = (
        cls(CLASSIFIERS).fit(rows, y) for cls in (StackingClassifier, peers.StackingClassifier)
    )
    assert type(ours.final_estimator_).__name__ == "LogisticRegression"
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=1e-3)


def test_scores_where_members_have_no_probabilities() -> None:
    rows, y = scale(CANCER[0]), CANCER[1]
    parts = [("svm", LinearSVC(random_state=0)), ("bayes", GaussianNB())]
    ours = StackingClassifier(parts, LinearSVC(random_state=0)).fit(rows, y)
    assert ours.stack_method_ == ["decision_function", "predict_proba"]
    assert not hasattr(ours, "predict_proba") and ours.decision_function(rows).shape == (569,)
    assert ours.score(rows, y) > 0.95 and np.isfinite(ours.energy(rows)).all()


def test_prefit_members_are_taken_as_they_are() -> None:
    parts = [(name, clone(base).fit(X[:200], Y[:200])) for name, base in REGRESSORS]
    ours = StackingRegressor(parts, Ridge(), cv="prefit").fit(X[200:], Y[200:])
    peer = peers.StackingRegressor(parts, Ridge(), cv="prefit").fit(X[200:], Y[200:])
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-8)
    assert ours.estimators_[0] is parts[0][1]


def test_weights_are_repetitions_where_folds_keep_copies_together() -> None:
    rows, y = X[:90], Y[:90]
    weight = np.arange(90) % 3
    index = np.repeat(np.arange(90), weight)
    group = np.arange(90) // 7 % 4
    folds = [(np.flatnonzero(group != f), np.flatnonzero(group == f)) for f in range(4)]
    many = [
        (np.flatnonzero(group[index] != f), np.flatnonzero(group[index] == f)) for f in range(4)
    ]
    weighted = StackingRegressor(REGRESSORS, Ridge(), cv=folds).fit(rows, y, sample_weight=weight)
    repeated = StackingRegressor(REGRESSORS, Ridge(), cv=many).fit(rows[index], y[index])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8)


@pytest.mark.parametrize(
    "settings", [{}, {"passthrough": True, "cv": 3}, {"stack_method": "predict"}]
)
def test_several_labels_equal_scikit_learn(settings) -> None:
    rows, y = make_multilabel_classification(160, 6, n_classes=3, random_state=0)
    parts = [
        ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
        ("near", KNeighborsClassifier()),
        ("net", MLPClassifier((4,), max_iter=30, random_state=0)),
    ]
    final = RandomForestClassifier(10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of scikit-learn's network
        ours = StackingClassifier(parts, final, **settings).fit(rows, y)
        peer = peers.StackingClassifier(parts, final, **settings).fit(rows, y)
    np.testing.assert_allclose(ours.transform(rows), peer.transform(rows), atol=1e-10)
    np.testing.assert_array_equal(ours.predict(rows), peer.predict(rows))
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=1e-10)
    assert ours.score(rows, y) == peer.score(rows, y)
    assert [c.tolist() for c in ours.classes_] == [[0, 1]] * 3
    width = ours.transform(rows).shape[1]
    assert len(ours.get_feature_names_out()) == width  # scikit-learn has one name a member here
    each = [np.exp(-e) for e in ours.energies(rows)]
    np.testing.assert_allclose([p.sum(1) for p in each], 1.0)
    np.testing.assert_array_equal(ours.infer({"x": rows}, "y"), ours.predict(rows))


def test_several_labels_of_our_own_members(tmp_path) -> None:
    rows, y = make_multilabel_classification(120, 6, n_classes=3, random_state=1)
    parts = [
        ("near", groundstate.KNeighborsClassifier()),
        ("tree", groundstate.DecisionTreeClassifier()),
    ]
    final = groundstate.RandomForestClassifier(10, random_state=0)
    model = StackingClassifier(parts, final).fit(rows, y)
    assert model.predict(rows).shape == y.shape and model.transform(rows).shape == (120, 6)
    assert (model.predict(rows) == y).mean() > 0.8
    loaded = groundstate.load(model.save(tmp_path / "several.gs"))
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    with pytest.raises(ValueError, match="multioutput|1d array|several|y should"):
        StackingClassifier(parts).fit(rows, y)  # logistic regression has one label


def test_parameters_of_members_and_saving(tmp_path) -> None:
    parts = [("bayes", groundstate.GaussianNB()), ("near", groundstate.KNeighborsClassifier())]
    model = StackingClassifier(parts, groundstate.LogisticRegression(), passthrough=True)
    model.set_params(near__n_neighbors=9, final_estimator__C=0.5)
    model.fit(*IRIS)
    assert model.named_estimators_["near"].n_neighbors == 9 and model.final_estimator_.C == 0.5
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    np.testing.assert_array_equal(loaded.predict_proba(IRIS[0]), model.predict_proba(IRIS[0]))
    np.testing.assert_array_equal(loaded.energy(*IRIS), model.energy(*IRIS))
    assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_bad_input_is_named() -> None:
    rows, y = IRIS
    with pytest.raises(ValueError, match="should be a classifier"):
        StackingClassifier(CLASSIFIERS, Ridge()).fit(rows, y)
    with pytest.raises(ValueError, match="should be a regressor"):
        StackingRegressor([("bayes", GaussianNB())]).fit(X, Y)
    with pytest.raises(ValueError, match="does not implement the method decision_function"):
        StackingClassifier([("b", GaussianNB())], stack_method="decision_function").fit(rows, y)
    with pytest.raises(ValueError, match="non-empty list"):
        StackingClassifier([]).fit(rows, y)
    with pytest.raises(ValueError, match="hold every row out once"):
        StackingRegressor(REGRESSORS, cv=ShuffleSplit(3, random_state=0)).fit(X, Y)
