"""Several outputs: where scikit-learn's estimator of the same name takes y of two columns, so does ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression
from sklearn.utils import get_tags
from sklearn.utils.discovery import all_estimators
from tests.contracts.test_estimator import make

from groundstate.registry import models

PEERS: dict[str, Any] = dict(all_estimators())
# what needs members to be made has no tags of its own
COMPOSED = ("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor")
NAMES = [
    row.name
    for row in models
    if row.name in PEERS
    and row.name not in COMPOSED
    and row.role in ("classifier", "regressor")
    and get_tags(PEERS[row.name]()).target_tags.multi_output
]


def test_the_list_is_not_empty() -> None:
    assert {"KNeighborsClassifier", "LinearRegression", "RandomForestRegressor"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
def test_two_columns_are_taken_and_answered(name: str) -> None:
    if models[name].role == "regressor":
        X, y = make_regression(80, 4, n_targets=2, noise=1.0, random_state=0)
    else:
        X, labels = load_iris(return_X_y=True)
        y = np.column_stack([labels == 0, X[:, 0] > 5.8]).astype(int)
    told = np.asarray(make(name).fit(X, y).predict(X))
    assert told.shape == y.shape
    if y.dtype.kind == "i":
        assert (told == y).mean() > 0.8
    else:
        assert np.isfinite(told).all()
