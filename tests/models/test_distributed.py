"""Two processes with half of the rows each learn what one process learns from all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from groundstate import GaussianMixture, KMeans, LinearSVC, ProbabilisticPCA
from groundstate.compute import run_local


def table() -> tuple[np.ndarray, np.ndarray]:
    X, _ = make_blobs(300, 3, centers=5, cluster_std=1.2, random_state=0)
    X[200:210] = X[:10]  # the same content in both shards
    return X, np.random.default_rng(0).integers(0, 3, len(X)).astype(float)


def learned(rows: slice) -> dict[str, Any]:
    X, w = (a[rows] for a in table())
    out: dict[str, Any] = {}
    for init in ("k-means++", "random"):
        model = KMeans(5, init=init, n_init=2, random_state=0).fit(X, sample_weight=w)
        out[f"kmeans {init}"] = model.cluster_centers_
        out[f"inertia {init}"] = model.inertia_
    far = np.array([[0.0] * 3, [1e3] * 3, [2e3] * 3, [1.0] * 3, [5.0] * 3])
    out["relocated"] = KMeans(5, init=far).fit(X).cluster_centers_
    for kind in ("full", "tied", "diag"):
        mixture = GaussianMixture(3, covariance_type=kind, tol=1e-8, max_iter=300, random_state=0)
        mixture.fit(X, sample_weight=w)
        out[f"means {kind}"], out[f"covariances {kind}"] = mixture.means_, mixture.covariances_
    for init in ("k-means++", "random", "random_from_data"):
        mixture = GaussianMixture(3, init_params=init, tol=0.0, max_iter=3, random_state=0).fit(X)
        out[f"means from {init}"] = mixture.means_
    sides = np.where(X[:, 0] + X[:, 1] ** 2 > X[:, 2] + 20, 1, np.where(X[:, 1] > 0, 2, 0))
    out["planes"] = LinearSVC(C=0.01).fit(X, sides, sample_weight=w).coef_
    out["axes"] = ProbabilisticPCA(2).fit(X, sample_weight=w).components_
    return {k: torch.as_tensor(np.array(v)) for k, v in out.items()}


def shard(rank: int) -> dict[str, Any]:
    return learned(slice(0, 180) if rank == 0 else slice(180, None))


@pytest.mark.slow
def test_two_shards_equal_one_process() -> None:
    whole = learned(slice(None))
    for part in run_local(shard, 2):
        for name, expected in whole.items():
            torch.testing.assert_close(part[name], expected, rtol=1e-10, atol=1e-10, msg=name)
