"""Gaussian processes beyond the matrix: conjugate gradients and inducing points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import groundstate
from groundstate import GaussianProcessRegressor
from groundstate.compute.random import Key
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy
from groundstate.errors import Unsupported
from groundstate.learn.solvers.gp import evidence as process
from groundstate.learn.solvers.gp import inducing_bound
from groundstate.learn.solvers.gp.evidence import evidence
from groundstate.learn.solvers.gp.inducing_bound import CollapsedBound
from groundstate.learn.solvers.gp.iterative import IterativeEvidence
from groundstate.math.kernels import RBF, Laplacian, White

R = np.random.default_rng(0)
X = R.uniform(-3, 3, (150, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * R.normal(size=150)
Z = R.uniform(-3, 3, (9, 2))
KERNEL = 1.0 * RBF(1.0) + White(0.1)
LARGE: list[dict[str, Any]] = [
    {"method": "cg"},
    {"method": "inducing", "n_inducing": 40},
    {"method": "inducing", "n_inducing": 40, "batch_size": 50},
]


@pytest.fixture(scope="module")
def exact() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(KERNEL).fit(X, Y)


def test_conjugate_gradients_are_the_factor() -> None:
    rows = np.random.default_rng(1).uniform(-3, 3, (2000, 3))
    target = np.sin(rows).sum(1)
    fixed = {"optimizer": None, "alpha": 0.01}
    a = GaussianProcessRegressor(RBF(2.5), **fixed).fit(rows, target)
    b = GaussianProcessRegressor(RBF(2.5), method="cg", **fixed).fit(rows, target)
    for p, q in zip(a.predict(Z3, return_std=True), b.predict(Z3, return_std=True), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-4)
    gap = b.log_marginal_likelihood_value_ - a.log_marginal_likelihood_value_
    assert abs(gap) < 2e-3 * abs(a.log_marginal_likelihood_value_)


Z3 = R.uniform(-3, 3, (7, 3))


def test_all_points_are_the_exact_process(exact: GaussianProcessRegressor) -> None:
    model = GaussianProcessRegressor(KERNEL, method="inducing", n_inducing=150).fit(X, Y)
    np.testing.assert_allclose(model.kernel_.theta, exact.kernel_.theta, atol=1e-3)
    for p, q in zip(model.predict(Z, return_std=True), exact.predict(Z, return_std=True)):
        np.testing.assert_allclose(p, q, atol=1e-4)
    value = model.log_marginal_likelihood_value_
    assert value <= exact.log_marginal_likelihood_value_ + 1e-8
    assert value == pytest.approx(exact.log_marginal_likelihood_value_, abs=1e-2)


def test_the_bound_rises_to_the_evidence_with_the_points() -> None:
    values = [
        GaussianProcessRegressor(
            Laplacian(1.0), alpha=0.01, optimizer=None, method="inducing", n_inducing=k
        )
        .fit(X, Y)
        .log_marginal_likelihood_value_
        for k in (5, 30, 100)
    ]
    top = GaussianProcessRegressor(Laplacian(1.0), alpha=0.01, optimizer=None).fit(X, Y)
    assert values == sorted(values) and values[-1] <= top.log_marginal_likelihood_value_


@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_of_bound_and_estimate(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inducing_bound, "TILE", 30 * 64)  # in several pieces
    weight = torch.from_numpy(R.integers(1, 4, 150).astype(float)) if weighted else None
    field = FieldEnergy(torch.from_numpy(X), KERNEL, 0.01, weight)
    y = torch.from_numpy(np.stack([Y, Y**2]))
    bound = CollapsedBound(field, y, field.x[:30])
    theta = np.array([0.1, -0.2, -1.0])
    slope = bound(theta)[1]
    near = [(bound(theta + d)[0] - bound(theta - d)[0]) / 2e-5 for d in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(slope, near, rtol=1e-4)
    truth = evidence(field, y, torch.from_numpy(theta))
    estimate = IterativeEvidence(field, y, Key.of(0), probes=32)
    value, gradient = estimate(theta)
    assert value == pytest.approx(truth.value, rel=1e-3)
    np.testing.assert_allclose(gradient, truth.gradient, rtol=1e-2)
    half = IterativeEvidence(field, y, Key.of(0), probes=32, single=True)(theta)
    assert half[0] == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("how", LARGE, ids=str)
def test_close_to_the_exact_answer(how: dict[str, Any], exact: GaussianProcessRegressor) -> None:
    model = GaussianProcessRegressor(KERNEL, **how, random_state=0).fit(X, Y)
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, exact.predict(Z), atol=0.1)
    np.testing.assert_allclose(mean, model.predict(Z), atol=1e-10)
    cov = model.predict(Z, return_cov=True)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, atol=1e-4)
    found = model.sample_y(Z, 20_000, random_state=1)
    np.testing.assert_allclose(found.mean(1), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(found), cov, atol=0.02)


@pytest.mark.parametrize("how", LARGE, ids=str)
def test_weights_are_repetitions_in_any_order(how: dict[str, Any]) -> None:
    weight = np.arange(60) % 3
    index = np.random.default_rng(0).permutation(np.repeat(np.arange(60), weight))
    make = lambda: GaussianProcessRegressor(KERNEL, **how, random_state=0)
    a = make().fit(X[:60], Y[:60], sample_weight=weight)
    b = make().fit(X[:60][index], Y[:60][index])
    np.testing.assert_array_equal(a.predict(Z), b.predict(Z))
    assert a.log_marginal_likelihood_value_ == b.log_marginal_likelihood_value_
    order = np.random.default_rng(1).permutation(60)
    c, d = make().fit(X[:60], Y[:60]), make().fit(X[:60][order], Y[:60][order])
    np.testing.assert_array_equal(c.predict(Z), d.predict(Z))


@pytest.mark.parametrize("method", ["cg", "inducing"])
def test_long_tables_begin_with_a_part(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).uniform(-3, 3, (400, 2))
    target = np.sin(rows).sum(1) + 0.1 * np.random.default_rng(3).normal(size=400)
    whole = GaussianProcessRegressor(KERNEL).fit(rows, target)
    monkeypatch.setattr(process, "LONG", 300)
    monkeypatch.setattr(process, "SKETCH", 100)
    quick = GaussianProcessRegressor(KERNEL, method=method, n_inducing=60, random_state=0)
    quick.fit(rows, target)
    np.testing.assert_allclose(quick.kernel_.theta[1:], whole.kernel_.theta[1:], atol=0.1)
    np.testing.assert_allclose(quick.predict(Z), whole.predict(Z), atol=0.02)


def test_probes_at_another_theta(exact: GaussianProcessRegressor) -> None:
    model = GaussianProcessRegressor(KERNEL, method="cg").fit(X, Y)
    theta = exact.kernel_.theta + 0.1
    value, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
    peer = exact.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(peer[0], rel=1e-3)
    np.testing.assert_allclose(slope, peer[1], atol=0.5)


@pytest.mark.parametrize("how", LARGE[:2], ids=str)
def test_several_targets_and_files(how: dict[str, Any], tmp_path: Path) -> None:
    both = np.column_stack([Y, 2 * Y + 1])
    model = GaussianProcessRegressor(KERNEL, **how, normalize_y=True).fit(X, both)
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean[:, 1], 2 * mean[:, 0] + 1, atol=1e-4)
    np.testing.assert_allclose(std[:, 1], 2 * std[:, 0], atol=1e-8)
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    np.testing.assert_array_equal(loaded.predict(Z), mean)
    np.testing.assert_array_equal(loaded.predict(Z, return_std=True)[1], std)


def test_what_is_not_kept_is_said() -> None:
    model = GaussianProcessRegressor(KERNEL, method="inducing", n_inducing=10).fit(X, Y)
    assert model.inducing_points_.shape == (10, 2)
    with pytest.raises(Unsupported, match="does not keep"):
        model.log_marginal_likelihood(model.kernel_.theta)
    with pytest.raises(AttributeError, match="keeps no factor"):
        _ = model.L_


def test_a_function_is_a_kernel() -> None:
    def similar(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(-1))

    fixed = {"alpha": 0.1, "optimizer": None}
    a = GaussianProcessRegressor(similar, **fixed).fit(X, Y).predict(Z, return_std=True)
    b = GaussianProcessRegressor(RBF(1.0), **fixed).fit(X, Y).predict(Z, return_std=True)
    np.testing.assert_allclose(a, b, atol=1e-10)
