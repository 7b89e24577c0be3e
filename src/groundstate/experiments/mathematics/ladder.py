r"""KL explodes, JS saturates, Wasserstein keeps its slope."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math import divergences

UNIFORM = (torch.arange(200, dtype=torch.float64) + 0.5) / 200
Distance = Callable[[Tensor], Tensor]


def tables(t: Tensor) -> tuple[Tensor, Tensor]:
    """U[0, 1] and U[t, t + 1] on the three pieces where both densities are constant."""
    both = (1 - t.abs()).clamp_min(0.0)
    none = torch.zeros_like(t)
    return torch.stack([1 - both, both, none]), torch.stack([none, both, 1 - both])


def kl(t: Tensor) -> Tensor:
    value: Tensor = divergences.kl(*tables(t))
    return value


def js(t: Tensor) -> Tensor:
    value: Tensor = divergences.js(*tables(t))
    return value


def w1(t: Tensor) -> Tensor:
    value: Tensor = divergences.wasserstein_1d(UNIFORM, UNIFORM + t)
    return value


DISTANCES: dict[str, Distance] = {"KL": kl, "JS": js, "W₁": w1}


def at(distance: Distance, t: float) -> tuple[float, float]:
    """Value and slope."""
    place = torch.tensor(t, dtype=torch.float64, requires_grad=True)
    value = distance(place)
    (slope,) = torch.autograd.grad(value, place)
    return float(value.detach()), float(slope)


def descend(distance: Distance, start: float, rate: float, steps: int) -> list[float]:
    path = [start]
    for _ in range(steps):
        slope = at(distance, path[-1])[1]
        path.append(path[-1] - rate * slope)
    return path


@experiment("MAT-x-ladder", theme="mathematics", title="Wasserstein keeps its slope")
def ladder(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two uniform distributions, on [0, 1] and on [t, t + 1]. KL is infinite as soon as t > 0, JS
    grows to log 2 at t = 1 and is flat from there on, :math:`W_1 = t` everywhere. Descent on t from
    5 therefore moves with :math:`W_1` alone. On a table q = (1 − e, 0, e) the divergence from
    (0, 0, 1) is −log e, which has no bound. Nothing is random.
    """
    grid = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0]
    values = {name: [at(f, t) for t in grid] for name, f in DISTANCES.items()}
    far = [k for k, t in enumerate(grid) if t >= 1]
    paths = {name: descend(f, 5.0, 0.05, 150) for name, f in DISTANCES.items()}
    one = [0.0, 0.0, 1.0]
    exploding = [float(divergences.kl(one, [1 - e, 0.0, e])) for e in (1e-3, 1e-6)]
    bounded = [float(divergences.js(one, [1 - e, 0.0, e])) for e in (1e-3, 1e-6)]
    beyond = [k for k, t in enumerate(grid) if t > 1]
    claims = [
        Claim.equal("t ≥ 1: KL", [values["KL"][k][0] for k in far], [math.inf] * len(far)),
        Claim.at_most("t ≥ 1: JS less log 2",
                      max(abs(values["JS"][k][0] - math.log(2)) for k in far), 1e-12),
        Claim.equal("t > 1: slope of JS", [values["JS"][k][1] for k in beyond], [0.0] * len(beyond)),
        Claim.at_most("W₁ less t", max(abs(v[0] - t) for v, t in zip(values["W₁"], grid, strict=True)), 1e-12),
        Claim.at_most("slope of W₁ less 1", max(abs(v[1] - 1) for v in values["W₁"]), 1e-12),
        Claim.at_most("descent on W₁ ends at |t|", abs(paths["W₁"][-1]), 0.05),
        Claim.equal("descent on KL and JS ends at", [paths["KL"][-1], paths["JS"][-1]], [5.0, 5.0]),
        Claim.close("KL for e = 1e-3", exploding[0], 6.908, tol=5e-4),
        Claim.close("KL for e = 1e-6", exploding[1], 13.816, tol=5e-4),
        Claim.below("JS for e = 1e-6", bounded[1], math.log(2)),
    ]  # fmt: skip
    numbers = {"t": grid, "JS": [v[0] for v in values["JS"]], "W1": [v[0] for v in values["W₁"]],
               "ends": {name: path[-1] for name, path in paths.items()}, "KL of e": exploding}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        t = np.linspace(0, 3, 121)
        left.plot(t, [at(w1, v)[0] for v in t], color=COLOURS[2], label="W₁")
        left.plot(t, [at(js, v)[0] for v in t], color=COLOURS[1], label="JS")
        left.plot([0, 0, 3], [0, 2.9, 2.9], color=COLOURS[4], label="KL = ∞ for t > 0")
        left.set(title="U[0, 1] against U[t, t + 1]", xlabel="t", ylim=(-0.1, 3.1))
        left.legend()
        for (name, path), colour in zip(
            paths.items(), (COLOURS[4], COLOURS[1], COLOURS[2]), strict=True
        ):
            right.plot(path, color=colour, label=name, linestyle="--" if name == "KL" else "-")
        right.set(title="descent on t from 5", xlabel="step", ylabel="t")
        right.legend()

    return Result(claims, numbers, draw)
