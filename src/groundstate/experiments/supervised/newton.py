r"""Newton's method: digits double, quadratics take one step, and where it fails."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.math.optim import SingularError, newton, newton_root

ROOT = (1.0, 1.5, 1.4166666666666667, 1.4142156862745, 1.41421356237469)


def logistic(seed: int) -> Any:
    """Mean logistic loss of 200 rows with a little ridge, a function of three weights."""
    rng = Key.of(seed).fold("data").numpy()
    X = torch.from_numpy(rng.standard_normal((200, 3)))
    true = torch.tensor([1.5, -1.0, 0.5], dtype=torch.float64)
    t = torch.where(torch.from_numpy(rng.random(200)) < torch.sigmoid(X @ true), 1.0, -1.0)

    def loss(w: Tensor) -> Tensor:
        return torch.nn.functional.softplus(-t * (X @ w)).mean() + 1e-3 * (w @ w)

    return loss


def ratios(errors: F64) -> list[float]:
    """Next error over the square of the one before, while there are digits left."""
    return [float(b / a**2) for a, b in pairwise(errors) if b > 1e-14 and a < 1]


@experiment("SUP-X-newton", theme="supervised", title="Digits double; one step on quadratics")
def newton_(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`x \leftarrow x - f/f'` for a root and :math:`x \leftarrow x - H^{-1}\nabla f` for a
    minimum have errors :math:`e_{k+1} \approx c\,e_k^2` near the end: the digits double. A quadratic
    takes one step. At a singular H there is no step; where H is indefinite the raw step goes to a
    saddle, where it is negative to a maximum.

    :math:`\sqrt2` from 1; logistic regression from 0; :math:`x^4`, whose curvature vanishes at its
    minimum; :math:`x^2 - y^2` and :math:`-x^2` raw and damped.
    """
    root = newton_root(lambda x: x**2 - 2, 1.0)
    path = np.asarray(root.path, dtype=np.float64)
    root_errors = np.abs(path - np.sqrt(2.0))
    loss = logistic(seed)
    fitted = newton(loss, np.zeros(3), damping="none", tol=1e-15, max_iter=9)
    errors = np.linalg.norm(fitted.path - fitted.path[-1], axis=1)[:-1]
    square = newton(lambda x: (x[0] - 1) ** 2 + 5 * (x[1] + 2) ** 2 + x[0] * x[1], [4.0, 3.0],
                    damping="none")  # fmt: skip
    quartic = newton(lambda x: x**4, 1.0, damping="none", tol=1e-12)
    quartic_path = np.abs(np.asarray(quartic.path, dtype=np.float64))
    rate = quartic_path[1:] / quartic_path[:-1]

    def saddle(x: Tensor) -> Tensor:
        return x[0] ** 2 - x[1] ** 2

    raw, free = newton(saddle, [1.0, 1.0], damping="none"), newton(saddle, [1.0, 1.0])
    top, down = newton(lambda x: -(x**2), 1.0, damping="none"), newton(lambda x: -(x**2), 1.0)
    try:
        newton(lambda x: x**3 - x, 0.0, damping="none")
        outcome = "a step"
    except SingularError:
        outcome = "SingularError"
    bend = newton(lambda x: x**3 / 3 - x, 0.0)
    first = max(abs(a - b) for a, b in zip(path, ROOT))
    claims = [
        Claim.at_most("√2: largest error of the first five iterates", first, 1e-13),
        Claim.between("√2: e_{k+1}/e_k²", max(ratios(root_errors)), 0.3, 0.51),
        Claim.at_most("logistic regression: largest e_{k+1}/e_k²", max(ratios(errors)), 10.0),
        Claim.equal("quadratic: steps", square.nit, 1),
        Claim.close("x⁴: each error over the last, not its square", float(rate[-1]), 2 / 3, tol=1e-6),
        Claim.equal("x³ − x from 0, singular, raw", outcome, "SingularError"),
        Claim.close("x³/3 − x from 0, damped, ends at", float(bend.x), 1.0, tol=1e-6),
        Claim.at_most("x² − y² raw: distance of the end from the saddle", float(np.abs(raw.x).max()), 1e-12),
        Claim.equal("x² − y² damped", free.reason, "f falls without end"),
        Claim.at_most("−x² raw: distance of the end from the maximum", abs(float(top.x)), 1e-12),
        Claim.equal("−x² damped", down.reason, "f falls without end"),
    ]  # fmt: skip
    numbers = {"root": path.tolist(), "root ratios": ratios(root_errors), "logistic ratios": ratios(errors),
               "quartic steps": quartic.nit}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for values, name, colour in (
            (root_errors, "√2", COLOURS[0]),
            (errors, "logistic regression", COLOURS[1]),
            (quartic_path[:12], "x⁴", COLOURS[4]),
        ):
            left.semilogy(np.maximum(values, 1e-17), "o-", color=colour, markersize=3, label=name)
        left.set(title="error against step", xlabel="step", ylim=(1e-17, 3))
        left.legend()
        a, b = np.meshgrid(np.linspace(-1.6, 1.6, 80), np.linspace(-3, 3, 80))
        right.contourf(a, b, a**2 - b**2, levels=20, cmap="viridis")
        right.plot(*raw.path.T, "o-", color="white", markersize=4, label="raw: to the saddle")
        right.plot(
            *free.path[:3].T, "s-", color=COLOURS[1], markersize=4, label="damped: leaves it"
        )
        right.set(title="x² − y²", xlim=(-1.6, 1.6), ylim=(-3, 3))
        right.legend(labelcolor="white")

    return Result(claims, numbers, draw, size=(8.5, 3.5))
