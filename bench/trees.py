"""One exact tree, and trees with random cuts, for values, against scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groundstate.bench import Benchmark, Peer

SIZES = {"500x20": (500, 20), "2000x50": (2_000, 50), "10000x50": (10_000, 50)}


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, d = size
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 2000, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n + 2000)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def one(data: dict[str, Any]) -> Any:
    from groundstate import DecisionTreeRegressor

    return DecisionTreeRegressor(random_state=0).fit(data["X"], data["y"])


def one_of_sklearn(data: dict[str, Any]) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(random_state=0).fit(data["X"], data["y"])


def extra(data: dict[str, Any]) -> Any:
    from groundstate import ExtraTreesRegressor

    return ExtraTreesRegressor(20, random_state=0).fit(data["X"], data["y"])


def extra_of_sklearn(data: dict[str, Any]) -> Any:
    import torch
    from sklearn.ensemble import ExtraTreesRegressor

    many = torch.get_num_threads()
    return ExtraTreesRegressor(20, random_state=0, n_jobs=many).fit(data["X"], data["y"])


def error(data: dict[str, Any], model: Any) -> float:
    return float(((model.predict(data["X_test"]) - data["y_test"]) ** 2).mean())


def _benchmark(
    name: str, title: str, ours: Callable[..., Any], peer: Callable[..., Any]
) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        sizes=SIZES,
        data=data,
        ours=ours,
        peers={"scikit-learn": Peer(peer, "scikit-learn", "sklearn")},
        score=error,
        score_name="held-out squared error",
        target=1.0,
    )


TREE = _benchmark("tree", "DecisionTreeRegressor.fit", one, one_of_sklearn)
EXTRA = _benchmark("extra-trees", "ExtraTreesRegressor(20).fit", extra, extra_of_sklearn)
