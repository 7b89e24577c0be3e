"""Rows on a device stay there; the CPU stands in for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

import groundstate
from groundstate.models import base, resident, roles


@pytest.fixture(autouse=True)
def cpu_is_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take CPU tensors for tensors of a device."""

    def is_resident(X: Any) -> bool:
        return isinstance(X, torch.Tensor) and bool(torch.isfinite(X.sum()))

    def class_numbers(y: Any, rows: int) -> Any:
        classes, index = torch.unique(y, return_inverse=True)
        return index, classes.numpy()

    monkeypatch.setattr(base, "is_resident", is_resident)
    monkeypatch.setattr(roles, "class_numbers", class_numbers)


@pytest.mark.parametrize("name", ["Ridge", "LinearRegression"])
@pytest.mark.parametrize("flat", [True, False])
def test_values(name: str, flat: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50 if flat else (50, 2))
    weight = rng.random(50)
    make = getattr(groundstate, name)
    expected = make().fit(X, y, sample_weight=weight)
    rows, target = torch.from_numpy(X), torch.from_numpy(y)
    model = make().fit(rows, target, sample_weight=torch.from_numpy(weight))
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    told = model.predict(rows)
    assert isinstance(told, torch.Tensor)
    np.testing.assert_allclose(told.numpy(), expected.predict(X), rtol=1e-10)


@pytest.mark.parametrize("balance", [None, "balanced"])
def test_classes(balance: Any) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[20:], 3 * y[20:] + 1
    expected = groundstate.LogisticRegression(class_weight=balance, tol=1e-8).fit(X, y)
    model = groundstate.LogisticRegression(class_weight=balance, tol=1e-8)
    model.fit(torch.from_numpy(X), torch.from_numpy(y))
    assert model.classes_.tolist() == [1, 4, 7]
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    assert model.predict(torch.from_numpy(X)).tolist() == expected.predict(X).tolist()


def test_what_is_ready_for_use() -> None:
    rows = torch.ones(3, 2)
    assert not resident.is_resident(rows)  # on the host, where other checks look at it
    assert resident.class_numbers(torch.tensor([1, 0]), 2) is None
    values, flat = resident.targets(torch.tensor([1, 0, 2]), rows)  # type: ignore[misc]
    assert flat and values.dtype == rows.dtype and values.shape == (3, 1)
    for bad in (torch.tensor([1.0, float("nan"), 0.0]), torch.ones(2), [1.0, 2.0, 3.0]):
        assert resident.targets(bad, rows) is None
