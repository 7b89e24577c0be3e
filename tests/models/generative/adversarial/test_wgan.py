"""WGAN: the critic's gap is the Wasserstein distance, by penalty or by clipped weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import groundstate
from groundstate import WGAN
from groundstate.energy import AdversarialEnergy
from groundstate.learn import Game, learn
from groundstate.learn.train.optimizers import adam
from groundstate.models.generative.adversarial.wgan import gap
from groundstate.nn.adversarial import DenseDiscriminator


class Shifted(nn.Module):
    """Draws of N(mu, 1), whatever it is taught."""

    n_components = 1

    def __init__(self, mu: float) -> None:
        super().__init__()
        self.mu, self.idle = mu, nn.Parameter(torch.zeros(1))

    def forward(self, z: Tensor, y: Tensor | None = None, generator: object = None) -> Tensor:
        return z + self.mu + 0 * self.idle


@pytest.mark.parametrize("mu", [1.0, 2.0])
def test_the_gap_of_two_normals_is_their_distance(mu: float) -> None:
    x = torch.randn(4000, 1, generator=torch.Generator().manual_seed(0))
    judge = DenseDiscriminator(1, (32, 32), generator=torch.Generator().manual_seed(1))
    energy = AdversarialEnergy(judge, Shifted(mu), 1)
    learn(energy, {"x": x}, Game("wasserstein", 5, "gp"), adam, lr=2e-3, epochs=15, batch_size=200)
    found = gap(energy, x, None, None)
    # the penalty is soft: the slope that maximises s mu - 10 (s - 1)^2 is 1 + mu/20
    assert found == pytest.approx(mu * (1 + mu / 20), rel=0.08)
    assert found == pytest.approx(mu, rel=0.15)


def test_defaults_and_both_penalties() -> None:
    model = WGAN()
    assert (model.penalty, model.gp_weight, model.clip, model.n_critic) == ("gp", 10.0, 0.01, 5)
    assert model.learning_rate_init == 1e-4 and model.betas == (0.0, 0.9)
    X = np.random.default_rng(0).normal(size=(100, 2))
    clipped = WGAN(4, (8,), penalty="clip", max_iter=3, random_state=0).fit(X)
    assert max(float(p.detach().abs().max()) for p in clipped.discriminator_.parameters()) <= 0.01
    assert np.isfinite(clipped.critic_gap_) and not hasattr(clipped, "score_samples")


def test_the_gap_is_weighted_and_stored(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = WGAN(4, (8,), max_iter=2, batch_size=1000, random_state=0).fit(X)
    back = groundstate.load(model.save(tmp_path / "wgan.gs"))
    assert back.critic_gap_ == model.critic_gap_
    x = torch.from_numpy(X)
    w = torch.ones(60)
    w[:30] = 0
    one = gap(model.energy_, model.coding_.encode(x), None, w)
    made = model.energy_.draw(60, generator=_same())[0]
    e = model.energy_
    two = float((e(x=made)[30:].mean() - e(x=model.coding_.encode(x))[30:].mean()).detach())
    assert one == pytest.approx(two, rel=1e-6)


def _same() -> torch.Generator:
    from groundstate.compute.random import Key

    return Key.of(0).fold("gap").torch()


@pytest.mark.slow
def test_two_normal_columns() -> None:
    X = np.random.default_rng(0).normal([3.0, -1.0], [2.0, 0.5], (2000, 2)).astype("float32")
    # players at constant rates go round the answer: what they are on average is near it
    model = WGAN(8, (64, 64), learning_rate_init=1e-3, batch_size=200, max_iter=800, ema_decay=0.999,
                 random_state=0).fit(X)  # fmt: skip
    drawn = model.sample(20_000, random_state=1)
    assert (
        abs(drawn.mean(0) - X.mean(0)).max() < 0.3
        and (abs(drawn.std(0) / X.std(0) - 1) < 0.2).all()
    )
    assert abs(model.critic_gap_) < 0.3
