"""Fits of restricted Boltzmann machines against scikit-learn's, at the same settings."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

SETTINGS = {"learning_rate": 0.05, "random_state": 0}


def data(size: tuple[int, int, int, int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    rows, visible, hidden, batch, passes = size
    rng = np.random.default_rng(seed)
    # rows of a few prototypes with a tenth of their bits flipped
    kinds = rng.random((10, visible)) < 0.3
    X = kinds[rng.integers(10, size=rows)] ^ (rng.random((rows, visible)) < 0.1)
    settings = {**SETTINGS, "n_components": hidden, "batch_size": batch, "n_iter": passes}
    return {"X": X.astype(np.float64), "settings": settings}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import BernoulliRBM

    settings = data["settings"]
    # as many chains and the same rate throughout, as the peer
    own = {"n_chains": settings["batch_size"], "schedule": "constant"}
    return BernoulliRBM(**settings, **own).fit(data["X"])


def peer(data: dict[str, Any]) -> Any:
    from sklearn.neural_network import BernoulliRBM

    return BernoulliRBM(**data["settings"]).fit(data["X"])


def likelihood(data: dict[str, Any], model: Any) -> float:
    """Mean log-likelihood of the rows, over fits with seeds 0 to 4 of which one alone tells little:
    exact while a layer has at most 20 bits, else annealed."""
    import numpy as np
    from sklearn.base import clone

    from groundstate import BernoulliRBM

    X, found = data["X"], []
    for seed in range(5):
        fitted = clone(model).set_params(random_state=seed).fit(X)
        own = BernoulliRBM(len(fitted.components_), n_iter=1, random_state=0).fit(X[:10])
        own.base_ = np.log((X.mean(0) + 1e-3) / (1 - X.mean(0) + 1e-3))
        for name in ("components_", "intercept_hidden_", "intercept_visible_"):
            setattr(own, name, np.asarray(getattr(fitted, name), np.float64))
        found.append(float(own.score(X[:500])))
    return round(float(np.mean(found)), 1)


RBM = Benchmark(
    name="rbm",
    title="BernoulliRBM.fit at scikit-learn's settings",
    sizes={
        "200x10x8": (200, 10, 8, 10, 10),
        "2000x64x16": (2000, 64, 16, 10, 5),
        "2000x64x128": (2000, 64, 128, 10, 5),
        "2000x784x256": (2000, 784, 256, 100, 5),
    },
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(peer, "scikit-learn", "sklearn")},
    score=likelihood,
    score_name="mean log-likelihood",
    better="high",
    target=3.0,
)
