"""Two processes with half of the rows each learn the process that one learns from all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate import GaussianProcessRegressor
from groundstate.compute import run_local
from groundstate.math.kernels import RBF, White


def learned(rows: slice) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 2))
    X[70:75] = X[:5]  # the same inputs in both shards
    y = np.sin(X).sum(1) + 0.1 * rng.normal(size=120)
    w = rng.integers(0, 3, 120).astype(float)
    kernel = 1.0 * RBF(1.0) + White(0.1)
    model = GaussianProcessRegressor(kernel, method="inducing", n_inducing=30)
    model.fit(X[rows], y[rows], sample_weight=w[rows])
    return {
        "points": torch.tensor(model.inducing_points_),
        "theta": torch.as_tensor(model.kernel_.theta),
        "bound": torch.tensor(model.log_marginal_likelihood_value_),
        "mean": torch.as_tensor(model.predict(X[:9])),
    }


def shard(rank: int) -> dict[str, Any]:
    return learned(slice(0, 70) if rank == 0 else slice(70, None))


@pytest.mark.slow
def test_two_shards_equal_one_process() -> None:
    whole = learned(slice(None))
    for part in run_local(shard, 2):
        for name, expected in whole.items():
            torch.testing.assert_close(part[name], expected, rtol=1e-4, atol=1e-5, msg=name)
