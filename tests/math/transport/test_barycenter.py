"""Means and paths of distributions: closed forms, optimality, ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import Exponential, MultivariateNormal, Normal

from groundstate import divergences, transport
from groundstate.errors import ShapeError, Unsupported

RNG = np.random.default_rng(0)
S0 = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
S1 = torch.tensor([[1.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
ZERO = torch.zeros(2, dtype=torch.float64)


def normal(mean: float, std: float) -> Normal:
    return Normal(*torch.tensor([mean, std], dtype=torch.float64))


def test_gaussians() -> None:
    found = transport.barycenter([normal(0, 1), normal(4, 3)])
    assert (float(found.mean), float(found.variance)) == pytest.approx((2, 4))
    two = [MultivariateNormal(ZERO, S0), MultivariateNormal(ZERO + 2, S1)]
    middle = transport.barycenter(two)
    expected = torch.tensor([[1.414023, 0.553812], [0.553812, 2.893172]]).double()
    torch.testing.assert_close(middle.covariance_matrix, expected, atol=1e-6, rtol=0)
    half = transport.geodesic(*two, 0.5)
    torch.testing.assert_close(half.covariance_matrix, middle.covariance_matrix)
    torch.testing.assert_close(half.mean, middle.mean)

    def squared(p: MultivariateNormal, q: MultivariateNormal) -> float:
        return float(divergences.frechet(p.mean, p.covariance_matrix, q.mean, q.covariance_matrix))

    whole = squared(*two) ** 0.5
    for t in (0.0, 0.3, 1.0):  # constant speed
        at = transport.geodesic(*two, t)
        assert squared(two[0], at) ** 0.5 == pytest.approx(t * whole, abs=1e-6)
        assert squared(at, two[1]) ** 0.5 == pytest.approx((1 - t) * whole, abs=1e-6)
    w = [0.2, 0.5, 0.3]
    three = [*two, MultivariateNormal(ZERO, S0 @ S1 @ S0)]
    best = transport.barycenter(three, w)

    def spread(S: torch.Tensor) -> float:
        return sum(
            v * squared(MultivariateNormal(best.mean, S), p) for v, p in zip(w, three, strict=True)
        )

    for _ in range(20):
        A = torch.eye(2).double() + 0.05 * torch.from_numpy(RNG.normal(size=(2, 2)))
        S = best.covariance_matrix
        assert spread(A @ S @ A.mT) >= spread(S) - 1e-12
    with pytest.raises(Unsupported, match="single Gaussians"):
        transport.barycenter([Exponential(torch.tensor(1.0)), normal(0, 1)])
    with pytest.raises(Unsupported, match="not both"):
        transport.barycenter([normal(0, 1), [1.0]])


def test_samples_on_the_line() -> None:
    x, y = np.sort(RNG.normal(size=6)), np.sort(RNG.normal(size=6)) + 3
    found = transport.barycenter([x, y], [3, 1])
    np.testing.assert_allclose(found.points, 0.75 * x + 0.25 * y)
    np.testing.assert_allclose(found.weights, 1 / 6)
    a, b = RNG.random(5), RNG.random(7)
    u, v = RNG.normal(size=5), RNG.normal(size=7)
    for t in (0.0, 0.4, 1.0):
        at = transport.geodesic(u, v, t, p0_weights=a, p1_weights=b)
        assert at.weights.sum() == pytest.approx(1)
        whole = divergences.wasserstein_1d(u, v, 2, a, b)
        near = divergences.wasserstein_1d(u, at.points, 2, a, at.weights)
        far = divergences.wasserstein_1d(at.points, v, 2, at.weights, b)
        assert (near, far) == pytest.approx((t * whole, (1 - t) * whole), abs=1e-9)
    weighted = transport.barycenter([(u, a), (v, b)])
    middle = transport.geodesic(u, v, 0.5, p0_weights=a, p1_weights=b)
    np.testing.assert_allclose(weighted.points, middle.points)
    tensor = transport.barycenter([torch.from_numpy(x), y])
    assert isinstance(tensor.points, torch.Tensor)
    with pytest.raises(ShapeError, match="values on the line"):
        transport.barycenter([RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))])


def test_clouds() -> None:
    X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(9, 2)) + 4
    whole = divergences.wasserstein(X, Y)
    for t in (0.0, 0.25, 1.0):
        at = transport.geodesic(X, Y, t)
        assert at.weights.sum() == pytest.approx(1)
        near = divergences.wasserstein(X, at.points, y_weights=at.weights)
        assert near == pytest.approx(t * whole, abs=1e-7)
    with pytest.raises(ValueError, match="between 0 and 1"):
        transport.geodesic(X, Y, 1.5)
    with pytest.raises(ShapeError, match="two samples"):
        transport.geodesic(X, Y[:, :1], 0.5)


def bump(n: int, at: float, width: float = 0.05) -> np.ndarray:
    x = np.arange(n) / (n - 1)
    p = np.exp(-0.5 * ((x - at) / width) ** 2)
    return p / p.sum()


def test_images() -> None:
    n = 61
    x = np.arange(n) / (n - 1)
    p, q = bump(n, 0.25), bump(n, 0.75)
    middle = transport.geodesic(p, q, 0.5, kind="images", eps=1e-3, tol=1e-7)
    np.testing.assert_allclose(middle, bump(n, 0.5), atol=2e-4)  # one bump of the same width
    quarter = transport.barycenter([p, q], [3, 1], kind="images", eps=1e-3)
    assert quarter @ x == pytest.approx(0.375, abs=1e-3)
    np.testing.assert_allclose(transport.geodesic(p, q, 0, kind="images"), p)
    np.testing.assert_allclose(transport.geodesic(p, q, 1, kind="images"), q)
    blurred = transport.barycenter([p, q], kind="images", eps=1e-2, debias=False)
    sharp = transport.barycenter([p, q], kind="images", eps=1e-2)
    assert blurred.max() < 0.7 * sharp.max()
    pictures = [np.outer(bump(24, a), bump(30, b)) for a, b in ((0.3, 0.3), (0.6, 0.5))]
    pictures[0][pictures[0] < 1e-12] = 0  # empty pixels and rows
    mean = transport.barycenter(pictures, kind="images", eps=5e-3)
    assert mean.shape == (24, 30) and mean.sum() == pytest.approx(1)
    assert np.unravel_index(mean.argmax(), mean.shape) == (10, 12)
    tensor = transport.barycenter([torch.from_numpy(v) for v in pictures], kind="images", eps=5e-3)
    np.testing.assert_allclose(tensor.numpy(), mean)
    with pytest.raises(ValueError, match="non-negative"):
        transport.barycenter([p, -q], kind="images")
    with pytest.raises(ValueError, match="kind must be"):
        transport.barycenter([p, q], kind="movies")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 non-negative numbers"):
        transport.barycenter([p, q], [1, -1], kind="images")
