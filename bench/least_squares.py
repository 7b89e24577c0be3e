"""LinearRegression and Ridge against scikit-learn: small, sparse, and a million rows."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=size) + rng.normal(size=size[1])
    return {"X": X, "y": X @ rng.normal(size=size[1]) + rng.normal(size=size[0])}


def squares(data: dict[str, Any], model: Any) -> float:
    residual = data["y"] - model.predict(data["X"])
    return float(residual @ residual + getattr(model, "alpha", 0.0) * model.coef_ @ model.coef_)


def ours(data: dict[str, Any]) -> Any:
    from groundstate import LinearRegression

    return LinearRegression().fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(data["X"], data["y"])


SIZES: dict[str, Any] = {
    "100x10": (100, 10), "20000x50": (20_000, 50), "1000000x50": (1_000_000, 50),
}  # fmt: skip

LEAST_SQUARES = Benchmark(
    name="least-squares",
    title="LinearRegression().fit",
    sizes=SIZES,
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=squares,
    score_name="sum of squares",
    target=1.0,
)


def our_ridge(data: dict[str, Any]) -> Any:
    from groundstate import Ridge

    return Ridge().fit(data["X"], data["y"])


def sklearn_ridge(data: dict[str, Any]) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge().fit(data["X"], data["y"])


RIDGE = Benchmark(
    name="ridge",
    title="Ridge().fit",
    sizes={**SIZES, "500x5000": (500, 5_000)},
    data=data,
    ours=our_ridge,
    peers={"scikit-learn": Peer(sklearn_ridge, "scikit-learn", "sklearn")},
    score=squares,
    score_name="penalised sum of squares",
    target=1.0,
)
