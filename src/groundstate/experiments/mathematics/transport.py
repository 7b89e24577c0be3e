r"""On the line transport keeps the order; averaging by transport keeps the shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math import divergences
from groundstate.math import transport as ot

F64 = NDArray[np.float64]
FROM, TO = np.array([5.0, 4, 3, 2, 1]), np.array([1.0, 5, 4, 3, 2])
SIDE = 48


def ring(x: float, y: float, r: float) -> F64:
    """A thin circle in a square picture."""
    j, i = np.meshgrid(*[np.arange(SIDE) / (SIDE - 1)] * 2)
    away = np.hypot(i - y, j - x)
    picture: F64 = np.exp(-(((away - r) / 0.035) ** 2))
    return picture / picture.sum()


def interior(picture: F64, r: float) -> float:
    """The brightest pixel within half a radius of the centre of mass, over the brightest of all."""
    j, i = np.meshgrid(*[np.arange(SIDE) / (SIDE - 1)] * 2)
    mass = picture / picture.sum()
    away = np.hypot(i - (mass * i).sum(), j - (mass * j).sum())
    return float(picture[away < r / 2].max() / picture.max())


def program(M: F64) -> float:
    """The same transport as a linear program."""
    n, m = M.shape
    marginals = np.r_[np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))]
    return float(linprog(M.ravel(), A_eq=marginals, b_eq=np.r_[FROM, TO]).fun)


def largest_gap(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def peaks(p: F64) -> int:
    """Local maxima above a tenth of the largest value."""
    inner = (p[1:-1] > p[:-2]) & (p[1:-1] >= p[2:]) & (p[1:-1] > 0.1 * p.max())
    return int(inner.sum())


@experiment("MAT-x-transport", theme="mathematics", title="Transport averages shapes")
def transport(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Fifteen unit squares in columns of 5, 4, 3, 2, 1 become columns of 1, 5, 4, 3, 2. The cheapest
    plan for :math:`|x-y|^p` is monotone for every p ≥ 1: sorting and linear programming agree. The
    cost is 10 for p = 1 and for p = 2, so :math:`W_1 = 10` and :math:`W_2 = \sqrt{10}`; a plan that
    crosses pays more. The barycentre of circles is a circle, their pixel mean is not; half way
    between two bumps is one bump, not two halves.
    """
    grid = np.arange(5.0)
    plans: dict[int, Any] = {}
    costs, programs, sorted_costs = [], [], []
    for p in (1, 2):
        M = np.abs(grid[:, None] - grid) ** p
        plans[p] = ot.emd(FROM, TO, M)
        costs.append(float(plans[p].cost))
        programs.append(program(M))
        sorted_costs.append(15 * float(divergences.wasserstein_1d(grid, grid, p, FROM, TO)) ** p)
    i, j = np.nonzero(plans[2].plan)
    crossings = sum(
        bool(a < c and b > d) for a, b in zip(i, j, strict=True) for c, d in zip(i, j, strict=True)
    )
    swap = [2 * float(divergences.wasserstein_1d([0, 1], [1, 2], 2)) ** 2, float(2**2 + 0**2)]
    moved = 0.05 * Key.of(seed).fold("circles").numpy().uniform(-1, 1, (3, 2))
    circles = [ring(x + d[0], y + d[1], r) for (x, y, r), d in
               zip(((0.36, 0.38, 0.22), (0.62, 0.42, 0.2), (0.5, 0.62, 0.24)), moved, strict=True)]  # fmt: skip
    mean = np.mean(circles, axis=0)
    middle = ot.barycenter(circles, kind="images", eps=2e-3)
    holes = interior(middle, 0.22), interior(mean, 0.22)
    x = np.arange(101) / 100
    two = [np.exp(-0.5 * ((x - m) / 0.05) ** 2) for m in (0.25, 0.75)]
    two = [p / p.sum() for p in two]
    times = (0.0, 0.25, 0.5, 0.75, 1.0)
    path = [ot.geodesic(two[0], two[1], t, kind="images", eps=1e-3) for t in times]
    fade = [(1 - t) * two[0] + t * two[1] for t in times]
    claims = [
        Claim.close("W₁ of the squares", costs[0], 10.0, tol=1e-12),
        Claim.close("W₂ of the squares", math.sqrt(costs[1]), math.sqrt(10), tol=1e-12),
        Claim.at_most("network simplex less linear program", largest_gap(costs, programs), 1e-7),
        Claim.at_most("network simplex less sorting", largest_gap(costs, sorted_costs), 1e-9),
        Claim.equal("pairs of the plan for p = 2 that cross", crossings, 0),
        Claim.equal("p = 2: straight and crossing cost of two squares", swap, [2.0, 4.0]),
        Claim.below("barycentre of circles: interior over peak", holes[0], 0.2),
        Claim.above("pixel mean of circles: interior over peak", holes[1], 0.3),
        Claim.equal("bumps on the geodesic", [peaks(p) for p in path], [1] * 5),
        Claim.equal("bumps on the way of the mixture", [peaks(p) for p in fade], [1, 2, 2, 2, 1]),
        Claim.close("mean of the geodesic at t = ¼", float(path[1] @ x), 0.375, tol=2e-3),
    ]  # fmt: skip
    numbers = {"costs": costs, "programs": programs, "interior": list(holes), "swap": swap}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 5)
        axes[0].imshow(plans[2].plan, cmap="Blues", origin="lower")
        for k, value in enumerate(FROM):
            axes[0].text(4.7, k, f"{value:g}", va="center", color=COLOURS[0])
        for k, value in enumerate(TO):
            axes[0].text(k, 4.7, f"{value:g}", ha="center", color=COLOURS[1])
        axes[0].set(
            title="plan, p = 2", xlabel="to", ylabel="from", xlim=(-0.5, 5.2), ylim=(-0.5, 5.2)
        )
        axes[1].bar(grid - 0.2, FROM, 0.4, color=COLOURS[0], label="from")
        axes[1].bar(grid + 0.2, TO, 0.4, color=COLOURS[1], label="to")
        axes[1].set(title="the first column fills the hole behind it")
        axes[1].legend()
        for ax, picture, name in (
            (axes[2], mean, "pixel mean of three circles"),
            (axes[3], middle, "barycentre"),
        ):
            ax.imshow(picture, cmap="magma")
            ax.set(title=name, xticks=[], yticks=[])
        for t, p, q in zip(times, path, fade, strict=True):
            axes[4].plot(x, p / p.max() + 2.4 * t * 4, color=COLOURS[0])
            axes[4].plot(x, q / two[0].max() + 2.4 * t * 4, color=COLOURS[5], linestyle=":")
        axes[4].set(title="geodesic, and mixture (dotted)", yticks=[])

    return Result(claims, numbers, draw, size=(14.0, 3.2))
