"""Pictures of estimators around networks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from common import COLOURS, bands, figure
from matplotlib.figure import Figure
from sklearn.datasets import make_moons
from torch import nn

from groundstate import (
    MLPClassifier,
    MLPRegressor,
    NeuralClassifier,
    NeuralRegressor,
    PseudoLabelClassifier,
    TabularMLPClassifier,
    TabularMLPRegressor,
)
from groundstate.report.curves import plot_band, plot_probabilities

FIXED = {"n_iter_no_change": np.inf, "random_state": 0}


def _plane(axis: Any, model: Any, X: np.ndarray, y: np.ndarray, title: str) -> None:
    low, high = X.min(0) - 0.3, X.max(0) + 0.3
    a, b = np.meshgrid(np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 120))
    p = model.predict_proba(np.column_stack([a.ravel(), b.ravel()]))[:, 1].reshape(a.shape)
    bands(axis, a, b, p, alpha=0.6)
    axis.contour(a, b, p, levels=[0.5], colors="black", linewidths=1)
    for k in (0, 1):
        axis.scatter(*X[y == k].T, s=8, color=COLOURS[k], linewidth=0)
    axis.set(title=title, xlabel="x₁", ylabel="x₂")


def mlp_classifier() -> Figure:
    """p(y = 1 | x) of two moons, and the loss of three solvers."""
    X, y = make_moons(300, noise=0.2, random_state=0)
    fig, (left, right) = figure(2)
    model = MLPClassifier((30, 30), learning_rate_init=0.01, max_iter=100, **FIXED).fit(X, y)
    _plane(left, model, X, y, "p(y = 1 | x)")
    for solver, rate in (("adam", 0.01), ("sgd", 0.1), ("lbfgs", 0.1)):
        kw = {"max_iter": 100, "learning_rate_init": rate, "tol": 1e-9, **FIXED}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            curve = MLPClassifier((30, 30), solver=solver, **kw).fit(X, y).loss_curve_
        right.semilogy(curve, label=solver)
    right.legend(frameon=False)
    right.set(title="objective", xlabel="epoch or iteration")
    return fig


def _noisy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (500, 1))
    return x, np.sin(3 * x[:, 0]) + (0.05 + 0.4 * (x[:, 0] > 0)) * rng.normal(size=500)


def _band(axis: Any, model: Any, x: np.ndarray, y: np.ndarray, title: str) -> None:
    at = np.linspace(-1, 1, 200)[:, None]
    low, high = model.predict_interval(at, 0.95).T
    axis.scatter(x, y, s=4, color="grey", alpha=0.5, linewidth=0)
    axis.fill_between(at[:, 0], low, high, color=COLOURS[0], alpha=0.25, label="95 %")
    axis.plot(at, model.predict(at), color=COLOURS[0])
    axis.legend(frameon=False)
    axis.set(title=title, xlabel="x", ylabel="y")


def mlp_regressor() -> Figure:
    """One width for all rows, and a width that follows x."""
    x, y = _noisy()
    fig, axes = figure(2)
    for axis, loss in zip(axes, ("squared_error", "normal"), strict=True):
        model = MLPRegressor(loss, (30,), "tanh", learning_rate_init=0.01, max_iter=150, **FIXED)
        _band(axis, model.fit(x, y), x, y, f'loss="{loss}"')
    return fig


def neural_classifier() -> Figure:
    """The same rows under two modules: a perceptron and a network of its own form."""
    X, y = make_moons(300, noise=0.2, random_state=0)
    fig, axes = figure(2)
    torch.manual_seed(0)
    nets = {
        "three tanh layers": nn.Sequential(
            nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
        ),
        "linear": nn.Linear(2, 1),
    }
    for axis, (name, net) in zip(axes, nets.items(), strict=True):
        model = NeuralClassifier(net, learning_rate_init=0.02, max_iter=100, **FIXED).fit(X, y)
        _plane(axis, model, X, y, name)
    return fig


class _Decay(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.raw[0].exp() * (-x / self.raw[1].exp()).exp()


def neural_regressor() -> Figure:
    """A formula with two unknown numbers is a module, too."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 3, 40)[:, None]
    y = 3 * np.exp(-x[:, 0] / 2) + 0.15 * rng.normal(size=40)
    fig, (axis,) = figure(1)
    free = NeuralRegressor(solver="lbfgs", max_iter=100, tol=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        free.fit(x, y)
    formula = NeuralRegressor(_Decay(), solver="lbfgs", alpha=0).fit(x, y)
    at = np.linspace(0, 6, 200)[:, None]
    axis.scatter(x, y, s=10, color="grey", linewidth=0)
    axis.plot(at, formula.predict(at), color=COLOURS[0], label="a exp(−x/τ)")
    axis.plot(at, free.predict(at), color=COLOURS[1], label="perceptron")
    axis.legend(frameon=False)
    axis.set(xlabel="x", ylabel="y", title="beyond the rows only the formula knows")
    return fig


def pseudo_label_classifier() -> Figure:
    """Two labels in each of two clusters, without and with the rows that have none."""
    rng = np.random.default_rng(2)
    y = np.repeat((0, 1), 150)
    X = rng.normal(size=(300, 2)) * [0.3, 1.0] + np.column_stack([2 * y - 1, np.zeros(300)])
    some = np.full(300, -1)
    for k in (0, 1):
        own = rng.choice(np.flatnonzero(y == k), 2, replace=False)
        some[own] = k
    fig, axes = figure(2)
    for axis, share in zip(axes, (0.0, 3.0), strict=True):
        model = PseudoLabelClassifier(
            share, 50, 150, hidden_layer_sizes=(30,), learning_rate_init=0.01, max_iter=300,
            random_state=0,
        ).fit(X, some)  # fmt: skip
        _plane(axis, model, X, some, f"α = {share:g}")
        axis.scatter(*X[some < 0].T, s=4, color="0.35", linewidth=0)
        for k in (0, 1):
            axis.scatter(*X[some == k].T, s=60, color=COLOURS[k], edgecolor="white", zorder=3)
    return fig


def mlp_probabilities() -> Figure:
    """Scores of three classes along one column, and the probabilities they become."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (600, 1))
    y = np.digitize(x[:, 0] + 0.5 * rng.normal(size=600), (-1, 1))
    model = MLPClassifier((20,), "tanh", learning_rate_init=0.01, max_iter=100, **FIXED).fit(x, y)
    at = np.linspace(-3, 3, 200)[:, None]
    return plot_probabilities(at, model.predict_proba(at), model.decision_function(at))


def mlp_band() -> Figure:
    """Mean and two standard deviations of the distribution that the network gives."""
    x, y = _noisy()
    model = MLPRegressor("normal", (30,), "tanh", learning_rate_init=0.01, max_iter=150, **FIXED)
    distribution = model.fit(x, y).predict_dist(x)
    fig = plot_band(x, distribution.mean, distribution.stddev, y)
    fig.axes[0].locator_params(axis="x", nbins=5)  # more labels would touch
    return fig


FAST = {"learning_rate_init": 0.04}  # two columns and few epochs


def tabular_classifier() -> Figure:
    """p(y = 1 | x) of moons, and the members' own curves along one line."""
    X, y = make_moons(300, noise=0.2, random_state=0)
    fig, (left, right) = figure(2)
    model = TabularMLPClassifier((64, 64), 8, max_iter=60, random_state=0, **FAST).fit(X, y)
    _plane(left, model, X, y, "p(y = 1 | x)")
    at = np.column_stack([np.linspace(-1.5, 2.5, 200), np.full(200, 0.25)])
    with torch.no_grad():
        each = model.energy_.net.each(torch.tensor(at)).softmax(-1)[..., 1]
    right.plot(at[:, 0], each, color="grey", alpha=0.5, linewidth=0.8)
    right.plot(at[:, 0], model.predict_proba(at)[:, 1], color=COLOURS[0], label="mean of 8 members")
    right.legend(frameon=False)
    right.set(title="x₂ = 0.25", xlabel="x₁", ylabel="p(y = 1 | x)")
    return fig


def tabular_regressor() -> Figure:
    """A wave with a step, with and without the embedding by waves."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 1))
    y = np.sin(9 * x[:, 0]) + 2.0 * (x[:, 0] > 0.3) + 0.2 * rng.normal(size=300)
    at = np.linspace(-1, 1, 300)[:, None]
    fig, (axis,) = figure(1)
    axis.scatter(x, y, s=6, color="grey", linewidth=0)
    for k, waves in enumerate((16, 0)):
        model = TabularMLPRegressor(
            (64, 64), 4, n_frequencies=waves, frequency_scale=0.3, random_state=0, **FAST
        )
        axis.plot(at, model.fit(x, y).predict(at), color=COLOURS[k], label=f"{waves} waves")
    axis.legend(frameon=False)
    axis.set(xlabel="x", ylabel="y", title="columns embedded by waves")
    return fig


PICTURES = {
    "TabularMLPClassifier": tabular_classifier,
    "TabularMLPRegressor": tabular_regressor,
    "MLPClassifier-probabilities": mlp_probabilities,
    "MLPRegressor-band": mlp_band,
    "PseudoLabelClassifier": pseudo_label_classifier,
    "MLPClassifier": mlp_classifier,
    "MLPRegressor": mlp_regressor,
    "NeuralClassifier": neural_classifier,
    "NeuralRegressor": neural_regressor,
}
