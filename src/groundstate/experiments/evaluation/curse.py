r"""In many dimensions a sample covers nothing and all distances are alike."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import Rng, clouds
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

NOISE = (0, 1, 2, 5, 10, 20, 50, 100)
DIMS = (2, 10, 100, 1000)


def accuracy(rng: Rng, idle: int) -> float:
    """Of five neighbours on two clouds with so many columns of noise beside."""
    (X, y), (Z, t) = (clouds(rng, [[-1.0, 0.0], [1.0, 0.0]], 1.0, n) for n in (200, 500))
    X, Z = (np.hstack([A, rng.standard_normal((len(A), idle))]) for A in (X, Z))
    return float(KNeighborsClassifier(n_neighbors=5).fit(X, y).score(Z, t))


def contrast(rng: Rng, d: int, points: int = 500) -> float:
    """(max − min)/min of the distances from a point of the cube to the others."""
    cube = rng.random((points, d))
    far = np.linalg.norm(cube[1:] - cube[0], axis=1)
    return float((far.max() - far.min()) / far.min())


def neighbours(d: int) -> int:
    """Points of the grid of whole numbers at distance 1 from the middle one, by counting all."""
    steps = np.array(list(product((-1, 0, 1), repeat=d)))
    return int((np.abs(steps).sum(1) == 1).sum())


@experiment(
    "EVA-X-curse",
    theme="evaluation",
    title="A fixed sample covers nothing in high dimension",
)
def curse(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The cube of d dimensions has :math:`2^d` corners: :math:`10^{12}` rows reach a share of
    :math:`10^{12}/2^{100} = 7.9\cdot10^{-19}` of those in 100 dimensions. A grid point has 2d
    neighbours, the distances to all rows become alike, :math:`(\max - \min)/\min \to 0`, and
    features that say nothing drown those that do.

    Five neighbours on 200 rows with 0 to 100 idle columns, 12 repeats; 500 uniform points in 2 to
    1,000 dimensions, medians of 60; grids of 1 to 8 dimensions counted out.
    """
    key = Key.of(seed)
    repeats = 6 if quick else 12
    scores = [
        float(np.mean([accuracy(key.fold("rows", k, r).numpy(), k) for r in range(repeats)]))
        for k in NOISE
    ]
    spreads = [
        float(np.median([contrast(key.fold("cube", d, r).numpy(), d) for r in range(5 * repeats)]))
        for d in DIMS
    ]
    counted = [neighbours(d) for d in range(1, 9)]
    rank = float(spearmanr(NOISE, scores).statistic)
    share = 1e12 / 2.0**100
    claims = [
        Claim.below("rank correlation of accuracy with idle columns", rank, -0.9),
        Claim.equal(
            "neighbours in the grid of 1 to 8 dimensions", counted, [2 * d for d in range(1, 9)]
        ),
        Claim.between("contrast in 2 dimensions", spreads[0], 20, 80),
        Claim.close("contrast in 100 dimensions", spreads[2], 0.36, tol=0.07),
        Claim.close("contrast in 1000 dimensions", spreads[3], 0.11, tol=0.01),
        Claim.below(
            "largest contrast over the one before",
            max(b / a for a, b in pairwise(spreads)),
            1.0,
        ),
        Claim.close("10¹²/2¹⁰⁰, in 1e-19", share * 1e19, 7.9, tol=0.05),
    ]
    numbers = {
        "idle columns": list(NOISE),
        "accuracy": scores,
        "dimensions": list(DIMS),
        "contrast": spreads,
        "corners reached": share,
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(NOISE, scores, "o-", color=COLOURS[0])
        left.set(xlabel="columns that say nothing", ylabel="accuracy of 5 neighbours")
        for d, colour in zip(DIMS, COLOURS):
            far = pdist(key.fold("picture", d).numpy().random((120, d)))
            right.hist(
                far / far.mean(),
                60,
                range=(0, 2.5),
                density=True,
                histtype="step",
                color=colour,
                label=f"d = {d}",
            )
        right.set(xlabel="distance over its mean", ylim=(0, 8), title="pairs of uniform points")
        right.legend()

    return Result(claims, numbers, draw)
