"""Pictures of networks: activations, drawings, regions, folding, constructions, the simplex."""

from __future__ import annotations

import math

import numpy as np
import torch
from common import COLOURS, Plain, figure
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from groundstate.nn import (
    ACTIVATIONS,
    MLP,
    draw,
    draw_backprop,
    draw_norm,
    draw_residual,
    linear_regions,
)
from groundstate.nn.piecewise import construct
from groundstate.report.simplex import plot_simplex


def activations() -> Figure:
    """Each elementwise activation with its derivative."""
    rows = [row for row in ACTIVATIONS.values() if row.elementwise]
    fig = Figure(figsize=(9.0, 5.2), layout="constrained")
    z = torch.linspace(-3, 3, 601, dtype=torch.float64, requires_grad=True)
    for i, row in enumerate(rows):
        ax = fig.add_subplot(3, 4, i + 1)
        a = row()(z)
        (slope,) = torch.autograd.grad(a.sum(), z)
        at = z.detach().numpy()
        ax.plot(at, a.detach().numpy(), color=COLOURS[0], linewidth=1.6)
        ax.plot(at, slope.numpy(), color=COLOURS[1], linewidth=1.0, linestyle="--")
        ax.axhline(0, color="0.85", linewidth=0.6, zorder=0)
        ax.set_title(row.name, fontsize=9)
        ax.set_ylim(-1.4, 2.2)
        ax.tick_params(labelsize=7)
    return fig


def _random(widths: tuple[int, ...], seed: int) -> MLP:
    g = torch.Generator().manual_seed(seed)
    net = MLP(2, widths, 1).double().requires_grad_(False)
    for p in net.parameters():
        p.copy_(torch.randn(p.shape, generator=g, dtype=p.dtype))
    return net


def regions() -> Figure:
    """Linear regions of a shallow and a deep network with as many hidden units."""
    fig, axes = figure(2, width=8.0, height=4.0)
    for ax, widths in zip(axes, ((24,), (8, 8, 8)), strict=True):
        found = linear_regions(_random(widths, 4), (-2, 2))
        assert found.polygons is not None and found.slopes is not None
        angle = np.arctan2(found.slopes[:, 0, 1], found.slopes[:, 0, 0])
        cells = PolyCollection(found.polygons, array=angle, cmap="twilight", edgecolor="white")
        cells.set_linewidth(0.5)
        ax.add_collection(cells)
        ax.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")
        ax.set_title(f"hidden {'-'.join(map(str, widths))}: {found.count} regions", fontsize=10)
    return fig


def folding() -> Figure:
    """One, two and three folds by three units each."""
    fig, axes = figure(3, width=9.0, height=2.8)
    for K, ax in enumerate(axes, 1):
        net = construct.folding(3, K)
        found = linear_regions(net, (-0.5, 3.0))
        assert found.breakpoints is not None
        x = found.breakpoints
        y = net(torch.from_numpy(x)[:, None])[:, 0].detach().numpy()
        ax.plot(x, y, color=COLOURS[0], linewidth=1.1)
        for t in x[1:-1]:
            ax.axvline(t, color="0.9", linewidth=0.4, zorder=0)
        title = f"K = {K}: {found.count} regions, {net.n_parameters} parameters"
        ax.set_title(title, fontsize=9)
    return fig


def constructions() -> Figure:
    """Sup errors of networks by hand against their units."""
    fig, (left, right) = figure(2, width=8.0, height=3.2)
    x = torch.linspace(0, 2 * math.pi, 4001, dtype=torch.float64)[:, None]
    net, curve = construct.step(torch.sin, 0, 2 * math.pi, n=16), torch.sin(x)
    line = construct.relu_interpolant(np.linspace(0, 2 * math.pi, 9), torch.sin)
    with torch.no_grad():
        left.plot(x, curve, color="0.6", linewidth=3, label="sin x")
        left.plot(x, net(x), color=COLOURS[0], linewidth=1, label="16 steps")
        left.plot(x, line(x), color=COLOURS[1], linewidth=1, label="8 ReLU pieces")
        left.legend(frameon=False, fontsize=8)
        units = [4, 8, 16, 32, 64, 128, 256]
        for colour, f, name in (
            (COLOURS[0], torch.sin, "sin x"),
            (COLOURS[2], lambda v: torch.sin(5 * v), "sin 5x"),
        ):
            steps = [construct.step(f, 0, 2 * math.pi, n=n) for n in units]
            knots = [np.linspace(0, 2 * math.pi, n + 1) for n in units]
            pieces = [construct.relu_interpolant(k, f) for k in knots]
            for nets, style in ((steps, "o-"), (pieces, "s--")):
                errors = [float((net(x) - f(x)).abs().max()) for net in nets]
                kind = "steps" if nets is steps else "ReLU"
                right.loglog(units, errors, style, color=colour, markersize=3, linewidth=1,
                             label=f"{name}, {kind}")  # fmt: skip
    right.set(xlabel="hidden units", title="largest error")
    right.legend(frameon=False, fontsize=7)
    return fig


def simplex() -> Figure:
    """Softmax outputs of three noisy classes and their decisions."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    logits = 2.0 * np.eye(3)[y] + rng.normal(size=(120, 3))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    fig, (ax,) = figure(1, width=3.6, height=3.4)
    plot_simplex(ax, p, y, labels=("class 0", "class 1", "class 2"))
    return fig


def graph() -> Plain:
    """A network with the values of one row."""
    net = MLP(3, (4, 2), 2, "tanh", generator=torch.Generator().manual_seed(2))
    return Plain(draw(net, torch.tensor([1.0, -0.5, 0.3]), bias=True))


def backprop() -> Plain:
    """Values forward, gradients backward."""
    net = MLP(2, (2,), 1, "sigmoid", generator=torch.Generator().manual_seed(1))
    return Plain(draw_backprop(net, torch.tensor([1.0, 0.5]), lambda a: (a - 1).square().sum()))


def paths() -> Plain:
    """The eight paths of three residual blocks."""
    return Plain(draw_residual(3, unravelled=True))


def row() -> Plain:
    """Three residual blocks in a row."""
    return Plain(draw_residual(3))


def norm_cubes() -> Plain:
    """What each kind of normalisation takes together."""
    return Plain(*(draw_norm(kind) for kind in ("batch", "layer", "instance", "group")))


PICTURES = {
    "activations": activations,
    "linear-regions": regions,
    "folding": folding,
    "constructions": constructions,
    "argmax-simplex": simplex,
    "network-graph": graph,
    "network-backprop": backprop,
    "residual-row": row,
    "residual-paths": paths,
    "norm-cubes": norm_cubes,
}
