"""GaussianMixture with 16 full covariances against scikit-learn, from the same start."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

COMPONENTS = 16


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np
    from sklearn.datasets import make_blobs

    X, _ = make_blobs(*size, centers=COMPONENTS, cluster_std=2.0, random_state=seed)
    rng = np.random.default_rng(seed)
    X = X @ rng.normal(size=(size[1], size[1])) / size[1] ** 0.5
    rows = rng.choice(len(X), COMPONENTS, replace=False)
    precision = np.linalg.inv(np.cov(X.T))
    return {
        "X": X,
        "means": X[rows].copy(),
        "weights": np.full(COMPONENTS, 1 / COMPONENTS),
        "precisions": np.repeat(precision[None], COMPONENTS, axis=0),
    }


def settings(data: dict[str, Any]) -> dict[str, Any]:
    # The same start and number of iterations: both do the same work, step for step.
    return {
        "n_components": COMPONENTS,
        "covariance_type": "full",
        "weights_init": data["weights"],
        "means_init": data["means"],
        "precisions_init": data["precisions"],
        "max_iter": 20,
        "tol": 0.0,
        "random_state": 0,
    }


def ours(data: dict[str, Any]) -> Any:
    import warnings

    from groundstate import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopping at max_iter is what is measured
        return GaussianMixture(**settings(data)).fit(data["X"])


def sklearn(data: dict[str, Any]) -> Any:
    import warnings

    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GaussianMixture(**settings(data)).fit(data["X"])


MIXTURE = Benchmark(
    name="gaussian-mixture",
    title="GaussianMixture(16, full).fit, 20 iterations of EM from a given start",
    sizes={"2000x20": (2_000, 20), "20000x20": (20_000, 20), "200000x20": (200_000, 20)},
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.score(data["X"])),
    score_name="mean log-likelihood",
    better="high",
    target=4.0,
)


def ours_alone(data: dict[str, Any]) -> Any:
    from groundstate import GaussianMixture

    return GaussianMixture(COMPONENTS, max_iter=200, random_state=0).fit(data["X"])


def sklearn_alone(data: dict[str, Any]) -> Any:
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(COMPONENTS, max_iter=200, random_state=0).fit(data["X"])


WHOLE = Benchmark(
    name="gaussian-mixture-default",
    title="GaussianMixture(16).fit with its own start (k-means) and tolerance",
    sizes={"2000x20": (2_000, 20), "20000x20": (20_000, 20), "200000x20": (200_000, 20)},
    data=data,
    ours=ours_alone,
    peers={"scikit-learn": Peer(sklearn_alone, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.score(data["X"])),
    score_name="mean log-likelihood",
    better="high",
)


SEEDS = range(10)


def table(size: tuple[str, int, int], seed: int) -> dict[str, Any]:
    """A table for each seed: iris, blobs that overlap or lie apart, or the turned blobs of `data`."""
    from sklearn.datasets import load_iris, make_blobs

    kind, n, k = size
    if kind == "iris":
        return {"X": [load_iris().data for _ in SEEDS], "k": k}
    if kind == "turned":
        return {"X": [data((n, 20), i)["X"] for i in SEEDS], "k": k}
    std = {"overlapping": 4.0, "apart": 0.5}[kind]
    return {
        "X": [make_blobs(n, 5, centers=k, cluster_std=std, random_state=i)[0] for i in SEEDS],
        "k": k,
    }


def seeds(module: Any, data: dict[str, Any]) -> list[Any]:
    return [
        module.GaussianMixture(data["k"], max_iter=200, random_state=i).fit(X)
        for i, X in enumerate(data["X"])
    ]


def ours_seeds(data: dict[str, Any]) -> list[Any]:
    import groundstate

    return seeds(groundstate, data)


def sklearn_seeds(data: dict[str, Any]) -> list[Any]:
    from sklearn import mixture

    return seeds(mixture, data)


def mean_score(data: dict[str, Any], models: list[Any]) -> float:
    found = [model.score(X) for model, X in zip(models, data["X"], strict=True)]
    return float(sum(found) / len(found))


# One start varies: which of two fits finds more of the blobs is luck, so ten of each are compared.
SEEDED = Benchmark(
    name="gaussian-mixture-seeds",
    title="GaussianMixture(k).fit with its own start, ten fits with seeds 0 to 9",
    sizes={
        "iris k=3": ("iris", 150, 3),
        "iris k=6": ("iris", 150, 6),
        "2000x20 k=16": ("turned", 2_000, COMPONENTS),
        "20000x20 k=16": ("turned", 20_000, COMPONENTS),
        "200000x20 k=16": ("turned", 200_000, COMPONENTS),
        "overlapping 5000x5 k=8": ("overlapping", 5_000, 8),
        "apart 5000x5 k=8": ("apart", 5_000, 8),
    },
    data=table,
    ours=ours_seeds,
    peers={"scikit-learn": Peer(sklearn_seeds, "scikit-learn", "sklearn")},
    score=mean_score,
    score_name="mean log-likelihood",
    better="high",
)


def kinds_data(size: tuple[int, int, str], seed: int) -> dict[str, Any]:
    return {**data(size[:2], seed), "kind": size[2]}


def kinds(module: Any, data: dict[str, Any]) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # weights and means are given, covariances are those of all rows: 20 steps from the same start
        d = data["X"].shape[1]
        variance = data["X"].var(axis=0)
        start = {
            "tied": data["precisions"][0],
            "diag": (1 / variance)[None].repeat(COMPONENTS, 0),
            "spherical": (d / variance.sum()).repeat(COMPONENTS),
        }[data["kind"]]
        return module.GaussianMixture(
            COMPONENTS, covariance_type=data["kind"], weights_init=data["weights"],
            means_init=data["means"], precisions_init=start, max_iter=20, tol=0.0, random_state=0,
        ).fit(data["X"])  # fmt: skip


def ours_kinds(data: dict[str, Any]) -> Any:
    import groundstate

    return kinds(groundstate, data)


def sklearn_kinds(data: dict[str, Any]) -> Any:
    from sklearn import mixture

    return kinds(mixture, data)


KINDS = Benchmark(
    name="gaussian-mixture-kinds",
    title="GaussianMixture(16).fit, 20 iterations, other covariances, from a given start",
    sizes={f"{kind} 50000x20": (50_000, 20, kind) for kind in ("tied", "diag", "spherical")},
    data=kinds_data,
    ours=ours_kinds,
    peers={"scikit-learn": Peer(sklearn_kinds, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.score(data["X"])),
    score_name="mean log-likelihood",
    better="high",
)


def iris(size: int, seed: int) -> dict[str, Any]:
    from sklearn.datasets import load_iris

    return {"X": load_iris().data, "k": size}


def ours_iris(data: dict[str, Any]) -> Any:
    from groundstate import GaussianMixture

    return GaussianMixture(data["k"], random_state=0).fit(data["X"])


def sklearn_iris(data: dict[str, Any]) -> Any:
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(data["k"], random_state=0).fit(data["X"])


IRIS = Benchmark(
    name="gaussian-mixture-iris",
    title="GaussianMixture(k).fit of iris, the default call",
    sizes={"k=1": 1, "k=3": 3, "k=6": 6},
    data=iris,
    ours=ours_iris,
    peers={"scikit-learn": Peer(sklearn_iris, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.score(data["X"])),
    score_name="mean log-likelihood",
    better="high",
)


def restarts(module: Any, data: dict[str, Any]) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module.GaussianMixture(
            8, n_init=8, init_params="random_from_data", max_iter=20, tol=0.0, reg_covar=1e-2,
            random_state=0,
        ).fit(data["X"])  # fmt: skip


def ours_restarts(data: dict[str, Any]) -> Any:
    import groundstate

    return restarts(groundstate, data)


def ours_in_turn(data: dict[str, Any]) -> Any:
    import warnings

    from groundstate import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            GaussianMixture(
                8, init_params="random_from_data", max_iter=20, tol=0.0, reg_covar=1e-2,
                random_state=seed,
            ).fit(data["X"])
            for seed in range(8)
        ]  # fmt: skip
    return max(found, key=lambda model: model.lower_bound_)


def sklearn_restarts(data: dict[str, Any]) -> Any:
    from sklearn import mixture

    return restarts(mixture, data)


RESTARTS = Benchmark(
    name="gaussian-mixture-restarts",
    title="GaussianMixture(8, n_init=8).fit, 20 iterations each, against eight fits in turn",
    sizes={"500x5": (500, 5), "2000x5": (2_000, 5), "20000x10": (20_000, 10)},
    data=data,
    ours=ours_restarts,
    peers={
        "one after the other": Peer(ours_in_turn, "groundstate"),
        "scikit-learn": Peer(sklearn_restarts, "scikit-learn", "sklearn"),
    },
    score=lambda data, model: float(model.score(data["X"])),
    score_name="mean log-likelihood",
    better="high",
)


def bayes(module: Any, data: dict[str, Any]) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module.BayesianGaussianMixture(
            n_components=COMPONENTS, max_iter=20, tol=0.0, random_state=0
        ).fit(data["X"])


def ours_bayes(data: dict[str, Any]) -> Any:
    import groundstate

    return bayes(groundstate, data)


def sklearn_bayes(data: dict[str, Any]) -> Any:
    from sklearn import mixture

    return bayes(mixture, data)


BAYES = Benchmark(
    name="bayesian-gaussian-mixture",
    title="BayesianGaussianMixture(16).fit with its own start, 20 iterations",
    sizes={"500x20": (500, 20), "2000x20": (2_000, 20), "20000x20": (20_000, 20)},
    data=data,
    ours=ours_bayes,
    peers={"scikit-learn": Peer(sklearn_bayes, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.score(data["X"])),
    score_name="mean log-likelihood",
    better="high",
)
