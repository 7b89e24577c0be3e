r"""A mixture can have more modes than components, and a credible set can split."""

from __future__ import annotations

import math

import numpy as np
import torch

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.distributions.gaussian_mixtures import GaussianMixtureDistribution
from groundstate.math.distributions.highest_density import density_set
from groundstate.math.distributions.mixture_modes import modes as modes_of

SIDE = 2.4
CORNERS = [[0.0, 0.0], [SIDE, 0.0], [SIDE / 2, SIDE * math.sqrt(0.75)]]


def mixture(means: list[list[float]]) -> GaussianMixtureDistribution:
    """Equal weights and unit scales at these means."""
    mu = torch.tensor([means], dtype=torch.float64)
    k = len(means)
    weights = torch.full((1, k), -math.log(k), dtype=torch.float64)
    return GaussianMixtureDistribution(weights, mu, torch.ones(1, k, 1, dtype=torch.float64))


@experiment("SUP-X-modes", theme="supervised", title="More modes than components")
def modes(seed: int = 0, *, quick: bool = False) -> Result:
    r"""In the plane :math:`\tfrac13\sum_zN(\mu_z, I)` with means on a triangle of side 2.4 has four modes:
    three near the corners and one at the centroid. On the line the smallest set with probability
    0.9, :math:`\{y : p(y) \ge t\}`, of :math:`\tfrac12N(-3, 1) + \tfrac12N(3, 1)` is two intervals, and
    shorter than the one between the 5 % and 95 % quantiles.

    Both distributions are given; nothing is drawn at random.
    """
    triangle = mixture(CORNERS)
    found = modes_of(triangle)[0].numpy()
    centroid = np.mean(CORNERS, axis=0)
    away = np.linalg.norm(found - centroid, axis=1)
    heights = triangle.log_prob(torch.from_numpy(found)[:, None]).exp()[:, 0].numpy()
    line = mixture([[-3.0], [3.0]])
    held = density_set(line, 0.9)
    assert held.intervals is not None
    pieces = held.intervals[0].numpy()
    length = float(held.volume[0])
    y = torch.linspace(-9, 9, 180_001, dtype=torch.float64)
    below = line.cdf(y[:, None, None])[:, 0].numpy()
    central = [float(y[np.searchsorted(below, q)]) for q in (0.05, 0.95)]
    ratio = length / (central[1] - central[0])
    claims = [
        Claim.equal("triangle: modes", len(found), 4),
        Claim.equal("triangle: modes at the centroid", int((away < 1e-6).sum()), 1),
        Claim.equal("line: intervals", len(pieces), 2),
        Claim.close("line: threshold", float(held.threshold[0]), 0.0516, tol=1e-4),
        Claim.close("line: inner end", float(pieces[1, 0]), 1.355, tol=2e-3),
        Claim.close("line: outer end", float(pieces[1, 1]), 4.645, tol=2e-3),
        Claim.close("line: length of the set", length, 6.58, tol=0.01),
        Claim.close(
            "line: length of the central interval", central[1] - central[0], 8.56, tol=0.01
        ),
        Claim.at_most("line: set over central interval", ratio, 0.8),
    ]
    numbers = {"modes": found.tolist(), "heights": heights.tolist(), "intervals": pieces.tolist(),
               "central": central, "ratio": ratio}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        a, b = np.linspace(-0.6, 3.0, 120), np.linspace(-0.7, 2.8, 120)
        A, B = np.meshgrid(a, b)
        points = torch.from_numpy(np.stack([A, B], -1).reshape(-1, 1, 2))
        p = triangle.log_prob(points).exp().reshape(120, 120).numpy()
        left.contour(
            a, b, p, levels=np.linspace(p.max() * 0.8, p.max(), 22), cmap="viridis", linewidths=0.7
        )
        left.plot(*np.array(CORNERS).T, "^", color=COLOURS[5], label="means")
        left.plot(*found.T, "o", color=COLOURS[1], label="modes")
        left.set(title="three components, four modes", aspect="equal")
        left.legend()
        t = torch.linspace(-7, 7, 700, dtype=torch.float64)
        density = line.log_prob(t[:, None, None]).exp()[:, 0].numpy()
        right.plot(t, density, color=COLOURS[0])
        right.fill_between(t, 0, density, where=density >= float(held.threshold[0]),
                           color=COLOURS[0], alpha=0.3, label=f"smallest set: {length:.2f}")  # fmt: skip
        right.axhline(float(held.threshold[0]), color="black", linewidth=0.6, linestyle=":")
        right.plot(central, [-0.006] * 2, "|-", color=COLOURS[1],
                   label=f"central interval: {central[1] - central[0]:.2f}")  # fmt: skip
        right.set(title="90 % of a distribution with two humps", xlabel="y", ylim=(-0.012, 0.27))
        right.legend()

    return Result(claims, numbers, draw, size=(8.5, 3.6))
