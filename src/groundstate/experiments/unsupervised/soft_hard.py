r"""Hard centroids sit further apart than soft means, and hard codes are cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.clusters.codes import bits, pack_labels, unpack_labels
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.clusters.soft_kmeans import SoftKMeans

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE = np.array([[-2.0], [-1.0], [1.0], [3.0]])
START = np.array([[-1.0], [1.0]])


@experiment("UNSX-soft-hard", theme="unsupervised", title="Hard centroids are further apart")
def soft_hard_centres(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Shares at T = 1 against labels at T = 0 of :math:`\tfrac12\|x - \mu_z\|^2`.

    Sharing rows pulls centres towards each other: at T = 1 each also owns a part of the other's
    rows. A hard label needs ⌈log₂ k⌉ bits, shares k numbers.
    """
    hard = KMeans(2, init=START, tol=0).fit(LINE).cluster_centers_.ravel()
    soft = SoftKMeans(2, init=START, tol=1e-14, max_iter=5000).fit(LINE).cluster_centers_.ravel()
    labels = np.random.default_rng(seed).integers(0, 10, 1001)
    packed = pack_labels(labels, 10)
    claims = [
        Claim.close("distance of the hard centroids", hard[1] - hard[0], 3.5, tol=1e-12),
        Claim.close("distance of the soft means", soft[1] - soft[0], 3.424608, tol=1e-6),
        Claim.equal(
            "bits of a hard and of a soft code, k = 10, 32-bit numbers",
            [bits(10), 10 * 32],
            [4, 320],
        ),
        Claim.equal(
            "labels come back", bool((unpack_labels(packed, 10, 1001) == labels).all()), True
        ),
        Claim.equal("bytes of 1001 packed labels", len(packed), 501),
    ]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.plot(LINE[:, 0], np.zeros(4), "k|", ms=14)
        ax.plot(hard, [1, 1], "o", color=COLOURS[0], label="T = 0: k-means")
        ax.plot(soft, [2, 2], "o", color=COLOURS[1], label="T = 1: mixture")
        ax.set(yticks=[], ylim=(-0.5, 3), title="centres of four points")
        ax.legend()

    return Result(claims, {"hard": hard.tolist(), "soft": soft.tolist()}, draw, size=(5.0, 2.4))
