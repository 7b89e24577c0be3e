"""Pictures of the sparse linear models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from common import figure
from matplotlib.figure import Figure

from groundstate import ElasticNet, ElasticNetCV, Lasso, LassoCV, RidgeCV

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 12))
X[:, 11] = X[:, 10] + 0.1 * rng.normal(size=60)
y = X[:, :3] @ [3.0, -2.0, 1.0] + X[:, 10] + rng.normal(size=60)


def _path(make: Callable[[float], Any], title: str) -> Figure:
    alphas = np.logspace(-2, 0.7, 50)
    path = np.array([make(a).fit(X, y).coef_ for a in alphas])
    fig, (ax,) = figure(1, width=5.5)
    ax.plot(alphas, path)
    ax.set(xscale="log", xlabel="alpha", ylabel="weights", title=title)
    return fig


def _weights(model: Any, title: str) -> Figure:
    model.fit(X, y)
    fig, (ax,) = figure(1, width=5.5)
    ax.bar(np.arange(X.shape[1]), model.coef_)
    ax.set(xlabel="column", ylabel="weight", title=f"{title}: alpha = {model.alpha_:.3g}")
    return fig


PICTURES = {
    "Lasso": lambda: _path(Lasso, "columns leave one after the other"),
    "ElasticNet": lambda: _path(lambda a: ElasticNet(a, l1_ratio=0.5), "twins leave together"),
    "LassoCV": lambda: _weights(LassoCV(), "chosen by held-out error"),
    "ElasticNetCV": lambda: _weights(ElasticNetCV(), "chosen by held-out error"),
    "RidgeCV": lambda: _weights(RidgeCV(), "chosen by leave-one-out error"),
}
