"""Pictures of the linear models."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, grid, landscape, regions, scatter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_blobs

from groundstate import (
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    Ridge,
)

X, y = make_blobs(120, centers=[[0, 0], [3, 1], [1, 3]], cluster_std=0.8, random_state=0)
Xb, yb = X[y < 2], y[y < 2]


def logistic_regression() -> Figure:
    """Free energy, classes and the probability of one class."""
    model = LogisticRegression().fit(X, y)
    fig, (left, right) = figure(2)
    landscape(left, X, lambda points: model.energy(points, np.zeros(len(points), int)))
    left.set_title("energy of class 0: low in its corner")
    scatter(left, X, y)
    regions(right, X, y, model.predict)
    a, b, points = grid(X)
    p = model.predict_proba(points).max(1).reshape(a.shape)
    lines = right.contour(a, b, p, levels=[0.5, 0.7, 0.9, 0.99], colors="black", linewidths=0.7)
    right.clabel(lines, fontsize=7)
    right.set_title("class of lowest energy, with its probability")
    return fig


def perceptron() -> Figure:
    """The boundary stops where the mistakes stop."""
    model = Perceptron().fit(Xb, yb)
    fig, (left, right) = figure(2)
    regions(left, Xb, yb, model.predict)
    left.set_title("classes of lowest energy")
    right.plot(model.history_.extra["mistakes"], color=COLOURS[0], marker="o", markersize=3)
    right.set(xlabel="epoch", ylabel="mistakes", title="corrections die out")
    right.xaxis.get_major_locator().set_params(integer=True)
    return fig


def linear_svc() -> Figure:
    """The margin and the rows that carry it."""
    model = LinearSVC().fit(Xb, yb)
    fig, (left, right) = figure(2)
    regions(left, Xb, yb, model.predict)
    a, b, points = grid(Xb)
    score = model.decision_function(points).reshape(a.shape)
    left.contour(a, b, score, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"])
    left.set_title("boundary and margins")
    t = np.where(yb == 1, 1, -1)
    right.hist(t * model.decision_function(Xb), bins=24, color=COLOURS[0])
    right.axvline(1, color="black", linestyle="--")
    right.set(xlabel="margin of a row", ylabel="rows", title="left of 1 a row still pushes")
    return fig


def _line(ax: Axes, model: LinearRegression | Ridge, x: np.ndarray, target: np.ndarray) -> None:
    model.fit(x[:, None], target)
    at = np.linspace(-0.5, 4.5, 120)
    levels = np.linspace(target.min() - 2, target.max() + 2, 120)
    a, b = np.meshgrid(at, levels)
    e = model.energy(a.reshape(-1, 1), b.reshape(-1)).reshape(a.shape)
    ax.contourf(a, b, np.minimum(e, 12), levels=14, cmap="viridis")
    ax.plot(at, model.predict(at[:, None]), color="white")
    ax.scatter(x, target, s=14, color=COLOURS[1], edgecolor="white", linewidth=0.4)


def linear_regression() -> Figure:
    """The valley of the energy over (x, y) and the line at its bottom."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 4, 40)
    fig, (ax,) = figure(1, width=5.5)
    _line(ax, LinearRegression(), x, 1.5 * x + rng.normal(0, 0.8, 40))
    ax.set(xlabel="x", ylabel="y", title="e(x, y): the prediction is the bottom of the valley")
    return fig


def ridge() -> Figure:
    """Weights shrink along the path of the penalty."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 6))
    rows[:, 5] = rows[:, 4] + 0.05 * rng.normal(size=40)
    target = rows @ [2, -1, 0.5, 0, 1, 1] + rng.normal(0, 0.5, 40)
    alphas = np.logspace(-3, 4, 60)
    path = np.array([Ridge(alpha=a).fit(rows, target).coef_ for a in alphas])
    fig, (ax,) = figure(1, width=5.5)
    ax.plot(alphas, path)
    ax.set(
        xscale="log", xlabel="alpha", ylabel="weights", title="a stronger prior, smaller weights"
    )
    return fig


def logistic_regression_cv() -> Figure:
    """The score of every fold along the strengths, and the weights of one."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 12))
    labels = (rows[:, :3] @ [2.0, -1.5, 1.0] + rng.logistic(size=150) > 0).astype(int)
    model = LogisticRegressionCV(Cs=20, scoring="neg_log_loss").fit(rows, labels)
    fig, (left, right) = figure(2)
    left.plot(model.Cs_, model.scores_[:, 0].T, color=COLOURS[0], linewidth=0.7, alpha=0.6)
    left.plot(model.Cs_, model.scores_[:, 0].mean(0), color="black")
    left.axvline(model.C_, color="black", linestyle="--")
    left.set(xscale="log", xlabel="C", ylabel="mean log-likelihood", title="held-out rows decide")
    right.plot(model.Cs_, model.coefs_paths_[0, 0, :, 0, :-1])
    right.axvline(model.C_, color="black", linestyle="--")
    right.set(xscale="log", xlabel="C", ylabel="weights", title="the path of one fold")
    return fig


PICTURES = {
    "LinearRegression": linear_regression,
    "LinearSVC": linear_svc,
    "LogisticRegression": logistic_regression,
    "LogisticRegressionCV": logistic_regression_cv,
    "Perceptron": perceptron,
    "Ridge": ridge,
}
