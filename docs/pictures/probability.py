"""Pictures of distributions and of Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import distributions, stats

SHAPES = ((2.0, 0.0), (1.5, 0.0), (1.5, 0.9), (0.8, 0.5))


def stable() -> Figure:
    """Four stable densities, and what lies beyond x."""
    fig, (left, right) = figure(2)
    x = torch.linspace(-6, 6, 401, dtype=torch.float64)
    far = torch.logspace(0, 3.5, 220, dtype=torch.float64)
    for (alpha, beta), colour in zip(SHAPES, COLOURS):
        p = distributions.Stable(alpha, beta)
        name = f"α = {alpha:g}, β = {beta:g}"
        left.plot(x.numpy(), p.log_prob(x).exp().numpy(), color=colour, label=name)
        rest = 1 - p.cdf(far).numpy()
        right.loglog(far.numpy()[rest > 1e-8], rest[rest > 1e-8], color=colour)
    left.set(title="density", xlabel="x")
    left.legend(frameon=False, fontsize="small")
    right.set(title="P(X > x)", xlabel="x")
    return fig


def monte_carlo() -> Figure:
    """Standard errors of plain, mirrored, controlled and evenly spread draws of E exp(Z)."""
    one = torch.tensor(1.0).double()
    normal = torch.distributions.Normal(0 * one, one)
    ways = {
        "plain": {},
        "mirror images": {"antithetic": True},
        "control variate": {"control": (lambda v: v, 0.0)},
        "Sobol points": {"qmc": "sobol"},
    }
    sizes = np.array([1000, 4000, 16_000, 64_000])
    fig, (ax,) = figure(1, 5.0)
    for (name, how), colour in zip(ways.items(), COLOURS):
        errors = [
            np.mean([float(stats.expect_mc(torch.exp, normal, int(n), random_state=i, **how).stderr)
                     for i in range(6)])
            for n in sizes
        ]  # fmt: skip
        ax.loglog(sizes, errors, "o-", color=colour, label=name)
    ax.loglog(sizes, math.sqrt(math.e**2 - math.e) / np.sqrt(sizes), ":", color="black")
    ax.set(title="standard error of E exp(Z)", xlabel="draws")
    ax.legend(frameon=False, fontsize="small")
    return fig


PICTURES = {"stable": stable, "monte-carlo": monte_carlo}
