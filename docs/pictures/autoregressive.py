"""Pictures of densities by the chain rule."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from groundstate import AutoregressiveDensity, PixelCNN
from groundstate.nn.columns import MaskedColumns
from groundstate.nn.conv.masked import PixelNet


def autoregressive_density() -> Figure:
    """Rows, draws, and one conditional density."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, 300)
    X = np.column_stack([t, t**2 - 2 + 0.25 * rng.normal(size=300)])
    X = np.column_stack([X[:, 1], X[:, 0]])  # the second column has two branches given the first
    model = AutoregressiveDensity(
        hidden_layer_sizes=(32, 32), learning_rate_init=0.01, max_iter=40, random_state=0
    ).fit(X)
    fig, (left, middle, right) = figure(3, width=10.0)
    left.scatter(*X.T, s=6, color=COLOURS[0])
    left.set(title="rows")
    drawn = model.sample(500, random_state=0)
    middle.scatter(*drawn.T, s=6, color=COLOURS[1])
    middle.set(title="draws", xlim=left.get_xlim(), ylim=left.get_ylim())
    grid = np.linspace(-3, 3, 300)
    for k, x in enumerate((-1.8, -1.0, 0.5)):
        rows = np.column_stack([np.full(300, x), grid])
        p = np.exp(model.conditionals(rows)[:, 1])
        right.plot(grid, p, color=COLOURS[k], label=f"$x_1$ = {x:g}")
    right.set(title="$p(x_2\\mid x_1)$")
    right.legend(frameon=False)
    return fig


def pixel_cnn() -> Figure:
    """Digits, draws, completed halves."""
    X = load_digits().images
    model = PixelCNN(features=16, n_layers=2, max_iter=3, learning_rate_init=1e-2, random_state=0)
    model.fit(X[:800])
    gaps = X[1200:1208].copy()
    gaps[:, 4:] = np.nan
    parts = {
        "data": X[:8],
        "draws": model.sample(8, T=0.8, random_state=0),
        "upper half completed": model.impute(gaps, "sample", random_state=0),
    }
    fig, axes = figure(3, width=10.0)
    for ax, (title, rows) in zip(axes, parts.items(), strict=True):
        pictures = np.asarray(rows).reshape(2, 4, 8, 8).transpose(0, 2, 1, 3).reshape(16, 32)
        ax.imshow(pictures, cmap="gray_r", vmin=0, vmax=16)
        ax.set(title=title, xticks=[], yticks=[])
    return fig


def family_autoregressive() -> Figure:
    """Who sees whom."""
    fig, (left, right) = figure(2)
    net = MaskedColumns((1,) * 8, (1,) * 8, (64,), "tanh").double()
    torch.nn.init.normal_(net.net.layers[-1].weight, generator=torch.Generator().manual_seed(0))
    x = torch.ones(8, dtype=torch.float64)
    J = torch.func.jacrev(lambda v: net(v[None])[0])(x).abs() > 0
    left.imshow(J, cmap="Blues", vmin=0, vmax=1.6)
    left.set(title="columns: output j sees inputs before j", xlabel="input", ylabel="output")
    pixels = PixelNet((1, 9, 9), 1, 4, 3).double()
    picture = torch.randn(
        1, 1, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    picture.requires_grad_()
    (slope,) = torch.autograd.grad(pixels(picture)[0, 0, 0, 5, 4], picture)
    right.imshow((slope[0, 0].abs() > 0).double(), cmap="Blues", vmin=0, vmax=1.6)
    right.scatter([4], [5], color=COLOURS[1], marker="s")
    right.set(title="pixels: the orange one sees the blue ones", xticks=[], yticks=[])
    return fig


PICTURES = {
    "AutoregressiveDensity": autoregressive_density,
    "PixelCNN": pixel_cnn,
    "family-autoregressive": family_autoregressive,
}
