r"""An F test against a spline finds curvature."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, Rng
from groundstate.math.stats.linearity import linearity_test
from groundstate.models.linear.least_squares.linear_regression import LinearRegression
from groundstate.models.linear.least_squares.smoothing_spline_regressor import (
    SmoothingSplineRegressor,
)

BENDS = (0.0, 0.25, 0.5, 1.0)
ROWS = 100


def rows(rng: Rng, bend: float) -> tuple[F64, F64]:
    """x in [−2, 2] and y = x + c sin 2x + N(0, 1)."""
    x = rng.uniform(-2, 2, ROWS)
    return x, x + bend * np.sin(2 * x) + rng.standard_normal(ROWS)


@experiment("SUP-X-linearity", theme="supervised", title="The F test detects curvature", slow=True)
def linearity(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A line is a spline without bends, so :math:`F = \frac{(SSE_1 - SSE_2)/(k_2 - k_1)}{SSE_2/(n - k_2)}`
    follows an F distribution when the truth is straight: p is uniform, and p < .05 in one of twenty
    tables. With a bend the share of small p is the power.

    :math:`y = x + c\sin2x + N(0, 1)`, 100 rows, 1,000 tables for each c; a natural cubic spline with five
    knots.
    """
    key = Key.of(seed)
    repeats = 300 if quick else 1000
    p: dict[float, F64] = {}
    for bend in BENDS:
        rng = key.fold("bend", str(bend)).numpy()
        p[bend] = np.array([linearity_test(*rows(rng, bend)).pvalue for _ in range(repeats)])
    share = {bend: float((values < 0.05).mean()) for bend, values in p.items()}
    even = float(np.abs(np.sort(p[0.0]) - (np.arange(repeats) + 0.5) / repeats).max())
    claims = [
        Claim.close("share of p < .05 on straight tables", share[0.0], 0.05, tol=0.02),
        Claim.at_most("distance of p from uniform on straight tables", even, 1.63 / repeats**0.5),
        Claim.at_least("power at c = .5", share[0.5], 0.6),
        Claim.equal("power grows with c", sorted(share.values()) == list(share.values()), True),
    ]
    numbers = {"share of p < .05": {str(b): s for b, s in share.items()}, "distance": even}

    def draw(figure: Figure) -> None:
        power, *examples = figure.subplots(1, 3)
        power.plot(BENDS, list(share.values()), "o-", color=COLOURS[0])
        power.axhline(0.05, color="black", linewidth=0.6, linestyle=":")
        power.set(title="share of p < .05", xlabel="bend c", ylim=(0, 1.03))
        t = np.linspace(-2, 2, 200)[:, None]
        for ax, bend in zip(examples, (0.0, 1.0)):
            x, y = rows(key.fold("picture", str(bend)).numpy(), bend)
            ax.scatter(x, y, s=8, color=COLOURS[5], alpha=0.6)
            ax.plot(
                t, LinearRegression().fit(x[:, None], y).predict(t), color=COLOURS[0], label="line"
            )
            ax.plot(t, SmoothingSplineRegressor().fit(x[:, None], y).predict(t), color=COLOURS[1],
                    label="smoothing spline")  # fmt: skip
            ax.set(title=f"c = {bend:g}: p = {linearity_test(x, y).pvalue:.2g}", xlabel="x")
            ax.legend()

    return Result(claims, numbers, draw, size=(10.5, 3.2))
