"""What estimators around a network share, on two small presets."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import groundstate
from groundstate.compute.rows import Ragged
from groundstate.errors import DataError
from groundstate.learn import Checkpoint
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network_roles import RowNetworkClassifier, RowNetworkRegressor
from groundstate.nn.blocks.bags import MeanPool


class Pictures(RowNetworkClassifier):
    """Labels of pictures."""

    rows: ClassVar[str] = "image"
    _multi_output: ClassVar[bool] = True

    def __init__(
        self, network: Any = "cnn", network_params: Any = None, *, max_epochs: int = 4,
        batch_size: int = 16, optimizer: Any = "adamw", lr: float = 1e-2,
        weight_decay: float = 1e-2, val_fraction: float = 0.1, patience: Any = 10,
        schedule: Any = None, clip_norm: Any = None, precision: str = "auto", compile: Any = False,
        class_weight: Any = None, warm_start: bool = False, verbose: Any = False,
        random_state: Any = 0, device: Any = "auto", callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {**super()._sizes(X, y), "in_channels": X.shape[1]}


class Sequences(RowNetworkRegressor):
    """Numbers of sequences."""

    rows: ClassVar[str] = "sequence"

    def __init__(
        self, network: Any = None, network_params: Any = None, *, max_epochs: int = 200,
        batch_size: int = 16, optimizer: Any = "adam", lr: float = 3e-2,
        weight_decay: float = 0.0, val_fraction: float = 0.0, patience: Any = None,
        schedule: Any = None, clip_norm: Any = None, precision: str = "auto", compile: Any = False,
        warm_start: bool = False, verbose: Any = False, random_state: Any = 0,
        device: Any = None, callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())


N = 60
CNN = {"channels": (4,), "hidden": ()}


def pictures() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    X = rng.normal(size=(N, 1, 8, 8)).astype(np.float32)
    X[np.arange(N), 0, :, :] += (y[:, None, None] - 1) * 2
    return X, np.array(["low", "mid", "high"])[y]


def state(model: Any) -> dict[str, torch.Tensor]:
    return dict(model.energy_.state_dict())


def same(a: Any, b: Any) -> bool:
    one, two = state(a), state(b)
    return list(one) == list(two) and all(torch.equal(one[k], two[k]) for k in one)


@pytest.fixture
def model() -> Pictures:
    return Pictures(network_params={"channels": (4,)})


def test_fits_and_answers(model: Pictures) -> None:
    X, y = pictures()
    model.set_params(max_epochs=40).fit(X, y)
    assert model.score(X, y) > 0.9
    assert np.allclose(model.predict_proba(X).sum(1), 1, atol=1e-5)
    assert isinstance(model.network_, nn.Module) and model.history_.n_iter <= 40
    assert "validation" in model.history_.extra


def test_settings_of_the_network_are_reached(model: Pictures) -> None:
    model.set_params(network__channels=(2, 2))
    assert model.network_params == {"channels": (2, 2)}
    assert clone(model).get_params()["network__channels"] == (2, 2)
    with pytest.raises(ValueError, match="takes no 'colour'"):
        model.set_params(network__colour=1).fit(*pictures())


def test_a_weight_of_two_is_the_row_twice(model: Pictures) -> None:
    X, y = pictures()
    weight = 1.0 + (np.arange(N) % 3 == 0)
    index = np.repeat(np.arange(N), weight.astype(int))
    one = clone(model).fit(X, y, sample_weight=weight)
    assert same(one, clone(model).fit(X[index], y[index]))
    order = np.random.default_rng(1).permutation(N)
    assert same(clone(model).fit(X, y), clone(model).fit(X[order], y[order]))


def test_many_fits_are_single_fits(model: Pictures) -> None:
    X, y = pictures()
    weights = np.stack([np.ones(N), np.arange(N) % 5 != 0, np.arange(N) % 5 != 1]).astype(float)
    together = groundstate.fit_many(model, X, y, weights)
    for one, weight in zip(together, weights, strict=True):
        alone = clone(model).fit(X, y, sample_weight=weight)
        for name, value in state(alone).items():
            assert torch.allclose(state(one)[name], value, atol=1e-5)


def test_a_killed_run_goes_on(model: Pictures, tmp_path: Path) -> None:
    X, y = pictures()

    class Stop(groundstate.learn.callbacks.Callback):
        def on_step(self, run: Any) -> None:
            if run.total_steps == 5:
                raise KeyboardInterrupt

    kept = Checkpoint(tmp_path, every_steps=1)
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(callbacks=[kept, Stop()]).fit(X, y)
    resumed = clone(model).set_params(callbacks=[Checkpoint(tmp_path)]).fit(X, y)
    assert same(resumed, clone(model).fit(X, y))


def test_partial_fit_goes_on_from_where_the_optimiser_stands(model: Pictures) -> None:
    X, y = pictures()
    with pytest.raises(ValueError, match="classes must be passed"):
        clone(model).partial_fit(X, y)
    model.partial_fit(X[:30], y[:30], classes=["high", "low", "mid"])
    for _ in range(30):
        model.partial_fit(X, y)
    assert model.score(X, y) > 0.9
    steps = 30 // 16 + 1 + 30 * (60 // 16 + 1)
    assert int(model._moments["moments"]["0"]["step"]) == steps
    with pytest.raises(ValueError, match="needs the same classes"):
        model.partial_fit(X, np.full(N, "other"))


def test_warm_start_goes_on(model: Pictures) -> None:
    X, y = pictures()
    model.set_params(warm_start=True).fit(X, y)
    before = {k: v.clone() for k, v in state(model).items()}
    model.fit(X, y)
    assert any(not torch.equal(before[k], v) for k, v in state(model).items())


def test_too_few_rows_to_hold_out(model: Pictures) -> None:
    X, y = pictures()
    with pytest.raises(DataError, match="val_fraction=0.1 .* or val_fraction=0"):
        model.fit(X[:6], y[:6])
    assert model.set_params(val_fraction=0.0).fit(X[:6], y[:6]).predict(X).shape == (N,)


def test_other_networks_are_refused(model: Pictures) -> None:
    X, y = pictures()
    with pytest.raises(ValueError, match="'gpt' is no architecture for image rows; there are: "):
        model.set_params(network="gpt", network_params=None).fit(X, y)
    with pytest.raises(TypeError, match="made int"):
        model.set_params(network=lambda: 3).fit(X, y)
    with pytest.raises(ValueError, match="belong to a constructor"):
        make_network(
            nn.Linear(1, 1), {}, {"depth": 1}, "image", groundstate.compute.random.Key.of(0)
        )


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "nesterov", "rmsprop"])
def test_any_optimiser(model: Pictures, optimizer: str) -> None:
    X, y = pictures()
    fitted = model.set_params(optimizer=optimizer, max_epochs=2).fit(X, y)
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_values_of_sequences_of_any_scale() -> None:
    rng = np.random.default_rng(0)
    X = Ragged.of([rng.normal(size=(1 + i % 5, 2)) for i in range(N)])
    mean = np.stack([x.mean(0) for x in (X[i : i + 1].values.numpy() for i in range(N))])
    y = 1000 + 300 * mean[:, 0]
    model = Sequences(partial(MeanPool, 2, 1)).fit(X, y)
    assert model.score(X, y) > 0.99 and model.predict(X).shape == (N,)
    assert isinstance(model.network_, MeanPool)
    two = Sequences(partial(MeanPool, 2, 2)).fit(X, np.stack([y, -y], 1))
    assert two.predict(X).shape == (N, 2) and two.score(X, np.stack([y, -y], 1)) > 0.99


def test_several_labels_of_a_row(model: Pictures) -> None:
    X, y = pictures()
    both = np.stack([y != "low", y == "high"], 1).astype(int)
    model.set_params(max_epochs=60).fit(X, both)
    assert model.score(X, both) > 0.85 and model.predict(X).shape == (N, 2)
    p = model.predict_proba(X)
    scores = model.network_(torch.from_numpy(X)).detach().numpy()
    assert np.allclose(p, 1 / (1 + np.exp(-scores)), atol=1e-5)
    e = model.energy(X, both)
    assert np.allclose(e, -(np.log(p) * both + np.log1p(-p) * (1 - both)).sum(1), atol=1e-4)
    one = clone(model).set_params(max_epochs=2)
    assert one.partial_fit(X, both).partial_fit(X, both).predict(X).shape == (N, 2)
    with pytest.raises(ValueError, match="columns of zeros and ones"):
        clone(model).fit(X, both * 2)
    with pytest.raises(ValueError, match="several labels take sample_weight"):
        clone(model).set_params(class_weight="balanced").fit(X, both)
    assert clone(model).fit(X, y).predict(X).shape == (N,)  # back to one label
