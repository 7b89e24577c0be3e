"""Pictures of linear codes and factors."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, landscape, scatter
from matplotlib.figure import Figure
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits, make_circles

from groundstate import (
    NMF,
    PCA,
    FactorAnalysis,
    FastICA,
    IncrementalPCA,
    KernelPCA,
    TruncatedSVD,
    Whitener,
)

RNG = np.random.default_rng(0)
CLOUD = RNG.normal(size=(140, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]]) + [1.0, 2.0]


def pca() -> Figure:
    """The distance to a line as an energy, and digits along two axes."""
    model = PCA(1).fit(CLOUD)
    fig, (left, right) = figure(2)
    landscape(left, CLOUD, model.energy)
    back = model.inverse_transform(model.transform(CLOUD))
    for row, image in zip(CLOUD[::3], back[::3], strict=True):
        left.plot(*np.column_stack([row, image]), color="white", linewidth=0.6)
    left.scatter(*CLOUD.T, s=6, color="white", alpha=0.6)
    left.set_title("energy: half the squared distance to the line")
    digits = load_digits()
    Z = PCA(2).fit_transform(digits.data)
    few = digits.target < 4
    scatter(right, Z[few], digits.target[few])
    right.set(title="digits 0 to 3 on two axes of 64", xticks=[], yticks=[])
    return fig


def incremental_pca() -> Figure:
    """The angle to the axes of all rows, batch by batch."""
    X = RNG.normal(size=(3000, 20)) @ np.diag(np.r_[3.0, 2.5, 2.0, np.ones(17)])
    whole = PCA(2).fit(X).components_.T
    fig, (ax,) = figure(1, width=6.0)
    for k, method in enumerate(("exact", "sketch", "oja")):
        model = IncrementalPCA(2, method=method, random_state=0)
        angles = []
        for part in np.split(X, 60):
            model.partial_fit(part)
            angles.append(np.degrees(subspace_angles(model.components_.T, whole).max()))
        ax.plot(np.arange(1, 61) * 50, np.maximum(angles, 1e-7), color=COLOURS[k], label=method)
    ax.set(yscale="log", ylim=(1e-2, 120), xlabel="rows seen", ylabel="angle in degrees")
    ax.set_title("angle to the axes of all rows")
    ax.legend(fontsize=7)
    return fig


def truncated_svd() -> Figure:
    """A digit as a sum of few products."""
    images = load_digits().images[:30].reshape(30, -1)
    fig, axes = figure(4, height=2.4)
    for ax, k in zip(axes, (1, 3, 8, 20), strict=True):
        model = TruncatedSVD(k, random_state=0).fit(images)
        ax.imshow(model.inverse_transform(model.transform(images))[3].reshape(8, 8), cmap="Greys")
        ax.set(xticks=[], yticks=[], title=f"{k} of 30")
    return fig


def whitener() -> Figure:
    """The same rows, white in three ways."""
    fig, axes = figure(4, width=10.0, height=2.8)
    hue = CLOUD[:, 0] - CLOUD[:, 0].mean() > 0
    scatter(axes[0], CLOUD - CLOUD.mean(0), hue)
    axes[0].set_title("rows")
    for ax, method in zip(axes[1:], ("zca", "pca", "cholesky"), strict=True):
        scatter(ax, Whitener(method).fit_transform(CLOUD), hue)
        ax.set_title(method)
    for ax in axes:
        ax.set(xticks=[], yticks=[], aspect="equal")
    return fig


def factor_analysis() -> Figure:
    """Loadings under unequal noise: factor analysis finds them, PCA follows the noise."""
    rng = np.random.default_rng(2)
    w = np.r_[np.ones(5), np.zeros(5)]
    noise = np.r_[np.full(9, 0.5), 2.5]
    X = rng.normal(size=(2000, 1)) * w + rng.normal(size=(2000, 10)) * noise
    fig, (left, right) = figure(2)
    at = np.arange(10)
    found = FactorAnalysis(1).fit(X)
    rows = (("truth", w), ("factor analysis", np.abs(found.components_[0])),
            ("PCA", np.abs(PCA(1).fit(X).components_[0])))  # fmt: skip
    for k, (name, values) in enumerate(rows):
        left.bar(at + 0.27 * (k - 1), values, 0.25, color=COLOURS[k], label=name)
    left.set(title="loadings", xlabel="feature", xticks=at)
    left.legend(fontsize=7)
    right.bar(at - 0.14, noise**2, 0.27, color=COLOURS[0], label="truth")
    right.bar(at + 0.14, found.noise_variance_, 0.27, color=COLOURS[1], label="factor analysis")
    right.set(title="noise of each feature", xlabel="feature", xticks=at)
    right.legend(fontsize=7)
    return fig


def fast_ica() -> Figure:
    """Mixed sources with the axes of PCA, and the sources found."""
    S = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    X = S @ np.array([[2.0, 1.0], [0.5, 1.0]])
    fig, (left, right) = figure(2)
    model = FastICA(random_state=0).fit(X)
    scatter(left, X)
    for axes, colour in ((PCA().fit(X).components_, COLOURS[1]), (model.mixing_.T, COLOURS[2])):
        for axis in axes:
            left.plot(*np.outer([-1.5, 1.5], axis / np.linalg.norm(axis)).T, color=colour)
    left.set(title="mixed; orange: axes of PCA, green: of the sources", aspect="equal")
    scatter(right, model.transform(X))
    right.set(title="sources found", aspect="equal")
    return fig


def kernel_pca() -> Figure:
    """Two rings that no line parts, and their codes under a Gaussian kernel."""
    X, y = make_circles(240, factor=0.3, noise=0.06, random_state=0)
    fig, (left, right) = figure(2)
    model = KernelPCA(1, kernel="rbf", gamma=3.0).fit(X)
    landscape(left, X, lambda rows: model.transform(rows)[:, 0])
    scatter(left, X, y)
    left.set_title("the first code over the plane")
    scatter(right, KernelPCA(2, kernel="rbf", gamma=3.0).fit_transform(X), y)
    right.set(title="rows by their two codes", xlabel="first", ylabel="second")
    return fig


def nmf() -> Figure:
    """Parts of digits: sums of strokes, where PCA adds and takes away."""
    X = load_digits().data
    fig, axes = figure(12, width=12.0, height=1.5)
    parts = NMF(6, max_iter=1000).fit(X).components_
    signed = PCA(6).fit(X).components_
    for ax, part in zip(axes[:6], parts, strict=True):
        ax.imshow(part.reshape(8, 8), cmap="Greys")
    for ax, axis in zip(axes[6:], signed, strict=True):
        most = np.abs(axis).max()
        ax.imshow(axis.reshape(8, 8), cmap="RdBu", vmin=-most, vmax=most)
    for ax in axes:
        ax.set(xticks=[], yticks=[])
    axes[0].set_title("parts of NMF", loc="left")
    axes[6].set_title("axes of PCA", loc="left")
    return fig


PICTURES = {
    "FactorAnalysis": factor_analysis,
    "FastICA": fast_ica,
    "IncrementalPCA": incremental_pca,
    "KernelPCA": kernel_pca,
    "NMF": nmf,
    "PCA": pca,
    "TruncatedSVD": truncated_svd,
    "Whitener": whitener,
}
