r"""A density fills gaps."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

ROWS, COLUMNS, NOISE, SPREAD = 500, 8, 0.3, 1.87


@experiment("UNSX-missing", theme="unsupervised", title="A density fills gaps")
def missing(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Fill in :math:`E[x_m \mid x_o] = \mu_m + \Sigma_{mo}\Sigma_{oo}^{-1}(x_o - \mu_o)`.

    Eight columns of standard deviation 1.87 look at two hidden numbers from all sides, with noise
    0.3; 30 % of the cells are removed at random. Two densities learned from what is left,
    probabilistic PCA and one full Gaussian, fill the cells with conditional means; column means
    know nothing of the other columns. The least error possible is that of the density the rows were
    drawn from.
    """
    rng = Key.of(seed).fold("rows").numpy()
    angle = np.pi * np.arange(COLUMNS) / COLUMNS
    W = np.sqrt(SPREAD**2 - NOISE**2) * np.column_stack([np.cos(angle), np.sin(angle)])
    X = rng.normal(size=(ROWS, 2)) @ W.T + NOISE * rng.normal(size=(ROWS, COLUMNS))
    hidden = rng.random(X.shape) < 0.3
    gaps = np.where(hidden, np.nan, X)
    factors = ProbabilisticPCA(2).fit(gaps)
    gaussian = GaussianMixture(1, max_iter=500, tol=1e-4).fit(gaps)
    truth = W @ W.T + NOISE**2 * np.eye(COLUMNS)
    filled = {
        "PPCA": factors.impute(gaps),
        "GMM": gaussian.impute(gaps),
        "column means": np.where(hidden, np.nanmean(gaps, axis=0), gaps),
        "truth": _conditional(gaps, truth),
    }
    error = {name: float(np.sqrt(np.square((v - X)[hidden]).mean())) for name, v in filled.items()}
    least = error["column means"]
    fall = max(
        float(-np.diff(model.history_.extra["log_likelihood"]).min())
        for model in (factors, gaussian)
    )
    kept = all((filled[name][~hidden] == X[~hidden]).all() for name in ("PPCA", "GMM"))
    claims = [
        Claim.at_most("error of PPCA over that of column means", error["PPCA"] / least, 1 / 3),
        Claim.at_most("error of one Gaussian over that of column means", error["GMM"] / least, 1 / 3),
        Claim.at_most("error of PPCA over that of the true density", error["PPCA"] / error["truth"], 1.05),
        Claim.close("noise that PPCA finds", float(factors.noise_variance_), NOISE**2, tol=0.01),
        Claim.at_most("largest fall of the likelihood of what is observed", fall, 1e-10),
        Claim.equal("observed cells stay as they are", bool(kept), True),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.axline((0, 0), slope=1, color="lightgrey", linewidth=1)
        names = {"column means": "lightgrey", "GMM": COLOURS[1], "PPCA": COLOURS[0]}
        for name, colour in names.items():
            label = f"{name}, error {error[name]:.2f}"
            ax.scatter(X[hidden], filled[name][hidden], s=5, color=colour, label=label)
        ax.set(xlabel="true value", ylabel="filled in", title="removed cells")
        ax.legend()

    return Result(claims, {"rmse": error}, draw, size=(4.5, 3.5))


def _conditional(gaps: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Conditional means of a Gaussian of mean zero, row by row."""
    out = gaps.copy()
    for row in out:
        m = np.isnan(row)
        row[m] = cov[np.ix_(m, ~m)] @ np.linalg.solve(cov[np.ix_(~m, ~m)], row[~m])
    return out
