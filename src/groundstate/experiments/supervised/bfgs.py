r"""Curvature learned from gradients, and what a line search costs and saves."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.math.optim import bfgs, gradient_descent, lbfgs, newton

A = np.array([[3.0, 1.0], [1.0, 2.0]])
START = np.array([-1.2, 1.0])
BENT = np.diag([1.0, 25.0])


def rosenbrock(x: F64) -> float:
    """(1 − x)² + 100(y − x²)²."""
    return float((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)


def slope(x: F64) -> F64:
    """Its gradient."""
    inner = x[1] - x[0] ** 2
    return np.array([-2 * (1 - x[0]) - 400 * x[0] * inner, 200 * inner])


def curvature(x: F64) -> F64:
    """Its Hessian."""
    return np.array([[2 - 400 * (x[1] - 3 * x[0] ** 2), -400 * x[0]], [-400 * x[0], 200.0]])


@experiment("SUP-X-bfgs", theme="supervised", title="Secants learn curvature")
def bfgs_(seed: int = 0, *, quick: bool = False) -> Result:
    r"""BFGS learns the Hessian from changes of the gradient, :math:`Hs = y`:
    :math:`H \leftarrow H + \frac{yy^\top}{y^\top s} - \frac{Hss^\top H}{s^\top Hs}`. On a quadratic in the
    plane with exact steps :math:`H_2 = A`. On Rosenbrock's valley it needs tens of steps where
    descent needs thousands. A searched step costs values and saves gradients.

    The quadratic with A = [[3, 1], [1, 2]] from (1, 1); Rosenbrock's function from (−1.2, 1); a
    bowl with condition 25 for the count of evaluations. Nothing is drawn at random.
    """
    exact = bfgs(lambda x: 0.5 * x @ A @ x, np.ones(2), "hessian", grad=lambda x: A @ x,
                 line_search="exact", A=A)  # fmt: skip
    learned = float(np.abs(exact.hessian - A).max())
    first = float(np.abs(exact.path[1] - [-1 / 9, 1 / 6]).max())
    common: dict[str, Any] = {"grad": slope, "tol": 1e-6}
    runs = {
        "descent": gradient_descent(rosenbrock, START, 1e-3, **common, max_iter=6000),
        "BFGS": bfgs(rosenbrock, START, **common),
        "L-BFGS": lbfgs(rosenbrock, START, 5, **common),
        "Newton": newton(rosenbrock, START, **common, hess=curvature),
    }

    def bowl(x: F64) -> float:
        return float(0.5 * x @ BENT @ x)

    at, fixed_step = np.array([25.0, 1.0]), 1.0 / 25
    fixed = gradient_descent(bowl, at, fixed_step, grad=lambda x: BENT @ x, tol=1e-6)
    searched = gradient_descent(bowl, at, "armijo", grad=lambda x: BENT @ x, tol=1e-6)
    away = float(np.abs(runs["BFGS"].x - 1).max())
    claims = [
        Claim.at_most("quadratic: largest error of H₂ against A", learned, 1e-12),
        Claim.at_most("quadratic: error of x₁ against (−1/9, 1/6)", first, 1e-12),
        Claim.equal("quadratic: steps", exact.nit, 2),
        Claim.at_most("Rosenbrock: BFGS steps", runs["BFGS"].nit, 60),
        Claim.at_most("Rosenbrock: L-BFGS steps", runs["L-BFGS"].nit, 100),
        Claim.above("Rosenbrock: descent steps", runs["descent"].nit, 1000),
        Claim.at_most("Rosenbrock: distance of BFGS from (1, 1)", away, 1e-5),
        Claim.above("bowl: gradients, fixed step less searched", fixed.njev - searched.njev, 0),
        Claim.above("bowl: values, searched step less fixed", searched.nfev - fixed.nfev, 0),
    ]
    numbers = {"steps": {n: r.nit for n, r in runs.items()}, "gradients": {n: r.njev for n, r in runs.items()},
               "values": {n: r.nfev for n, r in runs.items()},
               "bowl, fixed": [fixed.nit, fixed.nfev, fixed.njev],
               "bowl, searched": [searched.nit, searched.nfev, searched.njev]}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
        u, v = np.meshgrid(np.linspace(-1.6, 1.5, 120), np.linspace(-0.6, 1.7, 120))
        left.contourf(
            u, v, np.log10(1e-3 + (1 - u) ** 2 + 100 * (v - u**2) ** 2), levels=18, cmap="viridis"
        )
        for (name, run), colour in zip(runs.items(), ("white", *COLOURS[1:])):
            inside = run.path[(run.path[:, 0] < 1.5) & (run.path[:, 1] > -0.6)]
            mark = "-" if name == "descent" else "o-"
            left.plot(*inside.T, mark, color=colour, markersize=2.5, linewidth=1, label=name)
            error = np.linalg.norm(run.path - 1, axis=1)
            right.loglog(
                np.arange(1, len(error) + 1),
                np.maximum(error, 1e-12),
                color=colour if name != "descent" else COLOURS[5],
                label=name,
            )
        left.set(title="Rosenbrock's valley", xlim=(-1.6, 1.5), ylim=(-0.6, 1.7))
        left.legend(labelcolor="white")
        right.set(title="distance from the minimum", xlabel="step")
        right.legend()

    return Result(claims, numbers, draw, size=(9.5, 3.7))
