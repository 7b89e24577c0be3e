r"""Dense regions get small widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.experiments.base import Claim, Result, experiment
from groundstate.math.manifold.affinities import conditional
from groundstate.math.neighbors.graph import nearest_others

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-bandwidth", theme="unsupervised", title="Dense regions get small widths")
def bandwidth(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Affinities :math:`p_{j\mid i} \propto e^{-d_{ij}^2/2\sigma_i^2}` have a width for each row, such
    that all have the same perplexity :math:`e^{H_i} = 30`. Of two clouds, one five times as wide as
    the other, the rows of the wide one get widths several times as large.
    """
    rng = Key.of(seed).fold("data").numpy()
    wide = rng.normal(0, 5, (300, 2)) + np.array([30.0, 0.0])
    X = np.concatenate([rng.normal(0, 1, (300, 2)), wide])
    distance, _ = nearest_others(torch.from_numpy(X), len(X) - 1)
    p, sigma = conditional(distance.numpy(), 30.0)
    reached = np.exp(-np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(1))
    ratio = float(np.median(sigma[300:]) / np.median(sigma[:300]))
    inside = float(np.corrcoef(np.linalg.norm(X[:300], axis=1), sigma[:300])[0, 1])
    claims = [
        Claim.above("median width, wide cloud over narrow one", ratio, 3.0),
        Claim.at_most("largest error of the perplexity", float(np.abs(reached - 30).max()), 1e-3),
        Claim.above("correlation of a width with the distance from the middle", inside, 0.8),
    ]
    numbers = {"ratio": ratio, "widths": [float(np.median(s)) for s in (sigma[:300], sigma[300:])]}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        dots = ax.scatter(X[:, 0], X[:, 1], c=sigma, s=10)
        ax.set(title="width of each row", aspect="equal")
        figure.colorbar(dots, ax=ax)

    return Result(claims, numbers, draw, size=(7.0, 3.2))
