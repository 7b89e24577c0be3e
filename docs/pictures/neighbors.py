"""Pictures of the neighbour models."""

from __future__ import annotations

import warnings

import numpy as np
from common import COLOURS, figure, regions
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from sklearn.datasets import make_blobs, make_classification, make_moons

from groundstate import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestCentroid,
    NearestNeighbors,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)

X, y = make_moons(160, noise=0.25, random_state=0)


def k_neighbors_classifier() -> Figure:
    """One neighbour follows every row, many give a smooth boundary."""
    fig, axes = figure(2)
    for ax, k in zip(axes, (1, 15), strict=True):
        regions(ax, X, y, KNeighborsClassifier(k).fit(X, y).predict)
        ax.set_title(f"n_neighbors = {k}")
    return fig


def k_neighbors_regressor() -> Figure:
    """Steps with equal votes; a curve through every point with votes 1/distance."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 40))
    target = np.sin(x) + rng.normal(0, 0.2, 40)
    at = np.union1d(np.linspace(0, 6, 600), x)  # the rows too: their spikes are narrow
    fig, (ax,) = figure(1, width=5.5)
    ax.scatter(x, target, s=14, color="black", zorder=3)
    for colour, weights in zip(COLOURS, ("uniform", "distance"), strict=False):
        model = KNeighborsRegressor(5, weights=weights).fit(x[:, None], target)
        ax.plot(at, model.predict(at[:, None]), color=colour, label=weights)
    ax.set(xlabel="x", ylabel="y", title="mean of the five nearest rows")
    ax.legend(frameon=False, fontsize=8)
    return fig


def nearest_centroid() -> Figure:
    """Borders halfway between the centroids, and what shrinking leaves of their differences."""
    rows, label = make_blobs(120, centers=[[0, 0], [3, 0.3], [1.5, 2.5]], random_state=0)
    fig, (left, right) = figure(2)
    model = NearestCentroid().fit(rows, label)
    regions(left, rows, label, model.predict)
    left.scatter(*model.centroids_.T, marker="x", s=60, color="black")
    left.set_title("the nearest of three centroids")
    rows, label = make_classification(80, 20, n_informative=4, n_redundant=0, random_state=1)
    for colour, threshold in zip(COLOURS, (None, 2.0), strict=False):
        found = NearestCentroid(shrink_threshold=threshold).fit(rows, label)
        at = np.arange(20) + (0.2 if threshold else -0.2)
        right.bar(at, found.deviations_[1], 0.4, color=colour, label=f"{threshold}")
    right.set(title="class 1 from the middle, in standard errors", xlabel="feature")
    right.legend(title="shrink_threshold", frameon=False, fontsize=7)
    return fig


def nearest_neighbors() -> Figure:
    """The five nearest rows, the rows within a radius, and the energy of a place."""
    place = np.array([[0.6, 0.1]])
    model = NearestNeighbors(n_neighbors=5, radius=0.5).fit(X)
    near, around = model.kneighbors(place)[1][0], model.radius_neighbors(place)[1][0]
    fig, (left, right) = figure(2)
    left.scatter(*X.T, s=10, color="0.75")
    left.scatter(*X[around].T, s=18, color=COLOURS[0], label="within radius = 0.5")
    left.scatter(*X[near].T, s=18, color=COLOURS[1], label="n_neighbors = 5")
    left.add_patch(Circle(tuple(place[0]), 0.5, fill=False, color=COLOURS[0]))
    left.scatter(*place.T, marker="x", color="black")
    left.set(title="which rows are near x", aspect="equal")
    left.legend(frameon=False, fontsize=8)
    a, c = np.meshgrid(np.linspace(-2.5, 3.5, 80), np.linspace(-2.5, 3.0, 80))
    level = model.energy(np.column_stack([a.ravel(), c.ravel()])).reshape(a.shape)
    right.contour(a, c, level, 12, cmap="viridis", linewidths=0.8)
    right.scatter(*X.T, s=4, color="0.5")
    right.set(title="energy of x, low where rows are near", aspect="equal")
    return fig


def radius_neighbors_classifier() -> Figure:
    """A small radius leaves most of the plane to the label of outliers."""
    fig, axes = figure(2)
    for ax, radius in zip(axes, (0.2, 0.8), strict=True):
        model = RadiusNeighborsClassifier(radius, outlier_label=1).fit(X, y)
        regions(ax, X, y, model.predict)
        ax.add_patch(Circle(tuple(X[3]), radius, fill=False, color="black"))
        ax.set_title(f"radius = {radius}, outlier_label = 1")
    return fig


def radius_neighbors_regressor() -> Figure:
    """Means within a radius, and no answer where no row is near."""
    rng = np.random.default_rng(0)
    x = np.sort(np.concatenate([rng.uniform(0, 2.4, 25), rng.uniform(4, 6, 15)]))
    target = np.sin(x) + rng.normal(0, 0.2, 40)
    at = np.linspace(0, 6, 600)
    fig, (ax,) = figure(1, width=5.5)
    ax.scatter(x, target, s=14, color="black", zorder=3)
    for colour, radius in zip(COLOURS, (0.2, 0.6), strict=False):
        model = RadiusNeighborsRegressor(radius).fit(x[:, None], target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gap is what the picture is about
            ax.plot(at, model.predict(at[:, None]), color=colour, label=f"radius = {radius}")
    ax.set(xlabel="x", ylabel="y", title="mean of the rows within a radius")
    ax.legend(frameon=False, fontsize=8)
    return fig


PICTURES = {
    "KNeighborsClassifier": k_neighbors_classifier,
    "KNeighborsRegressor": k_neighbors_regressor,
    "NearestCentroid": nearest_centroid,
    "NearestNeighbors": nearest_neighbors,
    "RadiusNeighborsClassifier": radius_neighbors_classifier,
    "RadiusNeighborsRegressor": radius_neighbors_regressor,
}
