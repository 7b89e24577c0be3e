r"""Regression to the mean, in both directions."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.linear.least_squares.linear_regression import LinearRegression

RHO = 2 / 3


@experiment("SUP-X-galton", theme="supervised", title="Regression to the mean")
def galton(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For heights of fathers X and sons Y with equal spread and correlation ρ,
    :math:`E[Y \mid X] = \rho X` and also :math:`E[X \mid Y] = \rho Y`: each looks back at the other
    as nearer to the mean, and nothing shrinks.

    10,000 standard normal pairs with ρ = 2/3, one line each way, and the sons of the fathers
    between 1.75 and 2.25.
    """
    rng = Key.of(seed).fold("data").numpy()
    father, own = rng.standard_normal((2, 10_000))
    son = RHO * father + np.sqrt(1 - RHO**2) * own
    forth = LinearRegression().fit(father[:, None], son)
    back = LinearRegression().fit(son[:, None], father)
    slopes = [float(forth.coef_[0]), float(back.coef_[0])]
    tall = np.abs(father - 2) < 0.25
    heir = float(son[tall].mean())
    spread = float(son.std() / father.std())
    claims = [
        Claim.close("slope of sons on fathers", slopes[0], 0.667, tol=0.02),
        Claim.close("slope of fathers on sons", slopes[1], 0.667, tol=0.02),
        Claim.close("mean of the sons of fathers at +2", heir, 1.33, tol=0.1),
        Claim.close("spread of the sons over that of the fathers", spread, 1.0, tol=0.03),
    ]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.scatter(father[:3000], son[:3000], s=3, color=COLOURS[5], alpha=0.4, rasterized=True)
        t = np.array([-3.5, 3.5])
        ax.plot(t, t, ":", color="black", label="diagonal")
        ax.plot(t, forth.predict(t[:, None]), color=COLOURS[0], label="sons on fathers")
        ax.plot(back.predict(t[:, None]), t, color=COLOURS[1], label="fathers on sons")
        ax.plot(2, heir, "o", color=COLOURS[4], label="sons of fathers at +2")
        ax.set(xlabel="father", ylabel="son", aspect="equal", xlim=t, ylim=t)
        ax.legend(loc="upper left")

    numbers = {"slopes": slopes, "sons of fathers at +2": heir, "rows there": int(tall.sum())}
    return Result(claims, numbers, draw, size=(5.0, 4.8))
