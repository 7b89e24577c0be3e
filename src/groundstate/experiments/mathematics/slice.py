r"""Points have probability zero, intervals do not; slices and shadows of a Gaussian are Gaussian."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import stats
from torch.distributions import Uniform

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.distributions import gaussian, prob

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = (1.0, 0.1, 0.01, 0.001, 1e-5)
RHO, CUT, HALF = 0.7, 1.2, 0.02
ROWS = 400_000


@experiment("MAT-x-slice", theme="mathematics", title="Slices and shadows of a density")
def slice_(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Bacteria live a time T uniform on [4, 6] hours. None lives exactly 5 hours: :math:`P(T = 5) = 0`, but
    :math:`P(5 \le T \le 5 + h)/h \to f(5) = \tfrac12`. A bivariate normal distribution with correlation ρ has a
    normal marginal, and among 400,000 draws those with x within .02 of 1.2 have
    :math:`y \sim N(1.2\rho, 1 - \rho^2)`: a cut through the density, divided by its area.
    """
    lifetime = Uniform(torch.tensor(4.0).double(), torch.tensor(6.0).double())
    chance = [float(prob(lifetime, 5.0, 5.0 + h)) for h in WIDTHS]
    ratio = [p / h for p, h in zip(chance, WIDTHS)]
    S = np.array([[1.0, RHO], [RHO, 1.0]])
    mean, cov = gaussian.condition((np.zeros(2), S), [0], [CUT])
    m, s = float(mean[0]), math.sqrt(float(cov[0, 0]))
    rows = Key.of(seed).fold("rows").numpy().multivariate_normal(np.zeros(2), S, ROWS)
    near = rows[np.abs(rows[:, 0] - CUT) < HALF, 1]
    cut_p = float(stats.kstest(near, stats.norm(m, s).cdf).pvalue)
    shadow_p = float(stats.kstest(rows[:, 1], "norm").pvalue)
    error = s / math.sqrt(len(near))
    claims = [
        Claim.close("P(5 ≤ T ≤ 5.01)", chance[2], 0.005, tol=1e-12),
        Claim.close("P(5 ≤ T ≤ 5 + h)/h at h = 1e-5", ratio[-1], 0.5, tol=1e-9),
        Claim.equal("P(T = 5)", float(prob(lifetime, 5.0, 5.0)), 0.0),
        Claim.above("the cut is normal: p of a Kolmogorov-Smirnov test", cut_p, 0.01),
        Claim.above("the marginal is normal: p", shadow_p, 0.01),
        Claim.at_most(
            "mean of the cut: error in standard errors", abs(near.mean() - m) / error, 4.0
        ),
        Claim.close("variance of the cut", float(near.var()), 1 - RHO**2, tol=0.06),
    ]
    numbers = {"chance": chance, "ratio": ratio, "rows in the cut": len(near), "p": [cut_p, shadow_p],
               "conditional": [m, s**2]}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.plot([3.5, 4, 4, 6, 6, 6.5], [0, 0, 0.5, 0.5, 0, 0], color=COLOURS[0])
        for h, colour in zip((1.0, 0.3, 0.05), COLOURS[1:]):
            left.fill_between([5, 5 + h], 0.5, color=colour, alpha=0.5, label=f"{h / 2:.3g}")
        left.set(title="lifetime: P(5 ≤ T ≤ 5 + h)", xlabel="hours", ylim=(0, 0.7))
        left.legend()
        grid = np.linspace(-3.2, 3.2, 120)
        at = np.stack(np.meshgrid(grid, grid), -1)
        middle.contour(grid, grid, stats.multivariate_normal(np.zeros(2), S).pdf(at), 8,
                       colors=COLOURS[5], linewidths=0.7)  # fmt: skip
        middle.axvline(CUT, color=COLOURS[1])
        middle.set(title="density and cut at x = 1.2", xlabel="x", ylabel="y", aspect="equal")
        right.hist(near, 50, density=True, color=COLOURS[1], alpha=0.4, label="cut, renormalised")
        right.plot(grid, stats.norm(m, s).pdf(grid), color=COLOURS[1])
        right.plot(grid, stats.norm.pdf(grid), color=COLOURS[0], label="marginal")
        right.set(title="y", xlabel="y")
        right.legend()

    return Result(claims, numbers, draw, size=(10.5, 3.3))
