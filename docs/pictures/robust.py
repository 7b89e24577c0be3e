"""Pictures of lines with a loss of the residual, and of stochastic descent."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, regions
from matplotlib.figure import Figure

from groundstate import (
    SVR,
    HuberRegressor,
    LinearRegression,
    LinearSVR,
    QuantileRegressor,
    SGDClassifier,
    SGDRegressor,
)

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 4, 80))
X, at = x[:, None], np.linspace(0, 4, 200)[:, None]


def huber_regressor() -> Figure:
    """A few outliers turn the line of least squares, not Huber's."""
    y = 1 + 0.8 * x + 0.3 * rng.normal(size=80)
    y[-8:] -= 6
    model = HuberRegressor().fit(X, y)
    fig, (left, right) = figure(2)
    for far, name, k in ((False, "inlier", 0), (True, "outlier", 3)):
        rows = model.outliers_ == far
        left.scatter(x[rows], y[rows], s=12, color=COLOURS[k], label=name)
    left.plot(at, LinearRegression().fit(X, y).predict(at), color="grey", label="least squares")
    left.plot(at, model.predict(at), color=COLOURS[1], label="Huber")
    left.set(xlabel="x", ylabel="y", title="outliers pull with a bounded force")
    left.legend(frameon=False)
    grid = np.linspace(-6, 6, 200)
    right.plot(grid, model.energy(np.full((200, 1), 2.0), model.predict([[2.0]]) + grid))
    right.set(xlabel="y − f(x)", ylabel="energy", title="squared near, linear far")
    return fig


def quantile_regressor() -> Figure:
    """Three quantiles of noise that grows."""
    y = 1 + 0.5 * x + (0.1 + 0.4 * x) * rng.normal(size=80)
    fig, (ax,) = figure(1, 5.0)
    ax.scatter(x, y, s=12, color=COLOURS[0])
    for k, q in enumerate((0.1, 0.5, 0.9)):
        line = QuantileRegressor(quantile=q, alpha=0).fit(X, y)
        ax.plot(at, line.predict(at), color=COLOURS[1 + k % 3], label=f"q = {q}")
    ax.set(xlabel="x", ylabel="y", title="a share of the rows below each line")
    ax.legend(frameon=False)
    return fig


def _tube(ax: object, model: object, y: np.ndarray, title: str) -> None:
    model.fit(X, y)  # type: ignore[attr-defined]
    f, eps = model.predict(at), model.epsilon  # type: ignore[attr-defined]
    ax.fill_between(at[:, 0], f - eps, f + eps, color=COLOURS[1], alpha=0.2)  # type: ignore[attr-defined]
    ax.plot(at, f, color=COLOURS[1])  # type: ignore[attr-defined]
    ax.scatter(x, y, s=12, color=COLOURS[0])  # type: ignore[attr-defined]
    ax.set(xlabel="x", ylabel="y", title=title)  # type: ignore[attr-defined]


def linear_svr() -> Figure:
    """Rows inside the tube do not count."""
    y = 1 + 0.8 * x + 0.4 * rng.normal(size=80)
    fig, (ax,) = figure(1, 5.0)
    _tube(ax, LinearSVR(epsilon=0.5, C=10), y, "errors inside the tube are free")
    return fig


def svr() -> Figure:
    """A curve in a tube; the rows on its edge and beyond carry it."""
    y = np.sin(2 * x) + 0.2 * rng.normal(size=80)
    model = SVR(C=10, epsilon=0.3)
    fig, (ax,) = figure(1, 5.0)
    _tube(ax, model, y, "support vectors on the edge and beyond")
    ax.scatter(x[model.support_], y[model.support_], s=40, facecolor="none", edgecolor="black")
    return fig


def sgd_regressor() -> Figure:
    """Visits and the mean over them."""
    y = 1 + 0.8 * x + 0.5 * rng.normal(size=80)
    fig, (ax,) = figure(1, 5.0)
    for k, average in enumerate((False, True)):
        model, path = SGDRegressor(average=average, random_state=0, learning_rate="constant"), []
        for _ in range(60):
            path.append(model.partial_fit(X, y).coef_[0])
        ax.plot(path, color=COLOURS[k], label="mean of the visits" if average else "last visit")
    ax.axhline(LinearRegression().fit(X, y).coef_[0], color="grey", linewidth=0.8)
    ax.set(xlabel="epoch", ylabel="weight", title="one row at a time")
    ax.legend(frameon=False)
    return fig


def sgd_classifier() -> Figure:
    """Three classes, each against the rest."""
    rows = np.concatenate([rng.normal(size=(40, 2)) + c for c in ((0, 0), (3, 0), (1.5, 3))])
    labels = np.repeat([0, 1, 2], 40)
    model = SGDClassifier("log_loss", alpha=0.01, average=True, random_state=0).fit(rows, labels)
    fig, (ax,) = figure(1, 5.0)
    regions(ax, rows, labels, model.predict)
    ax.set(title="each class against the rest")
    return fig


PICTURES = {
    "HuberRegressor": huber_regressor,
    "QuantileRegressor": quantile_regressor,
    "LinearSVR": linear_svr,
    "SVR": svr,
    "SGDRegressor": sgd_regressor,
    "SGDClassifier": sgd_classifier,
}
