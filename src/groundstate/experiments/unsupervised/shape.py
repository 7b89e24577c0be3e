r"""Round clusters are an assumption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-shape", theme="unsupervised", title="Round clusters are an assumption")
def shape(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The energy :math:`\tfrac12\|x - \mu_z\|^2` takes every cluster to be round.

    Three groups drawn out in one direction (blobs of seed 170, sheared): k-means cuts them across,
    a mixture with full or tied covariances finds them, one with axis-parallel ones does not. The seed
    is that of the starts.
    """
    X, y = make_blobs(1500, random_state=170)
    X = X @ np.array([[0.6, -0.6], [-0.4, 0.8]])
    found = {"k-means": KMeans(3, n_init=5, random_state=seed).fit(X).labels_}
    for kind in ("full", "tied", "diag"):
        model = GaussianMixture(3, covariance_type=kind, n_init=5, random_state=seed, max_iter=500)
        found[kind] = model.fit(X).predict(X)
    ari = {name: float(adjusted_rand_score(y, z)) for name, z in found.items()}
    claims = [
        Claim.close("adjusted Rand index of k-means", ari["k-means"], 0.61, tol=0.03),
        Claim.at_least("of a mixture with full covariances", ari["full"], 0.99),
        Claim.at_least("of a mixture with one covariance", ari["tied"], 0.99),
        Claim.close("of a mixture with diagonal ones", ari["diag"], 0.53, tol=0.15),
    ]

    def draw(figure: Figure) -> None:
        for ax, (name, z) in zip(figure.subplots(1, 4), found.items(), strict=True):
            ax.scatter(*X.T, s=2, c=[COLOURS[int(i)] for i in z])
            ax.set(xticks=[], yticks=[], title=f"{name}: {ari[name]:.2f}")

    return Result(claims, {"ari": ari}, draw, size=(9.0, 2.6))
