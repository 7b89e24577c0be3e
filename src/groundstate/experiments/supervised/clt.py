r"""Many small errors look normal."""

from __future__ import annotations

import numpy as np
from scipy import stats

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, is_falling, slope
from groundstate.models.linear.least_squares.linear_regression import LinearRegression

PARTS = (1, 2, 5, 30)
ROWS = 10_000


@experiment("SUP-X-clt", theme="supervised", title="Many small errors look normal")
def clt(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A residual that is a sum of m small centred errors tends to a normal one; the distance of the
    distribution functions, :math:`\sup_t|F_m(t) - \Phi(t)|`, falls like :math:`m^{-1/2}`.

    :math:`y = 1 + 2x + (\sum_{j \le m} E_j - m)/\sqrt m` with exponential :math:`E_j`, 10,000 rows; the
    residuals are those of the fitted line, divided by their standard deviation.
    """
    residuals: dict[int, F64] = {}
    for m in PARTS:
        rng = Key.of(seed).fold("data", m).numpy()
        x = rng.uniform(-1, 1, (ROWS, 1))
        error = (rng.standard_exponential((ROWS, m)).sum(1) - m) / np.sqrt(m)
        y = 1 + 2 * x[:, 0] + error
        r = y - LinearRegression().fit(x, y).predict(x)
        residuals[m] = np.sort(r / r.std())
    distance = [float(stats.kstest(residuals[m], "norm").statistic) for m in PARTS]
    order = slope(PARTS, distance)
    claims = [
        Claim.equal("distance falls with m", is_falling(distance), True),
        Claim.close("slope of log distance on log m", order, -0.5, tol=0.15),
    ]

    def draw(figure: Figure) -> None:
        normal = stats.norm.ppf((np.arange(ROWS) + 0.5) / ROWS)
        for ax, m, d in zip(figure.subplots(1, 4, sharey=True), PARTS, distance):
            ax.plot([-4, 4], [-4, 4], color=COLOURS[5], linewidth=0.8)
            ax.plot(normal[::25], residuals[m][::25], ".", color=COLOURS[0], markersize=3)
            ax.set(title=f"m = {m}: distance {d:.3f}", xlabel="normal quantile", ylim=(-4, 8))
        figure.axes[0].set_ylabel("quantile of the residuals")

    numbers = {"m": list(PARTS), "distance": distance, "slope": order}
    return Result(claims, numbers, draw, size=(10.5, 3.0))
