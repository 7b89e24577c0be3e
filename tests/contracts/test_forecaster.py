"""What every forecaster promises; a registered one is tested by being there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

import groundstate
from groundstate.errors import DataError, ShapeError
from groundstate.registry import models

QUICK: dict[str, dict[str, Any]] = {
    "AutoRegressor": {"p": 4},
    "Forecaster": {"horizon": 6, "context": 8, "network_params": {"hidden": 8}, "max_epochs": 30,
                   "lr": 0.02, "random_state": 0},
}  # fmt: skip


def series(n: int = 120, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 5 + np.sin(np.arange(n) / 3) + 0.1 * rng.normal(size=n)


@pytest.fixture(params=sorted(QUICK))
def model(request: pytest.FixtureRequest) -> Any:
    return getattr(groundstate, request.param)(**QUICK[request.param])


def state(model: Any) -> list[torch.Tensor]:
    return [v.clone() for v in model.energy_.state_dict().values()]


def equal(a: Any, b: Any) -> bool:
    return all(torch.equal(x, y) for x, y in zip(state(a), state(b), strict=True))


def test_every_forecaster_has_a_row() -> None:
    assert sorted(QUICK) == [row.name for row in models if row.role == "forecaster"]


def test_fits_and_goes_on(model: Any) -> None:
    x = series()
    model.fit(x)
    made = model.forecast(6, level=0.9)
    assert made.mean.shape == made.lower.shape == made.upper.shape == (6,)
    assert (made.lower <= made.mean + 1e-9).all() and (made.mean <= made.upper + 1e-9).all()
    np.testing.assert_array_equal(model.predict(steps=6), made.mean)
    np.testing.assert_allclose(model.predict(x, steps=6), made.mean, rtol=1e-6)
    wide = model.forecast(6, level=0.99)
    assert (wide.upper - wide.lower).mean() > (made.upper - made.lower).mean()
    assert model.score(x) > 0.3
    assert model.energy(x).shape == (1,) and np.isfinite(model.energy(x)).all()
    assert "90%" in repr(made)


def test_the_future_is_not_seen(model: Any) -> None:
    x = series()
    model.fit(x)
    before = model.predict(x[:80], steps=3)
    other = x.copy()
    other[80:] += 100.0
    np.testing.assert_array_equal(model.predict(other[:80], steps=3), before)
    assert not np.allclose(model.predict(other[:81], steps=3), model.predict(x[:81], steps=3))


def test_a_constant_series_stays_constant(model: Any) -> None:
    found = model.fit(np.full(80, 3.0)).predict(steps=5)
    np.testing.assert_allclose(found, 3.0, atol=0.05)


def test_a_weight_of_two_is_the_series_twice(model: Any) -> None:
    a, b = series(), series(90, seed=1)
    weighted = clone(model).fit([a, b], sample_weight=[1.0, 2.0])
    repeated = clone(model).fit([b, a, b])
    for one, two in zip(state(weighted), state(repeated), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-8)
    fold = clone(model).fit([a, b], sample_weight=[1.0, 0.0])
    for one, two in zip(state(fold), state(clone(model).fit([a])), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-8)


def test_same_seed_same_bits_and_the_file_of_it(model: Any, tmp_path: Path) -> None:
    x = series()
    model.fit(x)
    assert equal(model, clone(model).fit(x))
    loaded = groundstate.load(model.save(tmp_path / "model.gs"))
    assert equal(model, loaded)
    np.testing.assert_array_equal(loaded.predict(steps=4), model.predict(steps=4))


def test_torch_in_torch_out(model: Any) -> None:
    x = torch.from_numpy(series())
    found = model.fit(x).predict(x, steps=4)
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), model.predict(x.numpy(), steps=4))


def test_what_cannot_be_is_refused(model: Any) -> None:
    with pytest.raises(DataError, match="NaN or infinity"):
        model.fit(np.r_[series(), np.nan])
    with pytest.raises(DataError, match="look back"):
        model.fit([1.0, 2.0])
    with pytest.raises(DataError, match="numbers"):
        model.fit(["up", "down"])
    model.fit(series())
    with pytest.raises(ShapeError, match="columns"):
        model.predict(np.ones((50, 2)))
    with pytest.raises(ValueError, match="level"):
        model.forecast(2, level=1.5)
