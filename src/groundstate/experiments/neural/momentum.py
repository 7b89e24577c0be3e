r"""In a ravine momentum needs fewer steps, and looking ahead fewer still."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn.train import reference_numpy as reference_optim

CURVATURES = np.array([1.0, 100.0])
START = np.array([1.0, 0.1])  # both directions hold half of f
TARGET, MOST = 1e-6, 500
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "descent": ("gd", {}),
    "heavy ball": ("momentum", {"mu": 0.9}),
    "Nesterov": ("momentum", {"mu": 0.9, "nesterov": True}),
}
RATES = np.geomspace(1e-3, 4e-2, 100)


def value(theta: Any) -> Any:
    r"""½(θ₁² + 100 θ₂²), the ravine."""
    return 0.5 * (CURVATURES * theta**2).sum(-1)


def steps_to(path: Any) -> int:
    """The first step at which the value is below the target share of the first one."""
    low = np.flatnonzero(value(path) <= TARGET * value(path[0]))
    return int(low[0]) if len(low) else MOST + 1


@experiment("NEU-X-momentum", theme="neural", title="Momentum and Nesterov in a ravine", slow=True)
def momentum(seed: int = 0, *, quick: bool = False) -> Result:
    r"""On :math:`f(\theta) = \tfrac12(\theta_1^2 + 100\,\theta_2^2)` the step of gradient descent is
    limited by the steep wall and creeps along the floor. The velocity :math:`v \leftarrow \mu v + g`,
    :math:`\theta \leftarrow \theta - \alpha v` adds up what the gradients agree on; Nesterov's
    gradient, taken at the point ahead, brakes before it overshoots.

    κ = 100 from (1, 0.1), μ = 0.9, each method with the best of 100 rates, until f is below
    10⁻⁶ f(θ₀). Then ½θ² from 1 with α = 0.1: how far below 0 the first swing goes. Nothing is drawn
    at random.
    A run takes about a second; quick ones are the same.
    """
    best: dict[str, tuple[int, float, Any]] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for name, (rule, options) in METHODS.items():
            runs = []
            for lr in RATES:
                path = reference_optim.run(
                    rule, lambda x: CURVATURES * x, START, MOST, lr=float(lr), **options
                )
                runs.append((steps_to(path), float(lr), path))
            best[name] = min(runs, key=lambda run: run[0])
    need = {name: run[0] for name, run in best.items()}
    swing = {
        "heavy ball": reference_optim.run("momentum", lambda x: x, 1.0, 60, lr=0.1),
        "Nesterov": reference_optim.run("look_ahead", lambda x: x, 1.0, 60, lr=0.1),
    }
    low = {name: float(path.min()) for name, path in swing.items()}
    claims = [
        Claim.above("steps of descent, against heavy ball", need["descent"], need["heavy ball"]),
        Claim.above("steps of heavy ball, against Nesterov", need["heavy ball"], need["Nesterov"]),
        Claim.close("½θ²: lowest point of heavy ball", low["heavy ball"], -0.604, tol=5e-4),
        Claim.close("½θ²: lowest point of Nesterov", low["Nesterov"], -0.355, tol=5e-4),
    ]
    numbers = {"steps": need, "rates": {n: run[1] for n, run in best.items()}, "overshoot": low}

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.4, 1, 1))
        a, b = np.linspace(-0.6, 1.1, 120), np.linspace(-0.12, 0.12, 120)
        grid = np.stack(np.meshgrid(a, b), -1)
        left.contour(a, b, np.sqrt(value(grid)), levels=12, colors="#c9ced6", linewidths=0.7)
        for (name, (steps, lr, path)), colour in zip(best.items(), COLOURS):
            left.plot(path[:60, 0], path[:60, 1], "o-", color=colour, markersize=2, linewidth=0.8,
                      label=f"{name}, α = {lr:.3f}")  # fmt: skip
            f = value(path[: steps + 20]) / value(START)
            middle.semilogy(np.maximum(f, 1e-9), color=colour, label=f"{name}: {steps} steps")
        left.set(title="60 steps in the ravine", xlabel="θ₁", ylabel="θ₂")
        middle.axhline(TARGET, color="black", linewidth=0.6, linestyle=":")
        middle.set(title="f(θ) / f(θ₀)", xlabel="step", ylim=(1e-8, 3))
        for (name, path), colour in zip(swing.items(), COLOURS[1:]):
            right.plot(path, color=colour, label=f"{name}: {path.min():.3f}")
        right.axhline(0, color="black", linewidth=0.6)
        right.set(title="½θ²: the swing below 0", xlabel="step", ylabel="θ")
        for ax in (left, middle, right):
            ax.legend(loc="upper right")

    return Result(claims, numbers, draw, size=(11.0, 3.5))
