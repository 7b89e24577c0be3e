"""Gaussian process regression with its kernel learned, against scikit-learn."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size)
    y = np.sin(X).sum(1) + 0.3 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(X))
    return {"X": X, "y": y}


def ours(data: dict[str, Any]) -> Any:
    from groundstate import GaussianProcessRegressor
    from groundstate.math.kernels import RBF, White

    return GaussianProcessRegressor(1.0 * RBF(1.0) + White(0.1)).fit(data["X"], data["y"])


def sklearn(data: dict[str, Any]) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    return GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1)).fit(data["X"], data["y"])


GAUSSIAN_PROCESS = Benchmark(
    name="gaussian-process",
    title="GaussianProcessRegressor.fit with three learned parameters",
    sizes={"200x4": (200, 4), "1000x4": (1_000, 4), "5000x4": (5_000, 4)},
    data=data,
    ours=ours,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.log_marginal_likelihood_value_),
    score_name="log marginal likelihood",
    better="high",
    target=3.0,
)


def on_device(data: dict[str, Any]) -> Any:
    import torch

    from groundstate import GaussianProcessRegressor
    from groundstate.math.kernels import RBF, White

    device = "cuda" if torch.cuda.is_available() else None
    kernel = 1.0 * RBF(1.0) + White(0.1)
    return GaussianProcessRegressor(kernel, device=device).fit(data["X"], data["y"])


GAUSSIAN_PROCESS_DEVICE = Benchmark(
    name="gaussian-process-device",
    title="the same on the accelerator, where there is one",
    sizes={"200x4": (200, 4), "2000x4": (2_000, 4), "10000x4": (10_000, 4)},
    data=data,
    ours=on_device,
    peers={"scikit-learn": Peer(sklearn, "scikit-learn", "sklearn")},
    score=lambda data, model: float(model.log_marginal_likelihood_value_),
    score_name="log marginal likelihood",
    better="high",
    target=10.0,
)
