r"""Neighbours need scaled columns and suffer from idle ones."""

from __future__ import annotations

from itertools import product

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, clouds
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

IDLE = (0, 2, 5, 10, 20, 50, 100, 200)
CENTRES = [[-1.08, -1.08], [1.08, 1.08]]


def agreement(a: F64, b: F64) -> float:
    """Share of rows on which two labellings into two groups agree, up to names."""
    same = float((a == b).mean())
    return max(same, 1 - same)


def nearest_on_grid(d: int) -> int:
    """How many grid points are as near to the middle of a 3 × ... × 3 grid as the nearest one."""
    grid = np.array(list(product((-1.0, 0.0, 1.0), repeat=d)))
    others = grid[np.abs(grid).sum(1) > 0]
    model = KNeighborsClassifier(1).fit(others, np.zeros(len(others)))
    k = min(len(others), 2 * d + 2)
    away, _ = model.kneighbors(np.zeros((1, d)), n_neighbors=k)
    return int((away[0] <= away[0, 0] + 1e-9).sum())


@experiment("SUP-X-knn", theme="supervised", title="Neighbours need scaling")
def knn(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A vote of the k nearest uses :math:`d^2 = \sum_j(x_j - z_j)^2`: a column of noise a thousand
    times as wide decides it alone, and many idle columns drown the two that count. k-means uses the
    same distance and fails alike. A point of the grid :math:`\mathbb Z^d` has 2d neighbours, and
    :math:`10^{12}` rows fill :math:`10^{12}/2^{100}` of the corners of a cube in 100 dimensions.

    Two clouds, 500 rows to learn from and 1,000 to judge, 5 neighbours.
    """
    key = Key.of(seed)
    rng = key.fold("data").numpy()
    X, y = clouds(rng, CENTRES, 1.0, 1500)
    noise = rng.standard_normal((1500, 200))
    train, test = slice(0, 500), slice(500, None)

    def accuracy(rows: F64) -> float:
        return float(KNeighborsClassifier().fit(rows[train], y[train]).score(rows[test], y[test]))

    wide = np.column_stack([X, 1000 * noise[:, 0]])
    scaled = (wide - wide[train].mean(0)) / wide[train].std(0)
    plain, broken, mended = accuracy(X), accuracy(wide), accuracy(scaled)
    curve = [accuracy(np.column_stack([X, noise[:, :m]])) for m in IDLE]
    groups = {
        name: KMeans(2, random_state=0).fit(rows[train]).labels_
        for name, rows in (("plain", X), ("wide", wide), ("scaled", scaled))
    }
    moved = agreement(groups["plain"], groups["wide"])
    kept = agreement(groups["plain"], groups["scaled"])
    degrees = [nearest_on_grid(d) for d in range(1, 7)]
    share = 10**12 / 2**100
    claims = [
        Claim.at_least("accuracy on two columns", plain, 0.9),
        Claim.at_most("with a third, wide column of noise", broken, 0.55),
        Claim.at_least("with that column scaled", mended, 0.85),
        Claim.at_most("with 200 idle columns", curve[-1], 0.8),
        Claim.at_most("k-means: agreement of its labels with and without the wide column", moved, 0.7),
        Claim.at_least("k-means: the same with that column scaled", kept, 0.9),
        Claim.equal("neighbours on the grid, d = 1 to 6", degrees, [2, 4, 6, 8, 10, 12]),
        Claim.close("10¹² rows over 2¹⁰⁰ corners, in 1e-19", share * 1e19, 7.9, tol=0.05),
    ]  # fmt: skip
    numbers = {"accuracy": [plain, broken, mended], "idle": list(IDLE), "curve": curve,
               "k-means agreement": [moved, kept], "grid": degrees, "share": share}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.bar(["two columns", "and wide noise", "scaled"], [plain, broken, mended],
                 color=(COLOURS[0], COLOURS[4], COLOURS[2]))  # fmt: skip
        left.axhline(0.5, color="black", linewidth=0.6, linestyle=":")
        left.set(title="accuracy of 5 neighbours", ylim=(0, 1))
        middle.plot(IDLE, curve, "o-", color=COLOURS[0])
        middle.set(
            title="idle columns", xlabel="columns of noise", ylabel="accuracy", ylim=(0.5, 1)
        )
        for name, marker, at in (("plain", "o", 0.0), ("wide", "s", 6.0)):
            for g in (0, 1):
                own = X[train][groups[name] == g]
                right.scatter(own[:, 0] + at, own[:, 1], s=5, color=COLOURS[g], marker=marker)
        right.set(title="k-means: two columns, and with wide noise", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(11.0, 3.3))
