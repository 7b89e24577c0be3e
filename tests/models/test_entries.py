"""Tables and targets that hold no numbers are refused in one sentence that names the column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.sparse import csr_array

import groundstate
from groundstate.errors import DataError

X = np.random.default_rng(0).normal(size=(12, 2))
value = X[:, 0] * 2
label = np.where(X[:, 0] > 0, "yes", "no")
REGRESSORS = (
    "Ridge", "Lasso", "BayesianRidge", "KernelRidge", "SVR", "HuberRegressor", "QuantileRegressor",
    "DecisionTreeRegressor", "HistGradientBoostingRegressor", "KNeighborsRegressor",
)  # fmt: skip


def refusal(model: Any, rows: Any, target: Any = None) -> str:
    with pytest.raises(DataError) as refused:
        model.fit(rows, target)
    return str(refused.value)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_in_a_frame(frame: Any) -> None:
    table = frame({"size": X[:, 0], "colour": ["red", "blue"] * 6})
    assert refusal(groundstate.Ridge(), table, value) == (
        "column 'colour' of X holds text, such as 'red' in row 0, and Ridge takes numbers; turn it "
        "into numbers or drop it, or let groundstate.TablePredictor prepare the columns for the "
        "model"
    )
    assert refusal(groundstate.KMeans(2), table).endswith("turn it into numbers or drop it")


def test_text_dates_and_uneven_rows() -> None:
    rows = X.astype(object)
    rows[3, 1] = "?"
    assert "column 1 of X holds text, such as '?' in row 3" in refusal(groundstate.PCA(), rows)
    assert "column 1 of X holds text" in refusal(groundstate.PCA(), rows.tolist())
    days = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2024-02-01", periods=12)})
    assert "column 'day' of X holds dates, such as '2024-02-01" in refusal(groundstate.PCA(), days)
    assert refusal(groundstate.PCA(), [[1.0, 2.0], [3.0]]) == (
        "rows of X differ in length: row 0 has 2 values and row 1 has 1"
    )


@pytest.mark.parametrize("name", ["Ridge", "RandomForestRegressor", "KMeans", "KernelDensity"])
def test_names_that_stand_twice(name: str) -> None:
    model = getattr(groundstate, name)()
    twice = pd.DataFrame(X, columns=["a", "a"])
    assert refusal(model, twice, value) == (
        "several columns of X are named 'a'; give each a name of its own"
    )


def test_missing_values_of_nullable_columns_have_a_place() -> None:
    table = pd.DataFrame(X, columns=["a", "b"]).astype("Float64")
    table.loc[4, "b"] = pd.NA
    assert "NaN in 1 of 24 entries, first in row 4, column 'b'" in refusal(
        groundstate.KMeans(2), table
    )


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_target_that_is_missing(name: str) -> None:
    """None among numbers became NaN, which many models learned from and then predicted."""
    target = np.array([None, *value[1:]], dtype=object)
    assert refusal(getattr(groundstate, name)(), X, target) == (
        "Input y contains NaN in 1 of 12 entries, first in row 0; drop the rows without a finite "
        "target"
    )
    target[0] = "high"
    assert refusal(getattr(groundstate, name)(), X, target) == (
        f"{name} predicts numbers, but y holds 'high' in row 0; for labels take a classifier"
    )


def test_targets_of_objects_that_are_numbers() -> None:
    model = groundstate.Ridge()
    plain = model.fit(X, value).predict(X)
    for target in (value.astype(object), pd.Series(value, dtype=object), list(value)):
        np.testing.assert_array_equal(model.fit(X, target).predict(X), plain)


@pytest.mark.parametrize("name", ["LogisticRegression", "RandomForestClassifier", "ConditionalGAN"])
def test_a_label_that_is_missing(name: str) -> None:
    target = np.array([None, *label[1:-1], None], dtype=object)
    assert refusal(getattr(groundstate, name)(), X, target) == (
        "Input y contains None in 2 of 12 entries, first in row 0; drop the rows without a label"
    )


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_bfloat16_and_sparse_tensors() -> None:
    rows = torch.tensor(X)
    half = rows.bfloat16()
    model = groundstate.KNeighborsRegressor(3).fit(half, torch.tensor(value))
    seen = groundstate.KNeighborsRegressor(3).fit(half.float(), torch.tensor(value))
    assert torch.equal(model.predict(half), seen.predict(half.float()))
    known = groundstate.LogisticRegression().fit(csr_array(X), label).predict_proba(csr_array(X))
    for sparse in (rows.to_sparse(), rows.to_sparse_csr()):
        found = groundstate.LogisticRegression().fit(sparse, label).predict_proba(sparse)
        assert torch.is_tensor(found)
        np.testing.assert_array_equal(found.numpy(), known)
