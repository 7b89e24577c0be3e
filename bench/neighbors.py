"""The ten nearest rows against scikit-learn's brute force and faiss's flat index."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

K = 10


def data(size: tuple[int, int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, d, queries = size
    rng = np.random.default_rng(seed)
    return {"X": rng.normal(size=(n, d)), "Q": rng.normal(size=(queries, d))}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import KNeighborsRegressor

    model = KNeighborsRegressor(K).fit(data["X"], data["X"][:, 0])
    return model.kneighbors(data["Q"])[1]


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    model = KNeighborsRegressor(K, n_jobs=-1).fit(data["X"], data["X"][:, 0])
    return model.kneighbors(data["Q"])[1]


def faiss(data: dict[str, Any]) -> Any:
    import faiss
    import numpy as np

    index = faiss.IndexFlatL2(data["X"].shape[1])
    index.add(data["X"].astype(np.float32))
    return index.search(data["Q"].astype(np.float32), K)[1]


def recall(data: dict[str, Any], found: Any) -> float:
    """Share of the true neighbours among those found, for the first hundred queries."""
    import numpy as np

    hits = 0
    for q, row in zip(data["Q"][:100], found[:100], strict=True):
        true = np.argsort(((data["X"] - q) ** 2).sum(1), kind="stable")[:K]
        hits += len(np.intersect1d(true, row))
    return hits / (100 * K)


NEIGHBORS = Benchmark(
    name="neighbors",
    title="10 nearest rows of each query",
    sizes={
        "2000x10": (2_000, 10, 1_000),
        "20000x50": (20_000, 50, 2_000),
        "100000x50": (100_000, 50, 10_000),
    },
    data=data,
    ours=ours,
    peers={
        "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
        "faiss": Peer(faiss, "faiss-cpu", "faiss"),
    },
    score=recall,
    score_name="recall",
    better="high",
    target=1.0,
)
