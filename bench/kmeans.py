"""KMeans with 64 clusters against scikit-learn, from the same starting centres."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

CLUSTERS = 64


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np
    from sklearn.datasets import make_blobs

    X, _ = make_blobs(*size, centers=CLUSTERS, cluster_std=3.0, random_state=seed)
    rows = np.random.default_rng(seed).choice(len(X), CLUSTERS, replace=False)
    return {"X": X, "init": X[rows].copy()}


def settings(data: dict[str, Any]) -> dict[str, Any]:
    return {"n_clusters": CLUSTERS, "init": data["init"], "n_init": 1, "random_state": 0}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import KMeans

    return KMeans(**settings(data)).fit(data["X"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(**settings(data)).fit(data["X"])


KMEANS = Benchmark(
    name="kmeans",
    title="KMeans(64).fit from given centres",
    sizes={"2000x20": (2_000, 20), "20000x20": (20_000, 20), "200000x20": (200_000, 20)},
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.inertia_),
    score_name="inertia",
    target=1.0,
)


def data32(size: tuple[int, int], seed: int) -> dict[str, Any]:
    return {name: array.astype("float32") for name, array in data(size, seed).items()}


KMEANS32 = Benchmark(
    name="kmeans-float32",
    title="KMeans(64).fit from given centres, single precision",
    sizes={"2000x20": (2_000, 20), "20000x20": (20_000, 20), "200000x20": (200_000, 20)},
    data=data32,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.inertia_),
    score_name="inertia",
    target=1.0,
)


# One start each, drawn in the same way but not the same one: over seeds the inertia of either varies
# by 2.6 %. On 40 fits of 20,000 rows the means differ by 0.1 % with a standard error of 0.6 %.
def ours_alone(data: dict[str, Any]) -> Any:
    from groundstate import KMeans

    return KMeans(CLUSTERS, random_state=0).fit(data["X"])


def sklearn_alone(data: dict[str, Any]) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(CLUSTERS, random_state=0).fit(data["X"])


WHOLE = Benchmark(
    name="kmeans-default",
    title="KMeans(64).fit with its own start (k-means++)",
    sizes={"2000x20": (2_000, 20), "20000x20": (20_000, 20), "200000x20": (200_000, 20)},
    data=data,
    ours=ours_alone,
    peers={"scikit-learn": Peer(sklearn_alone, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.inertia_),
    score_name="inertia",
)
