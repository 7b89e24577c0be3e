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


WORK = ((10, 1), (25, 1), (100, 1), (25, 5))  # steps and runs that faiss may take for our inertia


def faiss_run(data: dict[str, Any], steps: int, runs: int) -> Any:
    """Its own start, rows drawn at random; all rows in every step, the best of some runs."""
    import faiss
    import numpy as np

    X = np.ascontiguousarray(data["X"], dtype=np.float32)
    model = faiss.Kmeans(
        X.shape[1], CLUSTERS, niter=steps, nredo=runs, seed=0, min_points_per_centroid=1,
        max_points_per_centroid=len(X),
    )  # fmt: skip
    model.train(X)
    return model


def faiss_steps(data: dict[str, Any]) -> Any:
    """As many steps as we took: the same work, but from random rows, so at another inertia."""
    if "steps" not in data:
        data["steps"] = ours_alone(data).n_iter_
    return faiss_run(data, data["steps"], 1)


def faiss_equal(data: dict[str, Any]) -> Any:
    """The first of `WORK` by which it is within 1 % of our inertia, found before timing; else the last."""
    if "work" not in data:
        goal = 1.01 * float(ours_alone(data).inertia_)
        found = (work for work in WORK if spread(data, faiss_run(data, *work)) <= goal)
        data["work"] = next(found, WORK[-1])
    return faiss_run(data, *data["work"])


def spread(data: dict[str, Any], model: Any) -> float:
    found = getattr(model, "inertia_", None)
    if found is None:  # faiss's own objective is that before the last move of its centroids
        found = model.index.search(data["X"].astype("float32"), 1)[0].sum(dtype="float64")
    return float(found)


WHOLE = Benchmark(
    name="kmeans-default",
    title="KMeans(64).fit with its own start (k-means++)",
    sizes={
        "2000x20": (2_000, 20),
        "20000x20": (20_000, 20),
        "200000x20": (200_000, 20),
        "1000000x32": (1_000_000, 32),
    },
    data=data,
    ours=ours_alone,
    peers={
        "scikit-learn": Peer(sklearn_alone, "scikit-learn", "sklearn"),
        "faiss": Peer(faiss_equal, "faiss-cpu", "faiss"),
        "faiss, our steps": Peer(faiss_steps, "faiss-cpu", "faiss"),
    },
    score=spread,
    score_name="inertia",
    target=1.5,
    margin=0.05,  # one start each: of scikit-learn and ours either may be better by some percent
)


SEEDS = range(10)


def ten(size: tuple[int, int], seed: int) -> dict[str, Any]:
    return {"X": [data(size, i)["X"] for i in SEEDS]}


def ours_seeds(data: dict[str, Any]) -> list[Any]:
    return [ours_seeded(X, i) for i, X in enumerate(data["X"])]


def ours_seeded(X: Any, seed: int) -> Any:
    from groundstate import KMeans

    return KMeans(CLUSTERS, random_state=seed).fit(X)


def sklearn_seeds(data: dict[str, Any]) -> list[Any]:
    from sklearn.cluster import KMeans

    return [KMeans(CLUSTERS, random_state=i).fit(X) for i, X in enumerate(data["X"])]


def mean_spread(data: dict[str, Any], models: list[Any]) -> float:
    return float(sum(spread(data, model) for model in models) / len(models))


SEEDED = Benchmark(
    name="kmeans-seeds",
    title="KMeans(64).fit with its own start (k-means++), ten tables with seeds 0 to 9",
    sizes={"2000x20": (2_000, 20), "20000x20": (20_000, 20), "200000x20": (200_000, 20)},
    data=ten,
    ours=ours_seeds,
    peers={"scikit-learn": Peer(sklearn_seeds, "scikit-learn", "sklearn")},
    score=mean_spread,
    score_name="mean inertia",
)


def flowers(size: int, seed: int) -> dict[str, Any]:
    from sklearn.datasets import load_iris

    return {"X": load_iris().data, "k": size}


def our_flowers(data: dict[str, Any]) -> Any:
    from groundstate import KMeans

    return KMeans(data["k"], n_init=10, random_state=0).fit(data["X"])


def sklearn_flowers(data: dict[str, Any]) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(data["k"], n_init=10, random_state=0).fit(data["X"])


IRIS = Benchmark(
    name="kmeans-iris",
    title="KMeans(k, n_init=10).fit of 150 flowers",
    sizes={"k=2": 2, "k=3": 3, "k=8": 8},
    data=flowers,
    ours=our_flowers,
    peers={"scikit-learn": Peer(sklearn_flowers, "scikit-learn", "sklearn")},
    score=spread,
    score_name="inertia",
    target=1.0,
)
