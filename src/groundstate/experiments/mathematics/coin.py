r"""The likelihood of 49 heads in 80 tosses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import stats as st
from torch.distributions import Beta, Binomial

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import stats
from groundstate.math.distributions import conjugate_update

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADS, TOSSES = 49, 80
LISTED = {1 / 3: 2.08e-7, 1 / 2: 0.011836, 2 / 3: 0.054497, 0.6125: 0.091248}


@experiment("MAT-x-coin", theme="mathematics", title="The likelihood of a coin")
def coin(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`L(p) = \binom{80}{49}p^{49}(1 - p)^{31}` peaks at the share of heads, 49/80 = .6125.

    A grid, an optimiser over the log-odds started at random, and the mode of the posterior under a flat prior
    find the same point; the posterior is Beta(50, 32).
    """
    grid = np.linspace(0.001, 0.999, 9981)
    likelihood = st.binom.pmf(HEADS, TOSSES, grid)
    by_grid = float(grid[likelihood.argmax()])
    begin = float(Key.of(seed).fold("start").uniform(1)[0]) * 0.9 + 0.05
    found = stats.fit_mle(
        Binomial, [float(HEADS)], fixed={"total_count": TOSSES}, init={"probs": begin}
    )
    p = found.params["probs"]
    values = np.exp(found.profile("probs", list(LISTED))[1])
    flat = Beta(torch.tensor(1.0).double(), torch.tensor(1.0).double())
    after = conjugate_update(flat, [1.0] * HEADS + [0.0] * (TOSSES - HEADS))
    a, b = float(after.concentration1), float(after.concentration0)  # type: ignore[attr-defined]
    mode = (a - 1) / (a + b - 2)
    claims = [
        Claim.close("maximum on the grid", by_grid, 0.6125, tol=1e-4),
        Claim.close("maximum by the optimiser", p, 0.6125, tol=1e-6),
        Claim.close("mode of the posterior under a flat prior", mode, 0.6125, tol=1e-12),
        Claim.equal("posterior", (a, b), (50.0, 32.0)),
        *(
            Claim.close(f"L({at:.4g})", value, listed, tol=6e-4 * listed)
            for (at, listed), value in zip(LISTED.items(), values.tolist())
        ),
    ]
    numbers = {"grid": by_grid, "optimiser": p, "standard error": found.stderr["probs"],
               "L": values.tolist(), "posterior": [a, b]}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(grid, likelihood, color=COLOURS[0])
        left.plot(list(LISTED), values, "o", color=COLOURS[1])
        left.axvline(p, color=COLOURS[4], linewidth=0.8, linestyle=":", label="49/80")
        left.set(title="likelihood of 49 heads in 80", xlabel="p")
        left.legend()
        right.plot(grid, st.beta.pdf(grid, a, b), color=COLOURS[2], label="posterior Beta(50, 32)")
        right.plot(grid, np.ones_like(grid), color=COLOURS[5], linewidth=0.8, label="flat prior")
        right.set(title="the same curve, with area one", xlabel="p")
        right.legend()

    return Result(claims, numbers, draw)
