"""What a scale and a width mean, everywhere in mathematics (MAT-conv-normal, MAT-conv-gamma)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF as Theirs
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from torch.distributions import Normal

from groundstate import divergences, kernels

X = np.random.default_rng(0).normal(size=(20, 3))


def test_the_scale_of_a_normal_is_its_standard_deviation() -> None:
    first, second = Normal(0.0, 1.0), Normal(1.0, 2.0)  # N(0, 1) and N(1, 4) of the notes
    assert float(divergences.kl(first, second)) == pytest.approx(0.443147, abs=5e-7)
    assert float(divergences.kl(second, first)) == pytest.approx(1.306853, abs=5e-7)
    assert float(second.variance) == 4.0


@pytest.mark.parametrize("l", [0.3, 1.0, 2.5])
def test_objects_take_a_length_scale_and_functions_gamma(l: float) -> None:
    K = kernels.RBF(l)(X)
    np.testing.assert_allclose(K, rbf_kernel(X, gamma=1 / (2 * l**2)), atol=1e-15, rtol=1e-12)
    np.testing.assert_allclose(K, Theirs(l)(X), atol=1e-15, rtol=1e-12)
    s2 = 2 * l**2  # the other form of the notes, exp(-d²/s2)
    np.testing.assert_allclose(K, rbf_kernel(X, gamma=1 / s2), atol=1e-15, rtol=1e-12)
    line = X[:, :1]  # where all norms are one
    np.testing.assert_allclose(
        kernels.Laplacian(l)(line), laplacian_kernel(line, gamma=1 / l), atol=1e-12
    )
