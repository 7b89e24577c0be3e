"""Two processes with half of the rows each learn what one process learns from all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate import GLM, BayesianRidge, GaussianRegressor, SmoothingSplineRegressor
from groundstate.compute import run_local


def learned(rows: slice) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 2
    y = rng.poisson(np.exp(0.3 * X[:, 0])) + 1.0
    w = rng.integers(1, 4, 200).astype(float)
    X, y, w = X[rows], y[rows], w[rows]
    poisson = GLM("poisson", alpha=0.1, tol=1e-10).fit(X, y, sample_weight=w)
    gamma = GLM("gamma", "log", tol=1e-10).fit(X, y, sample_weight=w)
    bayes = BayesianRidge(tol=1e-10).fit(X, y, sample_weight=w)
    noise = GaussianRegressor(tol=1e-14).fit(X, y, sample_weight=w)
    out = {
        "poisson": [poisson.intercept_, *poisson.coef_, poisson.deviance_],
        "gamma": [gamma.intercept_, *gamma.coef_, gamma.dispersion_],
        "bayes": [bayes.alpha_, bayes.lambda_, *bayes.coef_, *bayes.sigma_.ravel()],
        "noise": [*noise.coef_, *noise.noise_coef_],
        "curve": SmoothingSplineRegressor(0.1).fit(X[:, :1], y, sample_weight=w).predict([[2.0]]),
    }
    return {k: torch.as_tensor(np.array(v)) for k, v in out.items()}


def shard(rank: int) -> dict[str, Any]:
    return learned(slice(0, 120) if rank == 0 else slice(120, None))


@pytest.mark.slow
def test_two_shards_equal_one_process() -> None:
    whole = learned(slice(None))
    for part in run_local(shard, 2):
        for name, expected in whole.items():
            torch.testing.assert_close(part[name], expected, rtol=1e-6, atol=1e-6, msg=name)
