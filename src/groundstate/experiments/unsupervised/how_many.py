r"""The number of clusters from the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import make_blobs

from groundstate.evaluate.clusters import select_n_clusters
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.mixtures.bayesian_gaussian_mixture import BayesianGaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-how-many", theme="unsupervised", title="How many clusters there are", slow=True)
def how_many(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Compare :math:`-2\ell + q\log n`, silhouettes and variational weights.

    Three groups of unit width. The information criterion and the silhouette are best at three, and
    of ten components of a variational mixture three keep weight.
    """
    X, _ = make_blobs(600, centers=[[0, 0], [5, 0], [0, 5]], random_state=seed)
    bic = select_n_clusters(X, range(1, 8), criterion="bic", random_state=seed)
    silhouette = select_n_clusters(X, range(2, 8), criterion="silhouette", random_state=seed)
    model = BayesianGaussianMixture(10, random_state=seed, max_iter=1500, tol=1e-4).fit(X)
    weights = np.sort(model.weights_)[::-1]
    claims = [
        Claim.equal("clusters by the information criterion", bic.best, 3),
        Claim.equal("clusters by the silhouette", silhouette.best, 3),
        Claim.equal("variational weights above 0.01", int((weights > 0.01).sum()), 3),
        Claim.at_most("largest fall of the variational bound",
                      float(-np.diff(model.lower_bounds_).min()), 1e-6),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(bic.n_clusters, bic.scores, marker="o", color=COLOURS[0])
        left.set(xlabel="clusters", title="information criterion, low is good")
        right.bar(range(10), weights, color=COLOURS[1])
        right.set(xlabel="component", title="weights of a variational mixture")

    numbers = {"bic": list(bic.scores), "weights": weights.tolist()}
    return Result(claims, numbers, draw, size=(8.0, 3.0))
