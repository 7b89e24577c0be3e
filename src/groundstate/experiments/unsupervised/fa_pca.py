r"""Unequal noise fools PCA, not factor analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import subspace_angles

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.factors.factor_analysis import FactorAnalysis
from groundstate.models.factors.pca import PCA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (300, 1000, 5000)


@experiment(
    "UNSX-fa-pca", theme="unsupervised", title="Unequal noise fools PCA, not factor analysis"
)
def fa_pca(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Rows :math:`x = Wz + \epsilon` with noise variances that differ by feature. PCA turns to the noisiest
    features, factor analysis takes their variance for what it is, and finds the span of W.

    Ten features, two factors, standard deviations of the noise log-normal (at least .8, the largest 8); up
    to 5,000 rows; densities judged on 5,000 others.
    """
    rng = Key.of(seed).fold("rows").numpy()
    W = 6 * np.linalg.qr(rng.normal(size=(10, 2)))[0]
    noise = np.sort(np.clip(np.exp(rng.normal(size=10)), 0.8, None))
    noise[-1] = 8.0  # the noisiest feature outweighs the factors
    X = rng.normal(size=(10_000, 2)) @ W.T + rng.normal(size=(10_000, 10)) * noise
    test = X[5000:]
    fa, pca = [], []
    for n in SIZES:
        factors, plane = FactorAnalysis(2).fit(X[:n]), PCA(2).fit(X[:n])
        fa.append(float(np.degrees(subspace_angles(factors.components_.T, W).max())))
        pca.append(float(np.degrees(subspace_angles(plane.components_.T, W).max())))
    gain = factors.score(test) - plane.score(test)
    claims = [
        Claim.below("angle of factor analysis to the truth, 5,000 rows, degrees", fa[-1], 3.0),
        Claim.above("angle of PCA", pca[-1], 20.0),
        Claim.below("angle of factor analysis over that of PCA", fa[-1] / pca[-1], 0.2),
        Claim.above("log density on new rows, factor analysis less PCA, nats", gain, 1.0),
    ]
    numbers = {"rows": list(SIZES), "factor analysis": fa, "PCA": pca, "gain": gain}
    loadings = np.abs(factors.components_[0]), np.abs(plane.components_[0])

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(SIZES, fa, "o-", color=COLOURS[0], label="factor analysis")
        left.plot(SIZES, pca, "o-", color=COLOURS[1], label="PCA")
        left.set(xscale="log", xlabel="rows", title="angle to the truth, degrees")
        left.legend()
        at = np.arange(10)
        right.bar(at - 0.2, loadings[0] / loadings[0].max(), 0.4, color=COLOURS[0])
        right.bar(at + 0.2, loadings[1] / loadings[1].max(), 0.4, color=COLOURS[1])
        right.set(title="first axis, features by their noise", xlabel="feature")

    return Result(claims, numbers, draw, size=(9.0, 3.2))
