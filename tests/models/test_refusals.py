"""What a model cannot use is refused in one sentence that says how much of it there is and where."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import groundstate
from groundstate.errors import DataError

X = np.random.default_rng(0).normal(size=(8, 3))
y = np.arange(8) % 2


def holed(value: float = np.nan) -> np.ndarray:
    out = X.copy()
    out[[2, 5], [1, 0]] = value
    return out


def said(model, rows, target=y) -> str:
    with pytest.raises(DataError) as refusal:
        model.fit(rows, target)
    return str(refusal.value)


def test_missing_values() -> None:
    assert said(groundstate.LogisticRegression(), holed()) == (
        "Input X contains NaN in 2 of 24 entries, first in row 2, column 1; LogisticRegression "
        "needs every value, so impute or drop them, or use a model that takes missing values: "
        "HistGradientBoostingClassifier or GaussianNB"
    )
    assert said(groundstate.Ridge(), holed()).endswith("values: HistGradientBoostingRegressor")
    assert said(groundstate.KMeans(2), holed()).endswith("so impute or drop them")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_have_names_in_frames(frame) -> None:
    table = frame({name: holed()[:, j] for j, name in enumerate(["a", "b", "c"])})
    assert "in 2 of 24 entries, first in row 2, column 'b';" in said(groundstate.Ridge(), table)


def test_infinite_values() -> None:
    told = said(groundstate.Ridge(), holed(np.inf))
    assert told == (
        "Input X contains infinity in 2 of 24 entries, first in row 2, column 1; replace such "
        "values or drop their rows"
    )
    # trees and naive Bayes take NaN, not infinity
    for name in ("DecisionTreeClassifier", "GaussianNB", "HistGradientBoostingClassifier"):
        assert said(getattr(groundstate, name)(), holed(-np.inf)) == told


def test_too_large_for_the_precision_of_the_model() -> None:
    model = groundstate.Ridge().fit(X.astype(np.float32), y)
    with pytest.raises(DataError, match="infinity in 1 of 24 entries, first in row 0, column 2"):
        model.predict(np.where(np.arange(24).reshape(8, 3) == 2, 1e300, X))


def test_sparse_rows_and_targets() -> None:
    told = said(groundstate.LinearSVC(), sp.csc_matrix(holed()))
    assert "NaN in 2 of 24 entries, first in row 2, column 1" in told
    target = np.array([0.0, 1.0, np.nan, np.nan, 0.0, 1.0, 0.0, 1.0])
    assert said(groundstate.Ridge(), X, target) == (
        "Input y contains NaN in 2 of 8 entries, first in row 2; drop the rows without a finite "
        "target"
    )


def test_new_rows_and_later_parts() -> None:
    model = groundstate.LogisticRegression().fit(X, y)
    with pytest.raises(DataError, match="NaN in 2 of 24 entries"):
        model.predict(holed())
    with pytest.raises(DataError, match="NaN in 2 of 24 entries"):
        groundstate.Perceptron().partial_fit(holed(), y, classes=[0, 1])


@pytest.mark.parametrize("rows", [[["a", "b"]] * 8, np.zeros((8, 0)), X[:5]])
def test_other_refusals(rows) -> None:
    with pytest.raises(ValueError, match=re.compile("holds text|0 feature|inconsistent")):
        groundstate.Ridge().fit(rows, y)
