r"""Conditioning sets the speed of descent; second order pays in small dimension."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, Rng
from groundstate.experiments.supervised.scenes import slope as log_slope
from groundstate.math.optim import (
    ZCAWhitener,
    centre,
    gradient_descent,
    hessian_condition,
    lbfgs,
    newton,
)

SIZES = (10, 50, 200, 1000, 2000)
SMALL = (5, 10, 20, 40, 80)
ROWS = 400


def descend(X: F64, y: F64) -> int:
    """Steps of descent at the rate 1/λ until the gradient has fallen by a factor of 1e6."""
    rows = np.column_stack([np.ones(len(X)), X])
    H, c = rows.T @ rows / len(X), rows.T @ y / len(X)
    eta = 1 / np.linalg.eigvalsh(H)[-1]
    theta = np.zeros(len(c))
    g = -c
    small = 1e-6 * np.linalg.norm(c)
    steps = 0
    while g @ g > small**2:
        theta -= eta * g
        g = H @ theta - c
        steps += 1
    return steps


class Logistic:
    """Ridge logistic loss of d weights, its gradient and Hessian; counts of values."""

    def __init__(self, rng: Rng, d: int) -> None:
        self.X = rng.standard_normal((ROWS, d)) / np.sqrt(d)
        margin = 2 * self.X @ rng.standard_normal(d) + rng.standard_normal(ROWS)
        self.t = np.where(margin > 0, 1.0, -1.0)
        self.d = d

    def value(self, w: F64) -> float:
        return float(np.logaddexp(0, -self.t * (self.X @ w)).mean() + 0.005 * w @ w)

    def many(self, W: F64) -> F64:
        """Values of many points, ``(m, d)``."""
        found: F64 = np.logaddexp(0, -self.t[:, None] * (self.X @ W.T)).mean(0)
        return found + 0.005 * (W**2).sum(1)

    def grad(self, w: F64) -> F64:
        p = 1 / (1 + np.exp(self.t * (self.X @ w)))
        found: F64 = -self.X.T @ (self.t * p) / ROWS + 0.01 * w
        return found

    def hess(self, w: F64) -> F64:
        p = 1 / (1 + np.exp(self.t * (self.X @ w)))
        found: F64 = (self.X.T * (p * (1 - p) / ROWS)) @ self.X + 0.01 * np.eye(self.d)
        return found


def evolve(f: Logistic, rng: Rng, goal: float, most: int = 200_000) -> int:
    """Values that a genetic search needs: the better half are parents, children mix two and vary."""
    size = 20
    pool = 0.1 * rng.standard_normal((size, f.d))
    values, seen, spread = f.many(pool), size, 0.3
    while values.min() > goal and seen < most:
        order = np.argsort(values)[: size // 2]
        pool, values = pool[order], values[order]
        pairs = rng.integers(0, len(pool), (2, size))
        mask = rng.random((size, f.d)) < 0.5
        children = np.where(mask, pool[pairs[0]], pool[pairs[1]])
        children = children + spread * rng.standard_normal(children.shape) / np.sqrt(f.d)
        fresh = f.many(children)
        # the rule of success: wider when children often win, narrower when they do not
        spread *= 1.1 if (fresh < np.median(values)).mean() > 0.2 else 0.95
        pool, values, seen = np.vstack([pool, children]), np.append(values, fresh), seen + size
    return seen


@experiment("SUP-X-condition", theme="supervised", title="Conditioning sets the speed", slow=True)
def condition(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Descent on least squares shrinks the error by :math:`1 - 1/\kappa` per step, with κ the condition
    of :math:`\overline{\tilde x\tilde x^\top}`: an offset of the inputs makes it large, centring,
    scaling and whitening take it down to 1. A Newton step costs :math:`d^2` numbers and up to
    :math:`d^3` operations, so it pays while d is small.

    Correlated inputs around (5, 0, −2); then logistic regression on 400 rows with 10 to 2,000 weights by
    Newton, L-BFGS and descent until the gradient is a thousandth of the first, and by a genetic
    search (5 to 80 weights) until the gap is a hundredth of the first.
    """
    key = Key.of(seed)
    rng = key.fold("data").numpy()
    mix = np.array([[1.0, 0.0, 0.0], [0.95, 0.12, 0.0], [0.3, 0.1, 0.25]])
    X = rng.standard_normal((500, 3)) @ mix.T * np.array([2.0, 1.0, 0.4]) + np.array(
        [5.0, 0.0, -2.0]
    )
    y = X @ np.array([1.0, -2.0, 0.5]) + 3 + 0.1 * rng.standard_normal(500)
    centred = centre(X)[0]
    tables = {
        "raw": X,
        "centred": centred,
        "standardised": centred / centred.std(0),
        "whitened": ZCAWhitener().fit(X).transform(X),
    }
    kappa = {n: hessian_condition(rows) for n, rows in tables.items()}
    steps = {n: descend(rows, y) for n, rows in tables.items()}

    clock: dict[str, list[float]] = {"Newton": [], "L-BFGS": [], "descent": []}
    work: dict[str, list[int]] = {n: [] for n in clock}
    for d in SIZES:
        f = Logistic(key.fold("size", d).numpy(), d)
        for name, run in _runs(f).items():
            start = time.process_time()
            found = run()
            clock[name].append(time.process_time() - start)
            work[name].append(found.nfev)
    genetic, others = [], {n: list[int]() for n in clock}
    for d in SMALL:
        f = Logistic(key.fold("small", d).numpy(), d)
        best = newton(f.value, np.zeros(d), grad=f.grad, hess=f.hess).fun
        first = f.value(np.zeros(d))
        genetic.append(evolve(f, key.fold("genes", d).numpy(), best + 0.01 * (first - best)))
        for name, run in _runs(f).items():
            others[name].append(run().nfev)
    growth = {"genetic": log_slope(SMALL, genetic)}
    growth |= {n: log_slope(SMALL, v) for n, v in others.items()}
    newton_slope = log_slope(SIZES[-2:], clock["Newton"][-2:])
    order = sorted(kappa, key=lambda n: -kappa[n])
    claims = [
        Claim.equal("order by κ", order, ["raw", "centred", "standardised", "whitened"]),
        Claim.equal("order by steps of descent", sorted(steps, key=lambda n: -steps[n]), order),
        Claim.at_most("steps on whitened inputs", steps["whitened"], 2),
        Claim.close("κ of whitened inputs", kappa["whitened"], 1.0, tol=1e-8),
        Claim.at_least("slope of Newton's log time on log d, 1,000 to 2,000", newton_slope, 2.0).on_the_clock(),
        Claim.equal("whose evaluations grow fastest with d", max(growth, key=lambda n: growth[n]), "genetic"),
        Claim.at_least("slope of the genetic search's log evaluations", growth["genetic"], 0.5),
    ]  # fmt: skip
    numbers = {
        "kappa": kappa,
        "steps": steps,
        "evaluations": work,
        "genetic": genetic,
        "growth": growth,
    }

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        for (name, k), colour in zip(kappa.items(), COLOURS):
            left.loglog(k, steps[name], "o", color=colour, label=name)
        left.set(title="condition and steps of descent", xlabel="κ", ylabel="steps")
        left.legend()
        for (name, values), colour in zip(clock.items(), COLOURS):
            middle.loglog(
                SIZES, np.maximum(values, 1e-4), "o-", color=colour, markersize=3, label=name
            )
            right.loglog(SMALL, others[name], "o-", color=colour, markersize=3, label=name)
        middle.set(title="time of a fit", xlabel="weights d", ylabel="seconds")
        middle.legend()
        right.loglog(SMALL, genetic, "s-", color=COLOURS[3], markersize=3, label="genetic search")
        right.set(title="evaluations", xlabel="weights d", xticks=SMALL, xticklabels=SMALL)
        right.minorticks_off()
        right.legend()

    return Result(claims, numbers, draw, clock, size=(11.0, 3.4))


def _runs(f: Logistic) -> dict[str, Any]:
    zero, tol = np.zeros(f.d), 1e-3 * float(np.linalg.norm(f.grad(np.zeros(f.d))))
    common: dict[str, Any] = {"grad": f.grad, "tol": tol}
    rate = 1 / (0.25 * float(np.linalg.norm(f.X, 2)) ** 2 / ROWS + 0.01)
    return {
        "Newton": lambda: newton(f.value, zero, hess=f.hess, damping="none", **common),
        "L-BFGS": lambda: lbfgs(f.value, zero, keep_path=False, **common),
        "descent": lambda: gradient_descent(f.value, zero, rate, keep_path=False, **common),
    }
