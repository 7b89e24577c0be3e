"""Metrics of the data and the densities on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

import groundstate
from groundstate import EnergyOutlier, LocallyAdaptiveNormal, LocalMetric
from groundstate.data import make_half_circle
from groundstate.math import distances
from groundstate.math.distances.tangent import nodes_for

RNG = np.random.default_rng(0)
ANGLES = np.linspace(0, np.pi, 100)
ARC = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
HALF = np.concatenate([r * ARC for r in (0.95, 1.0, 1.05)])
SMALL = make_half_circle(50, random_state=1)
QUICK: dict[str, Any] = {"n_points": 9, "n_nodes": 144, "max_iter": 3}


def test_the_estimator_is_the_metric() -> None:
    model = LocalMetric(sigma=0.15, rho=0.01).fit(HALF)
    plain = distances.LocalMetric(HALF, 0.15, 0.01)
    at = RNG.normal(size=(5, 2))
    np.testing.assert_allclose(model.tensor(at), plain.tensor(at), rtol=1e-9)
    np.testing.assert_allclose(model.volume(at), plain.volume(at), rtol=1e-9)
    line = np.linspace([1, 0], [-1, 0], 65)
    assert model.length(line) == pytest.approx(11.936, abs=1e-3)
    assert model.distance([1.0, 0.0], [-1.0, 0.0]) == pytest.approx(4.082, abs=1e-3)
    np.testing.assert_allclose(model.tensor([[90.0, 0.0]])[0], np.eye(2) / 0.01)  # far: I/ρ
    v = model.log([0.0, 1.0], HALF[::60])
    np.testing.assert_allclose(model.exp([0.0, 1.0], v), HALF[::60], atol=0.02)
    doubled = LocalMetric().fit(np.vstack([HALF, HALF]), sample_weight=np.full(600, 0.5))
    single = LocalMetric().fit(HALF)
    assert doubled.sigma_ == pytest.approx(single.sigma_)
    np.testing.assert_allclose(doubled.tensor(at), single.tensor(at), rtol=1e-9)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_the_energy_of_a_step_is_half_its_squared_length(kind: str) -> None:
    model = LocalMetric(sigma=0.5, rho=0.1, kind=kind).fit(SMALL)
    at, step = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2))
    M = model.tensor(at)
    expected = 0.5 * np.einsum("ni,nij,nj->n", step, M, step)
    np.testing.assert_allclose(model.energy(at, z=step), expected, rtol=1e-9)
    free = np.log(model.volume(at)) - np.log(2 * np.pi)
    np.testing.assert_allclose(model.energy(at), free, rtol=1e-9)
    draws = model.infer({"x": at[:1]}, "z", "sample", n=20_000, random_state=0)[:, 0]
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(M[0]), rtol=0.1, atol=0.06)
    spread = np.sqrt(np.diagonal(np.linalg.inv(M), axis1=1, axis2=2))
    np.testing.assert_allclose(model.transform(at), spread, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_under_a_constant_metric_it_is_the_ordinary_normal(d: int) -> None:
    A = RNG.normal(size=(d, d))
    metric = distances.ConstantMetric(A @ A.T + np.eye(d))
    X = RNG.normal(size=(60, d)) @ np.triu(RNG.normal(size=(d, d)) + 2 * np.eye(d)) + 3
    model = LocallyAdaptiveNormal(
        metric=metric, tol=1e-10, n_points=9, n_nodes=400, random_state=0
    ).fit(X)
    np.testing.assert_allclose(model.mean_, X.mean(0), atol=1e-6)
    np.testing.assert_allclose(model.covariances_[0], np.cov(X.T, ddof=0).reshape(d, d), rtol=1e-6)
    truth = multivariate_normal(X.mean(0), np.cov(X.T, ddof=0)).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), truth, atol=1e-6)
    if d == 2:
        S = np.cov(X.T, ddof=0)
        law = distances.LocallyAdaptiveNormal(metric, X.mean(0), S)
        np.testing.assert_allclose(law.log_prob(X), truth, atol=1e-6)
        drawn = law.sample(2000, random_state=0)
        np.testing.assert_allclose(drawn.mean(0), X.mean(0), atol=0.2 * np.sqrt(S.max()))
        np.testing.assert_allclose(np.cov(drawn.T), S, atol=0.15 * S.max())


def grid(low: list[float], high: list[float], n: int) -> tuple[np.ndarray, float]:
    axes = [np.linspace(l, h, n) for l, h in zip(low, high, strict=True)]
    cell = float(np.prod([a[1] - a[0] for a in axes]))
    return np.stack(np.meshgrid(*axes), -1).reshape(-1, 2), cell


def test_the_two_normalisers_agree() -> None:
    metric = distances.LocalMetric(SMALL, 0.4, 0.2)
    mu, cov = torch.tensor([0.0, 1.0]).double(), 0.1 * torch.eye(2).double()
    precision = torch.linalg.inv(cov)
    by_grid = nodes_for(metric, mu, cov, size=900, n=17).log_normaliser(precision)
    by_draws = nodes_for(metric, mu, cov, how="monte_carlo", size=1000, n=9, random_state=0)
    assert float(by_grid) == pytest.approx(float(by_draws.log_normaliser(precision)), abs=0.02)
    with pytest.raises(ValueError, match="'grid' or 'monte_carlo'"):
        nodes_for(metric, mu, cov, how="sparse")


def test_a_bent_normal_integrates_to_one_and_draws_from_itself() -> None:
    model = LocallyAdaptiveNormal(metric=LocalMetric(sigma=0.4, rho=0.2), **QUICK).fit(SMALL)
    points, cell = grid([-3.0, -2.5], [3.0, 3.5], 40)
    log_p = model.score_samples(points)
    assert np.exp(log_p).sum() * cell == pytest.approx(1.0, abs=0.01)
    drawn, z = model.sample(200, random_state=0)
    assert drawn.shape == (200, 2) and (z == 0).all()
    p = np.exp(log_p) * cell
    mean = p @ points
    spread = np.sqrt(p @ (points - mean) ** 2)
    np.testing.assert_allclose(drawn.mean(0), mean, atol=float(4 * spread.max() / np.sqrt(200)))
    np.testing.assert_allclose(drawn.std(0), spread, rtol=0.2)
    found = EnergyOutlier(model, contamination=0.1).fit(SMALL)
    assert abs(int((found.predict(SMALL) < 0).sum()) - 5) <= 1


@pytest.mark.slow
def test_the_intrinsic_mean_lies_among_the_data() -> None:
    model = LocallyAdaptiveNormal(
        metric=LocalMetric(sigma=0.15, rho=0.01), n_nodes=256, max_iter=8, tol=0.01
    ).fit(HALF)
    away = [np.linalg.norm(HALF - m, axis=1).min() for m in (model.mean_, HALF.mean(0))]
    assert away[0] <= 0.1 and away[1] == pytest.approx(0.32, abs=0.01)
    points, cell = grid([-1.9, -0.9], [1.9, 1.9], 40)
    assert np.exp(model.score_samples(points)).sum() * cell == pytest.approx(1.0, abs=0.01)
    assert model.history_.objective == sorted(model.history_.objective, reverse=True)


def test_two_components_take_two_arcs() -> None:
    X = np.vstack([SMALL, SMALL * [1.0, -1.0] + [6.0, 0.0]])
    model = LocallyAdaptiveNormal(
        2, metric=LocalMetric(sigma=0.4, rho=0.2), random_state=0, **QUICK
    ).fit(X)
    label = model.predict(X)
    assert len(set(label[:50])) == len(set(label[50:])) == 1 and label[0] != label[-1]
    np.testing.assert_allclose(model.weights_, 0.5, atol=1e-6)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0)
    assert model.means_.shape == model.mean_.shape == (2, 2)
    assert np.isfinite(model.bic(X))


def test_written_parameters_count(tmp_path: Any) -> None:
    model = LocallyAdaptiveNormal(metric=LocalMetric(sigma=0.4, rho=0.2), **QUICK).fit(SMALL)
    loaded = groundstate.load(model.save(tmp_path / "bent.gs"))
    np.testing.assert_array_equal(loaded.score_samples(SMALL), model.score_samples(SMALL))
    fitted = LocalMetric(sigma=0.4, rho=0.2).fit(SMALL)  # as it is, for any rows
    other = LocallyAdaptiveNormal(metric=fitted, **QUICK).fit(SMALL[:40])
    assert len(other.metric_.rows) == 50
    model.mean_ = [0.3, 0.9]
    points, cell = grid([-3.0, -2.5], [3.0, 3.5], 30)
    assert np.exp(model.score_samples(points)).sum() * cell == pytest.approx(1.0, abs=0.02)
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        model.covariances_ = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    flat = LocallyAdaptiveNormal(metric=distances.ConstantMetric(np.eye(2)), **QUICK).fit(SMALL)
    with pytest.raises(ValueError, match="cannot store LocallyAdaptiveNormal.metric"):
        flat.save(tmp_path / "flat.gs")


def test_errors_teach() -> None:
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        LocallyAdaptiveNormal(9).fit(SMALL[:4])
    with pytest.raises(ValueError, match="one of 2 features, X has 3"):
        LocallyAdaptiveNormal(metric=LocalMetric().fit(SMALL)).fit(RNG.normal(size=(9, 3)))
    with pytest.raises(ValueError, match="shapes"):
        distances.LocallyAdaptiveNormal(distances.ConstantMetric(np.eye(2)), [0.0], np.eye(2))
    with pytest.raises(ValueError, match="positive definite"):
        distances.LocallyAdaptiveNormal(distances.ConstantMetric(np.eye(1)), [0.0], [[-1.0]])
