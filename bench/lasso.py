"""A lasso path of 100 strengths against celer, skglm and scikit-learn, dense and sparse."""

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


def celer(data: dict[str, Any]) -> Any:
    from celer import celer_path

    found = celer_path(
        data["X"],
        data["y"],
        pb="lasso",
        alphas=grid(data),
        tol=TOL,
        max_iter=1000,
        max_epochs=10**5,
    )
    return found[0], found[1]


def skglm(data: dict[str, Any]) -> Any:
    import numpy as np
    from skglm.datafits import Quadratic
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD

    X, y = data["X"], data["y"]
    if isinstance(X, np.ndarray):
        X = np.asfortranarray(X)
    solver = AndersonCD(fit_intercept=False, tol=1e-6, warm_start=True, max_iter=1000)
    datafit, penalty = Quadratic(), L1(1.0)
    alphas = grid(data)
    path = solver.path(X, y, datafit, penalty, alphas, return_n_iter=False)
    return path[0], path[1]


def grid(data: dict[str, Any]) -> Any:
    """The strengths, from the one that leaves nothing to a hundredth of it."""
    import numpy as np

    X, y = data["X"], data["y"]
    top = np.abs(X.T @ y).max() / len(y)
    return np.geomspace(top, 1e-2 * top, 100)


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
    peers={
        "scikit-learn": Peer(sklearn, "scikit-learn", "sklearn"),
        "celer": Peer(celer, "celer"),
        "skglm": Peer(skglm, "skglm"),
    },
    score=objective,
    score_name="mean objective",
    target=1.0,
)
