r"""A density fills gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-missing", theme="unsupervised", title="A density fills gaps")
def missing(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Fill in :math:`E[x_m \mid x_o] = \mu_m + \Sigma_{mo}\Sigma_{oo}^{-1}(x_o - \mu_o)`.

    Eight columns driven by two hidden numbers, 30 % of the cells removed at random. One Gaussian
    learned from what is observed fills them with conditional means; column means know nothing of the
    other columns.
    """
    rng = np.random.default_rng(seed)
    W = rng.normal(0, 1.5, (2, 8))
    X = rng.normal(size=(500, 2)) @ W + 0.2 * rng.normal(size=(500, 8))
    gaps = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    hidden = np.isnan(gaps)
    model = GaussianMixture(1, max_iter=500, tol=1e-3, random_state=seed).fit(gaps)
    filled = model.impute(gaps)
    plain = np.where(hidden, np.nanmean(gaps, axis=0), gaps)
    error = {name: float(np.sqrt(np.square((v - X)[hidden]).mean()))
             for name, v in {"mixture": filled, "column means": plain}.items()}  # fmt: skip
    fall = float(-np.diff(model.history_.extra["log_likelihood"]).min())
    claims = [
        Claim.at_most("error of the density over that of column means",
                      error["mixture"] / error["column means"], 1 / 3),
        Claim.at_most("largest fall of the likelihood of what is observed", fall, 1e-10),
        Claim.equal("observed cells stay as they are", bool((filled[~hidden] == X[~hidden]).all()), True),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.scatter(X[hidden], plain[hidden], s=5, color="lightgrey", label="column means")
        ax.scatter(X[hidden], filled[hidden], s=5, color=COLOURS[0], label="conditional means")
        ax.set(xlabel="true value", ylabel="filled in", title="removed cells")
        ax.legend()

    return Result(claims, {"rmse": error}, draw, size=(4.5, 3.5))
