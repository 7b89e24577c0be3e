"""EnergyModel: every way to raise the energy off the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal

from groundstate import EnergyModel
from groundstate.energy import Energy, NetEnergy, Real
from groundstate.errors import Unreliable, Unsupported
from groundstate.learn import NCE, ReplayCD, Stochastic, fit

QUICK = {"hidden_layer_sizes": (64, 64), "learning_rate_init": 5e-3, "random_state": 0}


def ring(n: int = 400, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = rng.random(n) * 2 * np.pi
    return np.c_[2 * np.cos(t), 2 * np.sin(t)] + 0.15 * rng.normal(size=(n, 2))


def gauss(X: np.ndarray) -> float:
    return -np.log(2 * np.pi * np.e) - 0.5 * np.linalg.slogdet(np.cov(X.T))[1]


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("grid", {"max_iter": 50}),
        ("nce", {"max_iter": 100}),
        ("score", {"max_iter": 150}),
        ("cd", {"max_iter": 40, "k": 5}),
        ("ml_langevin", {"max_iter": 60, "n_chains": 1000}),
    ],
)
def test_a_ring_is_learned_better_than_a_gaussian(method: str, settings: dict[str, int]) -> None:
    X, new = ring(), ring(seed=1)
    model = EnergyModel(method=method, **QUICK, **settings).fit(X)
    assert model.log_prob_kind_ == "exact"
    assert model.score(new) > gauss(X) + 0.25
    side = np.linspace(-5, 5, 201)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    assert np.exp(model.score_samples(grid)).sum() * 0.05**2 == pytest.approx(1.0, abs=0.03)
    drawn = model.sample(2000, random_state=0)
    np.testing.assert_allclose(np.hypot(*drawn.T).mean(), 2.0, atol=0.4)


class Square(Energy):
    r"""e = ½λx²."""

    def __init__(self) -> None:
        super().__init__(x=Real(1))
        self.precision = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * self.precision * x.square().flatten(1).sum(1)


def test_noise_contrast_learns_precision_and_normaliser() -> None:
    x = torch.randn(20_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = x / x.std()
    energy, one = Square(), torch.ones(1, dtype=torch.float64)
    rule = NCE(Independent(Normal(0 * one, one), 1), ratio=8).double()
    solver = Stochastic(
        lr=0.02, batch_size=2000, max_epochs=60, tol=None, schedule=lambda done: 1 - done
    )
    fit(energy, {"x": x}, rule, solver, random_state=0)
    assert float(energy.precision.detach()) == pytest.approx(1.0, abs=0.03)
    assert float(rule.c.detach()) == pytest.approx(0.918939, abs=0.02)


def test_naive_learns_nothing() -> None:
    X = ring(200)
    with pytest.warns(UserWarning):
        model = EnergyModel(method="naive", max_iter=5, **QUICK).fit(X)
    fresh = EnergyModel(method="grid", max_iter=1, **{**QUICK, "learning_rate_init": 1e-9}).fit(X)
    assert model.energy(X).mean() < fresh.energy(X).mean()
    far = 5 * X
    assert model.energy(far).mean() < fresh.energy(far).mean()  # off the data it falls too


def test_more_columns_are_annealed() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.5]])
    exact = -0.5 * (3 * np.log(2 * np.pi * np.e) + np.linalg.slogdet(np.cov(X.T))[1])
    model = EnergyModel(method="nce", max_iter=60, **QUICK).fit(X)
    assert model.log_prob_kind_ == "estimate" and model.log_z_ is not None
    assert model.score(X) == pytest.approx(exact, abs=0.3)
    found = model.log_partition_estimate()
    assert float(-found.value.detach()) == pytest.approx(model.log_z_, abs=0.3)
    drawn = model.sample(1000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T), atol=0.35)
    gaps = X[:3].copy()
    gaps[:, 1] = np.nan
    filled = model.impute(gaps, "sample", random_state=0)
    assert (filled[:, [0, 2]] == X[:3][:, [0, 2]]).all()
    with pytest.raises(Unsupported, match="at most 2"):
        EnergyModel(method="grid").fit(X)


def test_given_y() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = (2.0 * y + 0.4 * rng.normal(size=300))[:, None]
    model = EnergyModel(method="ml_langevin", n_chains=500, max_iter=40, **QUICK).fit(X, y)
    drawn = model.sample(400, y=np.repeat([0, 1], 200), random_state=0)[:, 0].reshape(2, 200)
    assert drawn[1].mean() - drawn[0].mean() > 1.0
    assert model.score(X, y) > model.score(X, 1 - y) + 1.0


def test_a_sampler_provides_the_negatives() -> None:
    model = EnergyModel(method="sampler", max_iter=20, **QUICK).fit(ring(200))
    assert np.isfinite(model.score(ring(50, 1))) and model.sample(5, random_state=0).shape == (5, 2)


def test_the_buffer_keeps_chains_and_labels() -> None:
    rule = ReplayCD(n_chains=20, k=2, over="x")
    energy = NetEnergy(2, (4,), q=1)
    batch = {"x": torch.randn(6, 2), "y": torch.arange(6.0)[:, None]}
    rule(energy, batch, generator=torch.Generator().manual_seed(0))
    before = {name: v.clone() for name, v in rule.source.chains.items()}
    assert before["x"].shape == (20, 2) and set(before["y"].ravel().tolist()) <= set(range(6))
    rule(energy, batch, generator=torch.Generator().manual_seed(1))
    moved = (rule.source.chains["x"] != before["x"]).any(1).sum()
    assert 0 < moved <= 6


def test_runaway_chains_are_named() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 1))  # a slope without a bottom
    with torch.no_grad():
        net[0].weight.fill_(300.0)
    model = EnergyModel(
        net, n_chains=50, k=20, confine=0.0, max_iter=2, learning_rate_init=1e-6, random_state=0
    )
    with pytest.warns(Unreliable, match="of 50 negative chains ran away.*step_size"):
        model.fit(ring(60))
    assert math.isfinite(float(model.energy_.net[0].weight.detach().sum()))


def test_a_flat_energy_is_normalised_beyond_the_rows() -> None:
    X = np.random.default_rng(0).normal(size=(60, 1))
    model = EnergyModel(
        method="nce", hidden_layer_sizes=(8,), max_iter=1, burn_in=5, random_state=0
    ).fit(X)
    grid = np.linspace(-300, 300, 60_001)[:, None]
    p = np.exp(model.score_samples(grid))
    assert np.trapezoid(p, grid[:, 0]) == pytest.approx(1, abs=2e-3)
    drawn = model.sample(4000, random_state=0)
    assert drawn.std() > 4  # the bowl alone has spread 10
    entropy = -np.trapezoid(p * np.log(p.clip(1e-300)), grid[:, 0])
    assert -model.score_samples(drawn).mean() == pytest.approx(entropy, abs=0.1)


def test_an_energy_without_a_bowl_is_named() -> None:
    X = np.random.default_rng(0).normal(size=(60, 1))
    model = EnergyModel(
        method="nce", hidden_layer_sizes=(8,), max_iter=1, confine=0.0, random_state=0
    ).fit(X)
    with torch.no_grad():
        for p in model.energy_.parameters():
            p.zero_()
    with pytest.warns(Unreliable, match="raise confine"):
        model.score_samples(X)


@pytest.mark.parametrize("method", ["nce", "grid"])
def test_a_weight_is_a_repetition_for_noise_and_box(method: str) -> None:
    """Also a weight of 0, of the row that lies farthest out."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 2)), rng.integers(0, 4, 60)
    X[0], w[0] = 9.0, 0
    settings = {"hidden_layer_sizes": (8,), "max_iter": 2, "random_state": 0}
    weighted = EnergyModel(method=method, **settings).fit(X, sample_weight=w)
    repeated = EnergyModel(method=method, **settings).fit(
        X[rng.permutation(np.repeat(np.arange(60), w))]
    )
    np.testing.assert_allclose(weighted.box_, repeated.box_)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), atol=1e-5)
