r"""A linear decoder gives only a Gaussian."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import multivariate_normal

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTS = (1, 2, 4, 8, 16)


@experiment("UNSX-gauss-only", theme="unsupervised", title="A linear decoder gives only a Gaussian")
def gauss_only(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Whatever W, b and ν, :math:`x = Wz + b + \epsilon` has the marginal
    :math:`N(b, \sigma^2WW^\top + \nu I)`. A ring is none: probabilistic PCA is as good as one
    Gaussian, and a mixture of eight is far better.

    A ring of radius 3 and width .2, 1,000 rows to learn from, 4,000 to judge.
    """
    key = Key.of(seed)
    rng = key.fold("rows").numpy()
    turn, radius = rng.uniform(0, 2 * np.pi, 5000), 3 + 0.2 * rng.normal(size=5000)
    X = np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
    train, test = X[:1000], X[1000:]
    ppca = ProbabilisticPCA(1).fit(train)
    line = float(ppca.score(test))
    one = multivariate_normal(train.mean(0), np.cov(train.T, ddof=0)).logpdf(test).mean()
    mixtures = {}
    for k in COUNTS:
        model = GaussianMixture(k, n_init=3, max_iter=300, random_state=seed).fit(train)
        mixtures[k] = float(np.mean(model.score_samples(test)))
    claims = [
        Claim.between("log density on new rows, probabilistic PCA", line, -4.45, -4.27),
        Claim.close("the same, one full Gaussian", float(one), line, tol=0.02),
        Claim.above("mixture of eight", mixtures[8], -3.0),
        Claim.above("mixture of eight less probabilistic PCA", mixtures[8] - line, 1.2),
    ]
    numbers = {"probabilistic PCA": line, "Gaussian": float(one), "mixtures": mixtures}
    eight = GaussianMixture(8, n_init=3, max_iter=300, random_state=seed).fit(train)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 3)
        a, b = np.meshgrid(np.linspace(-4.5, 4.5, 80), np.linspace(-4.5, 4.5, 80))
        plane = np.column_stack([a.ravel(), b.ravel()])
        for ax, (name, model) in zip(axes, (("probabilistic PCA", ppca), ("8 Gaussians", eight))):
            ax.contourf(a, b, np.maximum(model.score_samples(plane), -8).reshape(a.shape), 12)
            ax.scatter(*train[:200].T, s=2, color="white")
            ax.set(title=name, aspect="equal", xticks=[], yticks=[])
        axes[2].plot(COUNTS, list(mixtures.values()), "o-", color=COLOURS[0], label="mixture")
        axes[2].axhline(line, color=COLOURS[1], label="probabilistic PCA")
        axes[2].set(title="log density on new rows", xlabel="components")
        axes[2].legend()

    return Result(claims, numbers, draw, size=(9.5, 3.2))
