"""Pictures of explanation: what a model looks at, how a column acts, why one prediction."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes

from groundstate import HistGradientBoostingRegressor
from groundstate.evaluate import partial_dependence, permutation_importance, shapley_values


def explained() -> Figure:
    """Importance with intervals, partial dependence with single curves, one row's Shapley values."""
    data = load_diabetes()
    X, y, names = data.data, data.target, data.feature_names
    model = HistGradientBoostingRegressor(max_iter=40).fit(X[:300], y[:300])
    found = permutation_importance(model, X[300:], y[300:], groups=None)
    fig, (left, middle, right) = figure(3, 9.0, 3.2)
    for at, (group, rise) in enumerate(list(found)[:6][::-1]):
        left.plot([rise.low, rise.high], [at, at], color=COLOURS[0])
        left.plot(rise.estimate, at, "o", color=COLOURS[0])
        left.text(rise.low, at + 0.18, names[int(group[0][1:])], fontsize=8)
    left.axvline(0, color="grey", linewidth=0.8)
    left.set(title="importance on held-out rows", yticks=[], xlabel="rise of the squared error")
    line = partial_dependence(model, X[300:], 2, individual=True)
    assert line.individual is not None
    middle.plot(line.grid, line.individual[:25, :, 0].T, color="grey", linewidth=0.5, alpha=0.5)
    middle.plot(line.grid, line.average[:, 0], color=COLOURS[1], linewidth=2.5)
    middle.set(title="partial dependence, single rows", xlabel=names[2], ylabel="prediction")
    why = shapley_values(model, X[300:301], X[:60])
    phi = why.values[0, :, 0]
    order = np.argsort(np.abs(phi))[-6:]
    right.barh(
        range(6), phi[order], color=[COLOURS[0] if v > 0 else COLOURS[1] for v in phi[order]]
    )
    right.set(yticks=range(6), yticklabels=[names[j] for j in order], xlabel="moved by",
              title=f"why {why.prediction[0, 0]:.0f}, not {why.base[0]:.0f}")  # fmt: skip
    return fig


PICTURES = {"explanation": explained}
