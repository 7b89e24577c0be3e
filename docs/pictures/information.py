"""Pictures of divergences and of transport."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure
from torch.distributions import Normal

from groundstate import divergences, transport


def curves() -> Figure:
    """KL, JS and Wasserstein distance of two normal distributions that move apart."""
    fig, (left, right) = figure(2)
    shift = torch.linspace(0, 6, 61, dtype=torch.float64)
    one = torch.ones_like(shift)
    here, there = Normal(0 * shift, one), Normal(shift, one)
    rows = {
        "KL": divergences.kl(here, there),
        "JS": divergences.js(here, there),
        "W₂": divergences.wasserstein_1d(here, there, 2),
    }
    for colour, (name, values) in zip(COLOURS, rows.items(), strict=False):
        left.plot(shift, values, color=colour, label=name)
    left.set(ylim=(0, 6), xlabel="distance of the means", title="of two normal distributions")
    left.legend(frameon=False, fontsize=8)
    q = np.linspace(0.001, 0.999, 200)
    two = np.stack([q, 1 - q], 1)
    for colour, (name, f) in zip(
        COLOURS,
        {"KL": divergences.kl, "χ²": divergences.chi2, "Hellinger": divergences.hellinger,
         "total variation": divergences.tv}.items(),
        strict=True,
    ):  # fmt: skip
        right.plot(q, f(np.array([0.5, 0.5]), two), color=colour, label=name)
    right.set(ylim=(0, 2), xlabel="q", title="of the coins ½ and q")
    right.legend(frameon=False, fontsize=8)
    return fig


def moving() -> Figure:
    """A barycentre of circles, and a cloud on its way to another."""
    fig, (left, middle, right) = figure(3, width=9.0, height=3.0)
    side = np.arange(40) / 39
    x, y = np.meshgrid(side, side)
    circles = [
        np.exp(-(((np.hypot(x - a, y - b) - r) / 0.04) ** 2))
        for a, b, r in ((0.35, 0.4, 0.2), (0.65, 0.4, 0.2), (0.5, 0.65, 0.25))
    ]
    left.imshow(np.mean(circles, axis=0), cmap="magma")
    left.set(title="mean of pixels", xticks=[], yticks=[])
    middle.imshow(transport.barycenter(circles, kind="images", eps=2e-3, tol=1e-4), cmap="magma")
    middle.set(title="barycentre", xticks=[], yticks=[])
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 80)
    X = rng.normal(size=(80, 2)) * 0.4
    Y = np.stack([4 + np.cos(angle), np.sin(angle)], 1)
    for colour, t in zip((COLOURS[0], COLOURS[3], COLOURS[1]), (0.0, 0.5, 1.0), strict=True):
        points = transport.geodesic(X, Y, t).points
        right.scatter(*points.T, s=8, color=colour, label=f"t = {t:g}")
    right.set(title="displacement interpolation", xticks=[], yticks=[])
    right.legend(frameon=False, fontsize=8)
    return fig


PICTURES = {"divergences": curves, "transport": moving}
