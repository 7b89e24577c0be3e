"""Ten thousand small minimisations: one batched L-BFGS against a loop of SciPy's."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark

FEATURES = 10


def data(size: int, seed: int) -> dict[str, Any]:
    import torch

    generator = torch.Generator().manual_seed(seed)
    return {"y": torch.randn(size, FEATURES, generator=generator, dtype=torch.float64)}


def energy() -> Any:
    import torch

    from groundstate.energy import Energy, Real

    class Smooth(Energy):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return 0.5 * (x - y).square().sum(1) + torch.cosh(x).log().sum(1)

    return Smooth(x=Real(FEATURES), y=Real(FEATURES))


def ours(data: dict[str, Any]) -> float:
    from groundstate.infer import Gradient, minimise

    return float(minimise(energy(), "x", {"y": data["y"]}, method=Gradient()).energy.mean())


def scipy_loop(data: dict[str, Any]) -> float:
    import numpy as np
    from scipy.optimize import minimize

    total, rows = 0.0, data["y"].numpy()
    for y in rows:

        def value(x: np.ndarray, y: np.ndarray = y) -> tuple[float, np.ndarray]:
            gap = x - y
            return 0.5 * gap @ gap + np.log(np.cosh(x)).sum(), gap + np.tanh(x)

        total += minimize(value, np.zeros(FEATURES), jac=True, method="L-BFGS-B").fun
    return total / len(rows)


INNER = Benchmark(
    name="inner-minimise",
    title=f"Minimise over {FEATURES} free reals in every row",
    sizes={"100": 100, "1,000": 1000, "10,000": 10_000},
    data=data,
    ours=ours,
    peers={"scipy L-BFGS-B loop": scipy_loop},
    score=lambda data, mean: float(mean),
    score_name="mean minimum",
    target=20.0,
)
