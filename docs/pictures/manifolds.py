"""Pictures of the maps."""

from __future__ import annotations

import numpy as np
from common import COLOURS, experiment, figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits, make_moons, make_swiss_roll

from groundstate import (
    MDS,
    TSNE,
    UMAP,
    ClassicalMDS,
    Isomap,
    LandmarkMDS,
    LocallyLinearEmbedding,
    SpectralEmbedding,
)
from groundstate.math.manifold import classical_scaling, residual_variance

ROLL, T = make_swiss_roll(600, random_state=0)
DIGITS = load_digits()


def dots(ax: Axes, Y: np.ndarray, colour: np.ndarray, title: str, cmap: str = "viridis") -> None:
    ax.scatter(*Y[:, :2].T, c=colour, cmap=cmap, s=6)
    ax.set(title=title, xticks=[], yticks=[])


def classical_mds() -> Figure:
    """Places from distances alone, and the eigenvalues of distances that no rows have."""
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 10, (12, 2))
    D = np.linalg.norm(places[:, None] - places, axis=-1)
    fig, (left, right) = figure(2)
    model = ClassicalMDS(metric="precomputed").fit(D)
    about = places - places.mean(0)
    u, _, v = np.linalg.svd(model.embedding_.T @ about)
    left.scatter(*about.T, s=60, facecolor="none", edgecolor="black", label="where they were")
    left.scatter(*(model.embedding_ @ (u @ v)).T, s=16, color=COLOURS[0], label="from distances")
    left.set(title="twelve places", aspect="equal")
    left.legend(frameon=False, fontsize=7)
    for colour, (name, table) in zip(
        COLOURS, {"as the crow flies": D, "along a grid of streets": np.abs(
            places[:, None] - places).sum(-1)}.items(), strict=False,
    ):  # fmt: skip
        right.plot(classical_scaling(table, 12)[1], "o-", markersize=3, color=colour, label=name)
    right.axhline(0, color="black", linewidth=0.6)
    right.set(title="eigenvalues of B", xlabel="number")
    right.legend(frameon=False, fontsize=7)
    return fig


def landmark_mds() -> Figure:
    """The map by all distances, and by those to thirty rows."""
    X, y = DIGITS.data[:800], DIGITS.target[:800]
    fig, (left, right) = figure(2)
    dots(left, ClassicalMDS().fit_transform(X), y, "all distances", "tab10")
    model = LandmarkMDS(n_landmarks=30).fit(X)
    dots(right, model.embedding_, y, "distances to 30 landmarks", "tab10")
    right.scatter(*model.embedding_[model.landmarks_].T, s=30, facecolor="none", edgecolor="black")
    return fig


def mds() -> Figure:
    """How the stress falls, and the map's distances against the given ones."""
    X = DIGITS.data[:200]
    model = MDS(init="random", random_state=0, eps=1e-7).fit(X)
    fig, (left, right) = figure(2)
    left.plot(model.history_.objective, color=COLOURS[0])
    left.set(title="stress, step by step", xlabel="step", yscale="log")
    upper = np.triu_indices(len(X), 1)
    away = np.linalg.norm(model.embedding_[:, None] - model.embedding_, axis=-1)[upper]
    given = model.dissimilarity_matrix_[upper]
    right.scatter(given, away, s=1, alpha=0.2, color=COLOURS[1], rasterized=True)
    right.plot([0, given.max()], [0, given.max()], color="black", linewidth=0.8)
    right.set(title="distances", xlabel="given", ylabel="in the map")
    return fig


def isomap() -> Figure:
    """A rolled sheet, its map, and how many dimensions it needs."""
    model = Isomap(n_neighbors=10).fit(ROLL)
    fig, (left, middle, right) = figure(3, width=10.0)
    dots(left, ROLL[:, [0, 2]], T, "a rolled sheet from the side")
    dots(middle, model.embedding_, T, "unrolled")
    dimensions = range(1, 6)
    right.plot(dimensions, [model.residual_variance(p) for p in dimensions], "o-", color=COLOURS[0])
    right.plot(
        dimensions,
        [float(residual_variance(ROLL, ClassicalMDS(min(p, 3)).fit_transform(ROLL))) for p in dimensions],
        "s--", color=COLOURS[1], markersize=4,
    )  # fmt: skip
    right.set(title="residual variance: paths, straight", xlabel="dimensions")
    return fig


def tsne() -> Figure:
    """Digits by neighbours, and how the divergence falls."""
    X, y = DIGITS.data[:800], DIGITS.target[:800]
    model = TSNE().fit(X)
    fig, (left, right) = figure(2)
    dots(left, model.embedding_, y, "handwritten digits", "tab10")
    steps = 50 * np.arange(1, len(model.history_.objective) + 1)
    right.plot(steps, model.history_.objective, "o-", markersize=3, color=COLOURS[0])
    right.axvline(250, color="black", linewidth=0.6, linestyle=":")
    right.set(title="KL(P‖Q); exaggeration ends at 250", xlabel="step")
    return fig


def umap() -> Figure:
    """Digits by few and by many neighbours, and how the energy falls."""
    X, y = DIGITS.data, DIGITS.target
    fig, axes = figure(3, width=10.0)
    for ax, k in zip(axes, (5, 50), strict=False):
        model = UMAP(n_neighbors=k, random_state=0).fit(X)
        dots(ax, model.embedding_, y, f"n_neighbors={k}", "tab10")
        steps = 50 * np.arange(1, len(model.history_.objective) + 1)
        axes[2].plot(steps, model.history_.objective, "o-", markersize=3, label=f"{k}")
    axes[2].set(title="energy of a row", xlabel="epoch")
    axes[2].legend(frameon=False, fontsize=7)
    return fig


def spectral_embedding() -> Figure:
    """Two moons and the slowest function on their graph."""
    X, _ = make_moons(400, noise=0.06, random_state=0)
    model = SpectralEmbedding(2, affinity="rbf", gamma=30.0).fit(X)
    fig, (left, right) = figure(2)
    dots(left, X, model.embedding_[:, 0], "coloured by the first coordinate")
    dots(right, model.embedding_, model.embedding_[:, 0], "the map")
    return fig


def locally_linear_embedding() -> Figure:
    """A rolled sheet by four local matrices."""
    X, t = make_swiss_roll(1000, random_state=0)
    fig, axes = figure(4, width=11.0)
    for ax, method in zip(axes, ("standard", "modified", "hessian", "ltsa"), strict=True):
        Y = LocallyLinearEmbedding(n_neighbors=10, method=method).fit_transform(X)
        dots(ax, Y, t, method)
    return fig


def family() -> Figure:
    """One roll, five maps."""
    fig, axes = figure(6, width=13.0)
    dots(axes[0], ROLL[:, [0, 2]], T, "from the side")
    dots(axes[1], ClassicalMDS().fit_transform(ROLL), T, "ClassicalMDS")
    dots(axes[2], Isomap(n_neighbors=10).fit_transform(ROLL), T, "Isomap")
    local = LocallyLinearEmbedding(n_neighbors=8)
    dots(axes[3], local.fit_transform(ROLL), T, "LocallyLinearEmbedding")
    dots(axes[4], TSNE(max_iter=500).fit_transform(ROLL), T, "TSNE")
    dots(axes[5], UMAP(random_state=0).fit_transform(ROLL), T, "UMAP")
    return fig


def guide() -> Figure:
    """Eight maps of the same digits."""
    return experiment("UNSX-ladder").figure()


PICTURES = {
    "guide-maps": guide,
    "ClassicalMDS": classical_mds,
    "Isomap": isomap,
    "LandmarkMDS": landmark_mds,
    "LocallyLinearEmbedding": locally_linear_embedding,
    "MDS": mds,
    "SpectralEmbedding": spectral_embedding,
    "TSNE": tsne,
    "UMAP": umap,
    "family-manifolds": family,
}
