r"""Euler has order 1, Runge and Kutta order 4, at equal cost too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.ode import FIXED, integrate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = (5, 10, 20, 40, 80, 160)


def grow(t: Any, y: Any) -> Any:
    return y


def turn(t: Any, y: Any) -> Any:
    return np.stack([-y[..., 1], y[..., 0]], -1)


def bend(t: Any, y: Any) -> Any:
    """A slope field with a dip: y' = sin t − y/2."""
    return np.sin(t) - 0.5 * y


def error(method: str, steps: int) -> float:
    """How far y' = y is off at t = 1."""
    return float(np.e - integrate(grow, [1.0], [0.0, 1.0], method, steps)[-1, 0])


@experiment("MAT-x-ode", theme="mathematics", title="Euler has order 1, Runge-Kutta order 4")
def ode(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The error of a method of order p falls like :math:`h^p`. For :math:`\dot y = y` the slopes in a
    log-log plot are 1 and 4; on the circle :math:`\dot y = Jy` Euler spirals outwards; and with the same 40
    evaluations of f rk4 (ten steps of four) is better than Euler (forty steps) by four digits.

    Nothing here is random; the seed chooses where the integral curves of the picture begin.
    """
    errors = {m: [error(m, n) for n in STEPS] for m in ("euler", "midpoint", "rk4")}
    slope = {m: float(-np.polyfit(np.log(STEPS), np.log(e), 1)[0]) for m, e in errors.items()}
    # large steps are not yet in the regime of the order; the last three are
    fine = {
        m: float(-np.polyfit(np.log(STEPS[-3:]), np.log(e[-3:]), 1)[0]) for m, e in errors.items()
    }
    t = np.linspace(0, 2 * np.pi, 101)
    rings = {m: integrate(turn, [1.0, 0.0], t, m) for m in ("euler", "rk4")}
    radius = {m: float(np.linalg.norm(y[-1]) - 1) for m, y in rings.items()}
    equal = {m: error(m, 40 // FIXED[m].stages) for m in ("euler", "rk4")}
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.uniform(-2, 2, 7))
    grid = np.linspace(0, 8, 81)
    curves = integrate(bend, starts[:, None], grid)[..., 0]
    steady = 0.4 * np.sin(grid) - 0.8 * np.cos(grid)
    exact = steady[:, None] + (starts + 0.8) * np.exp(-grid / 2)[:, None]
    off = float(np.abs(curves - exact).max())
    claims = [
        Claim.close("slope of Euler", fine["euler"], 1.0, tol=0.05),
        Claim.close("slope of rk4", fine["rk4"], 4.0, tol=0.1),
        Claim.close("slope of the midpoint rule", fine["midpoint"], 2.0, tol=0.05),
        Claim.close("Euler after one round: radius off by", radius["euler"], 0.21775, tol=5e-6),
        Claim.close(
            "rk4 after one round: radius off by, in 10⁻⁸", radius["rk4"] * 1e8, -4.27, tol=0.01
        ),
        Claim.close("40 evaluations: Euler", equal["euler"], 3.3e-2, tol=5e-4),
        Claim.close("40 evaluations: rk4, in 10⁻⁶", equal["rk4"] * 1e6, 2.1, tol=0.05),
        Claim.below("integral curves against the exact ones", off, 1e-5),
    ]
    numbers = {"steps": list(STEPS), **{f"error of {m}": e for m, e in errors.items()},
               "slope": list(slope.values()), "radius": list(radius.values())}  # fmt: skip

    def draw(figure: Figure) -> None:
        first, second, third, fourth = figure.subplots(1, 4)
        for (method, e), colour in zip(errors.items(), COLOURS):
            first.loglog(STEPS, e, "o-", color=colour, label=f"{method}, slope {fine[method]:.2f}")
        first.set(title="y' = y: error at 1", xlabel="steps")
        first.legend()
        h, y0 = 1.0, 1.0
        k1 = y0
        k2 = y0 + h / 2 * k1
        k3 = y0 + h / 2 * k2
        k4 = y0 + h * k3
        s = np.linspace(0, 1.1, 50)
        second.plot(s, np.exp(s), color=COLOURS[5])
        places = ((0, y0, k1), (0.5, y0 + k1 / 2, k2), (0.5, y0 + k2 / 2, k3), (1.0, y0 + k3, k4))
        for (at, value, k), colour, name in zip(places, COLOURS, ("k₁", "k₂", "k₃", "k₄")):
            second.plot(
                [at - 0.12, at + 0.12], [value - 0.12 * k, value + 0.12 * k], color=colour, lw=2
            )
            second.annotate(
                name, (at, value), xytext=(4, -10), textcoords="offset points", color=colour
            )
        second.set(title="four slopes of one step", xlabel="t")
        for (_, ring), colour in zip(rings.items(), (COLOURS[0], COLOURS[2])):
            third.plot(*ring.T, color=colour)
        third.set(title="100 steps around the circle", aspect="equal", xticks=[], yticks=[])
        T, Y = np.meshgrid(np.linspace(0, 8, 17), np.linspace(-2, 2, 13))
        V = bend(T, Y)
        size = np.hypot(1, V)
        fourth.quiver(T, Y, 1 / size, V / size, color=COLOURS[5], angles="xy", headwidth=1, headlength=0,
                      headaxislength=0, scale=30)  # fmt: skip
        fourth.plot(grid, curves, color=COLOURS[1])
        fourth.set(title="integral curves of y' = sin t − y/2", xlabel="t")

    return Result(claims, numbers, draw, size=(13.0, 3.3))
