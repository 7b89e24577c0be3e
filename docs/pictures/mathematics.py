"""Pictures of linear algebra and differential equations."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import linalg, ode


def adjoints() -> Figure:
    """Operators and their transposes as matrices; the wrong pair fails the dot test."""
    at = [0.4, 2.5, 3.2, 6.7]
    shown = {
        "Gradient, dirichlet": linalg.Gradient(8, "dirichlet"),
        "Divergence": linalg.Divergence(8, "dirichlet"),
        "Interpolate": linalg.Interpolate(8, at),
        "Splat": linalg.Splat(8, at),
    }
    fig, axes = figure(4, width=9.0, height=2.6)
    for ax, (name, op) in zip(axes, shown.items(), strict=True):
        ax.imshow(op.to_dense(), cmap="coolwarm", vmin=-1, vmax=1)
        ax.set(title=name, xticks=[], yticks=[])
    return fig


def repeated_eigenvalues() -> Figure:
    """The gradient of a matrix logarithm as two eigenvalues meet."""
    gaps = np.geomspace(1e-15, 1, 31)
    weight = torch.tensor([[0.3, 1.0], [1.0, -0.7]], dtype=torch.float64)
    turn = torch.tensor(linalg.rotation(0.4))
    errors: dict[str, list[float]] = {"groundstate": [], "through the eigenvectors": []}
    for gap in gaps:
        values = torch.tensor([3.0, 3.0 * (1 + gap)], dtype=torch.float64)
        K = torch.full((2, 2), np.log1p(gap) / (3 * gap), dtype=torch.float64)
        K.diagonal().copy_(1 / values)
        exact = turn @ (K * (turn.T @ weight @ turn)) @ turn.T
        for name, log in (("groundstate", linalg.logm), ("through the eigenvectors", by_eigh)):
            A = ((turn * values) @ turn.T).requires_grad_()
            (slope,) = torch.autograd.grad((log(A) * weight).sum(), A)
            slope = (slope + slope.T) / 2
            errors[name].append(float((slope - exact).abs().max()))
    fig, (ax,) = figure(1, width=5.0, height=3.2)
    for (name, e), colour in zip(errors.items(), COLOURS, strict=False):
        ax.loglog(gaps, np.maximum(e, 1e-17), color=colour, label=name)
    ax.set(title="error of the gradient of log A", xlabel="relative gap of the eigenvalues")
    ax.legend(frameon=False)
    return fig


def by_eigh(A: torch.Tensor) -> torch.Tensor:
    values, Q = torch.linalg.eigh(A)
    return (Q * values.log()) @ Q.mT


def orders() -> Figure:
    """Errors of the methods against evaluations of f, and steps of every row's own."""
    fig, (left, right) = figure(2)
    for (method, table), colour in zip(ode.FIXED.items(), COLOURS, strict=False):
        evaluations = np.array([8, 16, 32, 64, 128, 256])
        error = [
            abs(
                np.e
                - ode.integrate(lambda t, y: y, [1.0], [0, 1], method, n // table.stages)[-1, 0]
            )
            for n in evaluations
        ]
        left.loglog(evaluations, error, "o-", markersize=3, color=colour, label=method)
    left.set(title="y' = y: error at t = 1", xlabel="evaluations of f")
    left.legend(frameon=False)
    t = np.linspace(0, 12, 400)
    y0 = np.array([[1.2, 1.0], [2.0, 0.6], [3.0, 0.3]])

    def prey(t: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.stack([y[:, 0] * (1 - y[:, 1]), y[:, 1] * (y[:, 0] - 1)], 1)

    for path, colour in zip(
        ode.integrate(prey, y0, t, "dopri5").swapaxes(0, 1), COLOURS, strict=False
    ):
        right.plot(*path.T, color=colour)
    right.set(title="Lotka and Volterra, dopri5", xlabel="prey", ylabel="predators")
    return fig


PICTURES = {
    "linalg-adjoints": adjoints,
    "linalg-repeated": repeated_eigenvalues,
    "ode-orders": orders,
}
