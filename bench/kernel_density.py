"""KernelDensity.score_samples against scikit-learn's, both exact."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    n, d = size
    return {
        "X": rng.normal(size=(n, d)),
        "new": rng.normal(size=(n, d)),
        "h": n ** (-1 / (d + 4)),
    }


def ours(data: dict[str, Any]) -> Any:
    from groundstate import KernelDensity

    return KernelDensity(data["h"]).fit(data["X"]).score_samples(data["new"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.neighbors import KernelDensity

    return KernelDensity(bandwidth=data["h"]).fit(data["X"]).score_samples(data["new"])


DENSITY = Benchmark(
    name="kernel-density",
    title="KernelDensity.fit and score_samples of as many new rows, Gaussian kernel",
    sizes={"500x2": (500, 2), "2000x4": (2_000, 4), "6000x2": (6_000, 2)},
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=lambda data, found: float(found.mean()),
    score_name="mean log density of new rows",
    better="high",
    target=1.0,
)
