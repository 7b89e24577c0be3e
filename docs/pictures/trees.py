"""Pictures of the decision trees."""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import COLOURS, figure, regions
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
from groundstate.models.trees.plot import plot_tree

X, y = make_moons(160, noise=0.25, random_state=0)


def classifier() -> Figure:
    """Boxes in the plane, and the tree that asks for them."""
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    fig = Figure(figsize=(10.5, 3.8), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(2, 3))
    regions(left, X, y, model.predict)
    left.set_title("boxes of lowest energy")
    plot_tree(model, ax=right)
    return fig


def wave() -> tuple[np.ndarray, np.ndarray]:
    """A noisy sine."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 90))
    return x, np.sin(x) + rng.normal(0, 0.25, 90)


def stairs(ax: Axes, model: object, x: np.ndarray, target: np.ndarray, title: str) -> None:
    """Rows and what a model makes of them."""
    at = np.linspace(0, 6, 600)
    ax.scatter(x, target, s=12, color=COLOURS[0], edgecolor="white", linewidth=0.4)
    ax.plot(at, model.fit(x[:, None], target).predict(at[:, None]), color=COLOURS[1])  # type: ignore[attr-defined]
    ax.set_title(title)


def regressor() -> Figure:
    """A staircase, coarse and fine."""
    x, target = wave()
    fig, axes = figure(2)
    for ax, depth in zip(axes, (2, 5), strict=True):
        stairs(ax, DecisionTreeRegressor(max_depth=depth), x, target, f"max_depth={depth}")
    return fig


def c45() -> Figure:
    """Pruning takes back what noise suggested."""
    fig, axes = figure(2)
    for ax, prune in zip(axes, (False, True), strict=True):
        model = C45Classifier(prune=prune).fit(X, y)
        regions(ax, X, y, model.predict)
        ax.set_title("pruned" if prune else "as grown")
    return fig


def id3() -> Figure:
    """Shares of the classes in squares: every value of a column is a branch."""
    coarse = np.round(X * 2)
    model = ID3Classifier().fit(coarse, y)
    fig, (left, right) = figure(2)
    regions(left, X, y, lambda points: model.predict(np.round(points * 2)))
    left.set_title("columns rounded to categories")
    right.axis("off")
    rows = {"YYYY": 2, "YYNN": 2, "YYNY": 1, "YNYY": 3, "NNNN": 1, "NYNN": 2, "NYYY": 2, "NYYN": 1}
    table = [list(row[:3]) for row, n in rows.items() for _ in range(n)]
    sick = [row[3] for row, n in rows.items() for _ in range(n)]
    frame = pd.DataFrame(table, columns=["fever", "cough", "breathing"])
    words = ID3Classifier().fit(frame, sick).export_text()
    right.text(0, 1, words, va="top", family="monospace", fontsize=9)
    right.set_title("three signs and an infection")
    return fig


PICTURES = {
    "C45Classifier": c45,
    "DecisionTreeClassifier": classifier,
    "DecisionTreeRegressor": regressor,
    "ID3Classifier": id3,
}
