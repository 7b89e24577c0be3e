"""Flows as estimators: exact densities of toy rows, codes, conditions, images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_moons
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import groundstate
from groundstate import NormalizingFlow
from groundstate.errors import ShapeError
from groundstate.nn.flows import MAF


def moons(n: int, seed: int) -> Any:
    X, _ = make_moons(n, noise=0.08, random_state=seed)
    first, _ = make_moons(1000, noise=0.08, random_state=0)
    return (X - first.mean(0)) / first.std(0)


@pytest.fixture(scope="module")
def fitted() -> Any:
    model = NormalizingFlow(max_iter=40, hidden_layer_sizes=(32, 32), random_state=0)
    return model.fit(moons(1000, 0))


def test_moons_are_fitted_well(fitted: Any) -> None:
    """Gaussian 2.73 nats, kernel density about 1.80, and affine couplings at most 1.85."""
    held_out = moons(2000, 1)
    kde = KernelDensity(bandwidth=0.1).fit(moons(1000, 0)).score_samples(held_out)
    assert -fitted.score(held_out) < 1.78
    assert fitted.score(held_out) > kde.mean() - 0.1
    assert -GaussianMixture(1).fit(moons(1000, 0)).score(held_out) == pytest.approx(2.72, abs=0.03)


def test_the_density_integrates_to_one(fitted: Any) -> None:
    side = np.linspace(-4, 4, 401)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    total = np.exp(fitted.score_samples(grid)).sum() * (side[1] - side[0]) ** 2
    assert total == pytest.approx(1, abs=1e-3)


def test_draws_have_the_entropy_of_the_density(fitted: Any) -> None:
    drawn = fitted.sample(4000, random_state=0)
    side = np.linspace(-4, 4, 401)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    log_p = fitted.score_samples(grid)
    entropy = -(np.exp(log_p) * log_p).sum() * (side[1] - side[0]) ** 2
    nll = -fitted.score_samples(drawn)
    assert nll.mean() == pytest.approx(entropy, abs=4 * nll.std() / np.sqrt(len(nll)))


def test_codes_are_exact(fitted: Any) -> None:
    X = moons(50, 2)
    Z = fitted.transform(X)
    np.testing.assert_allclose(fitted.inverse_transform(Z), X, atol=1e-6)
    np.testing.assert_allclose(fitted.reconstruct(X), X, atol=1e-6)
    way = fitted.interpolate(X[0], X[1], 5)
    np.testing.assert_allclose(way[[0, -1]], X[:2], atol=1e-6)
    drawn, z = fitted.sample(5, return_latent=True, random_state=1)
    np.testing.assert_allclose(fitted.transform(drawn), z, atol=1e-5)
    assert fitted.latent_grid(3).shape == (3, 3, 2)


def test_an_affine_flow_of_a_gaussian_has_its_moments() -> None:
    S = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
    X = np.random.default_rng(0).multivariate_normal([1, -1, 2], S, 2000)
    model = NormalizingFlow(
        "maf",
        n_transforms=1,
        hidden_layer_sizes=(),
        max_iter=60,
        early_stopping=False,
        random_state=0,
    ).fit(X)
    drawn = model.sample(20000, random_state=0)
    np.testing.assert_allclose(drawn.mean(0), X.mean(0), atol=0.08)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T), atol=0.12)
    exact = GaussianMixture(1).fit(X).score(X)
    assert model.score(X) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("flow", ["maf", "iaf", "realnvp", "nice", "glow", "planar", "radial"])
def test_every_flow_learns(flow: str) -> None:
    X = moons(300, 0)
    gain = 0.005 if flow == "radial" else 0.03
    few = 8 if flow in ("planar", "radial") else 2
    options = {"n_transforms": few, "hidden_layer_sizes": (16,), "random_state": 0}
    start = NormalizingFlow(flow, max_iter=1, learning_rate_init=1e-9, **options).fit(X).score(X)
    assert NormalizingFlow(flow, max_iter=15, **options).fit(X).score(X) > start + gain


@pytest.mark.slow
def test_couplings_reach_the_number_of_the_specification() -> None:
    X, held_out = moons(2000, 0), moons(4000, 1)
    model = NormalizingFlow("realnvp", n_transforms=6, max_iter=75, random_state=0).fit(X)
    assert -model.score(held_out) <= 1.85


def test_conditions() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) * 0.3 + 3.0 * y[:, None]
    model = NormalizingFlow(n_transforms=1, hidden_layer_sizes=(16,), max_iter=40, random_state=0)
    model.fit(X, y)
    assert np.abs(model.sample(500, y=1, random_state=0).mean(0) - 3).max() < 0.2
    assert (model.infer({"x": X}, "y") == y).mean() > 0.98
    both = np.logaddexp(
        *(np.log((y == c).mean()) + model.score_samples(X, np.full(600, c)) for c in (0, 1))
    )
    np.testing.assert_allclose(model.score_samples(X), both, atol=1e-6)


def test_missing_cells_of_a_gaussian() -> None:
    S = np.array([[2.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    X = np.random.default_rng(0).multivariate_normal([1, 1, -1], S, 1500)
    model = NormalizingFlow(
        "maf",
        n_transforms=1,
        hidden_layer_sizes=(),
        max_iter=60,
        early_stopping=False,
        random_state=0,
    ).fit(X)
    gap = np.tile([[np.nan, 2.0, -1.0]], (200, 1))
    drawn = model.impute(gap, "sample", random_state=0)[:, 0]
    assert drawn.mean() == pytest.approx(1.666667, abs=0.25)
    assert drawn.var() == pytest.approx(0.666667, rel=0.35)
    best = model.impute(gap[:2], "minimise", random_state=0)[:, 0]
    assert best == pytest.approx([1.6667, 1.6667], abs=0.15)


def test_pictures() -> None:
    X = load_digits().images[:200]
    model = NormalizingFlow(
        "glow", n_transforms=1, hidden_layer_sizes=(8,), dequantize=True, max_iter=3, random_state=0
    ).fit(X)
    assert model.sample(2, random_state=0).shape == (2, 8, 8)
    assert model.flow_.transform.transforms[0].levels == 2
    assert model.log_prob_kind_ == "bound"
    bits = -model.score(X) / 64 / np.log(2)
    assert 0 < bits < 6


def test_a_flow_of_ones_own() -> None:
    flow = MAF(2, n_transforms=1, hidden_layer_sizes=(8,))
    model = NormalizingFlow(flow, max_iter=2, random_state=0).fit(moons(100, 0))
    assert model.flow_ is not flow and type(model.flow_) is type(flow)
    with pytest.raises(ShapeError, match="make it with these"):
        NormalizingFlow(MAF(3), max_iter=2).fit(moons(100, 0))
    with pytest.raises(ValueError, match="'flow' parameter"):
        NormalizingFlow("spline").fit(moons(100, 0))
    with pytest.raises(ShapeError, match="at least 2 features"):
        NormalizingFlow("realnvp").fit(moons(100, 0)[:, :1])


def test_gradients_of_the_density(fitted: Any) -> None:
    x = torch.tensor(moons(4, 3), requires_grad=True)
    assert torch.autograd.gradcheck(fitted.log_prob, (x,), atol=1e-4)


def test_units_only_shift_the_score() -> None:
    X = moons(200, 0)
    options: dict[str, Any] = {"n_transforms": 1, "hidden_layer_sizes": (8,), "random_state": 0}
    a = NormalizingFlow(max_iter=2, **options).fit(X)
    b = NormalizingFlow(max_iter=2, **options).fit(X * 1024)
    np.testing.assert_allclose(
        b.score_samples(X * 1024), a.score_samples(X) - 2 * np.log(1024), atol=1e-6
    )


def test_exported() -> None:
    for name in ("NormalizingFlow", "CNF", "FlowMatching", "MADE"):
        assert getattr(groundstate, name).__name__ == name
