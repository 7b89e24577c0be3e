r"""Neighbours and k-means both need columns of comparable scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import adjusted_rand_score

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.experiments.supervised.scenes import clouds
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-scaling", theme="unsupervised", title="k-means needs comparable scales too")
def scaling(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Both k-means, :math:`\min\sum_i\|x_i - \mu_{z_i}\|^2`, and neighbours use
    :math:`\sum_j(x_j - x'_j)^2`: a column a thousand times as wide decides it alone, whether it says
    anything or not. k-means is no exception, as is sometimes said.

    Two round clouds, 6 standard deviations apart in the first column; the second column times 1,000.
    """
    key = Key.of(seed)
    X, y = clouds(key.fold("rows").numpy(), [[-3.0, 0.0], [3.0, 0.0]], 1.0, 600)
    wide = X * [1.0, 1000.0]
    scaled = wide / wide.std(0)
    labels = {n: KMeans(2, n_init=10, random_state=0).fit(A).labels_
              for n, A in (("plain", X), ("wide", wide), ("scaled", scaled))}  # fmt: skip
    ari = {name: float(adjusted_rand_score(y, found)) for name, found in labels.items()}

    def accuracy(rows: np.ndarray) -> float:
        model = KNeighborsClassifier(5).fit(rows[:300], y[:300])
        return float(model.score(rows[300:], y[300:]))

    right = {"plain": accuracy(X), "wide": accuracy(wide), "scaled": accuracy(scaled)}
    claims = [
        Claim.at_least("k-means: agreement with the clouds", ari["plain"], 0.97),
        Claim.below("k-means: with one wide column", ari["wide"], 0.05),
        Claim.at_least("k-means: columns divided by their spread", ari["scaled"], 0.97),
        Claim.at_least("5 neighbours: accuracy", right["plain"], 0.98),
        Claim.at_most("5 neighbours: with one wide column", right["wide"], 0.85),
        Claim.at_least("5 neighbours: columns divided by their spread", right["scaled"], 0.98),
    ]
    numbers = {"k-means": ari, "neighbours": right}

    def draw(figure: Figure) -> None:
        for ax, name in zip(figure.subplots(1, 3), labels):
            for g in (0, 1):
                ax.plot(*X[labels[name] == g].T, ".", color=COLOURS[g], markersize=3)
            ax.set(title=f"{name}: agreement {ari[name]:.2f}", aspect="equal")

    return Result(claims, numbers, draw, size=(10.0, 3.4))
