r"""A line that fits the data goes absurd beyond them."""

from __future__ import annotations

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.linear.least_squares.linear_regression import LinearRegression

YEARS = (1900, 1904, 1908, 1912, 1920, 1924, 1928, 1932, 1936, *range(1948, 2005, 4))
MEN = (11.0, 11.0, 10.8, 10.8, 10.8, 10.6, 10.8, 10.3, 10.3, 10.3, 10.4, 10.5, 10.2, 10.0, 9.95,
       10.14, 10.06, 10.25, 9.99, 9.92, 9.96, 9.84, 9.87, 9.85)  # fmt: skip
WOMEN = (12.2, 11.9, 11.5, 11.9, 11.5, 11.5, 11.0, 11.4, 11.0, 11.07, 11.08, 11.06, 10.97, 10.54,
         10.82, 10.94, 10.75, 10.93)  # fmt: skip


@experiment("SUP-X-sprint", theme="supervised", title="Linear extrapolation goes absurd")
def sprint(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Winning times over 100 m fall along lines :math:`t = a + b\,\text{year}` from 1900 to 2004;
    the lines cross in the middle of the 22nd century and reach 0 seconds in the third millennium.

    Olympic winners, men from 1900 and women from 1928, one line each. Nothing is drawn at random.
    """
    data = {
        "men": (np.array(YEARS), np.array(MEN)),
        "women": (np.array(YEARS[6:]), np.array(WOMEN)),
    }
    lines = {name: LinearRegression().fit(x[:, None], t) for name, (x, t) in data.items()}
    a = {name: float(line.intercept_) for name, line in lines.items()}
    b = {name: float(line.coef_[0]) for name, line in lines.items()}
    cross = (a["men"] - a["women"]) / (b["women"] - b["men"])
    zero = {name: -a[name] / b[name] for name in lines}
    at = {name: float(line.predict([[2156.0]])[0]) for name, line in lines.items()}
    r2 = {
        name: line.score(x[:, None], t)
        for (name, line), (x, t) in zip(lines.items(), data.values())
    }
    claims = [
        Claim.between("year in which the lines cross", cross, 2145, 2160),
        Claim.close("men in 2156", at["men"], 8.10, tol=0.01),
        Claim.close("women in 2156", at["women"], 8.08, tol=0.01),
        Claim.close("year in which men need no time", zero["men"], 2892, tol=1),
        Claim.close("year in which women need no time", zero["women"], 2636, tol=1),
        Claim.at_least("least R² on the data", min(r2.values()), 0.6),
    ]

    def draw(figure: Figure) -> None:
        near, far = figure.subplots(1, 2, width_ratios=(1, 1.3))
        for (name, (x, t)), colour in zip(data.items(), COLOURS):
            for ax, last in ((near, 2010), (far, 3000)):
                ax.plot(x, t, "o", color=colour, markersize=3)
                ends = np.array([1895.0, float(last)])
                ax.plot(ends, lines[name].predict(ends[:, None]), color=colour, label=name)
        near.set(title="the data", xlabel="year", ylabel="seconds")
        far.axhline(0, color="black", linewidth=0.6)
        far.plot(cross, a["men"] + b["men"] * cross, "o", color=COLOURS[4], label=f"{cross:.0f}")
        far.set(title="far beyond them", xlabel="year", ylim=(-2, 13))
        far.legend()

    numbers = {"crossing": cross, "zero": zero, "in 2156": at, "R2": r2}
    return Result(claims, numbers, draw, size=(9.0, 3.3))
