"""Pictures of the neighbour models."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, regions
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import KNeighborsClassifier, KNeighborsRegressor

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
    at = np.linspace(0, 6, 600)
    fig, (ax,) = figure(1, width=5.5)
    ax.scatter(x, target, s=14, color="black", zorder=3)
    for colour, weights in zip(COLOURS, ("uniform", "distance"), strict=False):
        model = KNeighborsRegressor(5, weights=weights).fit(x[:, None], target)
        ax.plot(at, model.predict(at[:, None]), color=colour, label=weights)
    ax.set(xlabel="x", ylabel="y", title="mean of the five nearest rows")
    ax.legend(frameon=False, fontsize=8)
    return fig


PICTURES = {
    "KNeighborsClassifier": k_neighbors_classifier,
    "KNeighborsRegressor": k_neighbors_regressor,
}
