"""Pictures of the optimisers: paths over a curved valley, and how fast errors fall."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import optim


def rosenbrock(x: Any) -> Any:
    """A narrow curved valley with its end at (1, 1)."""
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def optimisers() -> Figure:
    """Paths over Rosenbrock's valley, and the distance to its end."""
    start = [-1.2, 1.0]
    runs = {
        "Newton": optim.newton(rosenbrock, start),
        "BFGS": optim.bfgs(rosenbrock, start),
        "conjugate gradients": optim.nonlinear_cg(rosenbrock, start),
        "descent, exact steps": optim.gradient_descent(rosenbrock, start, max_iter=60),
    }
    fig, (left, right) = figure(2)
    a, b = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-0.6, 2.0, 200))
    left.contourf(a, b, np.log1p(rosenbrock((a, b))), levels=16, cmap="Greys", alpha=0.6)
    for colour, (name, run) in zip(COLOURS, runs.items(), strict=True):
        left.plot(*run.path.T, "o-", markersize=2.5, linewidth=1, color=colour)
        error = np.linalg.norm(run.path - 1, axis=1)
        right.semilogy(np.maximum(error, 1e-16), "o-", markersize=2.5, color=colour, label=name)
    left.plot(1, 1, "*", color="black", markersize=9)
    left.set(title="paths to (1, 1)", xlabel="x₀", ylabel="x₁")
    right.legend(frameon=False, fontsize=8, loc="lower right")
    right.set(title="distance to the minimum", xlabel="iteration", ylim=(1e-11, 5))
    return fig


def quadratic_forms() -> Figure:
    """Definiteness decides: bowl, valley, saddle."""
    forms = {
        "positive definite": [[3.0, 2.0], [2.0, 6.0]],
        "singular: a valley": [[1.0, 1.0], [1.0, 1.0]],
        "indefinite: a saddle": [[2.0, 1.0], [1.0, -2.0]],
    }
    fig, axes = figure(3, width=9.0, height=3.0)
    a, b = np.meshgrid(np.linspace(-2, 2, 120), np.linspace(-2, 2, 120))
    for ax, (name, form) in zip(axes, forms.items(), strict=True):
        H = np.array(form)
        value = 0.5 * (H[0, 0] * a**2 + 2 * H[0, 1] * a * b + H[1, 1] * b**2)
        ax.contourf(a, b, value, levels=16, cmap="viridis")
        found = optim.classify_critical_point(H)
        if found.escape is not None:
            ends = 1.6 * np.outer([-1, 1], found.escape)
            ax.plot(*ends.T, color=COLOURS[1], label="escape")
            ax.legend(frameon=False, labelcolor="white", loc="upper left")
        ax.set_title(f"{name}\n{found.kind}", fontsize=9)
    return fig


PICTURES = {"optimisers": optimisers, "quadratic-forms": quadratic_forms}
