"""Data on a device is fitted and answered there; the CPU stands in for one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from tests.contracts.test_estimator import QUICK

import groundstate
from groundstate.errors import OnCPU
from groundstate.models import base, resident
from groundstate.registry import models

ROWS = 60
LONG = ("LocallyAdaptiveNormal",)  # a shortest curve for every pair
TABLES = [
    pytest.param(r.name, marks=[pytest.mark.slow] * (r.name in LONG))
    for r in models
    if r.obj.rows == "table"
]


@pytest.fixture
def cpu_is_a_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take CPU tensors for tensors of a device."""
    monkeypatch.setattr(resident, "on_device", lambda values: isinstance(values, torch.Tensor))
    monkeypatch.setattr(resident, "_reported", set())
    yield


def table(row: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.2, 1.0, size=(ROWS, 4))
    if row.name in ("CategoricalNB", "BernoulliRBM", "ID3Classifier"):
        X = np.round(X)
    score = X @ np.array([1.0, -2.0, 0.5, 1.0]) + 0.1 * rng.normal(size=ROWS)
    return X, 1.0 + np.exp(score) if row.role == "regressor" else (score > 0).astype(int) * 2


def made(row: Any, **settings: Any) -> Any:
    model = row.obj(**QUICK[row.name])
    settings = {"random_state": 0, "n_estimators": 5} | settings
    return model.set_params(**{k: v for k, v in settings.items() if k in model.get_params()})


def asked(model: Any, X: Any) -> Any:
    ways = ("predict", "transform", "kneighbors", "score_samples", "energy")
    name = next(n for n in ways if hasattr(model, n))
    found = getattr(model, name)(X)
    return found[0] if isinstance(found, tuple) else found


def fit(model: Any, X: Any, y: Any) -> list[Any]:
    """Fit quietly, except for what is reported about devices."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [w for w in seen if issubclass(w.category, OnCPU)]


@pytest.mark.parametrize("name", TABLES)
def test_a_fit_follows_its_data(
    name: str, cpu_is_a_device: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = models[name]
    X, y = table(row)
    rows, target = torch.from_numpy(X), torch.from_numpy(y)
    expected = made(row)
    fit(expected, X, y)
    model = made(row)
    copied: list[int] = []
    plain = base.unwrap

    def unwrap(values: Any) -> Any:
        copied.append(getattr(values, "numel", lambda: 0)())
        return plain(values)

    monkeypatch.setattr(base, "unwrap", unwrap)
    reports = fit(model, rows, target)
    if model._runs_on == "any":
        assert not reports
        assert rows.numel() not in copied or not model._device_rows or row.name[:6] == "Pseudo"
    else:
        assert len(reports) == 1 and "device='cpu'" in str(reports[0].message)
        assert not fit(made(row), rows, target)  # said once
    answer = asked(model, rows)
    assert isinstance(answer, torch.Tensor)
    np.testing.assert_allclose(
        answer.double().numpy(), np.asarray(asked(expected, X), float), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", TABLES)
def test_a_named_cpu_is_no_news(name: str, cpu_is_a_device: None) -> None:
    row = models[name]
    X, y = table(row)
    assert not fit(made(row, device="cpu"), torch.from_numpy(X), torch.from_numpy(y))


def test_where_a_model_is_fitted_and_lives() -> None:
    there = torch.empty(3, 2, device="meta")
    cpu, meta = torch.device("cpu"), there.device
    assert resident.places(groundstate.Ridge(), there) == (meta, meta)
    assert resident.places(groundstate.Ridge(), np.eye(3)) == (cpu, cpu)
    with pytest.warns(OnCPU, match="Lasso has no solver for meta yet"):
        resident._reported.discard("Lasso")
        assert resident.places(groundstate.Lasso(), there) == (cpu, meta)
    with pytest.warns(OnCPU, match="keeps what it learned there"):
        resident._reported.discard("BaggingRegressor")
        assert resident.places(groundstate.BaggingRegressor(), there) == (cpu, cpu)
    assert resident.places(groundstate.Lasso(device="cpu"), there) == (cpu, cpu)


@pytest.mark.parametrize("name", ["Ridge", "LinearRegression"])
@pytest.mark.parametrize("flat", [True, False])
def test_values(name: str, flat: bool, cpu_is_a_device: None) -> None:
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
def test_classes(balance: Any, cpu_is_a_device: None) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[20:], 3 * y[20:] + 1
    expected = groundstate.LogisticRegression(class_weight=balance, tol=1e-8).fit(X, y)
    model = groundstate.LogisticRegression(class_weight=balance, tol=1e-8)
    model.fit(torch.from_numpy(X), torch.from_numpy(y))
    assert model.classes_.tolist() == [1, 4, 7]
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    assert model.predict(torch.from_numpy(X)).tolist() == expected.predict(X).tolist()


def test_bad_weights_are_refused(cpu_is_a_device: None) -> None:
    rows = torch.ones(3, 2)
    with pytest.raises(ValueError, match="egative"):
        groundstate.Ridge().fit(rows, rows[:, 0], torch.tensor([1.0, -1.0, 1.0]))


def test_what_is_ready_for_use() -> None:
    rows = torch.ones(3, 2)
    assert not resident.is_resident(rows)  # on the host, where other checks look at it
    assert resident.class_numbers(torch.tensor([1, 0]), 2) is None
    values, flat = resident.targets(torch.tensor([1, 0, 2]), rows)  # type: ignore[misc]
    assert flat and values.dtype == rows.dtype and values.shape == (3, 1)
    for bad in (torch.tensor([1.0, float("nan"), 0.0]), torch.ones(2), [1.0, 2.0, 3.0]):
        assert resident.targets(bad, rows) is None
