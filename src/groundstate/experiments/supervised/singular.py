r"""A little ridge rescues singular normal equations; descent from 0 finds the least norm."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, slope
from groundstate.models.linear.least_squares.linear_regression import LinearRegression
from groundstate.models.linear.least_squares.ridge import Ridge

JITTERS = tuple(10.0**-k for k in range(1, 11))


def descend(X: F64, y: F64, start: F64, steps: int) -> F64:
    """Gradient descent on the sum of squares at the rate 1 over the largest curvature."""
    gram, moment = X.T @ X, X.T @ y
    eta = 1.0 / np.linalg.eigvalsh(gram)[-1]
    theta = start.copy()
    for _ in range(steps):
        theta -= eta * (gram @ theta - moment)
    return theta


@experiment("SUP-X-singular", theme="supervised", title="Jitter rescues a singular XᵀX")
def singular(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With a column twice, :math:`X^\top X` has no inverse. :math:`\theta_\delta =
    (X^\top X + \delta I)^{-1}X^\top y` exists for every δ > 0 and
    :math:`\|\theta_\delta - X^+y\| \propto \delta`.

    Gradient descent never leaves the row space of X: from 0 it ends at :math:`X^+y`, the solution
    of least norm, from elsewhere it keeps the part of its start that X does not see. 60 rows, four
    columns, the last one repeated; δ from 0.1 to 1e-10.
    """
    rng = Key.of(seed).fold("data").numpy()
    X = rng.standard_normal((60, 4))
    X = np.column_stack([X, X[:, 3]])
    y = X @ np.array([1.0, -2.0, 0.5, 1.0, 1.0]) + 0.5 * rng.standard_normal(60)
    least = np.linalg.pinv(X) @ y
    condition = float(min(np.linalg.cond(X.T @ X), 1e300))
    errors = []
    for delta in JITTERS:
        model = Ridge(alpha=delta, fit_intercept=False).fit(X, y)
        errors.append(float(np.linalg.norm(model.coef_ - least)))
    above = [(d, e) for d, e in zip(JITTERS, errors) if e > 1e-9]  # below it is rounding
    order = slope(*zip(*above))
    direct = LinearRegression(fit_intercept=False).fit(X, y).coef_
    start = 3 * rng.standard_normal(5)
    from_zero = descend(X, y, np.zeros(5), 2000)
    from_start = descend(X, y, start, 2000)
    unseen = np.array([0, 0, 0, 1, -1]) / np.sqrt(2)
    kept = abs(float(unseen @ start))
    zero_off = float(np.linalg.norm(from_zero - least))
    start_off = float(np.linalg.norm(from_start - least))
    claims = [
        Claim.above("condition of the Gram matrix", condition, 1e15),
        Claim.close("slope of log ‖θ_δ − X⁺y‖ on log δ", order, 1.0, tol=0.05),
        Claim.at_most("distance at δ = 1e-10", errors[-1], 1e-6),
        Claim.at_most("LinearRegression: distance from X⁺y", float(np.linalg.norm(direct - least)), 1e-8),
        Claim.at_most("descent from 0: distance from X⁺y", zero_off, 1e-6),
        Claim.at_least("descent from elsewhere: distance from X⁺y", start_off, 1e-3),
        Claim.close("and it is what X does not see of the start", start_off, kept, tol=1e-6),
    ]  # fmt: skip
    numbers = {"delta": list(JITTERS), "distance": errors, "slope": order, "condition": condition,
               "from 0": zero_off, "from elsewhere": start_off}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.loglog(JITTERS, errors, "o-", color=COLOURS[0], label="‖θ_δ − X⁺y‖")
        left.loglog(JITTERS, np.array(JITTERS) * errors[0] / JITTERS[0], ":", color=COLOURS[5],
                    label="slope 1")  # fmt: skip
        left.set(title="jitter and its error", xlabel="δ")
        left.legend()
        seen = np.stack([start[3:], from_start[3:], from_zero[3:], np.zeros(2)])
        low, high = seen.min() - 0.7, seen.max() + 0.7
        a = np.linspace(low, high, 100)
        total = least[3] + least[4]
        right.plot(a, total - a, color=COLOURS[5], label="equally good θ")
        for at, end, colour, name in (
            (np.zeros(5), from_zero, COLOURS[2], "from 0"),
            (start, from_start, COLOURS[1], "from elsewhere"),
        ):
            right.annotate("", end[3:], at[3:], arrowprops={"arrowstyle": "->", "color": colour})
            right.plot(*end[3:], "o", color=colour, label=name)
        right.plot(*least[3:], "x", color="black", label="X⁺y")
        right.set(title="weights of the twin columns", xlabel="first", ylabel="second",
                  xlim=(low, high), ylim=(low, high), aspect="equal")  # fmt: skip
        right.legend()

    return Result(claims, numbers, draw, size=(8.5, 3.6))
