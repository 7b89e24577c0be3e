"""Mixture density regression: the numbers of its loss, its answers, and what it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from torch import distributions as D

import groundstate
from groundstate import LinearRegression, MixtureDensityRegressor
from groundstate.energy.networks.mixture_density import MixtureDensityEnergy
from groundstate.errors import Unsupported
from groundstate.learn import NLL, Naive, Stochastic, fit
from groundstate.learn.solvers.networks.mixture_density import MixtureDensityTraining, merged, split
from groundstate.math.distributions.gaussian_mixtures import (
    GaussianMixtureDistribution,
    mixture_nll,
)
from groundstate.math.distributions.highest_density import density_set
from groundstate.math.distributions.mixture_fused import head_nll, head_parameters
from groundstate.math.distributions.mixture_modes import modes
from groundstate.nn.heads.mixture import MixtureHead


def distribution(weights: Any, mu: Any, sigma: Any) -> GaussianMixtureDistribution:
    """One mixture in double precision."""
    w, m, s = (torch.tensor(v, dtype=torch.float64) for v in (weights, mu, sigma))
    return GaussianMixtureDistribution(w.log()[None], m[None], s[None])


TWO = distribution([0.5, 0.5], [[-1.0], [1.0]], [[0.5], [1.0]])
FAR = distribution([0.5, 0.5], [[-3.0], [3.0]], [[1.0], [1.0]])


def inverse(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three y for one x in the middle."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(0, 1, n)
    return (y + 0.3 * np.sin(2 * np.pi * y) + 0.05 * rng.normal(size=n))[:, None], y


@pytest.fixture(scope="module")
def fitted() -> MixtureDensityRegressor:
    return MixtureDensityRegressor(random_state=0).fit(*inverse(1000))


# --- the loss ----------------------------------------------------------------------------------


def test_worked_example() -> None:
    y = torch.tensor([[0.3]], dtype=torch.float64)
    assert -TWO.log_prob(y).item() == pytest.approx(1.773665, abs=5e-7)
    np.testing.assert_allclose(TWO.responsibilities(y)[0], [0.080036, 0.919964], atol=5e-7)


@pytest.mark.parametrize("d", [1, 3])
def test_gradients_are_those_of_the_formula(d: int) -> None:
    g = torch.Generator().manual_seed(0)
    mu = torch.randn(4, 2, d, generator=g, dtype=torch.float64, requires_grad=True)
    log_sigma = torch.randn(4, 2, 1, generator=g, dtype=torch.float64, requires_grad=True)
    log_w = torch.log_softmax(torch.randn(4, 2, generator=g, dtype=torch.float64), -1)
    y = torch.randn(4, d, generator=g, dtype=torch.float64)
    nll = mixture_nll(log_w, mu, log_sigma.exp(), y).sum()
    g_mu, g_sigma = torch.autograd.grad(nll, (mu, log_sigma))
    r = GaussianMixtureDistribution(log_w, mu, log_sigma.exp()).responsibilities(y)[..., None]
    variance, off = log_sigma.exp().square(), mu - y[:, None]
    torch.testing.assert_close(g_mu, r * off / variance)
    torch.testing.assert_close(g_sigma, r * (d - off.square().sum(-1, keepdim=True) / variance))


def test_density_is_torchs_mixture() -> None:
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 3, generator=g, dtype=torch.float64)
    mu = torch.randn(5, 3, 2, generator=g, dtype=torch.float64)
    sigma = torch.rand(5, 3, 2, generator=g, dtype=torch.float64) + 0.1
    peer = D.MixtureSameFamily(D.Categorical(logits=logits), D.Independent(D.Normal(mu, sigma), 1))
    ours = GaussianMixtureDistribution(torch.log_softmax(logits, -1), mu, sigma)
    y = torch.randn(5, 2, generator=g, dtype=torch.float64)
    torch.testing.assert_close(ours.log_prob(y), peer.log_prob(y))
    torch.testing.assert_close(ours.mean, peer.mean)
    torch.testing.assert_close(ours.variance, peer.variance)
    draws = ours.draw(20_000, g)
    torch.testing.assert_close(draws.mean(0), peer.mean, atol=0.05, rtol=0)
    torch.testing.assert_close(draws.var(0), peer.variance, atol=0.1, rtol=0.05)


@pytest.mark.parametrize(
    ("k", "d", "sizes"),
    [(3, 1, (3, 3, 3)), (3, 2, (6, 3, 3)), (3, 2, (6, 6, 3)), (4, 2, (8, 4, 0))],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_fused_loss_is_the_plain_one_with_two_derivatives(
    k: int, d: int, sizes: tuple[int, int, int], compiled: bool
) -> None:
    g = torch.Generator().manual_seed(0)
    out = torch.randn(4, sum(sizes), generator=g, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, d, generator=g, dtype=torch.float64, requires_grad=True)

    def fused(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return head_nll(out, y, sizes, k, 0.1, compiled=compiled)

    plain = mixture_nll(*head_parameters(out, sizes, k, 0.1), y)
    torch.testing.assert_close(fused(out, y), plain)
    assert torch.autograd.gradcheck(fused, (out, y))
    assert torch.autograd.gradgradcheck(fused, (out, y))


def test_head_serves_every_position_of_a_sequence() -> None:
    head = MixtureHead(6, 3, 2, covariance="diagonal")
    h = torch.randn(4, 7, 6, generator=torch.Generator().manual_seed(0))
    y = torch.randn(4, 7, 2, generator=torch.Generator().manual_seed(1))
    whole = head.nll(h, y)
    assert whole.shape == (4, 7)
    torch.testing.assert_close(whole[:, 3], head.nll(h[:, 3], y[:, 3]))
    with pytest.raises(ValueError, match="weights must be one of learned, uniform"):
        MixtureHead(6, 3, weights="random")
    with pytest.raises(ValueError, match="covariance must be one of"):
        MixtureHead(6, 3, covariance="full")


# --- answers of a density ------------------------------------------------------------------------


def test_highest_density_set_of_two_bumps() -> None:
    found = density_set(FAR, 0.9)
    assert found.threshold.item() == pytest.approx(0.0516, abs=5e-5)
    assert found.intervals is not None
    np.testing.assert_allclose(found.intervals[0], [[-4.645, -1.355], [1.355, 4.645]], atol=1e-3)
    assert found.volume.item() == pytest.approx(6.58, abs=5e-3)

    def cdf(y: float) -> float:
        return float(FAR.cdf(torch.tensor([[y]], dtype=torch.float64)))

    ends = [brentq(lambda y, q=q: cdf(y) - q, -9, 9) for q in (0.05, 0.95)]
    assert ends[1] - ends[0] == pytest.approx(8.56, abs=1e-2)
    inside = sum(cdf(float(b)) - cdf(float(a)) for a, b in found.intervals[0])
    assert inside == pytest.approx(0.9, abs=1e-3)
    probe = torch.tensor([[0.0]], dtype=torch.float64)
    assert not found.contains(probe).item() and found.contains(probe + 3).item()


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_sets_of_one_bump_are_central(level: float) -> None:
    found = density_set(distribution([1.0], [[2.0]], [[3.0]]), level)
    z = 3 * 2**0.5 * torch.special.erfinv(torch.tensor(level, dtype=torch.float64)).item()
    assert found.intervals is not None
    np.testing.assert_allclose(found.intervals[0], [[2 - z, 2 + z]], rtol=5e-3)
    with pytest.raises(ValueError, match="level is a probability"):
        density_set(FAR, 90)


def test_sets_in_the_plane_hold_their_probability() -> None:
    plane = distribution([0.3, 0.7], [[0.0, 0.0], [5.0, 1.0]], [[1.0], [0.5]])
    g = torch.Generator().manual_seed(0)
    found = density_set(plane, 0.8, n_draws=20_000, generator=g)
    assert found.intervals is None
    draws = plane.draw(20_000, g)[:, 0]
    many = GaussianMixtureDistribution(*(v.expand(20_000, *v.shape[1:]) for v in (
        plane.log_weights, plane.mu, plane.sigma)))  # fmt: skip
    share = (many.log_prob(draws) >= found.threshold.log()).double().mean()
    assert share.item() == pytest.approx(0.8, abs=0.015)
    one = density_set(distribution([1.0], [[0.0, 0.0]], [[1.0]]), 0.8, n_draws=20_000, generator=g)
    assert one.volume.item() == pytest.approx(-2 * np.pi * np.log(0.2), rel=0.03)  # a disc


def test_a_triangle_of_three_components_has_four_modes() -> None:
    side = 2.4
    corners = [[0.0, 0.0], [side, 0.0], [side / 2, side * 0.75**0.5]]
    triangle = distribution([1 / 3] * 3, corners, [[1.0]] * 3)
    (found,) = modes(triangle)
    assert found.shape == (4, 2)
    centroid = np.mean(corners, 0)
    assert np.linalg.norm(found.numpy() - centroid, axis=1).min() < 1e-6
    for y in found:
        leaf = y.clone().requires_grad_()
        H = torch.autograd.functional.hessian(lambda v: triangle.log_prob(v[None])[0], leaf)
        (g,) = torch.autograd.grad(triangle.log_prob(leaf[None])[0], leaf)
        assert g.norm() < 1e-8 and torch.linalg.eigvalsh(H).max() < 0
    height = triangle.log_prob(found[:, None, :])[:, 0]
    assert (height.diff() <= 1e-12).all()


@pytest.mark.parametrize(("apart", "count"), [(1.5, 1), (2.5, 2)])
def test_two_equal_bumps_part_beyond_two_scales(apart: float, count: int) -> None:
    bumps = distribution([0.5, 0.5], [[-apart / 2], [apart / 2]], [[1.0], [1.0]])
    (found,) = modes(bumps)
    assert len(found) == count
    (moved,) = modes(
        GaussianMixtureDistribution(bumps.log_weights, 100 * bumps.mu + 7, 100 * bumps.sigma)
    )
    torch.testing.assert_close(moved.sort(0).values, (100 * found + 7).sort(0).values)


def test_the_mode_is_the_best_of_a_fine_grid() -> None:
    g = torch.Generator().manual_seed(3)
    many = GaussianMixtureDistribution(
        torch.log_softmax(torch.randn(40, 5, generator=g, dtype=torch.float64), -1),
        2 * torch.randn(40, 5, 1, generator=g, dtype=torch.float64),
        torch.rand(40, 5, 1, generator=g, dtype=torch.float64) + 0.05,
    )
    grid = torch.linspace(-8, 8, 16_001, dtype=torch.float64)[:, None, None]
    best = many.log_prob(grid.expand(-1, 40, 1)).max(0).values
    assert (many.log_prob(many.mode) >= best - 1e-9).all()


# --- the estimator -----------------------------------------------------------------------------


def test_branches_are_found(fitted: MixtureDensityRegressor) -> None:
    X, y = inverse(2000, 1)
    assert fitted.score(X, y) > 1.0
    one = MixtureDensityRegressor(1, max_iter=60, random_state=0).fit(*inverse(1000))
    assert one.score(X, y) < 0.6
    at = fitted.predict([[0.5]], kind="modes")[0]
    assert len(at) >= 3
    assert fitted.credible_set([[0.5]], 0.8).intervals is not None
    assert len(fitted.credible_set([[0.5]], 0.8).intervals[0]) >= 2


def test_answers_agree_with_the_density(fitted: MixtureDensityRegressor) -> None:
    X = np.linspace(0, 1, 5)[:, None]
    grid = np.linspace(-2, 3, 20_001)
    density = fitted.predict_density(X, grid)
    width = grid[1] - grid[0]
    assert density.shape == (5, 20_001)
    np.testing.assert_allclose(density.sum(1) * width, 1, atol=1e-6)
    np.testing.assert_allclose((density * grid).sum(1) * width, fitted.predict(X), atol=1e-6)
    np.testing.assert_allclose(fitted.predict(X, kind="mode"), grid[density.argmax(1)], atol=width)
    every = fitted.predict(X, kind="modes")
    np.testing.assert_allclose([m[0] for m in every], fitted.predict(X, kind="mode"))
    np.testing.assert_allclose(fitted.infer({"x": X}, "y"), fitted.predict(X, kind="mode"))
    draws = fitted.sample(X, 20_000, random_state=0)
    assert draws.shape == (20_000, 5)
    np.testing.assert_allclose(draws.mean(0), fitted.predict(X), atol=0.01)
    np.testing.assert_array_equal(draws[:3], fitted.sample(X, 20_000, random_state=0)[:3])
    y = np.full(5, 0.4)
    at = fitted.predict_density(X, [0.4])[:, 0]
    np.testing.assert_allclose(fitted.energy(X, y), -np.log(at), rtol=1e-9)
    assert fitted.score(X, y) == pytest.approx(np.log(at).mean())
    weight = np.array([1, 0, 2, 0, 0])
    assert fitted.score(X, y, weight) == pytest.approx((np.log(at) * weight).sum() / 3)


def test_credible_sets_hold_their_share_of_new_rows(fitted: MixtureDensityRegressor) -> None:
    X, y = inverse(2000, 5)
    found = fitted.credible_set(X, 0.9, n_draws=500)
    inside = found.contains(y)
    assert isinstance(inside, np.ndarray) and inside.mean() == pytest.approx(0.9, abs=0.04)
    assert found.intervals is not None
    by_hand = [any(a <= v <= b for a, b in cut) for v, cut in zip(y, found.intervals, strict=True)]
    assert np.mean(inside == np.array(by_hand)) > 0.999
    tensors = fitted.credible_set(torch.from_numpy(X[:2]), 0.9, n_draws=500)
    assert isinstance(tensors.threshold, torch.Tensor)
    np.testing.assert_allclose(tensors.volume, found.volume[:2], rtol=1e-9)


def test_one_component_of_constant_scale_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    y = X @ [1.0, -0.2, 3.0] + 2 + rng.normal(size=200)
    model = MixtureDensityRegressor(
        1, (), covariance="constant", learning_rate=0.05, batch_size=200, max_iter=800,
        early_stopping=False, tol=0, n_iter_no_change=50,
    ).fit(X, y)  # fmt: skip
    line = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(X), line.predict(X), atol=1e-3)
    residual = y - line.predict(X)
    sigma = model.energy_.distribution(torch.from_numpy(X)).sigma
    assert sigma.std() < 1e-12
    assert sigma.mean().item() == pytest.approx(residual.std(), rel=1e-3)
    best = -0.5 * np.log(2 * np.pi * residual.var()) - 0.5
    assert model.score(X, y) == pytest.approx(best, abs=1e-5)


def test_one_gaussian_between_two_branches() -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(600) % 2, 1.0, -1.0) + 0.1 * rng.normal(size=600)
    X = np.zeros((600, 1))
    common = {"hidden": (), "batch_size": 600, "max_iter": 300, "learning_rate": 0.05}
    one = MixtureDensityRegressor(1, early_stopping=False, **common).fit(X, y)
    assert -one.score(X, y) == pytest.approx(1.423914, abs=0.01)
    assert one.predict_density(X[:1], [0.0])[0, 0] == pytest.approx(0.396962, abs=0.01)
    two = MixtureDensityRegressor(2, early_stopping=False, **common).fit(X, y)
    assert -two.score(X, y) == pytest.approx(-0.190499, abs=0.05)
    assert two.predict_density(X[:1], [0.0])[0, 0] < 1e-10


def test_several_targets_any_trunk_and_uniform_weights(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.column_stack([X[:, 0], X.sum(1)]) + 0.1 * rng.normal(size=(150, 2))
    trunk = torch.nn.Sequential(torch.nn.Linear(2, 12), torch.nn.ReLU()).double()
    before = [p.clone() for p in trunk.parameters()]
    model = MixtureDensityRegressor(
        2, trunk, weights="uniform", covariance="diagonal", max_iter=60, random_state=0
    ).fit(X, y)
    assert all(torch.equal(a, b) for a, b in zip(before, trunk.parameters(), strict=True))
    assert model.predict(X).shape == model.predict(X, kind="mode").shape == (150, 2)
    assert model.predict(X[:3], kind="modes")[0].shape[1] == 2
    assert model.sample(X, 4).shape == (4, 150, 2)
    assert model.predict_density(X[:3], y[:7]).shape == (3, 7)
    assert model.credible_set(X[:3], random_state=0).intervals is None
    distribution = model.energy_.distribution(torch.from_numpy(X))
    np.testing.assert_allclose(distribution.log_weights.exp(), 0.5)
    loaded = groundstate.load(model.save(tmp_path / "model.gs"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_units_do_not_matter() -> None:
    X, y = inverse(200)
    short = {"max_iter": 15, "random_state": 0}
    plain = MixtureDensityRegressor(3, **short).fit(X, y)
    moved = MixtureDensityRegressor(3, **short).fit(X, 1e6 * y - 5e6)
    np.testing.assert_allclose(moved.predict(X), 1e6 * plain.predict(X) - 5e6, rtol=0.2)
    same = MixtureDensityRegressor(3, **short).fit(1024 * X, y)
    assert np.isfinite(same.score(1024 * X, y))
    flat = MixtureDensityRegressor(3, **short).fit(X, np.full(200, 7.0))
    np.testing.assert_allclose(flat.predict(X), 7, atol=0.05)


def test_weights_are_repetitions_to_the_last_bit() -> None:
    X, y = inverse(120)
    weight = np.arange(120) % 3
    index = np.random.default_rng(0).permutation(np.repeat(np.arange(120), weight))
    a = MixtureDensityRegressor(3, max_iter=20, random_state=0).fit(X, y, sample_weight=weight)
    b = MixtureDensityRegressor(3, max_iter=20, random_state=0).fit(X[index], y[index])
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_training_holds_out_whole_rows() -> None:
    X, y = (torch.from_numpy(v) for v in inverse(100))
    rows, weight = merged({"x": torch.cat([X, X]), "y": torch.cat([y, y])[:, None]}, None)
    assert len(weight) == 100 and bool((weight == 2).all())
    kept, watched = split(rows, weight, 0.2, groundstate.compute.Key.of(0))
    assert watched is not None and len(kept[1]) == 80 and len(watched[1]) == 20
    assert split(rows, weight, 0.01, groundstate.compute.Key.of(0))[1] is None
    energy = MixtureDensityEnergy(1, k=2, net=(4,)).double()
    history = fit(energy, {"x": X, "y": y[:, None]}, NLL(), random_state=0)
    assert history.solver == "MixtureDensityTraining" and history.extra["validation"]
    with pytest.raises(Unsupported, match="it is for maximum likelihood; what would run"):
        fit(energy, {"x": X, "y": y[:, None]}, Naive(), MixtureDensityTraining())
    with pytest.raises(ValueError, match="held_out must be a share"):
        MixtureDensityTraining(Stochastic(), 1.0)


def test_bad_questions(fitted: MixtureDensityRegressor) -> None:
    with pytest.raises(ValueError, match="kind must be 'mean', 'mode' or 'modes'"):
        fitted.predict([[0.0]], kind="median")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="only T=1 is exact"):
        fitted.energy_.conditional(torch.zeros(1, 1), T=2.0)
    with pytest.raises(ValueError, match="min_scale"):
        MixtureDensityRegressor(min_scale=0).fit(*inverse(10))
    with pytest.raises(Unsupported, match="trunk must map"):
        MixtureDensityRegressor(hidden=torch.nn.Flatten(0)).fit(*inverse(10))
