"""Rows to start from: drawn by squared distance, on the weight line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.cluster import kmeans_plusplus as peer
from sklearn.datasets import make_blobs

from groundstate import KMeans, kmeans_parallel, kmeans_plusplus
from groundstate.learn.solvers.latent.kmeans import start as starts

BOTH = pytest.mark.parametrize("start", [kmeans_plusplus, kmeans_parallel])
X, _ = make_blobs(500, 3, centers=8, random_state=0)


def test_the_second_centre_is_drawn_by_squared_distance() -> None:
    line = np.array([[0.0], [1.0], [9.0], [10.0]])
    second = np.zeros(4)
    for seed in range(4000):
        _, (a, b) = kmeans_plusplus(line, 2, random_state=seed, n_local_trials=1)
        second[b] += a == 0
    expected = np.array([0, 1, 81, 100]) / 182
    share, n = second / second.sum(), second.sum()
    assert n > 800 and share[0] == 0
    assert (np.abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / n)).all()


@BOTH
def test_rows_by_their_numbers_in_every_kind_of_table(start: Any) -> None:
    centers, index = start(X, 6, random_state=0)
    np.testing.assert_array_equal(X[index], centers)
    assert len(set(index.tolist())) == 6
    there, at = start(torch.from_numpy(X), 6, random_state=0)
    assert isinstance(there, torch.Tensor) and at.tolist() == index.tolist()
    single, _ = start(X.astype(np.float32), 6, random_state=0)
    assert single.dtype == np.float32
    rows, some = start(csr_matrix(np.maximum(X, 0)), 6, random_state=0)
    np.testing.assert_array_equal(np.maximum(X, 0)[some], rows)


@BOTH
def test_weights_are_copies_and_order_does_not_matter(start: Any) -> None:
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), weight))
    one, _ = start(X, 7, sample_weight=weight.astype(float), random_state=3)
    two, _ = start(X[index], 7, random_state=3)
    np.testing.assert_array_equal(one, two)


def test_kmeans_starts_from_them() -> None:
    model = KMeans(8, random_state=5)
    centers, _ = kmeans_plusplus(X, 8, random_state=_key(5))
    np.testing.assert_allclose(
        model.fit(X).cluster_centers_, KMeans(8, init=centers).fit(X).cluster_centers_, rtol=1e-12
    )


def _key(seed: int) -> Any:
    from groundstate.compute.random import Key

    return Key.of(seed).fold("start", 0)


def test_as_good_as_the_peer() -> None:
    def cost(centers: Any) -> float:
        return float(np.square(X[:, None] - centers).sum(-1).min(1).sum())

    ours = [cost(kmeans_plusplus(X, 8, random_state=s)[0]) for s in range(30)]
    scalable = [cost(kmeans_parallel(X, 8, random_state=s)[0]) for s in range(30)]
    theirs = [cost(peer(X, 8, random_state=s)[0]) for s in range(30)]
    assert np.median(ours) < 1.15 * np.median(theirs)
    assert np.median(scalable) < 1.15 * np.median(theirs)


@BOTH
def test_refusals(start: Any) -> None:
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        start(X[:3], 4)
    with pytest.raises(ValueError, match="n_local_trials must be at least 1"):
        start(X, 2, n_local_trials=0)
    with pytest.raises(ValueError, match="NaN"):
        start(np.full((3, 1), np.nan), 2)


@pytest.mark.parametrize("seed", range(4))
def test_few_rows_are_drawn_without_compiled_loops_as_with_them(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = None if seed % 2 else np.random.default_rng(seed).integers(0, 4, len(X)).astype(float)
    _, few = kmeans_plusplus(X, 7, sample_weight=weight, random_state=seed)
    monkeypatch.setattr(starts, "SMALL", 0)
    _, tiled = kmeans_plusplus(X, 7, sample_weight=weight, random_state=seed)
    assert few.tolist() == tiled.tolist()
