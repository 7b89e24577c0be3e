"""Sums over rows by compiled kernels: no bit depends on the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from groundstate import GaussianMixture, KMeans
from groundstate.compute import threads
from groundstate.compute.tiles import GEMM_LIMIT, over_slices, tile_rows
from groundstate.learn.solvers.latent.mixtures.pass_numba import exp_in_place


def test_slices_come_in_order_and_cover_the_rows() -> None:
    for n in (1, 3):
        with threads(n):
            found = list(over_slices(lambda lo, hi: (lo, hi), 10, size=3))
        assert found == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert list(over_slices(lambda lo, hi: (lo, hi), 0)) == []


def test_an_error_in_a_kernel_is_raised() -> None:
    def kernel(lo: int, hi: int) -> None:
        raise ValueError(f"row {lo}")

    with threads(2), pytest.raises(ValueError, match="row 0"):
        list(over_slices(kernel, 10, size=5))


def test_tiles_keep_products_small() -> None:
    assert tile_rows(100) == 256
    assert tile_rows(20_000) * 20_000 <= GEMM_LIMIT
    assert tile_rows(10**7) == 16


def test_threads_change_no_bit() -> None:
    X, _ = make_blobs(30_000, 5, centers=6, random_state=0)
    found = []
    for n in (1, 2):
        with threads(n):
            kmeans = KMeans(6, init=X[:6]).fit(X)
            mixture = GaussianMixture(3, means_init=X[:3], max_iter=3, tol=0.0, random_state=0)
            found.append((kmeans.cluster_centers_, kmeans.inertia_, mixture.fit(X).covariances_))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_exponential_is_right_to_the_last_bits() -> None:
    x = np.concatenate([[0.0, -1e-300, -700.0, -1e9], -np.geomspace(1e-12, 700, 5000)])
    out, buffer = x.copy(), np.empty_like(x)
    exp_in_place(out, buffer.view(np.int64), buffer)
    np.testing.assert_allclose(out[x > -708], np.exp(x[x > -708]), rtol=5e-16)
    assert 0 <= out[3] < 1e-300
