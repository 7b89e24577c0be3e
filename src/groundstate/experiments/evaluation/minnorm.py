r"""Gradient descent from zero finds the interpolant of least norm."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.math.linalg.min_norm import min_norm_solution

N, D, STEPS = 20, 60, 1500


def descend(X: F64, y: F64, theta: F64, goal: F64) -> tuple[F64, F64]:
    r"""Steps :math:`\theta \leftarrow \theta - \eta X^\top(X\theta - y)`, and the way to the goal."""
    rate = 1 / np.linalg.norm(X, 2) ** 2
    way = np.empty(STEPS + 1)
    for t in range(STEPS + 1):
        way[t] = np.linalg.norm(theta - goal)
        theta = theta - rate * X.T @ (X @ theta - y)
    return theta, way


@experiment("EVA-X-minnorm", theme="evaluation", title="Gradient descent regularises by itself")
def minnorm(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With more parameters than rows every θ with :math:`X\theta = y` has training error 0. The
    gradient :math:`X^\top(X\theta - y)` lies in the row space of X, so descent from 0 ends at
    :math:`X^+y`, the solution of least norm. From a random start the part outside the row space
    stays as it was, and adds to the error on new rows.

    20 rows, 60 features, y = θ*ᵀx + noise with |θ*| = 1; starts of length about 1 in other
    directions; risks over 20 tables.
    """
    zero, other, risks, ways = [], [], [], []
    for key in Key.of(seed).split(5 if quick else 20):
        rng = key.numpy()
        truth = rng.standard_normal(D)
        truth /= np.linalg.norm(truth)
        X = rng.standard_normal((N, D))
        y = X @ truth + 0.1 * rng.standard_normal(N)
        goal = min_norm_solution(X, y)
        start = rng.standard_normal(D) / np.sqrt(D)
        from_zero, way_zero = descend(X, y, np.zeros(D), goal)
        from_start, way_start = descend(X, y, start, goal)
        zero.append(float(np.linalg.norm(from_zero - goal)))
        other.append(float(np.linalg.norm(from_start - goal)))
        kept = float(np.linalg.norm(from_start - min_norm_solution(X, y, start)))
        risks.append([float(np.sum((f - truth) ** 2)) for f in (from_zero, from_start)] + [kept])
        ways.append([way_zero, way_start])
    risk = np.array(risks)  # x is standard normal, so the risk beyond the noise is |θ − θ*|²
    claims = [
        Claim.at_most("from zero: largest distance to the pseudo-inverse", max(zero), 1e-8),
        Claim.above("random start: least distance to it", min(other), 0.1),
        Claim.at_most(
            "random start: largest distance to its own projection", float(risk[:, 2].max()), 1e-8
        ),
        Claim.above(
            "mean risk of the random start over that of zero",
            float(risk[:, 1].mean() / risk[:, 0].mean()),
            1.0,
        ),
        Claim.above(
            "tables where the random start is worse, share",
            float((risk[:, 1] > risk[:, 0]).mean()),
            0.5,
        ),
    ]
    numbers = {"from zero": max(zero), "random": min(other), "risk": risk[:, :2].mean(0).tolist()}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for i, name in enumerate(("from zero", "from a random start")):
            for k, way in enumerate(ways[:5]):
                left.semilogy(
                    np.maximum(way[i], 1e-16),
                    color=COLOURS[i],
                    linewidth=0.9,
                    label=name if k == 0 else None,
                )
        left.set(xlabel="step", ylabel="distance to $X^+y$")
        left.legend()
        right.scatter(risk[:, 0], risk[:, 1], s=14, color=COLOURS[2])
        ends = [0, 1.1 * float(risk[:, :2].max())]
        right.plot(ends, ends, ":", color=COLOURS[5])
        right.set(xlabel="risk from zero", ylabel="risk from a random start", xlim=ends, ylim=ends)

    return Result(claims, numbers, draw)
