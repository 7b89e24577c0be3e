"""Input layers in scikit-learn pipelines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from groundstate.models.tables.input_layers import KINDS, InputTransformer
from groundstate.store import dumps, loads

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "step",
    [
        InputTransformer("center"),
        InputTransformer("standardize"),
        InputTransformer("whiten", eps=1e-3),
        InputTransformer("whiten", "cholesky", eps=1e-3),
    ],
)
def test_scikit_learn_contract(step: InputTransformer) -> None:
    check_estimator(step, on_skip=None)  # array API checks need an environment variable


def test_standardize_equals_scikit_learn() -> None:
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    theirs = StandardScaler().fit(X, sample_weight=weight).transform(X)
    ours = InputTransformer("standardize").fit(X, sample_weight=weight).transform(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_is_the_row_twice(kind: str) -> None:
    weight = np.ones(len(X))
    weight[:40] = 2
    a = InputTransformer(kind).fit(X, sample_weight=weight)
    b = InputTransformer(kind).fit(np.concatenate([X[:40], X]))
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_back_and_forth_torch_and_files(kind: str) -> None:
    step = InputTransformer(kind).fit(X)
    Z = step.transform(X)
    np.testing.assert_allclose(step.inverse_transform(Z), X, atol=1e-9)
    rows = torch.from_numpy(X)
    assert torch.equal(step.transform(rows), torch.from_numpy(Z))
    assert step.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(loads(dumps(step)).transform(X), Z)
    assert torch.allclose(torch.nn.Sequential(step.layer_)(rows), torch.from_numpy(Z))


def test_in_a_pipeline() -> None:
    model = make_pipeline(InputTransformer(), LogisticRegression()).fit(X, y)
    assert model.score(X, y) > 0.95
    with pytest.raises(
        ValueError, match="'kind' parameter of InputTransformer must be a str among"
    ):
        InputTransformer("scale").fit(X)
