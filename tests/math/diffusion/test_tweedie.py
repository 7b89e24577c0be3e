"""Tweedie's formula and scores of smoothed mixtures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate.errors import ShapeError
from groundstate.math.diffusion import smoothed_score, tweedie


def test_stated_numbers() -> None:
    mean, var = np.sqrt(0.5) * 1.0, 0.5 * 4.0  # x0 ~ N(1, 4), ᾱ = ½
    score = smoothed_score([[2.0]], [1.0], [[mean]], [var], np.sqrt(0.5))
    np.testing.assert_allclose(score, -0.5171573, atol=1e-7)
    np.testing.assert_allclose(tweedie([[2.0]], score, 0.5, 0.5), 2.4627417, atol=1e-7)
    score = smoothed_score([[2.0]], [1.0], [[0.0]], [1.0], 1.0)
    assert score == -1 and tweedie([[2.0]], score, 1.0) == 1


def test_it_is_the_posterior_mean_of_a_mixture() -> None:
    weights, means = np.array([0.3, 0.7]), np.array([[-2.0], [1.0]])
    variances, sigma = np.array([0.5, 1.5]), 0.8
    x = np.linspace(-4, 4, 9)[:, None]
    v = variances + sigma**2
    joint = weights * np.exp(-0.5 * (x - means.T) ** 2 / v) / np.sqrt(v)
    share = joint / joint.sum(1, keepdims=True)
    each = (means.T * sigma**2 + x * variances) / v
    found = tweedie(x, smoothed_score(x, weights, means, variances, sigma), sigma**2)
    np.testing.assert_allclose(found[:, 0], (share * each).sum(1), atol=1e-12)


def test_matrix_rows_and_gradients() -> None:
    x = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]])
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    score = np.linalg.solve(np.eye(2) + cov, -x.T).T
    np.testing.assert_allclose(tweedie(x, score, cov), x + score @ cov)
    np.testing.assert_allclose(tweedie(x, score, [1.0, 2.0, 3.0]), x + score * [[1], [2], [3]])
    t = torch.tensor(x, requires_grad=True)
    args = [torch.tensor(v) for v in ([0.5, 0.5], [[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])]
    assert torch.autograd.gradcheck(lambda a: smoothed_score(a, *args, 0.5), (t,))
    with pytest.raises(ShapeError, match="shape of its rows"):
        tweedie(x, score[:2], 1.0)
    with pytest.raises(ValueError, match="share in"):
        tweedie(x, score, 1.0, 0.0)
