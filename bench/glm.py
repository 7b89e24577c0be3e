"""Poisson regression against scikit-learn, statsmodels and glum: equal objective, least time."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

ALPHA, TOL = 1e-3, 1e-6


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    n, p = size
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    for j in range(1, p):  # neighbouring columns are correlated, as those of tables are
        X[:, j] = 0.7 * X[:, j - 1] + 0.71 * X[:, j]
    eta = X @ rng.normal(size=p)
    return {"X": X, "y": rng.poisson(np.exp(0.5 * eta / eta.std() + 0.2)).astype(float)}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import PoissonRegressor

    return PoissonRegressor(alpha=ALPHA, tol=TOL).fit(data["X"], data["y"])


def _sklearn(data: dict[str, Any], solver: str) -> Any:
    from sklearn.linear_model import PoissonRegressor

    model = PoissonRegressor(alpha=ALPHA, tol=TOL, max_iter=1000, solver=solver)
    return model.fit(data["X"], data["y"])


def newton(data: dict[str, Any]) -> Any:
    return _sklearn(data, "newton-cholesky")


def lbfgs(data: dict[str, Any]) -> Any:
    return _sklearn(data, "lbfgs")


def glum(data: dict[str, Any]) -> Any:
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(
        family="poisson", alpha=ALPHA, l1_ratio=0, gradient_tol=TOL, max_iter=1000
    )
    return model.fit(data["X"], data["y"])


def statsmodels(data: dict[str, Any]) -> Any:
    """Without the penalty, which it does not know for this solver."""
    import statsmodels.api as sm

    return sm.GLM(data["y"], sm.add_constant(data["X"]), family=sm.families.Poisson()).fit()


def objective(data: dict[str, Any], model: Any) -> float:
    """Mean half-deviance plus the penalty."""
    from sklearn.metrics import mean_poisson_deviance

    if hasattr(model, "coef_"):
        mu, w = model.predict(data["X"]), model.coef_
    else:
        mu, w = model.fittedvalues, model.params[1:]
    return float(0.5 * mean_poisson_deviance(data["y"], mu) + 0.5 * ALPHA * (w**2).sum())


GLM = Benchmark(
    name="glm",
    title="PoissonRegressor().fit, gradient 1e-6",
    sizes={"100x10": (100, 10), "10000x20": (10_000, 20), "100000x50": (100_000, 50)},
    data=data,
    ours=ours,
    peers={
        "scikit-learn newton-cholesky": Peer(newton, "scikit-learn", "sklearn"),
        "scikit-learn lbfgs": Peer(lbfgs, "scikit-learn", "sklearn"),
        "glum": Peer(glum, "glum"),
        "statsmodels": Peer(statsmodels, "statsmodels"),
    },
    score=objective,
    score_name="objective",
    target=1.0,
)
