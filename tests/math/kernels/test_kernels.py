"""Kernels: their values, that they are inner products, their slopes, and their algebra."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
import torch

from groundstate.errors import ShapeError
from groundstate.math.kernels import (
    RBF,
    Constant,
    DotProduct,
    Function,
    Geometry,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    White,
)
from groundstate.math.kernels.fields import gaussian_random_field
from groundstate.math.linalg.gaussian_process import cholesky

R = np.random.default_rng(0)
X, Z = R.normal(size=(9, 3)), R.normal(size=(4, 3))
PEERS: list[tuple[Kernel, Any]] = [
    (RBF(1.3), sk.RBF(1.3)),
    (RBF((1.0, 2.0, 0.5)), sk.RBF([1.0, 2.0, 0.5])),
    (Laplacian(1.1), sk.Matern(1.1, nu=0.5)),
    (Matern(1.1, nu=1.5), sk.Matern(1.1, nu=1.5)),
    (Matern((1.0, 2.0, 0.5), nu=2.5), sk.Matern([1.0, 2.0, 0.5], nu=2.5)),
    (Matern(0.8, nu=math.inf), sk.Matern(0.8, nu=math.inf)),
    (RationalQuadratic(1.2, 0.7), sk.RationalQuadratic(1.2, 0.7)),
    (Periodic(1.2, 2.5), sk.ExpSineSquared(1.2, 2.5)),
    (DotProduct(1.5), sk.DotProduct(1.5)),
    (2.0 * RBF(0.7) + White(0.3), sk.ConstantKernel(2.0) * sk.RBF(0.7) + sk.WhiteKernel(0.3)),
    ((RBF(1.0) + White(0.2)) ** 2, (sk.RBF(1.0) + sk.WhiteKernel(0.2)) ** 2),
]
ALL: list[Kernel] = [p[0] for p in PEERS] + [Linear(), Polynomial(2, 1.0), Constant(2.0)]


@pytest.mark.parametrize(("ours", "peer"), PEERS, ids=lambda k: str(k))
def test_agrees_with_scikit_learn(ours: Kernel, peer: Any) -> None:
    K, dK = ours(X, eval_gradient=True)
    expected, slopes = peer(X, eval_gradient=True)
    np.testing.assert_allclose(K, expected, atol=1e-12)
    np.testing.assert_allclose(dK, slopes, atol=1e-12)
    np.testing.assert_allclose(ours(X, Z), peer(X, Z), atol=1e-12)
    np.testing.assert_allclose(ours.diag(X), peer.diag(X), atol=1e-12)
    np.testing.assert_allclose(ours.theta, peer.theta)
    np.testing.assert_allclose(ours.bounds, peer.bounds)
    assert ours.is_stationary() == peer.is_stationary()


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_is_an_inner_product(kernel: Kernel) -> None:
    rows = X[:, :1] if isinstance(kernel, Periodic) else X  # of one feature only
    K = kernel(rows)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * max(1.0, np.abs(K).max())
    if kernel.is_stationary():
        np.testing.assert_allclose(kernel(rows + 5.0), K, atol=1e-12)


def test_values_from_the_formulas() -> None:
    two = np.array([[0.0], [2.0]])
    assert RBF(2.0)(two)[0, 1] == pytest.approx(math.exp(-0.5), abs=1e-15)
    assert Laplacian(2.0)(two)[0, 1] == pytest.approx(math.exp(-1), abs=1e-15)
    assert Periodic(0.7, period=2.0)(two)[0, 1] == pytest.approx(1.0, abs=1e-12)
    assert Polynomial(2, 1.0)(np.array([[1.0, 2]]), np.array([[3.0, -1]]))[0, 0] == 4.0
    assert np.linalg.matrix_rank(Linear()(X)) == 3 and not Linear().is_stationary()
    assert np.linalg.matrix_rank(RBF(1.0)(X)) == len(X)
    assert not np.allclose(Linear()(X + 5.0), Linear()(X))


@pytest.mark.parametrize("nu", [0.7, 2.0, 3.2])
def test_matern_of_any_smoothness(nu: float) -> None:
    ours, peer = Matern(1.1, nu=nu), sk.Matern(1.1, nu=nu)
    np.testing.assert_allclose(ours(X), peer(X), atol=1e-12)
    np.testing.assert_allclose(ours(X, Z), peer(X, Z), atol=1e-12)
    slope = ours(X, eval_gradient=True)[1]
    ahead, behind = (ours.clone_with_theta(ours.theta + h)(X) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(slope[..., 0], (ahead - behind) / 2e-5, atol=1e-8)


def test_gamma_is_another_name() -> None:
    assert RBF(gamma=0.5).length_scale == pytest.approx(1.0)
    assert Laplacian(gamma=0.5).length_scale == pytest.approx(2.0)
    assert Periodic(gamma=2.0).length_scale == pytest.approx(1.0)


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_slopes_are_finite_where_points_coincide(kernel: Kernel) -> None:
    x = torch.tensor([[0.3, 1.0, 2.0], [0.3, 1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    total = kernel(x, x.detach()).sum() + 0.0 * x.sum()
    total.backward()
    assert x.grad is not None and bool(torch.isfinite(x.grad).all())


@pytest.mark.parametrize("d", [3, 40])
def test_wide_rows_far_from_zero_keep_their_digits(d: int) -> None:
    rows = np.random.default_rng(1).normal(size=(12, d)) + 1e4
    direct = ((rows[:, None] - rows) ** 2).sum(-1)
    np.testing.assert_allclose(RBF(3.0)(rows), np.exp(-direct / 18), atol=1e-12)


def test_parameters_round_trip() -> None:
    kernel = 2.0 * RBF((1.0, 2.0), length_scale_bounds=(0.1, 10)) + White(0.3, "fixed")
    assert kernel.n_dims == 3
    moved = kernel.clone_with_theta(kernel.theta + 1)
    np.testing.assert_allclose(moved.theta, kernel.theta + 1)
    assert kernel.clone_with_theta(kernel.theta) == kernel and moved != kernel
    with pytest.raises(ShapeError, match="3 free parameters, got 2"):
        kernel.clone_with_theta([0.0, 0.0])


def test_noise_is_on_the_diagonal_only() -> None:
    kernel = RBF(1.0) + White(0.5)
    x = torch.zeros(2, 1, dtype=torch.float64)
    assert kernel(x).tolist() == [[1.5, 1.0], [1.0, 1.5]]
    assert kernel.diagonal(x).tolist() == [1.5, 1.5]
    assert kernel.diagonal(x, noise=False).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(-1.0), "length_scale must be positive"),
        (lambda: RBF(1.0, (3.0, 1.0)), "0 < low <= high"),
        (lambda: Matern(nu=0.0), "nu must be positive"),
        (lambda: Polynomial(1.5), "whole number"),
        (lambda: RBF((1.0, 2.0))(X), "2 length scales for 3 features"),
        (lambda: RBF()(X, Z[:, :2]), "rows of one width"),
        (lambda: Function(lambda a, b: a)(X), "must return"),
        (lambda: RBF() + "x", "kernels and numbers"),
    ],
)
def test_errors_teach(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_covariances_on_a_grid() -> None:
    grid = np.linspace(0, 1, 11)[:, None]
    K = RBF(0.1)(grid)
    assert K.shape == (11, 11)
    np.testing.assert_allclose(K[0, :4], [1, 0.6065, 0.1353, 0.0111], atol=5e-5)
    for scale, condition in ((0.1, 50), (0.2, 6e5)):
        assert np.linalg.cond(RBF(scale)(grid)) == pytest.approx(condition, rel=0.2)
    assert np.isfinite(cholesky(torch.from_numpy(RBF(1.0)(grid))).numpy()).all()


def test_singular_beyond_repair() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="raise alpha"):
        cholesky(-torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("kernel", [RBF(0.1), Matern(0.2, nu=0.5) + White(0.1)], ids=str)
def test_random_field_has_the_covariance_of_its_kernel(kernel: Kernel) -> None:
    grid = np.linspace(0, 1, 11)
    m = 20_000
    found = gaussian_random_field(grid, kernel, m, random_state=1)
    error = np.abs(found.T @ found / m - kernel(grid[:, None])).max()
    assert error < 6 / math.sqrt(m)
    plane = gaussian_random_field([grid, grid[:5]], kernel, 2)
    assert plane.shape == (2, 11, 5)


def test_random_field_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="stationary"):
        gaussian_random_field(np.arange(3.0), Linear())
    with pytest.raises(ValueError, match="evenly spaced"):
        gaussian_random_field(np.array([0.0, 1.0, 3.0]), RBF())


@pytest.mark.parametrize("scale", [0.7, (0.5, 1.0, 2.0)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tiles_are_the_matrix(scale: Any, dtype: torch.dtype) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(1100, 3, generator=g, dtype=dtype)
    z = torch.randn(300, 3, generator=g, dtype=dtype)
    K, across = RBF(scale)(x), RBF(scale)(x, z)
    assert K.dtype == dtype and torch.equal(K, K.T) and bool((K.diagonal() == 1).all())
    small = torch.cat([RBF(scale)(part, z) for part in x.split(50)])  # formed by differences
    tolerance = 1e-13 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(across, small, rtol=0, atol=tolerance)
    torch.testing.assert_close(K[:, :300], RBF(scale)(x, x[:300]), rtol=0, atol=tolerance)
    far = RBF(scale)(1e6 * x, 1e6 * x[:300])  # no digits to lose: differences again
    assert bool((far[:300].diagonal() == 1).all())


@pytest.mark.parametrize("kernel", [k for k, _ in PEERS], ids=repr)
def test_a_row_with_a_gap_is_like_no_other(kernel: Kernel) -> None:
    """Matern and Periodic took a distance of NaN for 0, which made k = 1."""
    rows = X.copy()
    rows[2, 1] = np.nan
    K = kernel(rows, Z)
    assert np.isnan(K[2]).all()
    assert np.isfinite(np.delete(K, 2, 0)).all()


PULLED = (
    RBF(0.7),
    RBF((0.5, 2.0)),
    RBF(0.7, "fixed"),
    Laplacian(0.7),
    Constant(2.0) * RBF(0.7) + White(0.3),
    (Constant(2.0) + RBF(0.7, "fixed")) * Matern(0.9),
    White(0.3, "fixed") + Constant(2.0, "fixed") * Periodic(1.0, 3.0),
    RationalQuadratic() ** 2,
)


@pytest.mark.parametrize("n", [5, 300])  # by pairs, and by tiles
@pytest.mark.parametrize("kernel", PULLED, ids=repr)
def test_a_pullback_is_the_derivative_along_slopes(kernel: Kernel, n: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    W = torch.randn(n, n, generator=generator, dtype=torch.float64)
    theta = torch.as_tensor(kernel.theta)
    K, pull = kernel.pulled(Geometry(x), theta)
    whole, pages = kernel(x, eval_gradient=True)
    torch.testing.assert_close(K, whole.detach(), rtol=1e-12, atol=1e-12)
    assert not K.requires_grad
    slopes = (W[..., None] * pages).sum((0, 1))
    torch.testing.assert_close(pull(W), slopes, rtol=1e-9, atol=1e-9)
