r"""Temperature turns a soft mixture into k-means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import make_blobs

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.clusters.soft_kmeans import SoftKMeans

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment(
    "UNSX-temperature", theme="unsupervised", title="Temperature turns a mixture into k-means"
)
def soft_to_hard(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Shares :math:`\mathrm{softmax}(-\tfrac12\|x-\mu_z\|^2/T)` of three fitted centroids lose their
    entropy as T falls, from log 3 to 0; at T = 1e-4 labels and centroids are those of k-means from the
    same start.
    """
    X, _ = make_blobs(300, centers=3, cluster_std=1.5, random_state=seed)
    start = KMeans(3, random_state=seed).fit(X).cluster_centers_ + 0.1
    sweep = np.geomspace(100, 1e-3, 13 if quick else 26)
    base = SoftKMeans(3, temperature=1.0, init=start, max_iter=2000).fit(X)
    entropy = []
    for T in sweep:
        r = base.set_params(temperature=float(T)).predict_proba(X)
        entropy.append(float(-(r * np.log(np.clip(r, 1e-300, 1.0))).sum(1).mean()))
    cold = SoftKMeans(3, temperature=1e-4, init=start, tol=0, max_iter=1000).fit(X)
    hard = KMeans(3, init=start, tol=0).fit(X)
    far = float(np.abs(cold.cluster_centers_ - hard.cluster_centers_).max())
    claims = [
        Claim.at_least("mean entropy at T = 100 over log 3", entropy[0] / math.log(3), 0.85),
        Claim.at_most("mean entropy at T = 0.001", entropy[-1], 1e-2),
        Claim.at_most(
            "largest rise of the entropy while T falls", float(np.diff(entropy).max()), 1e-12
        ),
        Claim.equal(
            "labels at T = 1e-4 are those of k-means",
            bool((cold.labels_ == hard.labels_).all()),
            True,
        ),
        Claim.at_most("largest distance of centroids at T = 1e-4", far, 1e-8),
    ]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        for ax, T in zip(axes, (10.0, 1.0, 0.05), strict=False):
            r = base.set_params(temperature=T).predict_proba(X)
            ax.scatter(*X.T, s=5, c=np.clip(r, 0, 1))
            ax.set(xticks=[], yticks=[], title=f"T = {T:g}")
        axes[3].plot(sweep, entropy, color=COLOURS[0])
        axes[3].axhline(math.log(3), ls="--", color="black", lw=1)
        axes[3].set(xscale="log", xlabel="T", title="entropy of the shares")

    return Result(claims, {"T": sweep.tolist(), "entropy": entropy}, draw, size=(10.0, 2.6))
