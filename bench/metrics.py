"""Learned metrics, distances of sets and kernel matrices against scikit-learn and scipy."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def labelled(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, d = size
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = 0.5 * rng.normal(size=(n, d))
    X[:, :2] += rng.normal(size=(3, 2))[y]
    return {"X": X, "y": y}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import NeighborhoodComponentsAnalysis

    return NeighborhoodComponentsAnalysis(2, init="pca", tol=0, max_iter=20).fit(
        data["X"], data["y"]
    )


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    return NeighborhoodComponentsAnalysis(2, init="pca", tol=0, max_iter=20).fit(
        data["X"], data["y"]
    )


def objective(data: dict[str, Any], model: Any) -> float:
    """Expected number of right neighbours per row, the same function for both."""
    import numpy as np

    Z = data["X"] @ np.asarray(model.components_).T
    d2 = ((Z[:, None] - Z) ** 2).sum(-1) if len(Z) <= 1500 else _squared(Z)
    np.fill_diagonal(d2, np.inf)
    p = np.exp(-(d2 - d2.min(1, keepdims=True)))
    p /= p.sum(1, keepdims=True)
    return float((p * (data["y"][:, None] == data["y"])).sum() / len(Z))


def _squared(Z: Any) -> Any:
    from scipy.spatial.distance import cdist

    return cdist(Z, Z, "sqeuclidean")


NCA = Benchmark(
    name="nca",
    title="NeighborhoodComponentsAnalysis(2).fit, 20 steps",
    sizes={"150x4": (150, 4), "500x10": (500, 10), "2000x20": (2_000, 20)},
    data=labelled,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=objective,
    score_name="share of right neighbours",
    target=3.0,
)


def sets(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, d = size
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 6, n)[:, None] * np.arange(1, d + 1)
    X = np.cos(t)
    return {"X": X, "Y": (X + 0.02 * rng.normal(size=X.shape))[rng.permutation(n)]}


def our_distance(data: dict[str, Any]) -> Any:
    from groundstate.math.distances import hausdorff

    return hausdorff(data["X"], data["Y"]).distance


def scipy_distance(data: dict[str, Any]) -> Any:
    from scipy.spatial.distance import directed_hausdorff

    there = directed_hausdorff(data["X"], data["Y"])[0]
    return max(there, directed_hausdorff(data["Y"], data["X"])[0])


HAUSDORFF = Benchmark(
    name="hausdorff",
    title="Hausdorff distance of two noisy curves",
    sizes={"50x2": (50, 2), "4000x2": (4_000, 2), "20000x3": (20_000, 3)},
    data=sets,
    ours=our_distance,
    peers={"scipy": Peer(scipy_distance, "scipy", "scipy")},
    score=lambda data, found: float(found),
    score_name="distance",
    target=1.0,
)


def rows(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    return {"X": np.random.default_rng(seed).normal(size=size)}


def our_kernel(data: dict[str, Any]) -> Any:
    from groundstate.math.kernels import RBF

    return RBF(1.5)(data["X"])


def sklearn_kernel(data: dict[str, Any]) -> Any:
    from sklearn.metrics.pairwise import rbf_kernel

    return rbf_kernel(data["X"], gamma=1 / (2 * 1.5**2))


KERNEL = Benchmark(
    name="rbf-kernel",
    title="RBF(1.5)(X), the whole matrix",
    sizes={"100x5": (100, 5), "1000x10": (1_000, 10), "3000x30": (3_000, 30)},
    data=rows,
    ours=our_kernel,
    peers={"scikit-learn": Peer(sklearn_kernel, "scikit-learn", "sklearn")},
    score=lambda data, K: float(K.sum()),
    score_name="sum",
    target=1.0,
)


def our_solution(data: dict[str, Any]) -> Any:
    import numpy as np

    from groundstate.math.kernels import RBF, Gram, White

    return Gram(RBF(1.5) + White(0.1), data["X"]).solve(np.sin(data["X"][:, 0]), tol=1e-6)


def dense_solution(data: dict[str, Any]) -> Any:
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve
    from sklearn.metrics.pairwise import rbf_kernel

    K = rbf_kernel(data["X"], gamma=1 / (2 * 1.5**2)) + 0.1 * np.eye(len(data["X"]))
    return cho_solve(cho_factor(K, overwrite_a=True), np.sin(data["X"][:, 0]))


GRAM = Benchmark(
    name="gram-solve",
    title="(K + 0.1)⁻¹b by conjugate gradients, against a Cholesky factor",
    sizes={"300x2": (300, 2), "1000x2": (1_000, 2), "3000x2": (3_000, 2)},
    data=rows,
    ours=our_solution,
    peers={"scipy": Peer(dense_solution, "scipy", "scipy")},
    score=lambda data, a: float(abs(a).sum()),
    score_name="sum of |K⁻¹b|",
    target=1.0,
)
