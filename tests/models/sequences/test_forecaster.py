"""Forecasts by networks: heads and bands, both strategies, no look into the future, columns, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import groundstate
from groundstate import Forecaster
from groundstate.compute.rows import Ragged
from groundstate.data.sequences.windows import windows
from groundstate.errors import DataError
from groundstate.nn.heads.base import DistributionHead
from groundstate.nn.heads.forecast import NormalMixtureHead, QuantilesHead, ScaledHead

QUICK: dict[str, Any] = {"network_params": {"hidden": 12}, "max_epochs": 25, "lr": 0.02,
                         "random_state": 0}  # fmt: skip


def wave(n: int = 300, noise: float = 0.2, seed: int = 0) -> np.ndarray:
    return (
        50 + 5 * np.sin(np.arange(n) / 4) + 5 * noise * np.random.default_rng(seed).normal(size=n)
    )


@pytest.mark.parametrize("head", ["normal", "quantile", "mdn"])
@pytest.mark.parametrize("strategy", ["direct", "recursive"])
def test_bands_hold_what_they_promise(head: str, strategy: str) -> None:
    x = wave(400)
    model = Forecaster(4, 12, head=head, strategy=strategy, **QUICK).fit(x[:300])
    begun = range(300, 396, 4)
    made = model.forecast(4, [x[:t] for t in begun], level=0.8)
    truth = np.stack([x[t : t + 4] for t in begun])
    inside = (made.lower <= truth) & (truth <= made.upper)
    assert 0.6 < np.mean(inside) < 0.97
    assert model.score(x) > 0.8
    assert np.isfinite(model.energy(x)).all()


@pytest.mark.parametrize("network", ["gru", "lstm", "tcn", "transformer"])
def test_networks(network: str) -> None:
    model = Forecaster(3, 12, network, **QUICK).fit(wave())
    assert model.score(wave(seed=1)) > 0.7


def test_no_window_sees_what_it_is_asked_for() -> None:
    x = wave(60)
    model = Forecaster(3, 8, **{**QUICK, "max_epochs": 2}).fit(x)
    found = model.predict(x[:40])
    other = x.copy()
    other[40:] = 1e6
    np.testing.assert_array_equal(model.predict(other[:40]), found)
    # the held-out end does not reach the scales or the weights that are learned
    far = x.copy()
    held = windows(Ragged.of([torch.from_numpy(x)[:, None]]), 8, 3)
    parts = model._split(held)
    assert parts is not None and set(parts.tolist()) == {0, 1, 2}
    learned = held.start[parts == 0].max() + 8 + 3
    assert learned <= held.start[parts == 1].min() + 8  # futures do not overlap
    far[learned:] += 1e4
    again = Forecaster(3, 8, **{**QUICK, "max_epochs": 1, "patience": None}).fit(far)
    once = Forecaster(3, 8, **{**QUICK, "max_epochs": 1, "patience": None}).fit(x)
    for a, b in zip(again.energy_.state_dict().values(), once.energy_.state_dict().values()):
        torch.testing.assert_close(a, b)


def test_recursive_forecasts_reach_any_number_of_steps() -> None:
    model = Forecaster(1, 16, strategy="recursive", **{**QUICK, "max_epochs": 40}).fit(
        wave(noise=0.02)
    )
    made = model.forecast(30)
    truth = 50 + 5 * np.sin(np.arange(300, 330) / 4)
    assert np.abs(made.mean - truth).mean() < 1.5
    wide = made.upper - made.lower
    assert wide[-5:].mean() > wide[:3].mean()
    np.testing.assert_array_equal(model.forecast(30).upper, made.upper)  # the same draws
    direct = Forecaster(3, 16, **{**QUICK, "max_epochs": 1}).fit(wave())
    assert direct.predict(steps=2).shape == (2,)
    with pytest.raises(ValueError, match="reaches 3 steps, asked for 4"):
        direct.forecast(4)


def test_columns_that_are_forecast_and_columns_that_are_seen() -> None:
    x = wave()
    # the second column is the first one, two steps ahead
    frame = pd.DataFrame({"price": x[:-2], "hint": x[2:]})
    model = Forecaster(2, 4, target="price", **{**QUICK, "max_epochs": 60}).fit(frame)
    assert model.target_ == [0] and model.forecast().mean.shape == (2, 1)
    assert model.score(frame) > 0.95  # the noise is known
    both = Forecaster(2, 4, **{**QUICK, "max_epochs": 1}).fit(frame)
    assert both.forecast().mean.shape == (2, 2)
    assert Forecaster(2, 4, target=[1], **{**QUICK, "max_epochs": 1}).fit(frame).target_ == [1]
    with pytest.raises(DataError, match="no column 'cost'"):
        Forecaster(2, 4, target="cost", **QUICK).fit(frame)
    with pytest.raises(DataError, match="different columns"):
        Forecaster(2, 4, target=[0, 0], **QUICK).fit(frame)
    with pytest.raises(DataError, match="strategy='direct'"):
        Forecaster(2, 4, target=0, strategy="recursive", **QUICK).fit(frame)


def test_a_long_table_of_several_series(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    rows = [
        f"{shop},{t},{v}" for shop in ("a", "b") for t, v in enumerate(wave(60, seed=ord(shop)))
    ]
    path.write_text("id,time,target\n" + "\n".join(rows) + "\n")
    model = Forecaster(3, 8, **{**QUICK, "max_epochs": 3}).fit(path)
    assert model.predict().shape == (2, 3) and model.energy(path).shape == (2,)
    loaded = groundstate.load(model.save(tmp_path / "model.gs"))
    np.testing.assert_array_equal(loaded.predict(), model.predict())
    lists = Forecaster(3, 8, **{**QUICK, "max_epochs": 3})
    lists.fit([wave(60, seed=ord("a")), wave(60, seed=ord("b"))])
    np.testing.assert_allclose(lists.predict(), model.predict(), rtol=1e-6)


def test_scales_do_not_matter() -> None:
    x = wave()
    whole = {**QUICK, "max_epochs": 5, "batch_size": 10_000}  # all at once: no order by content
    one = Forecaster(3, 8, **whole).fit(x)
    two = Forecaster(3, 8, **whole).fit(1024 * x)
    np.testing.assert_allclose(two.predict() / 1024, one.predict(), rtol=1e-3)


def test_the_likelihood_is_one_of_the_series_in_its_units() -> None:
    head = ScaledHead(DistributionHead("normal", 2))
    head.set(torch.tensor([10.0, -3.0]), torch.tensor([2.0, 0.5]))
    raw = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([[9.0, -3.2]]).expand(5, 2)
    torch.testing.assert_close(head(raw, y), -head.dist(raw).log_prob(y))
    low, high = head.interval(raw, 0.9)
    inside = torch.stack([head.sample(raw, g) for g in [torch.Generator().manual_seed(1)] * 4000])
    assert ((inside > low) & (inside < high)).float().mean() == pytest.approx(0.9, abs=0.01)


def test_quantiles_are_least_for_their_own_and_do_not_cross() -> None:
    head = QuantilesHead(1, (0.1, 0.5, 0.9))
    y = torch.randn(4001, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    best = y.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)).expand(4001, 3)
    for j in range(3):
        for step in (-0.1, 0.1):
            moved = best.clone()
            moved[:, j] += step
            assert head(moved, y).mean() > head(best, y).mean()
    crossed = torch.tensor([[2.0, 0.0, -1.0]])
    low, high = head.interval(crossed, 0.8)
    assert low.item() == -1.0 and high.item() == 2.0 and head.mean(crossed).item() == 0.0
    with pytest.raises(ValueError, match="at most 0.8"):
        head.interval(crossed, 0.9)
    with pytest.raises(ValueError, match="hold 0.5"):
        QuantilesHead(1, (0.1, 0.9))


def test_mixtures_have_the_quantiles_of_their_draws() -> None:
    head = NormalMixtureHead(1, 2)
    raw = torch.tensor([[0.5, -0.5, -2.0, 3.0, 0.0, 1.0]], dtype=torch.float64)
    g = torch.Generator().manual_seed(0)
    drawn = head.sample(raw.expand(200_000, -1), g)
    low, high = head.interval(raw, 0.8)
    assert drawn.quantile(0.1).item() == pytest.approx(low.item(), abs=0.03)
    assert drawn.quantile(0.9).item() == pytest.approx(high.item(), abs=0.03)
    grid = torch.linspace(-40, 40, 80_001, dtype=torch.float64)[:, None]
    density = (-head(raw.expand(len(grid), -1), grid)).exp()
    assert torch.trapezoid(density, grid[:, 0]).item() == pytest.approx(1.0, abs=1e-6)
