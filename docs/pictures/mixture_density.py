"""Pictures of mixture density regression."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import MixtureDensityRegressor


def mixture_density_regressor() -> Figure:
    """The density of an inverse problem over the plane, and its distribution at one input."""
    rng = np.random.default_rng(0)
    y = rng.uniform(0, 1, 1000)
    x = y + 0.3 * np.sin(2 * np.pi * y) + 0.05 * rng.normal(size=1000)
    model = MixtureDensityRegressor(random_state=0).fit(x[:, None], y)
    at, grid = np.linspace(x.min(), x.max(), 160), np.linspace(-0.15, 1.15, 200)
    fig, (left, right) = figure(2)
    density = model.predict_density(at[:, None], grid)
    left.pcolormesh(at, grid, density.T**0.5, cmap="viridis", shading="auto", rasterized=True)
    left.scatter(x[::4], y[::4], s=3, color="white", alpha=0.5, linewidth=0)
    left.plot(at, model.predict(at[:, None]), color=COLOURS[1], label="mean")
    some = at[::4]
    found = model.predict(some[:, None], kind="modes")
    spots = np.array(
        [
            (a, m)
            for a, row in zip(some, found, strict=True)
            for m in row
            if model.predict_density([[a]], [m])[0, 0] > 0.5
        ]
    )
    left.scatter(*spots.T, s=7, color="black", label="modes")
    left.legend(frameon=False, labelcolor="white", loc="upper left")
    left.set(title="p(y | x) over the rows", xlabel="x", ylabel="y", ylim=(-0.15, 1.15))
    point = np.array([[0.5]])
    (distribution,) = model.predict_density(point, grid)
    region = model.credible_set(point, 0.8)
    right.plot(grid, distribution, color=COLOURS[0])
    inside = distribution >= float(region.threshold[0])
    right.fill_between(
        grid, 0, distribution, where=inside, color=COLOURS[0], alpha=0.3, label="80 % set"
    )
    right.axvline(float(model.predict(point)[0]), color=COLOURS[1], label="mean")
    right.legend(frameon=False)
    right.set(title="the distribution at x = 0.5", xlabel="y")
    return fig


PICTURES = {"MixtureDensityRegressor": mixture_density_regressor}
