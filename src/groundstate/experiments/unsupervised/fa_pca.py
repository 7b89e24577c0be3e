r"""Unequal noise fools PCA, not factor analysis."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import subspace_angles

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.factors.factor_analysis import FactorAnalysis
from groundstate.models.factors.pca import PCA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (300, 1000, 5000)
DRAWS = 25


@experiment(
    "UNSX-fa-pca", theme="unsupervised", title="Unequal noise fools PCA, not factor analysis"
)
def fa_pca(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Rows :math:`x = Wz + \epsilon` with noise variances that differ by feature. PCA turns to the noisiest
    features, factor analysis takes their variance for what it is, and finds the span of W.

    Ten features, two factors, normal loadings, standard deviations of the noise :math:`e^{N(0, 1)}`; up
    to 5,000 rows; densities judged on 5,000 others. Whether PCA is fooled depends on the draw of W and
    Ψ: with all of :math:`WW^\top + \Psi` known its angle is above 20° in 87 of 100 draws, the median
    62°. So medians of 25 draws are judged.
    """
    key = Key.of(seed)
    angles: dict[str, list[list[float]]] = {"factor analysis": [], "PCA": []}
    gains = []
    for i in range(DRAWS):
        rng = key.fold("rows", i).numpy()
        W = rng.normal(size=(10, 2))
        noise = np.sort(np.exp(rng.normal(size=10)))
        X = rng.normal(size=(10_000, 2)) @ W.T + rng.normal(size=(10_000, 10)) * noise
        for name, make in (("factor analysis", FactorAnalysis), ("PCA", PCA)):
            with warnings.catch_warnings():  # 300 rows do not tell a noise of e⁻³ from none
                warnings.filterwarnings("ignore", message="Heywood", category=Unreliable)
                fits: list[Any] = [make(2).fit(X[:n]) for n in SIZES]
            angles[name].append(
                [float(np.degrees(subspace_angles(f.components_.T, W).max())) for f in fits]
            )
            if name == "PCA":
                plane = fits[-1]
            else:
                factors = fits[-1]
        gains.append(factors.score(X[5000:]) - plane.score(X[5000:]))
    fa, pca = (np.median(angles[name], axis=0).tolist() for name in ("factor analysis", "PCA"))
    gain = float(np.median(gains))
    claims = [
        Claim.below(
            "angle of factor analysis to the truth, 5,000 rows, degrees, median", fa[-1], 3.0
        ),
        Claim.above("angle of PCA, median", pca[-1], 20.0),
        Claim.below("angle of factor analysis over that of PCA", fa[-1] / pca[-1], 0.2),
        Claim.above("log density on new rows, factor analysis less PCA, nats, median", gain, 1.0),
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
        right.set(title="first axis of the last draw, features by their noise", xlabel="feature")

    return Result(claims, numbers, draw, size=(9.0, 3.2))
