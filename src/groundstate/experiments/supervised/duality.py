r"""The hinge form, the quadratic programme and its dual have one value."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize

from groundstate.compute.random import Key
from groundstate.errors import NotConverged
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, clouds, dots, levels
from groundstate.models.svm.linear_svc import LinearSVC
from groundstate.models.svm.svc import SVC

C = 1.0


def primal(w: F64, b: float, X: F64, t: F64) -> float:
    r""":math:`\tfrac12\|w\|^2 + C\sum_i\max(0, 1 - t_i(w^\top x_i + b))`."""
    return float(0.5 * w @ w + C * np.maximum(0, 1 - t * (X @ w + b)).sum())


def subgradient(X: F64, t: F64, steps: int) -> tuple[float, list[float], list[float]]:
    """Best value by subgradient steps whose length is halved in stages; values and times."""
    rows = np.column_stack([X, np.ones(len(X))])
    v, best, rate = np.zeros(3), np.inf, 0.02
    kept = v.copy()
    values, seconds, start = [], [], time.perf_counter()
    for step in range(steps):
        if step % 1000 == 999:
            rate, v = rate / 2, kept.copy()
        open_ = t * (rows @ v) < 1
        v = v - rate * (np.append(v[:2], 0.0) - C * (t * open_) @ rows)
        value = primal(v[:2], v[2], X, t)
        if value < best:
            best, kept = value, v.copy()
        if step < 50 or step % 50 == 0:
            values.append(best)
            seconds.append(time.perf_counter() - start)
    return best, values, seconds


def programme(X: F64, t: F64) -> tuple[float, float]:
    """Value of the dual programme and of the primal one, by a general solver."""
    Q = np.outer(t, t) * (X @ X.T)
    dual: Any = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1), np.full(len(t), 0.1), jac=True,
        method="SLSQP", bounds=[(0, C)] * len(t), options={"ftol": 1e-12, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda a: a @ t, "jac": lambda a: t},
    )  # fmt: skip
    n = len(t)
    rows = np.column_stack([t[:, None] * X, t, np.eye(n)])  # t(wx + b) + ξ ≥ 1
    start = np.concatenate([np.zeros(3), np.ones(n)])
    first: Any = minimize(
        lambda v: (0.5 * v[:2] @ v[:2] + C * v[3:].sum(),
                   np.concatenate([v[:2], [0.0], np.full(n, C)])),
        start, jac=True, method="SLSQP", bounds=[(None, None)] * 3 + [(0, None)] * n,
        options={"ftol": 1e-12, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda v: rows @ v - 1, "jac": lambda v: rows},
    )  # fmt: skip
    return float(-dual.fun), float(first.fun)


def staged(X: F64, y: Any) -> list[tuple[float, float, float]]:
    """Seconds, primal and dual of the machine after 1, 2, 4, ... steps, each step as long."""
    found: list[tuple[float, float, float]] = []
    steps = 1
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            model = SVC(kernel="linear", C=C, tol=1e-8, max_iter=steps).fit(X, y)
        report = model.report()
        found.append((model.n_iter_, float(report.primal[0]), float(report.dual[0])))
        if model.history_.converged:
            each = model.history_.seconds[0] / model.n_iter_
            return [(s * each, p, d) for s, p, d in found]
        steps *= 2


@experiment("SUP-X-duality", theme="supervised", title="Hinge form = QP = dual")
def duality(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\min_{w,b}\tfrac12\|w\|^2 + C\sum_i\max(0, 1 - t_if(x_i))`, the programme with slack
    :math:`\xi_i`, and :math:`\max_\alpha\sum\alpha_i - \tfrac12\|\sum\alpha_it_ix_i\|^2` over
    :math:`0 \le \alpha_i \le C,\ \sum\alpha_it_i = 0` have the same value, and
    :math:`\alpha_i = 0 \Rightarrow t_if \ge 1`, :math:`0 < \alpha_i < C \Rightarrow t_if = 1`,
    :math:`\alpha_i = C \Rightarrow t_if \le 1`.

    Overlapping clouds of 80 rows: sequential minimal optimisation, subgradient descent, the linear
    machine with a free offset, and a general solver of quadratic programmes.
    """
    X, y = clouds(Key.of(seed).fold("data").numpy(), [[-1, -0.6], [1, 0.6]], 1.0, 80)
    t = np.where(y == 1, 1.0, -1.0)
    model = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)
    report = model.report()
    dual_value, first_value = programme(X, t)
    walked, values, seconds = subgradient(X, t, 20_000)
    linear = LinearSVC(
        loss="hinge", C=C, penalize_intercept=False, tol=1e-8, max_iter=100_000, random_state=seed
    ).fit(X, y)
    found = {
        "SMO, primal": float(report.primal[0]),
        "SMO, dual": float(report.dual[0]),
        "subgradient": walked,
        "LinearSVC": primal(linear.coef_[0], float(linear.intercept_[0]), X, t),
        "programme, primal": first_value,
        "programme, dual": dual_value,
    }
    middle = found["SMO, dual"]
    alpha = np.zeros(len(t))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    edge = t * model.decision_function(X)
    at_zero, at_top = alpha == 0, alpha >= C * (1 - 1e-9)
    table = {
        "α = 0": max(0.0, float((1 - edge[at_zero]).max())),
        "0 < α < C": float(np.abs(1 - edge[~at_zero & ~at_top]).max()),
        "α = C": max(0.0, float((edge[at_top] - 1).max())),
    }
    claims = [
        Claim.at_most(f"{name}: relative distance from the dual value", abs(v / middle - 1), 1e-4)
        for name, v in found.items()
        if name != "SMO, dual"
    ]
    claims.append(Claim.at_most("duality gap", float(report.gap[0]), 1e-4))
    claims += [Claim.at_most(f"violation where {name}", v, 1e-6) for name, v in table.items()]
    curve = staged(X, y)
    numbers = {"values": found, "violations": table, "rows with α = 0, free, at C":
               [int(report.zero[0]), int(report.free[0]), int(report.bound[0])]}  # fmt: skip
    clock = {"SMO": curve[-1][0], "subgradient": seconds[-1]}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        dots(left, X, y)
        levels(left, X, model.decision_function)
        left.scatter(*X[model.support_].T, s=40, facecolor="none", edgecolor="black", linewidth=0.7)
        left.set(title=f"{len(model.support_)} support vectors", xticks=[], yticks=[])
        at = [s for s, _, _ in curve]
        right.semilogx(at, [p for _, p, _ in curve], "o-", color=COLOURS[0], markersize=3,
                       label="SMO, primal")  # fmt: skip
        right.semilogx(at, [d for _, _, d in curve], "o--", color=COLOURS[0], markersize=3,
                       label="SMO, dual")  # fmt: skip
        right.semilogx(seconds[1:], values[1:], color=COLOURS[1], label="subgradient, primal")
        right.axhline(middle, color="black", linewidth=0.6, linestyle=":")
        right.set(title="values against time", xlabel="seconds", ylim=(0.3 * middle, 2.2 * middle))
        right.legend()

    return Result(claims, numbers, draw, clock, size=(9.0, 3.6))
