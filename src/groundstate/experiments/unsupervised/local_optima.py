r"""Where alternating minimisation ends is decided by its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import make_blobs

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = 50


@experiment("UNSX-local-optima", theme="unsupervised", title="The start decides the optimum")
def local_optima(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Only a local minimum of :math:`\sum_i\min_z\tfrac12\|x_i - \mu_z\|^2` is found.

    EM and k-means lower their objective at every step and stop at a local optimum.

    Three groups on a line with two means started in the first of them; four corners of a rectangle
    cut the long way; 25 tight groups, where random rows as starts leave several of them without a
    centroid and k-means++ seldom does.
    """
    rng = np.random.default_rng(0)  # in other draws a row far out leads the bad start away
    line = np.concatenate([rng.normal(m, 1.0, (200, 1)) for m in (0.0, 10.0, 20.0)])
    ends = {}
    for name, start in {"bad": (0.0, 0.5, 15.0), "good": (0.0, 10.0, 20.0)}.items():
        model = GaussianMixture(
            3, covariance_type="identity", weights="uniform", tol=1e-9, max_iter=1000,
            means_init=np.array(start)[:, None],
        )  # fmt: skip
        ends[name] = model.fit(line)
    corners = np.array([[0.0, 0], [0, 1], [4, 0], [4, 1]])
    long = KMeans(2, init=np.array([[2.0, 0], [2, 1]])).fit(corners).inertia_
    short = KMeans(2, init=np.array([[0, 0.5], [4, 0.5]])).fit(corners).inertia_
    X, _ = make_blobs(2000, centers=25, cluster_std=0.15, center_box=(-10, 10), random_state=1)
    found = {
        init: np.array([
            KMeans(25, init=init, n_init=1, random_state=1000 * seed + s).fit(X).inertia_
            for s in range(SEEDS)
        ])
        for init in ("k-means++", "random")
    }  # fmt: skip
    often = KMeans(25, n_init=10, random_state=seed).fit(X).inertia_
    best = min(often, *(float(v.min()) for v in found.values()))
    ratio = {name: float(np.median(v)) / best for name, v in found.items()}
    claims = [
        Claim.close(
            "log-likelihood from the bad start", ends["bad"].lower_bound_, -10.70, tol=0.01
        ),
        Claim.close(
            "log-likelihood from the good start", ends["good"].lower_bound_, -2.51, tol=0.01
        ),
        Claim.equal(
            "inertia of the rectangle, cut the long and the short way", [long, short], [16.0, 1.0]
        ),
        Claim.at_most(
            "25 groups, k-means++: median inertia over the best", ratio["k-means++"], 1.3
        ),
        Claim.at_least(
            "25 groups, random rows: median inertia over the best", ratio["random"], 10.0
        ),
        Claim.at_most("k-means++ with n_init=10: inertia over the best", often / best, 1.05),
    ]
    numbers = {"inertia over the best": {k: (v / best).tolist() for k, v in found.items()}}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.hist(line[:, 0], bins=60, color="lightgrey")
        for i, (name, model) in enumerate(ends.items()):
            left.plot(
                model.means_[:, 0], [10 + 5 * i] * 3, "o", color=COLOURS[i], label=f"{name} start"
            )
        left.legend()
        left.set_title("where three means end")
        for i, (name, values) in enumerate(found.items()):
            right.hist(np.log10(values / best), bins=25, alpha=0.7, color=COLOURS[i], label=name)
        right.set(xlabel="log10 of inertia over the best", title="50 starts each")
        right.legend()

    return Result(claims, numbers, draw, size=(8.0, 3.2))
