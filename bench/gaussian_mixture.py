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
