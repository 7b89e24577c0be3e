r"""Simple models win with little noisy data, flexible ones with much."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import legvander

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.math.linalg.min_norm import min_norm_solution

DEGREES = (1, 3, 10, 15)
WORLDS = {"little, noisy": (15, 0.4), "much, clean": (300, 0.05)}
SIZES = (15, 25, 40, 60, 100, 160, 250, 400)
GRID = np.linspace(-1, 1, 401)


def truth(x: F64) -> F64:
    """A line with ripples on it."""
    return x + 0.3 * np.sin(10 * x)


def rows(key: Key, n: int, sd: float) -> tuple[F64, F64]:
    """n rows with noise of standard deviation sd."""
    rng = key.numpy()
    x = rng.uniform(-1, 1, n)
    return x, truth(x) + sd * rng.standard_normal(n)


def errors(key: Key, degree: int, n: int, sd: float) -> tuple[float, float]:
    """Mean squared error on the own rows and on 2,000 others."""
    x, y = rows(key.fold("train"), n, sd)
    theta = min_norm_solution(legvander(x, degree), y)
    z, t = rows(key.fold("validation"), 2000, sd)
    return tuple(
        float(np.square(b - legvander(a, degree) @ theta).mean()) for a, b in ((x, y), (z, t))
    )  # type: ignore[return-value]


@experiment(
    "EVA-X-fits", theme="evaluation", title="Simple models win with little data, flexible with much"
)
def fits(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Polynomials :math:`\sum_{k\le d}\theta_kx^k` of degree 1, 3, 10 and 15 for a line with ripples.
    With 15 noisy rows the order of the test errors is 1, 3, 10, 15; with 300 clean rows it is the
    reverse. So learning curves cross. Underfitting shows as two high errors, overfitting as a low
    training error beside a high validation error.

    15 rows with noise .4 and 300 with noise .05; curves from 15 to 400 rows with noise .4; medians
    over 60 tables.
    """
    keys = Key.of(seed).split(20 if quick else 60)
    found = {
        world: {d: np.median([errors(key, d, *setting) for key in keys], axis=0) for d in DEGREES}
        for world, setting in WORLDS.items()
    }
    curves = {
        d: np.median([[errors(key.fold(n), d, n, 0.4) for n in SIZES] for key in keys], axis=0)
        for d in (1, 10)
    }
    order = {world: sorted(DEGREES, key=lambda d, w=world: found[w][d][1]) for world in WORLDS}  # type: ignore[misc]
    gap = curves[1][:, 1] - curves[10][:, 1]
    few, many = found["little, noisy"], found["much, clean"]
    claims = [
        Claim.equal("15 noisy rows: degrees from the best", order["little, noisy"], [1, 3, 10, 15]),
        Claim.equal("300 clean rows: degrees from the best", order["much, clean"], [15, 10, 3, 1]),
        Claim.below("learning curves: degree 1 less degree 10 at 15 rows", float(gap[0]), 0.0),
        Claim.above("learning curves: degree 1 less degree 10 at 400 rows", float(gap[-1]), 0.0),
        Claim.above(
            "underfit (degree 1, 300 rows): training error over the noise",
            many[1][0] / 0.05**2,
            5.0,
        ),
        Claim.close(
            "underfit: validation over training error", many[1][1] / many[1][0], 1.0, tol=0.2
        ),
        Claim.below(
            "overfit (degree 10, 15 rows): training error over the noise", few[10][0] / 0.4**2, 0.5
        ),
        Claim.above("overfit: validation over training error", few[10][1] / few[10][0], 5.0),
    ]
    numbers = {
        **{f"{w}, degree {d}": v.tolist() for w, own in found.items() for d, v in own.items()},
        "rows": list(SIZES),
        **{f"curve of degree {d}": c[:, 1].tolist() for d, c in curves.items()},
    }

    def draw(figure: Figure) -> None:
        grid = figure.add_gridspec(2, 5, width_ratios=(1, 1, 1, 1, 1.5))
        for i, (world, (n, sd)) in enumerate(WORLDS.items()):
            x, y = rows(keys[0].fold("train"), n, sd)
            for j, d in enumerate(DEGREES):
                ax = figure.add_subplot(grid[i, j])
                ax.scatter(x, y, s=4, color=COLOURS[5])
                ax.plot(GRID, truth(GRID), color="black", linewidth=0.7)
                theta = min_norm_solution(legvander(x, d), y)
                ax.plot(GRID, legvander(GRID, d) @ theta, color=COLOURS[j], linewidth=1.2)
                ax.set(title=f"{world}: {d}", ylim=(-2, 2), xticks=[], yticks=[])
        ax = figure.add_subplot(grid[:, 4])
        for k, (d, curve) in enumerate(curves.items()):
            ax.loglog(
                SIZES, curve[:, 1], "o-", markersize=3, color=COLOURS[2 * k], label=f"degree {d}"
            )
            ax.loglog(SIZES, curve[:, 0], "--", color=COLOURS[2 * k])
        ax.axhline(0.16, color="black", linestyle=":", linewidth=0.8)
        ax.set(xlabel="rows (dashed: training)", ylim=(0.03, 20), title="curves cross")
        ax.set_xticks([20, 50, 100, 200, 400], ["20", "50", "100", "200", "400"])
        ax.minorticks_off()
        ax.legend()

    return Result(claims, numbers, draw, size=(12.0, 4.0))
