"""Pictures of evaluation: two peaks, calibration, conformal bands, sources of spread."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import stats
from groundstate.evaluate import conformal, metrics, split, variation_report


def credible_regions() -> Figure:
    """An interval and a region of scores with two peaks; a reliability curve with its bars."""
    rng = np.random.default_rng(0)
    draws = np.concatenate([rng.normal(0.75, 0.015, 120), rng.normal(0.97, 0.012, 180)])
    fig, (left, right) = figure(2)
    left.hist(draws, 40, color=COLOURS[0], alpha=0.5)
    wide, region = stats.eti(draws), stats.hdr(draws)
    left.plot([wide.low, wide.high], [-2, -2], color=COLOURS[1], linewidth=4, label="equal-tailed")
    for i, (low, high) in enumerate(region):
        label = None if i else "highest density"
        left.plot([low, high], [-4.5, -4.5], color=COLOURS[2], linewidth=4, label=label)
    left.legend(frameon=False, fontsize=8, loc="upper center")
    left.set(title="accuracies of 300 seeds", xlabel="accuracy", ylim=(-7, None))
    p = rng.uniform(size=1500)
    y = rng.uniform(size=1500) < 1 / (1 + np.exp(-0.5 * np.log(p / (1 - p))))
    curve = metrics.reliability(y, p, 10)
    bars = [curve.observed - curve.low, curve.high - curve.observed]
    right.errorbar(curve.predicted, curve.observed, bars, fmt="o-", color=COLOURS[0], capsize=2)
    right.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    right.set(title=f"an overconfident forecast, ECE {metrics.ece(y, p):.2f}",
              xlabel="probability said", ylabel="share that happened")  # fmt: skip
    return fig


def conformal_bands() -> Figure:
    """Intervals of one width and of local width; where the spread of a score comes from."""
    from groundstate import Ridge

    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(900, 1))
    y = np.sin(2 * x[:, 0]) + (0.1 + 0.25 * np.abs(x[:, 0])) * rng.normal(size=900)
    waves = np.hstack([np.sin(k * x) for k in (1, 2, 3)])
    parts = split(x, y, sizes=(0.4, 0.4, 0.2))
    model = Ridge(1.0).fit(waves[parts.train], y[parts.train])
    fig, (left, right) = figure(2)
    at = np.linspace(-2, 2, 200)[:, None]
    grid = np.hstack([np.sin(k * at) for k in (1, 2, 3)])
    plain = conformal(model, waves[parts.val], y[parts.val])
    local = conformal(
        model,
        waves[parts.val],
        y[parts.val],
        score="normalised",
        scale=lambda w: 0.1 + 0.25 * _x(w),
    )
    left.scatter(x[parts.test, 0], y[parts.test], s=6, color="grey")
    for colour, found, name in ((COLOURS[0], plain, "absolute"), (COLOURS[1], local, "normalised")):
        band = found.predict(grid)
        left.plot(at[:, 0], band.low, color=colour, label=name)
        left.plot(at[:, 0], band.high, color=colour)
    left.legend(frameon=False, fontsize=8)
    left.set(title="90 % conformal intervals", xlabel="x")
    from sklearn.tree import DecisionTreeRegressor

    variation_report(DecisionTreeRegressor(max_depth=4, max_features=1), waves, y, 6, 6).draw(right)
    return fig


def _x(waves: np.ndarray) -> np.ndarray:
    """|x| from sin x, cos-free: |x| = arcsin|sin x| on the inner part, π − it outside."""
    s = np.abs(waves[:, 0])
    inner = np.arcsin(np.clip(s, 0, 1))
    return np.where(np.sign(waves[:, 1]) == np.sign(waves[:, 0]), inner, np.pi - inner)


PICTURES = {
    "credible-regions": credible_regions,
    "conformal-bands": conformal_bands,
}
