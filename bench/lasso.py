"""A lasso path of 100 strengths against scikit-learn, dense and sparse."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

TOL = 1e-6


def data(size: tuple[int, int, float], seed: int) -> dict[str, Any]:
    import numpy as np
    from scipy.sparse import random

    n, p, density = size
    rng = np.random.default_rng(seed)
    if density < 1:
        X = random(n, p, density, format="csc", random_state=seed)
    else:
        X = rng.normal(size=(n, p))
        X -= X.mean(0)
    w = np.zeros(p)
    w[rng.choice(p, min(p // 2, 50), replace=False)] = rng.normal(size=min(p // 2, 50)) * (
        1 if density == 1 else 10
    )
    y = X @ w
    y += rng.normal(size=n) * y.std() * 0.5
    return {"X": X, "y": y - y.mean() if density == 1 else y}


def ours(data: dict[str, Any]) -> Any:
    from groundstate.models.linear.paths import lasso_path

    return lasso_path(data["X"], data["y"], alphas=100, eps=1e-2, tol=TOL, max_iter=10_000)


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.linear_model import lasso_path

    return lasso_path(data["X"], data["y"], alphas=100, eps=1e-2, tol=TOL, max_iter=10_000)


def objective(data: dict[str, Any], path: Any) -> float:
    """Mean objective along the path."""
    import numpy as np

    alphas, coefs = path[0], path[1]
    r = data["y"][:, None] - data["X"] @ coefs
    values = 0.5 * (r**2).mean(0) + alphas * np.abs(coefs).sum(0)
    return float(values.mean())


LASSO = Benchmark(
    name="lasso",
    title="lasso path of 100 strengths, duality gap 1e-6",
    sizes={
        "100x10": (100, 10, 1.0),
        "10000x1000": (10_000, 1_000, 1.0),
        "20000x50000 sparse": (20_000, 50_000, 0.002),
    },
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=objective,
    score_name="mean objective",
    target=1.0,
)
