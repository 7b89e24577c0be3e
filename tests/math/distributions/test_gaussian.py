"""The algebra of Gaussians: worked numbers, identities, kinds and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch.distributions import MultivariateNormal

from groundstate.math.distributions import gaussian

F64 = torch.float64
A0 = [[3.0, 1.0], [1.0, 2.0]]
rng = np.random.default_rng(0)


def spd(*shape: int, d: int = 3) -> np.ndarray:
    X = rng.standard_normal((*shape, d, d))
    return X @ np.swapaxes(X, -1, -2) + np.eye(d)


def test_worked_numbers() -> None:
    mean, cov = gaussian.condition(([0.0, 0.0], A0), [0], [1.0])
    assert mean[0] == pytest.approx(1 / 3) and cov[0, 0] == pytest.approx(5 / 3)
    joint = gaussian.linear_joint([[1.0], [2.0]], [0.5, -1.0], prior=2.0)
    m, S = joint.marginal
    np.testing.assert_allclose(S, np.eye(2) + 4 * np.outer([1, 2], [1, 2]))
    assert multivariate_normal(m, S).logpdf([2.0, 1.0]) == pytest.approx(-3.604186, abs=1e-6)
    both = gaussian.product((0.0, 1.0), (1.0, 1.0))
    assert (both.mean[0], both.covariance[0, 0]) == pytest.approx((0.5, 0.5))
    entropy = 0.5 * np.log(2 * np.pi * np.e * both.covariance[0, 0])
    assert entropy == pytest.approx(1.072365, abs=1e-6)


def test_regression_to_the_mean() -> None:
    sx, sy, rho, mx, my = 2.0, 3.0, 0.6, 1.0, -1.0
    S = [[sx**2, rho * sx * sy], [rho * sx * sy, sy**2]]
    mean, cov = gaussian.condition(([mx, my], S), [0], [4.0])
    assert mean[0] == pytest.approx(my + rho * sy / sx * (4.0 - mx))
    assert cov[0, 0] == pytest.approx(sy**2 * (1 - rho**2))
    for seen in (0, 1):  # standardised, both ways the slope is rho
        one = gaussian.condition(([0.0, 0.0], [[1, rho], [rho, 1]]), [seen], [1.0])
        assert one.mean[0] == pytest.approx(rho)


def test_against_precisions_and_simulation() -> None:
    m, S, P = rng.standard_normal(3), spd(), None
    P = np.linalg.inv(S)
    mean, cov = gaussian.condition((m, S), [1], [0.7])
    keep = [0, 2]
    np.testing.assert_allclose(cov, np.linalg.inv(P[np.ix_(keep, keep)]))
    pull = np.linalg.solve(P[np.ix_(keep, keep)], P[keep, 1]) * (0.7 - m[1])
    np.testing.assert_allclose(mean, m[keep] - pull)
    S2 = spd()
    both = gaussian.product((m, S), (m + 1, S2))
    np.testing.assert_allclose(np.linalg.inv(both.covariance), P + np.linalg.inv(S2))
    A = rng.standard_normal((3, 3))
    x = rng.multivariate_normal(m, S, 400_000)
    quadratic = np.einsum("ni,ij,nj->n", x, A, x)
    error = quadratic.std() / np.sqrt(len(x))
    assert abs(gaussian.expected_quadratic((m, S), A) - quadratic.mean()) < 4 * error
    # conditioning with noise is conditioning on a noisy copy
    noisy = np.block([[S, S], [S, S + 0.3 * np.eye(3)]])
    copy = gaussian.condition((np.tile(m, 2), noisy), [3, 4, 5], [1.0, 2.0, 3.0])
    same = gaussian.linear_joint(np.eye(3), 0.0, (m, S), 0.3).posterior([1.0, 2.0, 3.0])
    np.testing.assert_allclose(copy.mean, same.mean)
    np.testing.assert_allclose(copy.covariance, same.covariance, atol=1e-12)
    given = gaussian.condition((m, S), [0], [1.0], noise=0.3)
    short = np.block([[S, S[:, :1]], [S[:1], S[:1, :1] + 0.3]])
    wide = gaussian.condition((np.append(m, m[0]), short), [3], [1.0])
    np.testing.assert_allclose(given.mean, wide.mean[1:])


def test_sums_images_and_marginals() -> None:
    m, S = rng.standard_normal(3), spd()
    for sign in (1, -1):
        found = gaussian.add((m, S), (2 * m, 3 * S), sign)
        np.testing.assert_allclose(found.covariance, 4 * S)
        np.testing.assert_allclose(found.mean, m + sign * 2 * m)
    A, b = rng.standard_normal((2, 3)), rng.standard_normal(2)
    image = gaussian.affine((m, S), A, b)
    np.testing.assert_allclose(image.covariance, A @ S @ A.T)
    part = gaussian.marginal((m, S), [2, 0])
    np.testing.assert_allclose(part.covariance, S[np.ix_([2, 0], [2, 0])])


def test_batch_equals_loop_and_kinds() -> None:
    m, S = rng.standard_normal((5, 3)), spd(5)
    v = rng.standard_normal((5, 1))
    whole = gaussian.condition((m, S), [1], v)
    for i in range(5):
        one = gaussian.condition((m[i], S[i]), [1], v[i])
        np.testing.assert_allclose(whole.mean[i], one.mean, atol=1e-12)
        np.testing.assert_allclose(whole.covariance[i], one.covariance, atol=1e-12)
    many = gaussian.condition((m[0], S[0]), [1], v)
    assert many.mean.shape == (5, 2) and many.covariance.shape == (5, 2, 2)
    p = MultivariateNormal(torch.tensor(m), torch.tensor(S))
    found = gaussian.condition(p, [1], torch.tensor(v))
    assert isinstance(found, MultivariateNormal)
    np.testing.assert_allclose(found.mean.numpy(), whole.mean, atol=1e-12)
    W = torch.randn(3, 2, dtype=F64, requires_grad=True)

    def score(W: torch.Tensor) -> torch.Tensor:
        post = gaussian.linear_joint(W, 0.0, None, 0.5).posterior(torch.ones(3, dtype=F64))
        return torch.cat([post.mean, post.covariance.flatten()])

    assert torch.autograd.gradcheck(score, W)


def test_partly_known_rows_are_conditioned_rows() -> None:
    m, S = rng.standard_normal(3), spd()
    value = torch.tensor(rng.standard_normal((1, 3)))
    mask = torch.tensor([[True, False, True]])
    precision = torch.tensor(np.linalg.inv(S))
    known = gaussian.PartlyKnownNormal(torch.tensor(m), precision, value, mask)
    mean, cov = gaussian.condition((m, S), [1], value[0, 1:2].numpy())
    np.testing.assert_allclose(known.mean[0, [0, 2]].numpy(), mean)
    np.testing.assert_allclose(known.variance[0, [0, 2]].numpy(), np.diagonal(cov))


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        gaussian.condition(([0.0, 0.0, 0.0], np.ones((3, 3))), [0, 1], [1.0, 2.0])
    with pytest.raises(ValueError, match="pair"):
        gaussian.marginal([0.0], [0])
    with pytest.raises(ValueError, match="shapes"):
        gaussian.marginal(([0.0, 1.0], np.eye(3)), [0])
    with pytest.raises(ValueError, match="different numbers below 2"):
        gaussian.marginal(([0.0, 0.0], A0), [0, 0])
    with pytest.raises(ValueError, match="2 numbers for 1"):
        gaussian.condition(([0.0, 0.0], A0), [0], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        gaussian.marginal(([0.0, np.nan], A0), [0])
