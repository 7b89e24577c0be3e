"""EnergyGAN: low on the data, high far away; its gradient is that of likelihood when g samples e."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from groundstate import EnergyGAN
from groundstate.data import make_eight_gaussians
from groundstate.energy import AdversarialEnergy
from groundstate.errors import Unsupported
from groundstate.learn import Game

QUICK: dict[str, Any] = {
    "n_components": 4, "hidden_layer_sizes": (32, 32), "learning_rate_init": 1e-3, "max_iter": 40,
    "random_state": 0,
}  # fmt: skip


def ring() -> np.ndarray:
    return np.asarray(make_eight_gaussians(800, random_state=0)[0], "float32")


class Bowl(nn.Module):
    """-e = -a x²/2."""

    def __init__(self, a: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return -0.5 * self.a * x.square()


class Exact(nn.Module):
    """Draws of N(0, 1/a), what the energy itself says."""

    n_components = 1

    def __init__(self, a: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(a**-0.5, dtype=torch.float64))

    def forward(self, z: Tensor, y: Tensor | None = None, generator: object = None) -> Tensor:
        return self.scale * z


def test_with_a_perfect_sampler_the_gradient_is_that_of_likelihood() -> None:
    energy = AdversarialEnergy(Bowl(2.0), Exact(2.0), 1)
    x = torch.randn(400_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rule = Game("energy", margin=1e6)  # far away: L = e(x) - e(g) + m
    loss = rule(energy, {"x": x}, generator=torch.Generator().manual_seed(1)).loss.mean()
    (slope,) = torch.autograd.grad(loss, energy.discriminator.a)
    exact = 0.5 * float(x.square().mean()) - 1 / (2 * 2.0)  # of ½ a E x² - ½ log a
    assert float(slope) == pytest.approx(exact, abs=0.003)


@pytest.mark.parametrize("critic", ["autoencoder", "network"])
def test_data_have_lower_energy_than_far_rows(critic: str) -> None:
    X = ring()
    model = EnergyGAN(**QUICK, critic=critic).fit(X)
    far = np.random.default_rng(0).uniform(-8, 8, (400, 2)).astype("float32")
    far = far[np.linalg.norm(far, axis=1) > 5]
    assert model.energy(X).mean() < model.energy(far).mean()
    np.testing.assert_allclose(
        model.score_samples(X) + model.energy(X), -model.coding_.log_scale, rtol=1e-5
    )
    assert model.log_prob_kind_ == "unnormalised"


def test_the_margin_is_the_total_variance_and_counts_weights() -> None:
    X = ring()
    model = EnergyGAN(**{**QUICK, "max_iter": 1}).fit(X)
    assert model.margin_ == pytest.approx(2.0, rel=1e-5)  # two standardised columns
    plain = EnergyGAN(**{**QUICK, "max_iter": 1, "scale": None})
    w = np.r_[np.zeros(400), np.ones(400)]
    assert plain.fit(X, sample_weight=w).margin_ == pytest.approx(X[400:].var(0).sum(), rel=1e-4)
    assert EnergyGAN(**{**QUICK, "max_iter": 1, "margin": 3.0}).fit(X).margin_ == 3.0


def test_langevin_from_generated_rows() -> None:
    X = ring()
    still = EnergyGAN(**QUICK).fit(X)
    moved = EnergyGAN(**QUICK, mcmc_steps=20, step_size=0.02).fit(X)
    a, b = (m.sample(300, random_state=0) for m in (still, moved))
    assert a.shape == b.shape == (300, 2) and not np.allclose(a, b) and np.isfinite(b).all()
    np.testing.assert_array_equal(b, moved.sample(300, random_state=0))
    y = (X[:, 0] > 0).astype(int)
    given = EnergyGAN(**{**QUICK, "max_iter": 2}, mcmc_steps=3).fit(X, y)
    assert given.sample(5, 1, random_state=0).shape == (5, 2)
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(y, "u", "v")})
    with pytest.raises(Unsupported, match="categories"):
        EnergyGAN(mcmc_steps=5).fit(table)
