"""Principal components and factors against scikit-learn, by the plain call."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def table(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, d = size
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(min(5, d - 1), d))
    noise = np.exp(0.5 * rng.normal(size=d))
    X = rng.normal(size=(n, len(W))) @ W
    X += rng.normal(size=(n, d)) * noise
    return {"X": X, "k": min(10, d // 2)}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import PCA

    return PCA(data["k"], random_state=0).fit(data["X"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.decomposition import PCA

    return PCA(data["k"], random_state=0).fit(data["X"])


def explained(data: dict[str, Any], model: Any) -> float:
    return float(model.explained_variance_.sum())


PRINCIPAL = Benchmark(
    name="pca",
    title="PCA(10).fit",
    sizes={"150x4": (150, 4), "20000x50": (20_000, 50), "1000000x100": (1_000_000, 100)},
    data=table,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=explained,
    score_name="explained variance",
    target=1.5,
)


def sparse(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np
    from scipy.sparse import random_array

    X = random_array(size, density=0.01, rng=np.random.default_rng(seed), format="csr")
    return {"X": X, "k": 10}


SPARSE = Benchmark(
    name="pca-sparse",
    title="PCA(10).fit of a sparse table, one entry in a hundred",
    sizes={"500x5000": (500, 5_000), "1000x10000": (1_000, 10_000), "2000x20000": (2_000, 20_000)},
    data=sparse,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=explained,
    score_name="explained variance",
    target=1.5,
)


def wine(size: tuple[int, int], seed: int) -> dict[str, Any]:
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import scale

    if size == (178, 13):
        return {"X": scale(load_wine().data), "k": 3}
    return {**table(size, seed), "k": 5}


def our_factors(data: dict[str, Any]) -> Any:
    from groundstate import FactorAnalysis

    return FactorAnalysis(data["k"]).fit(data["X"])


def sklearn_factors(data: dict[str, Any]) -> Any:
    """To the likelihood that ours ends at; the default tolerance stops short of it."""
    from sklearn.decomposition import FactorAnalysis

    return FactorAnalysis(data["k"], tol=1e-6, max_iter=10_000).fit(data["X"])


def sklearn_default(data: dict[str, Any]) -> Any:
    from sklearn.decomposition import FactorAnalysis

    return FactorAnalysis(data["k"]).fit(data["X"])


FACTORS = Benchmark(
    name="factor-analysis",
    title="FactorAnalysis.fit; scikit-learn to the same likelihood, and with its defaults",
    sizes={"178x13": (178, 13), "2000x20": (2_000, 20), "5000x40": (5_000, 40)},
    data=wine,
    ours=our_factors,
    peers={
        "scikit-learn": Peer(sklearn_factors, "scikit-learn", "sklearn"),
        "scikit-learn, defaults": Peer(sklearn_default, "scikit-learn", "sklearn"),
    },
    score=lambda data, model: float(model.score(data["X"])),
    score_name="log density of a row",
    target=10.0,
)


def our_kernel(data: dict[str, Any]) -> Any:
    from groundstate import KernelPCA

    return KernelPCA(5, kernel="rbf", gamma=0.02, random_state=0).fit(data["X"])


def sklearn_kernel(data: dict[str, Any]) -> Any:
    from sklearn.decomposition import KernelPCA

    return KernelPCA(5, kernel="rbf", gamma=0.02, random_state=0).fit(data["X"])


KERNEL = Benchmark(
    name="kernel-pca",
    title="KernelPCA(5, kernel='rbf').fit",
    sizes={"200x10": (200, 10), "600x10": (600, 10), "2000x10": (2_000, 10)},
    data=table,
    ours=our_kernel,
    peers={"scikit-learn": Peer(sklearn_kernel, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.eigenvalues_.sum()),
    score_name="sum of eigenvalues",
    target=1.0,
)


def sources(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, d = size
    rng = np.random.default_rng(seed)
    S = np.sign(rng.normal(size=(n, d))) * rng.exponential(size=(n, d))
    return {"X": S @ rng.normal(size=(d, d)), "w": rng.normal(size=(d, d))}


def our_sources(data: dict[str, Any]) -> Any:
    from groundstate import FastICA

    return FastICA(w_init=data["w"]).fit(data["X"])


def sklearn_sources(data: dict[str, Any]) -> Any:
    from sklearn.decomposition import FastICA

    return FastICA(w_init=data["w"]).fit(data["X"])


def contrast(data: dict[str, Any], model: Any) -> float:
    import numpy as np

    S = model.transform(data["X"])
    return float(np.log(np.cosh(S / S.std(0))).mean())


SOURCES = Benchmark(
    name="ica",
    title="FastICA.fit from a given start",
    sizes={"1000x4": (1_000, 4), "10000x8": (10_000, 8), "100000x10": (100_000, 10)},
    data=sources,
    ours=our_sources,
    peers={"scikit-learn": Peer(sklearn_sources, "scikit-learn", "sklearn")},
    score=contrast,
    score_name="log cosh of a source",
    target=1.0,
)


def parts(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    if size == (1797, 64):
        X = load_digits().data
    else:
        X = rng.gamma(0.5, size=(size[0], 20)) @ rng.gamma(0.5, size=(20, size[1]))
        X += 0.1 * rng.random(size)
    scale = float(np.sqrt(X.mean() / 10))
    return {"X": X, "W": scale * rng.random((len(X), 10)), "H": scale * rng.random((10, size[1]))}


def our_parts(data: dict[str, Any]) -> Any:
    from groundstate import NMF

    return NMF(10, init="custom", tol=0, max_iter=100).fit(data["X"], W=data["W"], H=data["H"])


def sklearn_parts(data: dict[str, Any]) -> Any:
    from sklearn.decomposition import NMF

    start = {"W": data["W"].copy(), "H": data["H"].copy()}
    return NMF(10, init="custom", tol=0, max_iter=100).fit(data["X"], **start)


PARTS = Benchmark(
    name="nmf",
    title="NMF(10).fit, 100 sweeps from a given start",
    sizes={"1797x64": (1_797, 64), "5000x200": (5_000, 200), "20000x500": (20_000, 500)},
    data=parts,
    ours=our_parts,
    peers={"scikit-learn": Peer(sklearn_parts, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.reconstruction_err_),
    score_name="Frobenius norm of what is left",
    target=1.0,
)
