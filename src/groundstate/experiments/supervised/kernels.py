r"""A Gaussian kernel bends more than a low-degree polynomial; its map has no end."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.data.builtin.generators import spirals
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, Rng, regions
from groundstate.math.kernels import RBF
from groundstate.math.kernels.feature_maps import RBFTaylor
from groundstate.models.svm.svc import SVC

ORDERS = tuple(range(21))


def moons(rng: Rng, n: int) -> tuple[F64, Any]:
    """Two half circles that interlock."""
    y = np.arange(n) % 2
    a = rng.uniform(0, np.pi, n)
    X = np.column_stack([np.cos(a), np.sin(a)])
    X[y == 1] = np.column_stack([1 - np.cos(a), 0.5 - np.sin(a)])[y == 1]
    return X + 0.12 * rng.standard_normal((n, 2)), y


def rings(rng: Rng, n: int) -> tuple[F64, Any]:
    """A circle in a circle."""
    y = np.arange(n) % 2
    a = rng.uniform(0, 2 * np.pi, n)
    X = np.where(y == 1, 0.5, 1.2)[:, None] * np.column_stack([np.cos(a), np.sin(a)])
    return X + 0.12 * rng.standard_normal((n, 2)), y


@experiment(
    "SUP-X-kernels", theme="supervised", title="Gaussian kernels bend more than cubics", slow=True
)
def kernels(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The features of :math:`(x^\top z + 1)^3` are the monomials up to degree 3; those of
    :math:`e^{-\gamma\|x-z\|^2} = e^{-\gamma\|x\|^2 - \gamma\|z\|^2}\sum_k(2\gamma x^\top z)^k/k!`
    have no end: the Gram matrix of n distinct points has rank n, and a partial sum of the series
    converges factorially.

    Moons, rings and two spirals of 300 rows each with linear, cubic and Gaussian kernels, C = 10.
    """
    key = Key.of(seed)
    scenes = {
        "moons": moons(key.fold("moons").numpy(), 600),
        "rings": rings(key.fold("rings").numpy(), 600),
        "spirals": spirals(key.fold("spirals").numpy(), 600, 0.05, turns=1.75),
    }
    machines: dict[str, dict[str, Any]] = {
        "linear": {"kernel": "linear"},
        "cubic": {"kernel": "poly", "degree": 3, "coef0": 1.0},
        "Gaussian": {"kernel": "rbf", "gamma": 4.0},
    }
    fitted = {
        (s, m): SVC(C=10.0, **options).fit(X, y)
        for s, (X, y) in scenes.items()
        for m, options in machines.items()
    }
    score = {f"{s}, {m}": float(model.score(*scenes[s])) for (s, m), model in fitted.items()}
    rng = key.fold("points").numpy()
    points = np.column_stack([np.linspace(0, 10, 30), rng.standard_normal(30)])
    gram = RBF(1.0)(points, points)
    rank = int(np.linalg.matrix_rank(np.asarray(gram)))
    sizes = (5, 10, 20, 50, 100)
    ranks = [
        int(np.linalg.matrix_rank(np.asarray(RBF(1.0)(np.linspace(0, n, n)[:, None]))))
        for n in sizes
    ]
    x = rng.uniform(-1, 1, (40, 2))
    exact = np.asarray(RBF(1.0)(x, x))
    errors = []
    for order in ORDERS:
        phi = RBFTaylor(order, 0.5)(x)
        errors.append(float(np.abs(phi @ phi.T - exact).max()))
    claims = [
        Claim.at_most("spirals, linear", score["spirals, linear"], 0.7),
        Claim.at_most("spirals, cubic", score["spirals, cubic"], 0.9),
        Claim.at_least("spirals, Gaussian", score["spirals, Gaussian"], 0.98),
        Claim.equal("rank of the Gram matrix of 30 points", rank, 30),
        Claim.equal("ranks of Gram matrices of 5 to 100 points", ranks, list(sizes)),
        Claim.below(
            "largest error of an order over the one before, to order 12",
            max(b / a for a, b in pairwise(errors[:13])),
            1.0,
        ),
        Claim.below("error of the series to order 20", errors[-1], 1e-10),
    ]
    numbers = {"accuracy": score, "rank": rank, "error by order": errors}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(3, 4)
        for row, (s, (X, y)) in zip(axes, scenes.items()):
            for ax, m in zip(row, machines):
                regions(ax, X[:300], y[:300], fitted[s, m].predict, n=90)
                ax.set_title(f"{s}, {m}: {score[f'{s}, {m}']:.2f}")
        axes[0, 3].semilogy(ORDERS, errors, "o-", color=COLOURS[0], markersize=3)
        axes[0, 3].set(title="series of the Gaussian kernel", xlabel="order", ylabel="error")
        axes[1, 3].semilogy(
            np.linalg.eigvalsh(np.asarray(gram))[::-1], "o", color=COLOURS[1], markersize=3
        )
        axes[1, 3].set(title="spectrum of a Gram matrix", xlabel="rank")
        axes[2, 3].set_axis_off()

    return Result(claims, numbers, draw, size=(11.0, 7.6))
