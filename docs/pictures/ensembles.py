"""Pictures of forests and boosting."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from common import COLOURS, bands, figure, grid, scatter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from trees import X, stairs, wave, y

from groundstate import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)


def shares(ax: Axes, model: Any, title: str) -> None:
    """The probability of one class over the plane."""
    a, b, points = grid(X)
    p = model.fit(X, y).predict_proba(points)[:, 1].reshape(a.shape)
    bands(ax, a, b, p)
    scatter(ax, X, y)
    ax.set_title(title)


def averaged(make: Any) -> Figure:
    """One tree against the average of many."""
    fig, (left, right) = figure(2)
    shares(left, DecisionTreeClassifier(), "one tree")
    shares(right, make(100, random_state=0), "the average of 100")
    return fig


def averaged_values(make: Any) -> Figure:
    """One deep tree against the average of many."""
    x, target = wave()
    fig, (left, right) = figure(2)
    stairs(left, DecisionTreeRegressor(), x, target, "one tree")
    stairs(right, make(100, random_state=0), x, target, "the average of 100")
    return fig


def boosted() -> Figure:
    """Scores after few and after many steps."""
    fig, axes = figure(2)
    for ax, steps in zip(axes, (5, 60), strict=True):
        model = HistGradientBoostingClassifier(max_iter=steps, min_samples_leaf=5)
        shares(ax, model, f"after {steps} steps")
    return fig


def boosted_values() -> Figure:
    """The sum grows towards the rows, step by step."""
    x, target = wave()
    fig, (ax,) = figure(1, width=5.5)
    model = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=4, min_samples_leaf=5)
    model.fit(x[:, None], target)
    at = np.linspace(0, 6, 600)
    ax.scatter(x, target, s=12, color="grey", edgecolor="white", linewidth=0.4)
    staged = list(model.staged_predict(at[:, None]))
    for k, colour in zip((1, 5, 40), COLOURS):
        ax.plot(at, staged[k - 1], color=colour, label="1 tree" if k == 1 else f"{k} trees")
    ax.legend(frameon=False)
    ax.set_title("every tree adds a part of what is left")
    return fig


def votes() -> Figure:
    """Three stumps alone cannot, fifty together can."""
    fig, axes = figure(2)
    for ax, members in zip(axes, (3, 50), strict=True):
        shares(ax, AdaBoostClassifier(n_estimators=members), f"{members} stumps")
    return fig


PICTURES = {
    "AdaBoostClassifier": votes,
    "ExtraTreesClassifier": partial(averaged, ExtraTreesClassifier),
    "ExtraTreesRegressor": partial(averaged_values, ExtraTreesRegressor),
    "HistGradientBoostingClassifier": boosted,
    "HistGradientBoostingRegressor": boosted_values,
    "RandomForestClassifier": partial(averaged, RandomForestClassifier),
    "RandomForestRegressor": partial(averaged_values, RandomForestRegressor),
}
