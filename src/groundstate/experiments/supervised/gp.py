r"""Gaussian processes before and after data."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.math.kernels import RBF, Laplacian, Linear, Periodic, sample_path
from groundstate.models.processes.gaussian_process_regressor import GaussianProcessRegressor

GRID = np.linspace(0, 10, 201)[:, None]
LENGTHS = (0.3, 1.0, 3.0)
AT = np.array([4.0, 6.0, 5.0, 3.0, 7.0])  # in the order in which they are seen


def process(kernel: Any) -> GaussianProcessRegressor:
    """A process whose kernel stays as it is."""
    return GaussianProcessRegressor(kernel, optimizer=None)


def crossings(f: F64) -> float:
    """Mean number of changes of sign of the columns."""
    return float((np.diff(np.sign(f), axis=0) != 0).sum(0).mean())


@experiment("SUP-X-gp", theme="supervised", title="Processes before and after data", slow=True)
def gp(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A process is known by its kernel: :math:`f \sim N(0, K)` before data, and after them
    :math:`N(K_*^\top K^{-1}y,\; K_{**} - K_*^\top K^{-1}K_*)`, certain at the rows and the prior
    far from them.

    Draws with Gaussian, Laplacian, linear and periodic kernels (200 draws for the counts); then
    none to five rows, kernel :math:`e^{-d^2/2\ell^2}` with ℓ = 0.6.
    """
    key = Key.of(seed)
    priors: dict[str, Any] = {f"Gaussian, ℓ = {l:g}": RBF(l) for l in LENGTHS}
    priors |= {f"Laplacian, ℓ = {l:g}": Laplacian(l) for l in LENGTHS}
    priors |= {"linear": Linear(), "periodic": Periodic(1.0, 3.0)}
    drawn = {
        name: process(kernel).sample_prior(GRID, 200, random_state=key.fold(name))
        for name, kernel in priors.items()
    }
    counts = [crossings(drawn[f"Gaussian, ℓ = {l:g}"]) for l in LENGTHS]
    rough = {
        kind: float((np.diff(drawn[f"{kind}, ℓ = 1"], axis=0) ** 2).mean())
        for kind in ("Gaussian", "Laplacian")
    }
    ratio = rough["Laplacian"] / rough["Gaussian"]
    repeat = float(np.abs(drawn["periodic"][:141] - drawn["periodic"][60:]).max())

    at, m = np.linspace(0, 2, 9)[:, None], 4000
    scores = {}
    for name in ("Gaussian, ℓ = 1", "Laplacian, ℓ = 1", "linear", "periodic"):
        f, K = (
            sample_path(priors[name], at, m, random_state=key.fold("paths", name)),
            priors[name](at),
        )
        error = np.sqrt((np.diagonal(K)[:, None] * np.diagonal(K) + K**2) / m)
        known = error > 1e-6  # a linear function is zero at zero
        scores[name] = float(
            np.quantile((np.abs(f.T @ f / m - K) / np.where(known, error, 1.0))[known], 0.9)
        )
    scale = 0.6
    rng = key.fold("rows").numpy()
    y = np.sin(AT) + 0.3 * rng.standard_normal(5)
    fits = [process(RBF(scale))]
    fits += [process(RBF(scale)).fit(AT[:k, None], y[:k]) for k in range(1, 6)]
    mean0, sd0 = fits[0].predict(GRID, return_std=True)
    spread = [m.predict(AT[:k, None], return_std=True)[1].max() for k, m in enumerate(fits) if k]
    away = [m.predict(np.array([[3.0 - 5.01 * scale]]), return_std=True)[1][0] for m in fits]
    _, cov = fits[5].predict(np.vstack([AT[:, None], GRID]), return_cov=True)
    rows = float(np.abs(cov[:5]).max())
    claims = [
        *[Claim.at_most(f"{n}: covariance of draws, in standard errors", z, 3.0) for n, z in scores.items()],
        Claim.at_most("no data: largest |mean|", float(np.abs(mean0).max()), 1e-12),
        Claim.at_most("no data: spread of the standard deviations", float(np.ptp(sd0)), 1e-12),
        Claim.below("largest standard deviation at the rows", float(max(spread)), 1e-4),
        Claim.close("standard deviation beyond 5ℓ", float(min(away)), 1.0, tol=1e-6),
        Claim.at_most("covariance rows of the training points", rows, 1e-8),
        Claim.equal("shorter ℓ, more zero crossings", counts == sorted(counts, reverse=True), True),
        Claim.at_least("roughness of Laplacian over Gaussian draws", ratio, 10.0),
        Claim.at_most("periodic draws one period apart", repeat, 1e-3),
    ]  # fmt: skip
    numbers = {"crossings": counts, "roughness": rough, "sd at rows": [float(s) for s in spread],
               "sd beyond 5 l": [float(a) for a in away], "covariance rows": rows}  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(4, 4)
        for ax, (name, f) in zip(axes[:2].flat, drawn.items()):
            for c in range(3):
                ax.plot(GRID[:, 0], f[:, c], color=COLOURS[c], linewidth=0.9)
            ax.set(title=name, xticks=[])
        for ax, (k, model) in zip(axes[2:].flat, enumerate(fits)):
            m, s = model.predict(GRID, return_std=True)
            ax.fill_between(GRID[:, 0], m - 2 * s, m + 2 * s, color=COLOURS[0], alpha=0.2)
            ax.plot(GRID[:, 0], m, color=COLOURS[0])
            ax.plot(AT[:k], y[:k], "o", color=COLOURS[1], markersize=4)
            ax.set(title=f"{k} rows", ylim=(-2.6, 2.6))
        heat = fits[5].predict(GRID, return_cov=True)[1]
        axes[3, 2].imshow(heat, extent=(0, 10, 10, 0), cmap="viridis")
        axes[3, 2].axhline(5.5, color=COLOURS[4], linewidth=1.0)
        axes[3, 2].set_title("covariance after 5 rows")
        axes[3, 3].plot(GRID[:, 0], heat[110], color=COLOURS[4])
        axes[3, 3].plot(AT, np.zeros(5), "o", color=COLOURS[1], markersize=4)
        axes[3, 3].set_title("its row at 5.5")

    return Result(claims, numbers, draw, size=(11.0, 9.0))
