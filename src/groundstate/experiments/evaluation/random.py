r"""Random search beats a grid when few settings matter."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.tune import Space

SETTINGS, TRIALS = 6, 64
GRID = Space({f"x{i}": [0.25, 0.75] for i in range(SETTINGS)})  # 2⁶ = 64 points


def risk(settings: F64, best: F64) -> F64:
    """Squared distance to the best values of the two settings that matter."""
    return np.square(settings[..., :2] - best).sum(-1)


@experiment(
    "EVA-X-random", theme="evaluation", title="Random search beats a grid if few settings matter"
)
def random(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A grid of :math:`2^6` points tries two values of each setting; when two settings matter it
    tries four different things 16 times each. 64 random draws try 64 different things. And
    whatever the space, n draws hit the best share q with probability
    :math:`1 - (1-q)^n`: 0.954 for the best twentieth and 60 draws.

    Six settings on the unit cube, two of which matter, the best values anywhere; 400 tasks.
    """
    tasks = 100 if quick else 400
    key = Key.of(seed)
    best = key.fold("tasks").numpy().random((tasks, 1, 2))
    grid = np.array([list(point.values()) for point in GRID.grid()])
    order = np.argsort(key.fold("order").numpy().random((tasks, TRIALS)), axis=1)
    draws = key.fold("draws").numpy().random((tasks, TRIALS, SETTINGS))
    running = {
        "grid": np.minimum.accumulate(risk(grid[order], best), axis=1),
        "random": np.minimum.accumulate(risk(draws, best), axis=1),
    }
    median = {name: np.median(values, axis=0) for name, values in running.items()}
    repeats = 20_000
    hits = key.fold("hits").numpy().random((repeats, 60)).min(1) < 0.05
    chance = 1 - 0.95**60
    won = float((running["random"][:, -1] < running["grid"][:, -1]).mean())
    claims = [
        Claim.equal("points of the grid", len(grid), TRIALS),
        Claim.below(
            "random's median best over the grid's",
            float(median["random"][-1] / median["grid"][-1]),
            1.0,
        ),
        Claim.above("share of tasks that random wins", won, 0.5),
        Claim.close("chance of the best twentieth in 60 draws", chance, 0.953930, tol=1e-6),
        Claim.close("frequency of it", float(hits.mean()), chance, tol=0.006),
    ]
    numbers = {"median best": {name: float(v[-1]) for name, v in median.items()}, "wins": won}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for (name, values), colour in zip(median.items(), COLOURS):
            left.semilogy(np.arange(1, TRIALS + 1), values, color=colour, label=name)
        left.set(xlabel="trials", ylabel="median of the best risk")
        left.legend()
        right.scatter(*draws[0, :, :2].T, s=12, color=COLOURS[1], label="random: 64 values")
        right.scatter(*grid[:, :2].T, s=40, marker="s", color=COLOURS[0], label="grid: 4 values")
        right.plot(*best[0, 0], "*", markersize=12, color="black", label="best")
        right.set(
            xlabel="setting 1",
            ylabel="setting 2",
            aspect="equal",
            title="the two settings that matter",
        )
        right.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return Result(claims, numbers, draw)
