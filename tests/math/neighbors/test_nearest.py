"""Nearest rows by products: the same as direct distances, ties to the lower index."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.math.neighbors.nearest import NearestRows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [100, 2_000, 5_003])
def test_products_find_what_differences_find(rows: int, dtype: type, k: int = 7) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (rows, 4)).astype(dtype)  # many rows at equal distance
    Q = rng.integers(0, 4, (300, 4)).astype(dtype)
    X[::2] += rng.normal(size=X[::2].shape).astype(dtype)
    Q[::2] += rng.normal(size=Q[::2].shape).astype(dtype)
    distance, index = NearestRows(X, "brute").query(Q, k)
    square = np.square(Q[:, None].astype(float) - X[None].astype(float)).sum(-1)
    want = np.argsort(square, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(index, want)
    np.testing.assert_allclose(distance, np.sqrt(np.take_along_axis(square, want, 1)), rtol=1e-12)
