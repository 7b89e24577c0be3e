"""The bootstrap interval of a mean, of F1 and of the ROC area against scipy's."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

RESAMPLES = 9_999


def data(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    return {"x": np.random.default_rng(seed).exponential(size=size)}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import stats

    return stats.bootstrap("mean", data["x"], n_resamples=RESAMPLES, method="percentile").interval


def scipy(data: dict[str, Any]) -> Any:
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (data["x"],), np.mean, n_resamples=RESAMPLES, method="percentile", batch=20, rng=0
    )
    return found.confidence_interval


MEAN = Benchmark(
    name="bootstrap-mean",
    title="percentile interval of a mean, 9,999 resamples",
    sizes={"1000": 1_000, "10000": 10_000, "100000": 100_000},
    data=data,
    ours=ours,
    peers={"scipy": Peer(scipy, "scipy", "scipy")},
    score=lambda data, found: float(found.high - found.low),
    score_name="width",
    target=20.0,
)


def labels(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=size)
    return {"y": y, "said": np.where(rng.random(size) < 0.9, y, 1 - y)}


def ours_f1(data: dict[str, Any]) -> Any:
    from groundstate.evaluate import bootstrap_metric

    return bootstrap_metric(
        "f1", data["y"], data["said"], n_resamples=RESAMPLES, method="percentile"
    )


def scipy_f1(data: dict[str, Any]) -> Any:
    from scipy.stats import bootstrap

    def f1(y: Any, said: Any, axis: int = -1) -> Any:
        return 2 * (y & said).sum(axis) / (y.sum(axis) + said.sum(axis))

    found = bootstrap(
        (data["y"], data["said"]), f1, paired=True, vectorized=True, n_resamples=RESAMPLES,
        method="percentile", batch=20, rng=0,
    )  # fmt: skip
    return found.confidence_interval


F1 = Benchmark(
    name="bootstrap-f1",
    title="percentile interval of F1, 9,999 resamples",
    sizes={"1000": 1_000, "10000": 10_000, "100000": 100_000},
    data=labels,
    ours=ours_f1,
    peers={"scipy": Peer(scipy_f1, "scipy", "scipy")},
    score=lambda data, found: float(found.high - found.low),
    score_name="width",
    target=20.0,
)


def ranked(size: int, seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=size)
    return {"y": y, "p": 1 / (1 + np.exp(-(y + rng.normal(size=size))))}


def ours_auc(data: dict[str, Any]) -> Any:
    from groundstate.evaluate import bootstrap_metric

    said = (data["p"] > 0.5).astype(int)
    return bootstrap_metric(
        "roc_auc", data["y"], said, data["p"], n_resamples=999, method="percentile"
    )


def scipy_auc(data: dict[str, Any]) -> Any:
    from scipy.stats import bootstrap, rankdata

    def area(y: Any, p: Any, axis: int = -1) -> Any:
        positive = y.sum(axis)
        above = (rankdata(p, axis=axis) * y).sum(axis) - positive * (positive + 1) / 2
        return above / (positive * (y.shape[axis] - positive))

    found = bootstrap(
        (data["y"], data["p"]), area, paired=True, vectorized=True, n_resamples=999,
        method="percentile", batch=20, rng=0,
    )  # fmt: skip
    return found.confidence_interval


AUC = Benchmark(
    name="bootstrap-auc",
    title="percentile interval of the ROC area, 999 resamples",
    sizes={"1000": 1_000, "10000": 10_000, "100000": 100_000},
    data=ranked,
    ours=ours_auc,
    peers={"scipy": Peer(scipy_auc, "scipy", "scipy")},
    score=lambda data, found: float(found.high - found.low),
    score_name="width",
    target=20.0,
)
