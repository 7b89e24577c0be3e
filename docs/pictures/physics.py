"""Pictures of equations solved by networks."""

from __future__ import annotations

import math

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import FunctionRegressor, ode, physics

SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def family() -> Figure:
    """Burgers' equation, and a field learned from trajectories."""
    problem = physics.library["burgers"](0.1 / math.pi)
    model = physics.PINN(
        problem, (20, 20, 20), optimizer="lbfgs", lbfgs_steps=400, n_collocation=600,
        resample=False, random_state=1,
    ).fit()  # fmt: skip
    axes, u = model.predict_grid((81, 121))
    fig, (left, middle, right) = figure(3, 10.5)
    left.pcolormesh(*axes, u.T, cmap="RdBu", shading="nearest", rasterized=True)
    left.set(title="u(t, x)", xlabel="t", ylabel="x")
    for colour, at in zip(COLOURS, (0, 20, 40, 80)):
        X = np.column_stack([np.full(121, axes[0][at]), axes[1]])
        middle.plot(axes[1], problem.solution(X), color=colour, lw=4, alpha=0.3)
        middle.plot(axes[1], u[at], color=colour, label=f"t = {axes[0][at]:.2f}")
    middle.legend(frameon=False)
    middle.set(title="network on the exact solution", xlabel="x")
    t = np.linspace(0, 3, 31)
    starts = np.random.default_rng(0).uniform(-1, 1, (8, 2))
    field = physics.NeuralODE(hidden=(16,), method="rk4", window=3, max_iter=80, random_state=0)
    field.fit([(t, ode.linear(SPIRAL, y0, t)) for y0 in starts])
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 13)] * 2), -1).reshape(-1, 2)
    right.quiver(*grid.T, *field.field(0.0, grid).T, color="0.7")
    right.plot(*field.predict([0.9, 0.0], t).T, color=COLOURS[1])
    right.set(title="a learned field", aspect="equal")
    return fig


def function_regressor() -> Figure:
    """An image from its pixels, at twice the resolution."""
    y, x = np.mgrid[:32, :32] / 31
    image = 0.5 + 0.3 * np.sin(7 * x) * np.cos(5 * y) + 0.2 * (np.hypot(x - 0.5, y - 0.4) < 0.25)
    model = FunctionRegressor(
        (48, 48), "sine", max_iter=150, batch_size=256, n_iter_no_change=np.inf, random_state=0
    ).fit_image(image)
    fig, axes = figure(3)
    shown = {
        "pixels": image,
        "the function at them": model.render(),
        "at twice": model.render((64, 64)),
    }
    for ax, (title, values) in zip(axes, shown.items()):
        ax.imshow(values, cmap="gray", vmin=0, vmax=1, rasterized=True)
        ax.set(title=title, xticks=[], yticks=[])
    return fig


def integral_curves() -> Figure:
    """A slope field with its curves, and the four slopes of one step."""
    fig, (left, right) = figure(2)
    field = lambda t, y: np.sin(t) - 0.5 * y  # noqa: E731
    physics.IntegralCurves(field, np.linspace(-2, 2, 6), np.linspace(0, 8, 81)).plot(left)
    physics.IntegralCurves(field, [-1.5], np.linspace(0, 3, 61)).plot(right, step=2.5)
    right.set(title="four slopes of one step")
    return fig


PICTURES = {
    "family-physics": family,
    "FunctionRegressor": function_regressor,
    "integral-curves": integral_curves,
}
