"""Pictures of the kernel machines and Gaussian processes."""

from __future__ import annotations

import numpy as np
from common import COLOURS, bands, figure, grid, landscape, regions, scatter
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import (
    SVC,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelRidge,
)
from groundstate.math.kernels import RBF, Constant, White

X, y = make_moons(160, noise=0.2, random_state=0)


def svc() -> Figure:
    """The margin of a curved boundary, and the energy of one class."""
    model = SVC(C=2.0).fit(X, y)
    fig, (left, right) = figure(2)
    regions(left, X, y, model.predict)
    a, b, points = grid(X)
    score = model.decision_function(points).reshape(a.shape)
    left.contour(a, b, score, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"])
    left.scatter(
        *model.support_vectors_.T, s=42, facecolor="none", edgecolor="black", linewidth=0.7
    )
    left.set_title("boundary, margins, support vectors")
    landscape(right, X, lambda points: model.energy(points, np.zeros(len(points), int)))
    scatter(right, X, y)
    right.set_title("energy of class 0")
    return fig


def gaussian_process_regressor() -> Figure:
    """Draws of the prior, and the posterior with its band and draws."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 6, 9))[:, None]
    target = np.sin(x[:, 0]) + 0.1 * rng.normal(size=9)
    at = np.linspace(-1, 7, 200)[:, None]
    prior = GaussianProcessRegressor(RBF(1.0))
    fig, (left, right) = figure(2)
    left.plot(at, prior.sample_y(at, 4, random_state=1), linewidth=1)
    left.set(title="four draws of the prior", xlabel="x", ylabel="f(x)")
    model = GaussianProcessRegressor(1.0 * RBF(1.0) + White(0.02)).fit(x, target)
    mean, std = model.predict(at, return_std=True)
    right.fill_between(at[:, 0], mean - 2 * std, mean + 2 * std, color=COLOURS[0], alpha=0.2)
    right.plot(at, mean, color=COLOURS[0])
    right.scatter(x, target, s=18, color=COLOURS[1], zorder=3)
    right.set(title="posterior: mean ± 2 std", xlabel="x")
    return fig


def gaussian_process_classifier() -> Figure:
    """Probabilities that return to one half, and how uncertain the latent function is."""
    rows, label = X[::3], y[::3]
    model = GaussianProcessClassifier(Constant() * RBF()).fit(rows, label)
    fig, (left, right) = figure(2)
    a, b, points = grid(rows, margin=2.0)
    bands(left, a, b, model.predict_proba(points)[:, 1].reshape(a.shape))
    scatter(left, rows, label)
    left.set_title("probability of class 1")
    std = model.latent_mean_and_variance(points)[1].reshape(a.shape) ** 0.5
    right.contourf(a, b, std, levels=14, cmap="viridis")
    scatter(right, rows, label)
    right.set_title("standard deviation of the latent function")
    return fig


def kernel_regressor() -> Figure:
    """Three widths, and the one that leaving one out finds."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 60))[:, None]
    target = np.sin(x[:, 0]) + 0.25 * rng.normal(size=60)
    at = np.linspace(0, 6, 300)[:, None]
    fig, (ax,) = figure(1, width=5.5)
    ax.scatter(x, target, s=12, color="grey")
    found = KernelRegressor().fit(x, target)
    for colour, model in zip(
        COLOURS, (KernelRegressor(RBF(0.05)), KernelRegressor(RBF(1.5)), found), strict=False
    ):
        model.fit(x, target)
        ax.plot(at, model.predict(at), color=colour, label=f"ℓ = {model.kernel_.length_scale:.2f}")
    ax.legend(frameon=False)
    ax.set(xlabel="x", title="too narrow, too wide, left one out")
    return fig


def kernel_ridge() -> Figure:
    """Three strengths of the penalty on the norm of the function."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 40))[:, None]
    target = np.sin(x[:, 0]) + 0.25 * rng.normal(size=40)
    at = np.linspace(-0.5, 6.5, 300)[:, None]
    fig, (ax,) = figure(1, width=5.5)
    ax.scatter(x, target, s=12, color="grey")
    for colour, alpha in zip(COLOURS, (1e-6, 0.3, 30.0), strict=False):
        model = KernelRidge(alpha, kernel=RBF(0.7)).fit(x, target)
        ax.plot(at, model.predict(at), color=colour, label=f"α = {alpha:g}")
    ax.set(xlabel="x", ylim=(-2, 2), title="too free, right, too stiff")
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.09, 0.0))
    return fig


def kernel_classifier() -> Figure:
    """Shares of the classes nearby."""
    model = KernelClassifier().fit(X, y)
    fig, (left, right) = figure(2)
    regions(left, X, y, model.predict)
    left.set_title("class of lowest energy")
    landscape(right, X, lambda points: model.energy(points, np.zeros(len(points), int)))
    scatter(right, X, y)
    right.set_title("energy of class 0")
    return fig


PICTURES = {
    "GaussianProcessClassifier": gaussian_process_classifier,
    "GaussianProcessRegressor": gaussian_process_regressor,
    "KernelClassifier": kernel_classifier,
    "KernelRegressor": kernel_regressor,
    "KernelRidge": kernel_ridge,
    "SVC": svc,
}
