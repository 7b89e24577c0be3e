r"""Constant steps on single rows end in a floor of noise; steps 1/t do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy import Energy, Real
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import Naive, PathRecorder, Stochastic, fit
from groundstate.learn.train.schedules import InverseTime

F64 = NDArray[np.float64]
RATES = (0.5, 0.1, 0.01)
ROWS, CHAINS = 2000, 1000


class Pull(Energy):
    r""":math:`e(x) = \tfrac12\|\theta - x\|^2`: every coordinate is a run of its own."""

    normalised = frozenset({"x"})  # up to a constant

    def __init__(self, runs: int) -> None:
        super().__init__(x=Real(runs))
        self.theta = nn.Parameter(torch.zeros(runs))

    def config(self) -> dict[str, Any]:
        return {"runs": len(self.theta)}

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (self.theta - x).square().sum(1)


def gaps(a: F64, key: Key, lr: float, epochs: int, chains: int, schedule: Any = None) -> F64:
    r""":math:`\tfrac12(\theta_t - \bar a)^2` by step, the mean over the runs."""
    # a column is the data in an order of its own, so one drawn row is another draw in every run
    x = key.fold("columns").numpy().permuted(np.tile(a[:, None], chains), axis=0)
    energy, path = Pull(chains).double(), PathRecorder()
    solver = Stochastic("sgd", lr, 1, epochs, tol=None, schedule=schedule, replacement=True,
                        log_every=10_000)  # fmt: skip
    fit(energy, {"x": torch.from_numpy(x)}, Naive(), solver, callbacks=[path],
        random_state=key.fold("draws"))  # fmt: skip
    found: F64 = 0.5 * (path.path - a.mean()).square().mean(1).numpy()
    return found


@experiment("NEU-X-floor", theme="neural", title="Constant steps have a floor", slow=True)
def floor(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For :math:`f_i = \tfrac12(\theta - a_i)^2` with one random row per step the distance to the mean
    settles where a step adds as much noise as it removes: :math:`E[f - f^*] =
    \tfrac12\,\frac{\alpha}{2 - \alpha}\operatorname{Var}a`, proportional to α. With :math:`\alpha_t = 1/t`
    θ is the mean of all draws so far and the noise averages out.

    2,000 rows, 1,000 runs side by side; α = 0.5, 0.1, 0.01 for 2,000 steps, the floor over the last
    half; 1/t for 10,000 steps. Quick runs have 300 of the 1,000 runs.
    """
    key, chains = Key.of(seed), 300 if quick else CHAINS
    a = key.fold("rows").numpy().standard_normal(ROWS)
    curves = {alpha: gaps(a, key.fold("rate", str(alpha)), alpha, 1, chains) for alpha in RATES}
    falling = gaps(a, key.fold("falling"), 1.0, 5, chains, InverseTime(1.0))
    seen = {alpha: float(curve[len(curve) // 2 :].mean()) for alpha, curve in curves.items()}
    theory = {alpha: 0.5 * alpha / (2 - alpha) * float(a.var()) for alpha in RATES}
    claims = [
        *[Claim.close(f"α = {r:g}: floor over its theory", seen[r] / theory[r], 1, tol=0.05) for r in RATES],
        Claim.equal("steps of the run with 1/t", len(falling) - 1, 10_000),
        Claim.below("1/t after 10,000 steps over the floor of α = 0.1", float(falling[-1]) / theory[0.1], 0.01),
    ]  # fmt: skip
    numbers = {
        "floor": {str(r): v for r, v in seen.items()},
        "theory": {str(r): v for r, v in theory.items()},
        "1/t": float(falling[-1]),
    }

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for rate, colour in zip(RATES, COLOURS):
            t = np.unique(np.geomspace(1, len(curves[rate]) - 1, 300).astype(int))
            ax.loglog(t, curves[rate][t], color=colour, linewidth=1, label=f"α = {rate:g}")
            ax.axhline(theory[rate], color=colour, linestyle=":", linewidth=1)
        t = np.unique(np.geomspace(1, len(falling) - 1, 300).astype(int))
        ax.loglog(t, falling[t], color=COLOURS[3], linewidth=1, label="α = 1/t")
        ax.set(xlabel="step", ylabel="mean of f − f*, dots: the theory")
        ax.legend()

    return Result(claims, numbers, draw, size=(6.5, 3.8))
