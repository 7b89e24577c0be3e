"""GAN and ConditionalGAN: sizes, distributions, conditions, mixed tables, going on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import groundstate
from groundstate import GAN, ConditionalGAN
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.learn.losses.gan import value

QUICK: dict[str, Any] = {
    "n_components": 4, "hidden_layer_sizes": (16,), "max_iter": 3, "random_state": 0,
}  # fmt: skip


def rows(n: int = 200, d: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(2.0, 3.0, (n, d))


def size(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_the_network_of_the_listing() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (100, 28, 28)).astype("float32")
    model = GAN(network="mnist-listing", max_iter=1, random_state=0).fit(pictures)
    assert size(model.generator_) == 1_486_352 and size(model.discriminator_) == 1_460_225
    assert model.coding_.encode(torch.tensor([[0.0] * 392 + [255.0] * 392])).unique().tolist() == [
        -1,
        1,
    ]
    drawn = model.sample(3, random_state=0)
    assert drawn.shape == (3, 28, 28) and drawn.min() >= 0 and drawn.max() <= 255
    dropped = [m.p for m in model.discriminator_.modules() if isinstance(m, nn.Dropout)]
    assert dropped == [0.3] * 3 and not model.discriminator_.training
    assert np.array_equal(model.energy(pictures), model.energy(pictures)), "dropout is off"
    with pytest.raises(DataError, match="784 pixels"):
        GAN(network="mnist-listing").fit(rows())


def test_defaults_of_the_game() -> None:
    model = GAN()
    assert (model.n_components, model.loss, model.n_critic) == (100, "nonsaturating", 1)
    assert (
        model.learning_rate_init == 2e-4 and model.betas == (0.5, 0.999) and model.batch_size == 100
    )


@pytest.mark.slow
def test_a_normal_column_within_five_percent() -> None:
    X = np.random.default_rng(0).normal(3.0, 2.0, (4000, 1)).astype("float32")
    model = GAN(8, (64, 64), r1=0.1, ema_decay=0.995, learning_rate_init=1e-3, batch_size=250,
                max_iter=150, random_state=0).fit(X)  # fmt: skip
    drawn = model.sample(50_000, random_state=1)
    assert drawn.mean() == pytest.approx(X.mean(), rel=0.05)
    assert drawn.var() == pytest.approx(X.var(), rel=0.05)
    d = model.discriminator_score(X)
    assert d.mean() == pytest.approx(0.5, abs=0.05)
    made = torch.from_numpy(model.energy(drawn[:4000]))
    v = value(-torch.from_numpy(model.energy(X)), -made)
    assert float(v) == pytest.approx(-1.386, abs=0.05)


def test_questions_without_a_density_say_where_to_go() -> None:
    model = GAN(**QUICK).fit(rows())
    assert model.log_prob_kind_ == "none" and not hasattr(model, "score_samples")
    for ask in ("score_samples", "score", "log_prob"):
        with pytest.raises(Unsupported, match="assess_generator"):
            getattr(model, ask)
    score = model.discriminator_score(rows())
    np.testing.assert_allclose(score, 1 / (1 + np.exp(model.energy(rows()))), rtol=1e-6)
    assert model.energy(rows()).shape == (200,)


def test_samples_need_the_generator_alone_and_follow_temperature() -> None:
    model = GAN(**QUICK).fit(rows())
    x, z = model.sample(500, return_latent=True, random_state=0)
    assert z.shape == (500, 4) and abs(np.var(z) - 1) < 0.15
    np.testing.assert_allclose(model.decode(z), x, rtol=1e-6)
    _, z_cold = model.sample(500, T=0.25, return_latent=True, random_state=0)
    np.testing.assert_allclose(z_cold, 0.5 * z, rtol=1e-6)
    nn.init.zeros_(model.discriminator_.net.layers[0].weight)
    np.testing.assert_array_equal(model.sample(500, random_state=0), x)
    with pytest.raises(ShapeError, match="n, 4"):
        model.decode(np.zeros((2, 3)))


def test_curves_of_both_players() -> None:
    model = GAN(**QUICK).fit(rows())
    assert len(model.loss_curve_) == len(model.generator_loss_curve_) == 3
    assert model.loss_curve_[0] == pytest.approx(1.386, abs=0.3)
    assert np.isfinite(model.generator_loss_curve_).all()


def test_going_on_after_a_file_is_going_on(tmp_path: Path) -> None:
    X = rows()
    one = GAN(**QUICK)
    one.partial_fit(X).partial_fit(X)
    two = GAN(**QUICK).partial_fit(X)
    path = two.save(tmp_path / "gan.gs")
    two = groundstate.load(path).partial_fit(X)
    for a, b in zip(one.energy_.parameters(), two.energy_.parameters(), strict=True):
        assert torch.equal(a, b)
    fresh = GAN(**QUICK).partial_fit(X)
    fresh._second_moments = None  # without the generator's moments it is another step
    fresh.partial_fit(X)
    assert not np.array_equal(fresh.sample(9, random_state=0), one.sample(9, random_state=0))
    assert len(one.generator_loss_curve_) == 2


def test_warm_start_goes_on() -> None:
    model = GAN(**{**QUICK, "warm_start": True}).fit(rows())
    before = [p.clone() for p in model.generator_.parameters()]
    model.fit(rows())
    after = list(model.generator_.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert len(model.loss_curve_) == 6


def test_other_rows_and_names_of_losses_are_refused() -> None:
    model = GAN(**QUICK).fit(rows())
    with pytest.raises(ValueError, match="3 features"):
        model.energy(rows(d=2))
    with pytest.raises(ValueError, match="loss"):
        GAN(loss="wasserstein").fit(rows())
    with pytest.raises(ValueError, match="NaN"):
        GAN(**QUICK).fit(np.array([[1.0], [np.nan]]))


def test_networks_of_your_own() -> None:
    pictures = np.random.default_rng(0).random((40, 1, 4, 4))
    made = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Unflatten(1, (1, 4, 4)))
    judged = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 1))
    model = GAN(**QUICK, generator=made, discriminator=judged).fit(pictures)
    assert model.sample(2, random_state=0).shape == (2, 1, 4, 4)
    assert model.generator is made and model.generator_.net is not made


def test_conditions() -> None:
    y = np.repeat(["a", "b"], 100)
    X = np.random.default_rng(0).normal(np.where(y == "b", 4.0, -4.0)[:, None], 0.5, (200, 1))
    settings: dict[str, Any] = {**QUICK, "max_iter": 150, "learning_rate_init": 3e-3}
    model = ConditionalGAN(**settings).fit(X, y)
    low, high = (model.sample(400, c, random_state=0).mean() for c in "ab")
    assert low < -2 and high > 2
    same = GAN(**settings).fit(X, y)
    np.testing.assert_array_equal(
        same.sample(9, "a", random_state=0), model.sample(9, "a", random_state=0)
    )
    wrong = np.where(y == "a", "b", "a")
    assert model.discriminator_score(X, y).mean() > model.discriminator_score(X, wrong).mean()
    assert np.shape(model.sample(y=["a", "b", "b"])) == (3, 1)
    with pytest.raises(ValueError, match="requires y"):
        ConditionalGAN().fit(X)
    with pytest.raises(ValueError, match="needs y"):
        model.decode(np.zeros((2, 4)))


def mixed(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    kind = rng.choice(["ash", "birch", "cedar"], n, p=[0.2, 0.5, 0.3])
    height = rng.normal(0, 1, n) + 6.0 * (kind == "ash") - 6.0 * (kind == "cedar")
    leaf = np.where(kind == "cedar", "needle", "broad")
    return pd.DataFrame(
        {
            "height": height,
            "kind": kind,
            "leaf": leaf,
            "girth": 0.5 * height + rng.normal(0, 0.3, n),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_tables_of_mixed_columns_keep_shares_and_dependence(scale: str) -> None:
    table = mixed()
    model = GAN(16, (64, 64), scale=scale, learning_rate_init=1e-3, r1=0.1, batch_size=60,
                max_iter=150, random_state=0).fit(table)  # fmt: skip
    drawn = model.sample(2000, random_state=0)
    shares = drawn["kind"].value_counts(normalize=True)
    for kind, share in {"ash": 0.2, "birch": 0.5, "cedar": 0.3}.items():
        assert shares.get(kind, 0.0) == pytest.approx(share, abs=0.12)
    both = ((drawn["kind"] == "cedar") == (drawn["leaf"] == "needle")).mean()
    assert both > 0.9
    means = drawn.groupby("kind")["height"].mean()
    assert means["ash"] > 3 and means["cedar"] < -3 and abs(means["birch"]) < 2
    assert drawn["height"].corr(drawn["girth"]) > 0.9


def test_missing_cells_come_from_rows_that_agree() -> None:
    y = np.repeat(["a", "b"], 100)
    X = np.random.default_rng(0).normal(np.where(y == "b", 4.0, -4.0)[:, None], 0.5, (200, 2))
    model = GAN(
        **{**QUICK, "hidden_layer_sizes": (32, 32), "max_iter": 150, "learning_rate_init": 3e-3}
    ).fit(X)
    gaps = np.array([[4.0, np.nan], [-4.0, np.nan], [np.nan, np.nan]])
    for how in ("mean", "sample", "minimise"):
        filled = model.impute(gaps, how, random_state=0)
        assert filled[0, 1] > 1 and filled[1, 1] < -1 and np.isfinite(filled).all()
