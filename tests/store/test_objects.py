"""Estimators, modules and energies come back able to do what they did."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from torch import nn

from groundstate.energy.spaces import Binary, Finite, Real
from groundstate.errors import StoreError
from groundstate.store import dumps, loads, register

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
X[::7, 1] = np.nan
labels = np.array(["no", "yes"], object)[(X[:, 0] > 0).astype(int)]
words = rng.choice(np.array(["a", "b", "c"], object), size=(30, 2))


@register
class Centroid(BaseEstimator):
    _store_private = ("_seen",)
    _store_skip = ("callback", "cache_")

    def __init__(self, scale: float = 1.0, callback: Any = None) -> None:
        self.scale = scale
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> Centroid:
        self.mean_ = X.mean(0) * self.scale
        self.cache_ = lambda: 0
        self._seen, self._forgotten = 3, lambda: 0
        return self


def test_estimator_hook() -> None:
    model = Centroid(2.0, callback=print).fit(np.ones((2, 2)))
    back = loads(dumps(model))
    assert back.scale == 2.0 and back.callback is None and back._seen == 3
    assert np.array_equal(back.mean_, [2.0, 2.0])
    assert not hasattr(back, "cache_") and not hasattr(back, "_forgotten")
    assert not hasattr(loads(dumps(Centroid())), "mean_")


def test_estimator_names_what_cannot_be_stored() -> None:
    with pytest.raises(StoreError, match=r"cannot store Centroid\.mean_: a builtin_function"):
        model = Centroid()
        model.mean_ = len
        dumps(model)


PREPARATIONS: list[tuple[Any, Any]] = [
    (StandardScaler(), X),
    (MinMaxScaler(), X),
    (MaxAbsScaler(), X),
    (RobustScaler(), X),
    (SimpleImputer(strategy="median", add_indicator=False), X),
    (OneHotEncoder(handle_unknown="ignore"), words),
    (OrdinalEncoder(), words),
    (make_pipeline(SimpleImputer(), StandardScaler()), X),
]


@pytest.mark.parametrize(("step", "table"), PREPARATIONS, ids=lambda v: type(v).__name__)
def test_sklearn_preparation(step: Any, table: Any) -> None:
    step.fit(table)
    before, after = step.transform(table), loads(dumps(step)).transform(table)
    assert type(before) is type(after)
    if hasattr(before, "toarray"):
        before, after = before.toarray(), after.toarray()
    np.testing.assert_array_equal(after, before)


def test_sklearn_dummy_in_a_pipeline() -> None:
    model = Pipeline([("fill", SimpleImputer()), ("model", DummyClassifier(random_state=0))])
    model.fit(X, labels)
    back = loads(dumps(model))
    assert back.predict(X).tolist() == model.predict(X).tolist()
    assert back.classes_.tolist() == ["no", "yes"]
    mean = DummyRegressor().fit(X, X[:, 0])
    assert np.array_equal(loads(dumps(mean)).predict(X), mean.predict(X))


LAYERS: list[Any] = [
    (nn.Linear(3, 2, bias=False), (4, 3)),
    (nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(5, 1)), (4, 3)),
    (nn.Sequential(OrderedDict(a=nn.LayerNorm(3), b=nn.Softplus(beta=2.0))), (4, 3)),
    (
        nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding="valid"), nn.BatchNorm2d(4), nn.Flatten()
        ),
        (2, 1, 9, 9),
    ),
    (nn.Sequential(nn.GroupNorm(2, 4), nn.ConvTranspose1d(4, 2, 3, padding=1)), (2, 4, 7)),
]


@pytest.mark.parametrize(("module", "shape"), LAYERS, ids=lambda v: type(v).__name__)
def test_torch_layers(module: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    module(x)  # moves running statistics
    module.eval()
    state = torch.random.get_rng_state()
    back = loads(dumps(module))
    assert torch.equal(torch.random.get_rng_state(), state), "loading must not draw numbers"
    assert not back.training and torch.equal(back(x), module(x))
    assert str(back) == str(module)


def test_double_precision_and_module_dict() -> None:
    module = nn.ModuleDict({"a": nn.ModuleList([nn.Linear(2, 2).double()]), "b": nn.Identity()})
    back = loads(dumps(module))
    assert back["a"][0].weight.dtype == torch.float64
    assert torch.equal(back["a"][0].weight, module["a"][0].weight)


@register
class Mixer(nn.Module):
    def __init__(self, *parts: nn.Module, power: float = 1.0) -> None:
        super().__init__()
        self.parts, self.power = nn.ModuleList(parts), power
        self.register_buffer("ramp", torch.arange(3.0), persistent=False)

    def forward(self, x: Any) -> Any:
        return sum(part(x) for part in self.parts) ** self.power + self.ramp.sum()


@register
class Hidden(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)


def test_own_modules_rebuild_from_attributes_or_config() -> None:
    module = Mixer(nn.Linear(2, 1), nn.Linear(2, 1), power=2.0)
    x = torch.ones(3, 2)
    assert torch.equal(loads(dumps(module))(x), module(x))
    with pytest.raises(StoreError, match=r"add a method config\(\).*'width'"):
        dumps(Hidden(3))
    Hidden.config = lambda self: {"width": self.linear.in_features}  # type: ignore[attr-defined]
    try:
        hidden = Hidden(3)
        assert torch.equal(loads(dumps(hidden)).linear.weight, hidden.linear.weight)
    finally:
        del Hidden.config  # type: ignore[attr-defined]


def test_spaces_of_energies() -> None:
    spaces = {"x": Real(2, 3, low=0.0), "y": Finite(4), "z": Binary(5)}
    assert loads(dumps(spaces)) == spaces


def test_classes_are_found_without_having_been_imported() -> None:
    data = dumps(Finite(7))
    code = (
        "import sys; from groundstate.store import loads; assert 'torch' not in sys.modules;"
        "print(loads(sys.stdin.buffer.read()))"
    )
    run = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert run.stdout.decode().strip() == "Finite(n=7)"


@register
class Placed(BaseEstimator):
    def __init__(self, device: str | None = None, callbacks: Any = None) -> None:
        self.device, self.callbacks = device, callbacks


def test_device_follows_and_callbacks_stay_behind() -> None:
    data = dumps(Placed("cuda:1", callbacks=[print]))
    assert loads(data).device == "cpu" and loads(data).callbacks is None
    assert loads(data, device="stored").device == "cuda:1"
    assert loads(dumps(Placed())).device is None
