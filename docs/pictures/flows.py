"""Pictures of flows: densities, draws and grids of the base that maps bend."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import CNF, FlowMatching, NormalizingFlow
from groundstate.data import make_eight_gaussians

MOONS = make_moons(400, noise=0.08, random_state=0)[0]


def _density(ax: Axes, model: Any, X: np.ndarray, n: int = 80) -> None:
    low, high = X.min(0) - 0.4, X.max(0) + 0.4
    a, b = np.meshgrid(np.linspace(low[0], high[0], n), np.linspace(low[1], high[1], n))
    p = np.exp(model.score_samples(np.stack([a, b], -1).reshape(-1, 2))).reshape(n, n)
    ax.pcolormesh(a, b, p, cmap="Blues", shading="auto", rasterized=True)
    ax.set(xticks=[], yticks=[])


def _grid(ax: Axes, way: Any, size: float = 2.0, lines: int = 17) -> None:
    """Lines of constant coordinates in the plane, moved by a map."""
    t = np.linspace(-size, size, 120)
    for k in np.linspace(-size, size, lines):
        ax.plot(*way(np.stack([t, np.full_like(t, k)], 1)).T, color=COLOURS[0], linewidth=0.6)
        ax.plot(*way(np.stack([np.full_like(t, k), t], 1)).T, color=COLOURS[1], linewidth=0.6)
    ax.set(xticks=[], yticks=[])


@cache
def _moons() -> NormalizingFlow:
    model = NormalizingFlow(hidden_layer_sizes=(32, 32), max_iter=40, random_state=0)
    return model.fit(MOONS)


def normalizing_flow() -> Figure:
    """Density, draws and the warped grid of the base."""
    model = _moons()
    fig, (left, middle, right) = figure(3)
    _density(left, model, MOONS)
    left.set_title("density")
    middle.scatter(*model.sample(400, random_state=0).T, s=4, color=COLOURS[1])
    middle.set(xticks=[], yticks=[], title="draws")
    _grid(right, model.inverse_transform)
    right.set_title("a grid of the base")
    return fig


def family() -> Figure:
    """The grid of the base behind one, two and three maps."""
    model = _moons()
    steps = list(model.flow_.transform.transforms)
    fig, axes = figure(3)
    for k, ax in enumerate(axes, 1):

        def way(z: np.ndarray, k: int = k) -> np.ndarray:
            x = torch.from_numpy(z)
            with torch.no_grad():
                for f in steps[::-1][:k]:
                    x, _ = f.inverse(x)
            return np.asarray(x.numpy())

        _grid(ax, way)
        ax.set_title(f"{k} map{'s' if k > 1 else ''}")
    return fig


def _ways(ax: Axes, model: Any, n: int = 150) -> None:
    z = torch.randn(n, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    step = model.energy_.continuous
    with torch.no_grad():
        way = step.path(z, times=torch.linspace(0, 1, 25), method="rk4", n_steps=48).numpy()
    ax.plot(way[:, :, 0], way[:, :, 1], color=COLOURS[0], linewidth=0.4, alpha=0.6)
    ax.scatter(*way[0].T, s=4, color="grey")
    ax.scatter(*way[-1].T, s=6, color=COLOURS[1])
    ax.set(xticks=[], yticks=[], aspect="equal")


def cnf() -> Figure:
    """Ways of noise to two groups, and the density."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 1)) < 0.5, -1.5, 1.5) * [1, 0.5] + 0.4 * rng.normal(size=(120, 2))
    model = CNF(
        hidden_layer_sizes=(32,), method="rk4", n_steps=3, max_iter=60,
        batch_size=30, random_state=0,
    ).fit(X)  # fmt: skip
    fig, (left, right) = figure(2)
    _ways(left, model)
    left.set_title("from noise (grey) to data (orange)")
    _density(right, model, X, 40)
    right.set_title("density")
    return fig


def flow_matching() -> Figure:
    """Ways to eight Gaussians with both couplings."""
    X, _ = make_eight_gaussians(800, random_state=0)
    fig, axes = figure(2)
    for ax, coupling in zip(axes, ("independent", "ot"), strict=True):
        model = FlowMatching(
            coupling, batch_size=128, max_iter=110, random_state=0,
        ).fit(X)  # fmt: skip
        _ways(ax, model)
        ax.set_title(coupling)
    return fig


PICTURES = {
    "NormalizingFlow": normalizing_flow,
    "CNF": cnf,
    "FlowMatching": flow_matching,
    "family-flows": family,
}
