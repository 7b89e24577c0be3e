"""Pictures of the generalised linear models and of regression with a distribution of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import COLOURS, figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from groundstate import (
    GLM,
    BayesianRidge,
    GammaRegressor,
    GaussianRegressor,
    PoissonRegressor,
    SmoothingSplineRegressor,
    TweedieRegressor,
)

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 3, 120))
X = x[:, None]
at = np.linspace(0, 3, 200)[:, None]


def _band(ax: Axes, model: Any, y: np.ndarray, title: str) -> None:
    model.fit(X, y)
    low, high = model.predict_interval(at, level=0.9).T
    ax.scatter(x, y, s=12, color=COLOURS[0], edgecolor="white", linewidth=0.3)
    ax.fill_between(at[:, 0], low, high, color=COLOURS[1], alpha=0.2, label="90 % of y")
    ax.plot(at[:, 0], model.predict(at), color=COLOURS[1], label="mean")
    ax.set(xlabel="x", ylabel="y", title=title)


def glm() -> Figure:
    """The family decides what can happen: counts are never negative."""
    y = rng.poisson(np.exp(0.9 * x - 0.5))
    fig, (left, right) = figure(2)
    _band(left, GLM("gaussian"), y, "Gaussian distribution, identity link")
    left.axhline(0, color="black", linewidth=0.6)
    _band(right, GLM("poisson"), y, "Poisson distribution, log link")
    right.legend(frameon=False)
    return fig


def poisson_regressor() -> Figure:
    """Energies of counts around a mean that grows."""
    y = rng.poisson(np.exp(0.9 * x - 0.5))
    model = PoissonRegressor(alpha=0).fit(X, y)
    fig, (left, right) = figure(2)
    _band(left, PoissonRegressor(alpha=0), y, "mean and 90 % of the counts")
    counts = np.arange(15)
    for k, value in enumerate((0.5, 1.5, 2.5)):
        e = model.energy(np.full((15, 1), value), counts)
        right.plot(counts, e, marker="o", markersize=3, color=COLOURS[k], label=f"x = {value}")
    right.set(xlabel="count y", ylabel="energy", title="lowest near the mean")
    right.legend(frameon=False)
    return fig


def gamma_regressor() -> Figure:
    """The spread is a share of the mean."""
    y = rng.gamma(4, np.exp(0.8 * x) / 4)
    fig, (left, right) = figure(2)
    _band(left, GammaRegressor(alpha=0), y, "spread grows with the mean")
    _band(right, GammaRegressor(alpha=0), y, "on a log scale it is constant")
    right.set_yscale("log")
    return fig


def tweedie_regressor() -> Figure:
    """Many zeros, and amounts above them."""
    jumps = rng.poisson(np.exp(0.7 * x - 1))
    y = np.array([rng.gamma(2, 0.5, k).sum() for k in jumps])
    model = TweedieRegressor(power=1.5, alpha=0, link="log").fit(X, y)
    fig, (left, right) = figure(2)
    _band(left, TweedieRegressor(power=1.5, alpha=0), y, "zeros and amounts, one distribution")
    values = np.linspace(0.02, 6, 200)
    for k, value in enumerate((0.5, 1.5, 2.5)):
        e = model.energy(np.full((200, 1), value), values)
        none = np.exp(-model.energy([[value]], [0.0])[0])
        right.plot(values, np.exp(-e), color=COLOURS[k], label=f"x = {value}, P(0) = {none:.2f}")
    right.set(xlabel="y above 0", ylabel="density", title="the distribution at three places")
    right.legend(frameon=False)
    return fig


def bayesian_ridge() -> Figure:
    """The spread grows away from the data; the evidence chooses the precisions."""
    near = np.sort(rng.uniform(0, 1.5, 14))
    y = 1 + 0.8 * near + 0.3 * rng.normal(size=14)
    model = BayesianRidge(compute_score=True).fit(near[:, None], y)
    far = np.linspace(-2, 4, 100)[:, None]
    mean, std = model.predict(far, return_std=True)
    fig, (left, right) = figure(2)
    left.scatter(near, y, s=14, color=COLOURS[0])
    left.plot(far[:, 0], mean, color=COLOURS[1])
    left.fill_between(far[:, 0], mean - 2 * std, mean + 2 * std, color=COLOURS[1], alpha=0.2)
    left.set(xlabel="x", ylabel="y", title="unsure where there are no rows")
    right.plot(model.scores_, color=COLOURS[2], marker="o", markersize=3)
    right.set(xlabel="update", ylabel="log evidence", title="precisions chosen by the evidence")
    return fig


def gaussian_regressor() -> Figure:
    """The noise is learned along with the mean."""
    y = 1 + x + np.exp(0.9 * x - 2) * rng.normal(size=len(x))
    fig, (left, right) = figure(2)
    _band(left, GaussianRegressor(noise="constant"), y, "one noise for all rows")
    _band(right, GaussianRegressor(), y, "noise that depends on x")
    return fig


def smoothing_spline_regressor() -> Figure:
    """Too stiff, too loose, and what cross-validation takes."""
    y = np.sin(2 * x) + 0.3 * rng.normal(size=len(x))
    far = np.linspace(-0.5, 3.5, 300)[:, None]
    fig, (ax,) = figure(1, width=6.0)
    ax.scatter(x, y, s=12, color=COLOURS[0], edgecolor="white", linewidth=0.3)
    told = {"λ = 100": 100.0, "λ = 1e-6": 1e-6, "cross-validated": None}
    for k, (label, lam) in enumerate(told.items()):
        model = SmoothingSplineRegressor(lam).fit(X, y)
        ax.plot(far[:, 0], model.predict(far), color=COLOURS[1 + k], label=label)
    ax.set(xlabel="x", ylabel="y", ylim=(-2.5, 2.5), title="straight outside the range")
    ax.legend(frameon=False)
    return fig


PICTURES = {
    "BayesianRidge": bayesian_ridge,
    "GLM": glm,
    "GammaRegressor": gamma_regressor,
    "GaussianRegressor": gaussian_regressor,
    "PoissonRegressor": poisson_regressor,
    "SmoothingSplineRegressor": smoothing_spline_regressor,
    "TweedieRegressor": tweedie_regressor,
}
