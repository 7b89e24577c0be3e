"""Pictures of losses, likelihood heads, and of what descent does on a loss."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import optim
from groundstate.learn import losses
from groundstate.nn.heads.base import DistributionHead
from groundstate.report.curves import plot_landscape
from groundstate.report.simplex import plot_simplex


def loss_curves() -> Figure:
    """Losses of a residual, and of a margin."""
    fig, (left, right) = figure(2)
    r = torch.linspace(-3, 3, 201)
    zero = torch.zeros_like(r)
    curves = {
        "squared": losses.squared(r, zero, reduction="none"),
        "absolute": losses.absolute(r, zero, reduction="none"),
        "huber": losses.huber(r, zero, reduction="none"),
        "quantile .9": losses.quantile(r, zero, reduction="none", q=0.9),
    }
    for colour, (name, values) in zip(COLOURS, curves.items(), strict=True):
        left.plot(r, values, color=colour, label=name)
    left.set(ylim=(0, 4), xlabel="ŷ − y", title="of a residual")
    left.legend(frameon=False, fontsize=8)
    s = torch.linspace(-3, 3, 201)
    one = torch.ones_like(s)
    two = torch.stack([-s / 2, s / 2], 1)
    label = torch.ones(201, dtype=torch.long)
    margins = {
        "cross-entropy": losses.bce(s, one, reduction="none"),
        "hinge": losses.hinge(s, one, reduction="none"),
        "brier": losses.brier(two, label, reduction="none"),
        "focal": losses.focal(s, one, reduction="none"),
    }
    for colour, (name, values) in zip(COLOURS, margins.items(), strict=True):
        right.plot(s, values, color=colour, label=name)
    right.step([-3, 0, 3], [1, 1, 0], color="grey", linewidth=0.8, where="pre", label="0-1")
    right.set(ylim=(0, 4), xlabel="score of the true class − other", title="of a margin")
    right.legend(frameon=False, fontsize=8)
    return fig


def head_densities() -> Figure:
    """One raw output moves, and the distribution of y moves with it."""
    fig, axes = figure(3, width=9.0, height=3.0)
    y = torch.linspace(0.01, 8, 300)[:, None]
    for ax, name in zip(axes, ("gamma", "lognormal", "laplace"), strict=True):
        head = DistributionHead(name)
        for colour, shift in zip(COLOURS, (0.0, 0.7, 1.4), strict=False):
            raw = torch.tensor([[shift, -0.5]]).expand(300, -1)
            ax.plot(y, torch.exp(-head(raw, y)), color=colour, label=f"first output {shift:g}")
        ax.set(title=name, xlabel="y")
    axes[0].set_ylabel("p(y | raw)")
    axes[0].legend(frameon=False, fontsize=8)
    return fig


def simplex() -> Figure:
    """Softmax outputs of three classes in their triangle."""
    g = torch.Generator().manual_seed(0)
    y = torch.arange(240) % 3
    scores = 2 * torch.nn.functional.one_hot(y, 3) + 1.2 * torch.randn(240, 3, generator=g)
    fig, (ax,) = figure(1, width=4)
    plot_simplex(ax, scores.softmax(1).numpy(), y.numpy())
    return fig


def descent_landscape() -> Figure:
    """Gradient descent on two wells with a saddle between them."""

    def wells(x: torch.Tensor) -> torch.Tensor:
        return (x[0] ** 2 - 1) ** 2 + x[1] ** 2 + 0.2 * x[0] * x[1]

    start = torch.tensor([-0.1, 1.2], dtype=torch.float64)
    path = optim.minimize(wells, start, step=0.08, max_iter=60).path
    plane = optim.landscape(wells, 0 * start, directions=(0, 1), extent=1.5, n=61, path=list(path))
    return plot_landscape(plane)


def modified_flow() -> Figure:
    """Steps of descent, the flow of the loss, and the flow of the modified loss."""
    scale = torch.tensor([1.0, 6.0], dtype=torch.float64)

    def bowl(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * (scale * x**2).sum()

    start, rate, n = torch.tensor([1.0, 1.0], dtype=torch.float64), 0.1, 12
    steps = optim.gradient_descent(bowl, start, rate, max_iter=n, tol=0.0).path
    times = rate * np.arange(n + 1)
    fig, (left, right) = figure(2)
    flows = {"flow of L": bowl, "flow of the modified loss": optim.modified_loss(bowl, rate)}
    left.plot(*steps.T, "o", color="black", markersize=3, label="steps")
    for colour, (name, f) in zip(COLOURS, flows.items(), strict=False):
        path = optim.flow(f, start, times)
        left.plot(*path.T, color=colour, label=name)
        error = (path - steps).norm(dim=1)[1:]
        right.semilogy(range(1, n + 1), error, "o-", markersize=3, color=colour, label=name)
    left.legend(frameon=False, fontsize=8)
    left.set(xlabel="θ₀", ylabel="θ₁", title="paths")
    right.set(xlabel="step", title="distance to the steps of descent")
    return fig


PICTURES = {
    "losses": loss_curves,
    "heads": head_densities,
    "simplex": simplex,
    "descent-landscape": descent_landscape,
    "modified-flow": modified_flow,
}
