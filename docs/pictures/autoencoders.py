"""Pictures of the models that go through a code and back."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from groundstate import (
    Autoencoder,
    ContractiveAutoencoder,
    DenoisingAutoencoder,
    SparseAutoencoder,
)

N = 400


def arc(n: int = N) -> np.ndarray:
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t)]) + 0.05 * rng.normal(size=(n, 2))


def board(images: np.ndarray, rows: int) -> np.ndarray:
    """Small pictures side by side with a line between."""
    n, h, w = images.shape
    columns = n // rows
    out = np.full((rows * (h + 1) - 1, columns * (w + 1) - 1), np.nan)
    for k in range(rows * columns):
        i, j = divmod(k, columns)
        out[i * (h + 1) : i * (h + 1) + h, j * (w + 1) : j * (w + 1) + w] = images[k]
    return out


def bent_code() -> Figure:
    """A parabola through one number: a line for PCA, a curve for an autoencoder."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.5, 1.5, N)
    X = np.column_stack([t, t**2]) + 0.05 * rng.normal(size=(N, 2))
    model = Autoencoder(
        1, (32,), "tanh", batch_size=64, max_iter=100, learning_rate_init=1e-2,
        n_iter_no_change=np.inf, random_state=1,
    ).fit(X)  # fmt: skip
    pca = PCA(1).fit(X)
    fig, axes = figure(2)
    back = {"PCA": pca.inverse_transform(pca.transform(X)), "Autoencoder": model.reconstruct(X)}
    for ax, (name, rows) in zip(axes, back.items(), strict=True):
        ax.scatter(*X.T, s=8, color="lightgrey")
        ax.scatter(*rows.T, s=8, color=COLOURS[1])
        lost = np.square(rows - X).sum(1).mean()
        ax.set(title=f"{name}, one number per row: lost {lost:.3f}", xticks=[], yticks=[])
    return fig


def autoencoder() -> Figure:
    """Digits at their code of two numbers, and rows on the way from one to another."""
    digits = load_digits()
    X, y = digits.data / 16, digits.target
    model = Autoencoder(
        2, (64,), likelihood="bernoulli", max_iter=40, learning_rate_init=5e-3, random_state=0
    ).fit(X)
    z = model.transform(X)
    fig, (left, right) = figure(2)
    left.scatter(*z.T, c=y, cmap="tab10", s=5)
    left.set(title="codes of digits", xticks=[], yticks=[])
    ways = [model.interpolate(X[i], X[j], 8) for i, j in ((0, 1), (4, 7), (3, 8), (6, 5))]
    right.imshow(board(np.concatenate(ways).reshape(-1, 8, 8), 4), cmap="Greys")
    right.set(title="on the way from one to another", xticks=[], yticks=[])
    return fig


def denoising() -> Figure:
    """Where noisy points are moved to: the curve they came from."""
    X = arc()
    model = DenoisingAutoencoder(
        8, (64,), level=0.3, max_iter=150, learning_rate_init=1e-2, n_iter_no_change=np.inf,
        random_state=0,
    ).fit(X)  # fmt: skip
    at = np.linspace(-1.8, 1.8, 15)
    points = np.stack(np.meshgrid(at, at), -1).reshape(-1, 2)
    moved = model.denoise(points)
    fig, (ax,) = figure(1, 4.2, 3.8)
    ax.scatter(*X.T, s=6, color="lightgrey")
    ax.quiver(*points.T, *(moved - points).T, angles="xy", scale_units="xy", scale=1, width=0.004,
              color=COLOURS[0])  # fmt: skip
    ax.set(title="x to g(f(x)): up the log density", aspect="equal", xticks=[], yticks=[])
    return fig


def sparse() -> Figure:
    """Atoms of digits, and how many of them a digit uses."""
    X = load_digits().data / 16
    fig, (left, right) = figure(2)
    for colour, strength in enumerate((0.01, 0.1, 0.3)):
        model = SparseAutoencoder(
            64, strength=strength, max_iter=25, learning_rate_init=5e-3, scale=None, random_state=0
        ).fit(X)
        used = (model.transform(X) > 1e-3).sum(1)
        right.hist(used, range(65), color=COLOURS[colour], alpha=0.7, label=f"λ = {strength}")
    atoms = model.components_[np.argsort(-model.transform(X).mean(0))[:24]].reshape(-1, 8, 8)
    left.imshow(board(atoms, 4), cmap="RdBu_r", vmin=-0.6, vmax=0.6)
    left.set(title="the 24 busiest atoms, λ = 0.3", xticks=[], yticks=[])
    right.set(xlabel="entries of a code that are not 0", ylabel="digits")
    right.legend()
    return fig


def contractive() -> Figure:
    """How much codes move with the rows, along the data and across it."""
    X = arc()
    t = np.arctan2(X[:, 1], X[:, 0])
    along, across = (
        np.column_stack([-np.sin(t), np.cos(t)]),
        np.column_stack([np.cos(t), np.sin(t)]),
    )
    fig, (ax,) = figure(1, 5.0, 3.4)
    gammas, step = (0.01, 0.1, 0.3), 1e-2
    slopes = []
    for gamma in gammas:
        model = ContractiveAutoencoder(
            8, (32,), "tanh", gamma=gamma, max_iter=60, learning_rate_init=1e-2,
            n_iter_no_change=np.inf, random_state=0,
        ).fit(X)  # fmt: skip
        z = model.transform(X)
        slopes.append([
            np.linalg.norm(model.transform(X + step * d) - z, axis=1).mean() / step
            for d in (along, across)
        ])  # fmt: skip
    for colour, (name, values) in enumerate(
        zip(("along the ring", "across it"), np.transpose(slopes))
    ):
        ax.loglog(gammas, values, "o-", color=COLOURS[colour], label=name)
    ax.set(xlabel="γ", title="how far the code moves with x")
    ax.legend()
    return fig


PICTURES = {
    "bent-code": bent_code,
    "Autoencoder": autoencoder,
    "DenoisingAutoencoder": denoising,
    "SparseAutoencoder": sparse,
    "ContractiveAutoencoder": contractive,
}
