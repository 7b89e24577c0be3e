"""One picture per family: what its energy, border or fit looks like."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import COLOURS, bands, figure, grid, landscape, regions, scatter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import (
    SVC,
    DecisionTreeClassifier,
    GaussianMixture,
    GaussianNB,
    GaussianProcessRegressor,
    HistGradientBoostingClassifier,
    KernelRegressor,
    KernelRidge,
    KMeans,
    KNeighborsClassifier,
    Lasso,
    LinearDiscriminantAnalysis,
    LinearRegression,
    LogisticRegression,
    MixtureDensityRegressor,
    ProbabilisticPCA,
    QuadraticDiscriminantAnalysis,
    RandomForestClassifier,
    Ridge,
)

X, y = make_moons(160, noise=0.25, random_state=0)


def shares(ax: Axes, model: Any, title: str) -> None:
    """The probability of one class over the plane."""
    a, b, points = grid(X)
    p = model.fit(X, y).predict_proba(points)[:, 1].reshape(a.shape)
    bands(ax, a, b, p)
    scatter(ax, X, y)
    ax.set_title(title)


def linear() -> Figure:
    """Weights under three penalties, and straight level lines."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 10))
    target = table[:, :3] @ [2.0, -1.5, 1.0] + rng.normal(size=30)
    fig, (left, right) = figure(2)
    models = {"none": LinearRegression(), "ridge": Ridge(10.0), "lasso": Lasso(0.3)}
    for k, (name, model) in enumerate(models.items()):
        at = np.arange(10) + 0.25 * (k - 1)
        left.bar(at, model.fit(table, target).coef_, 0.25, color=COLOURS[k], label=name)
    left.axhline(0, color="grey", linewidth=0.5)
    left.set(xlabel="column", ylabel="weight", title="weights under three penalties")
    left.legend(title="penalty", frameon=False)
    shares(right, LogisticRegression(), "logistic regression")
    return fig


def margins() -> Figure:
    """Border, margin and support vectors."""
    fig, axes = figure(2)
    for ax, kernel in zip(axes, ("linear", "rbf"), strict=True):
        model = SVC(kernel=kernel).fit(X, y)
        a, b, points = grid(X)
        f = model.decision_function(points).reshape(a.shape)
        ax.contour(a, b, f, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"])
        scatter(ax, X, y)
        ax.scatter(*X[model.support_].T, s=40, facecolor="none", edgecolor="black", linewidth=0.6)
        ax.set_title(f"{kernel} kernel")
    return fig


def kernels() -> Figure:
    """Three answers to ten points."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 6, 10))[:, None]
    target = np.sin(x[:, 0]) + 0.1 * rng.normal(size=10)
    line = np.linspace(-1, 8, 200)[:, None]
    fig, axes = figure(3)
    models = {"kernel ridge": KernelRidge(0.1, kernel="rbf", gamma=0.5)}
    models |= {"smoother": KernelRegressor(), "Gaussian process": GaussianProcessRegressor()}
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        if name == "Gaussian process":
            model.set_params(alpha=0.01)
            mean, sd = model.fit(x, target).predict(line, return_std=True)
            ax.fill_between(line[:, 0], mean - 2 * sd, mean + 2 * sd, color=COLOURS[0], alpha=0.2)
        else:
            mean = model.fit(x, target).predict(line)
        ax.plot(line[:, 0], mean, color=COLOURS[0])
        ax.scatter(x, target, s=14, color=COLOURS[1], zorder=3)
        ax.set(title=name, ylim=(-2.2, 2.2))
    return fig


def neighbors() -> Figure:
    """More neighbours, a smoother border."""
    fig, axes = figure(3)
    for ax, k in zip(axes, (1, 15, 60), strict=True):
        regions(ax, X, y, KNeighborsClassifier(k).fit(X, y).predict)
        ax.set_title(f"{k} neighbour{'s' if k > 1 else ''}")
    return fig


def bayes() -> Figure:
    """Level lines of the distributions of three classes."""
    rng = np.random.default_rng(0)
    shapes = ([[1, 0.8], [0.8, 1]], [[0.6, -0.4], [-0.4, 0.8]], [[0.3, 0], [0, 1.2]])
    centres = ([0, 0], [3.5, 0.5], [1.5, 3.5])
    rows = [rng.multivariate_normal(m, s, 60) for m, s in zip(centres, shapes, strict=True)]
    table, label = np.concatenate(rows), np.repeat([0, 1, 2], 60)
    fig, axes = figure(3)
    models = {"naive": GaussianNB(), "linear": LinearDiscriminantAnalysis(store_covariance=True)}
    models |= {"quadratic": QuadraticDiscriminantAnalysis(store_covariance=True)}
    a, b, points = grid(table)
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        regions(ax, table, label, model.fit(table, label).predict)
        for k in range(3):
            if name == "naive":
                mean, spread = model.theta_[k], np.diag(model.var_[k])
            else:
                mean = model.means_[k]
                spread = model.covariance_ if name == "linear" else model.covariance_[k]
            away = points - mean
            far = np.einsum("ij,jk,ik->i", away, np.linalg.inv(spread), away).reshape(a.shape)
            ax.contour(a, b, far, levels=[1, 4], colors=[COLOURS[k]], linewidths=1)
        ax.set_title(name)
    return fig


def trees() -> Figure:
    """Deeper and deeper."""
    fig, axes = figure(3)
    for ax, depth in zip(axes, (2, 5, None), strict=True):
        regions(ax, X, y, DecisionTreeClassifier(max_depth=depth).fit(X, y).predict)
        ax.set_title("grown to the end" if depth is None else f"depth {depth}")
    return fig


def ensembles() -> Figure:
    """One, averaged, summed."""
    fig, axes = figure(3)
    shares(axes[0], DecisionTreeClassifier(), "one tree")
    shares(axes[1], RandomForestClassifier(100, random_state=0), "average of 100")
    boosted = HistGradientBoostingClassifier(max_iter=60, min_samples_leaf=5)
    shares(axes[2], boosted, "sum of 60")
    return fig


def networks() -> Figure:
    """The distribution of an outcome with two branches."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 1))
    branch = np.where(rng.random(400) < 0.5, 1, -1)
    target = branch * (1 + x[:, 0]) + 0.15 * rng.normal(size=400)
    model = MixtureDensityRegressor(2, max_iter=120, random_state=0).fit(x, target)
    line, level = np.linspace(-1, 1, 80)[:, None], np.linspace(-2.8, 2.8, 120)
    fig, (ax,) = figure(1, width=5)
    density = model.predict_density(line, level)
    ax.contourf(line[:, 0], level, np.asarray(density).T, levels=12, cmap="viridis")
    ax.scatter(x, target, s=5, color="white", alpha=0.6, linewidth=0)
    ax.plot(line, model.predict(line), color=COLOURS[1], label="mean")
    ax.legend(frameon=False, labelcolor="white")
    ax.set(xlabel="x", ylabel="y", title="two branches: the mean lies where no row is")
    return fig


def latent() -> Figure:
    """Three energies of the same rows."""
    fig, axes = figure(3)
    models = {"k-means": KMeans(3, random_state=0), "mixture": GaussianMixture(3, random_state=0)}
    models |= {"one factor": ProbabilisticPCA(1)}
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        landscape(ax, X, model.fit(X).energy)
        ax.scatter(*X.T, s=5, color="white", alpha=0.7, linewidth=0)
        ax.set_title(name)
    return fig


PICTURES = {
    "family-linear": linear,
    "family-margins": margins,
    "family-kernels": kernels,
    "family-neighbors": neighbors,
    "family-bayes": bayes,
    "family-trees": trees,
    "family-ensembles": ensembles,
    "family-networks": networks,
    "family-latent": latent,
}
