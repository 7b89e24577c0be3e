r"""Steps of Euler and of Runge and Kutta, and a field learned from trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.ode import FIXED, integrate, linear
from groundstate.models import physics

STEPS = (10, 20, 40, 80, 160)
SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def grow(t: Any, y: Any) -> Any:
    return y


@experiment(
    "ARC-x-ode",
    theme="architectures",
    title="Euler has order 1, RK4 order 4; a network learns a field",
    slow=True,
)
def ode(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For :math:`\dot y = y` the errors at t = 1 fall like :math:`h` and :math:`h^4`, and at 40 evaluations of
    f the ten steps of Runge and Kutta beat the forty of Euler. Integral curves are tangent to the field. A
    ``NeuralODE`` sees eight spirals of :math:`\dot y = Ay` and follows others that it has not seen.
    """
    errors = {
        m: [abs(float(np.e - integrate(grow, [1.0], [0.0, 1.0], m, n)[-1, 0])) for n in STEPS]
        for m in ("euler", "rk4")
    }
    slope = {
        m: float(-np.polyfit(np.log(STEPS[-3:]), np.log(e[-3:]), 1)[0]) for m, e in errors.items()
    }
    equal = {
        m: abs(float(np.e - integrate(grow, [1.0], [0.0, 1.0], m, 40 // FIXED[m].stages)[-1, 0]))
        for m in errors
    }
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 3, 31)
    seen, fresh = (
        [(t, linear(SPIRAL, y0, t)) for y0 in rng.uniform(-1, 1, (n, 2))] for n in (8, 4)
    )
    model = physics.NeuralODE(hidden=(16,), method="rk4", window=3, max_iter=150, random_state=seed)
    model.fit(seen)
    score = model.score(fresh)
    curves = physics.IntegralCurves(
        lambda t, y: np.sin(t) - 0.5 * y, rng.uniform(-2, 2, 5), np.linspace(0, 8, 161)
    )
    claims = [
        Claim.close("Euler: error at t = 1, 10 steps", errors["euler"][0], 0.12454, tol=1e-5),
        Claim.close("Runge-Kutta: the same", errors["rk4"][0], 2.084e-6, tol=1e-9),
        Claim.close("Euler: order", slope["euler"], 1.0, tol=0.05),
        Claim.close("Runge-Kutta: order", slope["rk4"], 4.0, tol=0.1),
        Claim.below("at 40 evaluations: its error over Euler's", equal["rk4"] / equal["euler"], 1e-3),
        Claim.below("integral curves: slope off from the field", curves.tangency(), 1e-2),
        Claim.above("learned field: R² of spirals it has not seen", score, 0.98),
    ]  # fmt: skip
    numbers = {"errors": errors, "orders": slope, "equal evaluations": equal, "R2": score}

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        for colour, (m, e) in zip(COLOURS, errors.items()):
            left.loglog(
                1 / np.array(STEPS), e, "o-", color=colour, label=f"{m}, order {slope[m]:.2f}"
            )
        left.set(xlabel="step", ylabel="error at t = 1")
        left.legend()
        curves.plot(middle, arrows=16, step=1.5)
        grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 12)] * 2), -1).reshape(-1, 2)
        arrows = model.field(0.0, grid)
        right.quiver(*grid.T, *arrows.T, color="0.7")
        for _, y in fresh:
            right.plot(*y.T, color=COLOURS[0])
            right.plot(*model.predict(y[0], t).T, "--", color=COLOURS[1])
        right.set(title="learned field; true, followed (dashed)", aspect="equal")

    return Result(claims, numbers, draw, size=(11.0, 3.4))
