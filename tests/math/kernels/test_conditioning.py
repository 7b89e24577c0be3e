"""Processes before and after data: draws, conditioning, weighted averages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics.pairwise import rbf_kernel

from groundstate.errors import Unreliable
from groundstate.math.kernels import (
    RBF,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    White,
    condition,
    sample_field,
    sample_path,
    smooth,
)

RNG = np.random.default_rng(0)


def test_two_points_without_noise() -> None:
    mean, cov = condition(RBF(1.0), [[0.0], [1.0]], [0.0, 1.0], [[0.0], [0.5], [1.0], [5.0]])
    np.testing.assert_allclose(mean, [0, 0.549318, 1, 0.000527], atol=1e-6)
    np.testing.assert_allclose(np.diagonal(cov), [0, 0.030456, 0, 0.99999982], atol=1e-6)
    assert abs(cov[3, 3] - 0.99999982) < 1e-8


def test_without_data_it_is_the_prior() -> None:
    Xs = np.linspace(-2, 2, 5)[:, None]
    found = condition(RBF(0.7), np.zeros((0, 1)), np.zeros(0), Xs)
    assert (found.mean == 0).all()
    np.testing.assert_array_equal(found.cov, RBF(0.7)(Xs))
    np.testing.assert_allclose(found.var, 1.0)


def test_agrees_with_scikit_learn() -> None:
    X, y, Xs = RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2)), RNG.normal(size=(7, 2))
    noise = RNG.uniform(0.05, 0.2, 20)
    ours = condition(2.0 * RBF(0.9) + White(0.1), X, y, Xs, noise)
    kernel = sk.ConstantKernel(2.0) * sk.RBF(0.9) + sk.WhiteKernel(0.1)
    peer = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)
    mean, cov = peer.predict(Xs, return_cov=True)
    np.testing.assert_allclose(ours.mean, mean, atol=1e-10)
    np.testing.assert_allclose(ours.cov, cov[..., 0], atol=1e-10)


def test_conditioning_has_gradients() -> None:
    x = torch.linspace(0, 2, 4, dtype=torch.float64)[:, None].requires_grad_()
    y = torch.sin(x.detach()[:, 0]).requires_grad_()
    s = torch.tensor([[0.3], [1.7]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda a, b, c: tuple(condition(RBF(0.8), a, b, c, noise=0.1)), (x, y, s)
    )
    assert torch.autograd.gradcheck(lambda a, b, c: smooth(RBF(0.8), a, b, c), (x, y, s))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: condition(RBF(), [[0.0]], [1.0, 2.0], [[1.0]]), "each of the 1 rows of X"),
        (lambda: condition(RBF(), [[0.0]], [1.0], [[1.0, 2.0]]), "rows of one width"),
        (lambda: condition(RBF(), [[0.0]], [1.0], [[1.0]], noise=-1.0), "must not be negative"),
        (lambda: smooth(RBF(), np.zeros((0, 1)), np.zeros(0), [[1.0]]), "at least one row"),
        (lambda: smooth(RBF(), [[0.0]], [np.inf], [[1.0]]), "y holds NaN or infinity"),
    ],
)
def test_errors_teach(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_the_average_needs_its_normaliser() -> None:
    X, y = np.array([[-1.0], [0.0], [2.0]]), np.array([1.0, 1.0, 1.0])
    Xs = np.array([[0.5], [3.0]])
    np.testing.assert_allclose(smooth(RBF(1.0), X, y, Xs), 1.0)
    weights = RBF(1.0)(Xs, X)
    np.testing.assert_allclose(smooth(RBF(1.0), X, y, Xs, normalize=False), weights.sum(1))
    labels = np.array([-1.0, -1.0, 1.0])
    assert np.sign(smooth(RBF(1.0), X, labels, Xs, normalize=False)).tolist() == [-1.0, 1.0]
    two = smooth(RBF(1.0), X, np.column_stack([y, labels]), Xs)
    np.testing.assert_allclose(two[:, 1], smooth(RBF(1.0), X, labels, Xs))
    assert np.isnan(smooth(RBF(1e-3), X, y, [[50.0]])).all()


def test_softmax_of_products_of_equal_length_is_a_gaussian_average() -> None:
    keys = RNG.normal(size=(9, 4))
    keys *= 3.0 / np.linalg.norm(keys, axis=1, keepdims=True)
    values, query = RNG.normal(size=9), RNG.normal(size=(2, 4))
    weights = np.exp(query @ keys.T)
    attention = weights @ values / weights.sum(1)
    np.testing.assert_allclose(smooth(RBF(1.0), keys, values, query), attention, atol=1e-12)


def test_condition_numbers_on_a_grid() -> None:
    grid = np.linspace(0, 1, 11)[:, None]
    K = RBF(0.1)(grid)
    assert K.shape == (11, 11)
    np.testing.assert_allclose(K[0, :4], [1, 0.6065, 0.1353, 0.0111], atol=5e-5)
    for scale, expected, rel in ((0.1, 50, 0.05), (0.2, 6e5, 0.05), (1.0, 2.6e17, 20)):
        assert np.linalg.cond(RBF(scale)(grid)) == pytest.approx(expected, rel=rel)


def test_width_and_gamma() -> None:
    X = RNG.normal(size=(12, 3))
    np.testing.assert_allclose(
        RBF(0.7)(X), rbf_kernel(X, gamma=1 / (2 * 0.7**2)), rtol=0, atol=1e-15
    )


KERNELS: list[Kernel] = [RBF(1.0), RBF(0.2), Matern(0.5, nu=1.5) + White(0.1), Linear(), Periodic()]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_paths_have_the_covariance_of_their_kernel(kernel: Kernel) -> None:
    X, m = np.linspace(0, 1, 11)[:, None], 20_000
    f = sample_path(kernel, X, m, random_state=3)
    K = kernel(X)
    error = np.sqrt((np.diagonal(K)[:, None] * np.diagonal(K) + K**2) / m)
    assert (np.abs(f.T @ f / m - K) <= 5 * error + 1e-6).all()  # the jitter
    shifted = sample_path(kernel, X, 4, mean=np.arange(11.0), random_state=3)
    np.testing.assert_allclose(
        shifted - sample_path(kernel, X, 4, random_state=3), np.tile(np.arange(11.0), (4, 1)),
        atol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("kernel", [RBF(0.1), Laplace(0.2) + White(0.1)], ids=str)
def test_fields_have_the_covariance_of_their_kernel(kernel: Kernel) -> None:
    grid, m = np.linspace(0, 1, 11), 20_000
    f = sample_field(kernel, grid, m, random_state=1)
    assert np.abs(f.T @ f / m - kernel(grid[:, None])).max() < 6 / math.sqrt(m)
    plane = sample_field(kernel, [grid[:4], grid[:3]], m, random_state=2).reshape(m, -1)
    points = np.stack([a.ravel() for a in np.meshgrid(grid[:4], grid[:3], indexing="ij")], 1)
    assert np.abs(plane.T @ plane / m - kernel(points)).max() < 6 / math.sqrt(m)


def test_what_was_cut_off_is_reported() -> None:
    with pytest.warns(Unreliable, match="of its variance was cut off; use a shorter length"):
        sample_field(RBF(30.0), np.linspace(0, 1, 11), 2, random_state=0)
    with pytest.raises(ValueError, match="stationary"):
        sample_field(Linear(), np.arange(3.0))
