"""Maps against scikit-learn, openTSNE and umap-learn."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer
from groundstate.bench.machine import threads


def roll(size: int, seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_swiss_roll

    return {"X": make_swiss_roll(size, random_state=seed)[0]}


def clouds(size: tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import make_blobs

    n, d = size
    return {"X": make_blobs(n, d, centers=10, cluster_std=4.0, random_state=seed)[0]}


def isomap(data: dict[str, Any]) -> Any:
    from groundstate import Isomap

    return Isomap(n_neighbors=10).fit(data["X"]).embedding_


def sklearn_isomap(data: dict[str, Any]) -> Any:
    from sklearn.manifold import Isomap

    return Isomap(n_neighbors=10).fit(data["X"]).embedding_


def residual(data: dict[str, Any], Y: Any) -> float:
    """Residual variance of the distances, of 500 rows."""
    from groundstate.math.manifold import residual_variance

    return float(residual_variance(data["X"][:500], Y[:500]))


def mds(data: dict[str, Any]) -> Any:
    from groundstate import MDS

    return MDS(init="classical_mds").fit(data["X"]).stress_


def sklearn_mds(data: dict[str, Any]) -> Any:
    from sklearn.manifold import MDS

    return MDS(init="classical_mds", n_init=1).fit(data["X"]).stress_


def tsne(data: dict[str, Any]) -> Any:
    from groundstate import TSNE

    return TSNE(random_state=0).fit(data["X"]).embedding_


def sklearn_tsne(data: dict[str, Any]) -> Any:
    from sklearn.manifold import TSNE

    return TSNE(random_state=0, n_jobs=threads()).fit(data["X"]).embedding_


def open_tsne(data: dict[str, Any]) -> Any:
    import numpy as np
    from openTSNE import TSNE

    return np.asarray(TSNE(random_state=0, n_jobs=threads(), n_iter=750).fit(data["X"]))


def umap(data: dict[str, Any]) -> Any:
    from groundstate import UMAP

    return UMAP(random_state=0).fit(data["X"]).embedding_


def umap_learn(data: dict[str, Any]) -> Any:
    from umap import UMAP

    return UMAP(random_state=0, n_jobs=1).fit(data["X"]).embedding_


def digits(size: int, seed: int) -> dict[str, Any]:
    import numpy as np
    from sklearn.datasets import load_digits

    rows = np.random.default_rng(seed).permutation(1797)[:size]
    return {"X": load_digits().data[rows]}


def kept(data: dict[str, Any], Y: Any) -> float:
    from groundstate.math.manifold import trustworthiness

    return float(trustworthiness(data["X"][:2000], Y[:2000], 10))


def kl(data: dict[str, Any], Y: Any, perplexity: float = 30.0) -> float:
    r"""KL(P‖Q) of a map, by one formula for all: P of the 3 · perplexity nearest rows, exact Q.

    :math:`\sum_{ij}p_{ij}(\log p_{ij} + \log(1+d_{ij}^2)) + \log\sum_{i\ne j}(1+d_{ij}^2)^{-1}`,
    with d the distances in the map.
    """
    import numpy as np
    import scipy.sparse
    from sklearn.neighbors import NearestNeighbors

    n, k = len(Y), int(3 * perplexity)
    near, at = NearestNeighbors(n_neighbors=k).fit(data["X"]).kneighbors()
    square = near**2 - near[:, :1] ** 2
    lo, hi = np.zeros(n), np.full(n, np.inf)
    beta = 1 / square.mean(1)
    for _ in range(60):  # bisection of the precision that has this entropy
        p = np.exp(-beta[:, None] * square)
        p /= p.sum(1, keepdims=True)
        flat = -(p * np.log(np.maximum(p, 1e-300))).sum(1) > np.log(perplexity)
        lo, hi = np.where(flat, beta, lo), np.where(flat, hi, beta)
        beta = np.where(np.isinf(hi), 2 * beta, (lo + hi) / 2)
    P = scipy.sparse.csr_array((p.ravel(), at.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    P = ((P + P.T) / (2 * n)).tocoo()
    Y = np.asarray(Y, dtype=np.float64)
    total, norm = -float(n), (Y**2).sum(1)
    for part in range(0, n, 500):
        away = norm[part : part + 500, None] - 2 * Y[part : part + 500] @ Y.T + norm
        total += float((1 / (1 + np.maximum(away, 0.0))).sum())
    i, j = P.coords
    away = ((Y[i] - Y[j]) ** 2).sum(1)
    return float(
        (P.data * (np.log(np.maximum(P.data, 1e-300)) + np.log1p(away))).sum() + np.log(total)
    )


ISOMAP = Benchmark(
    name="isomap",
    title="Isomap(n_neighbors=10).fit of a rolled sheet",
    sizes={"500x3": 500, "2000x3": 2_000, "5000x3": 5_000},
    data=roll,
    ours=isomap,
    peers={"scikit-learn": Peer(sklearn_isomap, "scikit-learn", "sklearn")},
    score=residual,
    score_name="residual variance",
    target=3.0,
)

MDS_ = Benchmark(
    name="mds",
    title="MDS().fit by stress majorisation from the classical start",
    sizes={"200x10": (200, 10), "700x10": (700, 10), "2000x10": (2_000, 10)},
    data=clouds,
    ours=mds,
    peers={"scikit-learn": Peer(sklearn_mds, "scikit-learn", "sklearn")},
    score=lambda data, stress: float(stress),
    score_name="stress",
    target=3.0,
)

TSNE_ = Benchmark(
    name="tsne",
    title="TSNE().fit, 1,000 steps",
    sizes={"1000x50": (1_000, 50), "3000x50": (3_000, 50), "10000x50": (10_000, 50)},
    data=clouds,
    ours=tsne,
    peers={
        "scikit-learn": Peer(sklearn_tsne, "scikit-learn", "sklearn"),
        "openTSNE": Peer(open_tsne, "openTSNE"),
    },
    score=kept,
    score_name="trustworthiness",
    better="high",
    target=1.0,
)

TSNE_KL = Benchmark(
    name="tsne-kl",
    title="TSNE().fit, 1,000 steps, by the divergence of the final map",
    sizes={
        "1000x50": (1_000, 50),
        "3000x50": (3_000, 50),
        "10000x50": (10_000, 50),
        "70000x50": (70_000, 50),
    },
    data=clouds,
    ours=tsne,
    peers={
        "openTSNE": Peer(open_tsne, "openTSNE"),
        "scikit-learn": Peer(sklearn_tsne, "scikit-learn", "sklearn"),
    },
    score=kl,
    score_name="KL of P and Q",
    target=1.0,
)

UMAP_ = Benchmark(
    name="umap",
    title="UMAP().fit of handwritten digits, 500 epochs",
    sizes={"500x64": 500, "1000x64": 1_000, "1797x64": 1_797},
    data=digits,
    ours=umap,
    peers={"umap-learn": Peer(umap_learn, "umap-learn", "umap")},
    score=kept,
    score_name="trustworthiness",
    better="high",
    target=1.0,
)
