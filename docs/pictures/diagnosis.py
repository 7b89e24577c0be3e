"""Pictures of comparison and diagnosis: many models, learning curves, parts of the risk."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from groundstate import LinearRegression
from groundstate.evaluate import bias_variance, friedman, learning_curve, rank_models


def many_models() -> Figure:
    """Differences to the best with simultaneous intervals; mean ranks over twenty tables."""
    rng = np.random.default_rng(0)
    base = rng.normal(1, 0.4, 400)
    shifts = {"forest": 0.0, "boosting": 0.01, "network": 0.03, "ridge": 0.12, "1-nn": 0.3}
    losses = {name: base + s + 0.3 * rng.normal(size=400) for name, s in shifts.items()}
    found = rank_models(losses)
    fig, (left, right) = figure(2)
    for i, (name, gap) in enumerate(zip(found.names, found.to_best, strict=True)):
        colour = COLOURS[0] if name in found.tied else COLOURS[1]
        left.errorbar(gap.estimate, -i, xerr=[[gap.estimate - gap.low], [gap.high - gap.estimate]],
                      fmt="o", color=colour, capsize=3)  # fmt: skip
    left.set_yticks([-i for i in range(len(found.names))], found.names)
    left.axvline(0, color="grey", linewidth=0.8)
    left.set(title="loss beyond that of the best", xlabel="difference")
    scores = rng.normal(size=(20, 5)) - 4 * np.array(list(shifts.values()))
    friedman(scores, names=list(shifts)).draw(right)
    return fig


def curves() -> Figure:
    """A learning curve with its forecast; bias, variance and noise of polynomials by degree."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=300)
    fig, (left, right) = figure(2)
    model = make_pipeline(PolynomialFeatures(4), LinearRegression())
    learning_curve(model, X, y, [16, 25, 40, 70, 120, 240], repeats=20).draw(left)
    left.set(ylim=(0, 0.25), title="risk against rows")
    x = np.linspace(-1, 1, 20)[:, None]
    degrees = np.arange(1, 13)
    rows = [
        bias_variance(make_pipeline(PolynomialFeatures(int(d)), LinearRegression()),
                      (x, lambda x: np.sin(3 * x[:, 0]), 0.3)).means()
        for d in degrees
    ]  # fmt: skip
    names = ("noise", "variance", "bias")
    right.stackplot(degrees, [[r[n] for r in rows] for n in names], labels=names,
                    colors=("#bbbbbb", COLOURS[1], COLOURS[0]), alpha=0.8)  # fmt: skip
    right.set(title="parts of the risk", xlabel="degree of the polynomial", ylabel="squared loss")
    right.legend(frameon=False, fontsize=8)
    return fig


PICTURES = {"many-models": many_models, "diagnosis-curves": curves}
