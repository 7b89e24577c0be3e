"""What tree models take at the door, and what they say when it is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import groundstate

R = np.random.default_rng(0)
X = R.normal(size=(90, 5)) * (R.random((90, 5)) < 0.4)
Y = (X[:, 0] > 0).astype(int)
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("DecisionTreeClassifier", {}),
    ("RandomForestRegressor", {"n_estimators": 5}),
    ("ExtraTreesClassifier", {"n_estimators": 5}),
    ("GradientBoostingRegressor", {"n_estimators": 5}),
    ("HistGradientBoostingClassifier", {"max_iter": 5}),
    ("AdaBoostClassifier", {"n_estimators": 5}),
    ("BaggingClassifier", {"n_estimators": 5}),
    ("SeedEnsembleRegressor", {"n_estimators": 2}),
]


@pytest.mark.parametrize(("name", "options"), KINDS, ids=[name for name, _ in KINDS])
def test_sparse_rows_are_dense_rows(name: str, options: dict[str, Any]) -> None:
    model = getattr(groundstate, name)(**options, random_state=0)
    expected = model.fit(X, Y).predict(X)
    np.testing.assert_array_equal(model.fit(csc_array(X), Y).predict(coo_array(X)), expected)


def test_sparse_categories_and_members_that_need_dense_rows() -> None:
    codes = np.round(X)
    model = groundstate.HistGradientBoostingClassifier(categorical_features=[0], max_iter=3)
    expected = model.fit(codes, Y).predict(codes)
    found = model.fit(csr_array(codes), Y).predict(csr_array(codes))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(TypeError, match="dense data is required"):
        groundstate.BaggingClassifier(groundstate.GaussianNB()).fit(csr_array(X), Y)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("RandomForestClassifier", "n_estimators"),
        ("GradientBoostingClassifier", "n_estimators"),
        ("BaggingRegressor", "n_estimators"),
        ("HistGradientBoostingRegressor", "max_iter"),
    ],
)
def test_warm_start_does_not_forget(name: str, steps: str) -> None:
    model = getattr(groundstate, name)(warm_start=True, **{steps: 4}).fit(X, Y)
    with pytest.raises(ValueError, match=f"{steps}=3 is less than the 4 that warm_start keeps"):
        model.set_params(**{steps: 3}).fit(X, Y)


def test_one_is_a_count_and_no_share() -> None:
    with pytest.raises(ValueError, match="min_samples_split"):
        groundstate.DecisionTreeClassifier(min_samples_split=1).fit(X, Y)
    groundstate.DecisionTreeClassifier(min_samples_split=1.0).fit(X, Y)


def test_ensembles_are_sequences_of_members() -> None:
    model = groundstate.RandomForestClassifier(3, random_state=0).fit(X, Y)
    assert [m.get_n_leaves() for m in model] == [model[t].get_n_leaves() for t in range(3)]
    boosted = groundstate.GradientBoostingClassifier(n_estimators=3).fit(X, Y)
    assert boosted[0].shape == (1,) and boosted.n_classes_ == 2
    assert len(list(groundstate.AdaBoostClassifier(n_estimators=2).fit(X, Y % 2))) >= 1
