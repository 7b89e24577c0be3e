r"""The direction of largest variance is not the one that parts classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.discriminant.linear_discriminant_analysis import LinearDiscriminantAnalysis
from groundstate.models.factors.pca import PCA
from groundstate.models.factors.whitener import Whitener

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-pca-lda", theme="unsupervised", title="Largest variance is not best separation")
def pca_lda(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two classes four apart in a feature of standard deviation .5, beside a feature of standard deviation 10.
    One axis of PCA follows the wide feature and mixes the classes; that of linear discriminant analysis,
    :math:`w \propto S_W^{-1}(\mu_1 - \mu_2)`, parts them. It is PCA of the class means after whitening
    within the classes.

    500 rows of each class to learn from, 500 to judge.
    """
    rng = Key.of(seed).fold("rows").numpy()
    y = np.repeat([0, 1], 1000)
    X = np.column_stack([10 * rng.normal(size=2000), 4 * y + 0.5 * rng.normal(size=2000)])
    train = np.arange(2000) % 2 == 0
    lda = LinearDiscriminantAnalysis(n_components=1).fit(X[train], y[train])
    codes = {"PCA": PCA(1).fit(X[train]).transform(X)[:, 0], "LDA": lda.transform(X)[:, 0]}
    accuracy = {}
    for name, z in codes.items():
        own = LinearDiscriminantAnalysis().fit(z[train, None], y[train])
        accuracy[name] = float(own.score(z[~train, None], y[~train]))
    means = np.array([X[train][y[train] == c].mean(0) for c in (0, 1)])
    within = X[train] - means[y[train]]
    white = Whitener().fit(within)
    J = np.asarray(white.whitening_)
    axis = PCA(1, svd_solver="full").fit(means @ J.T).components_[0] @ J
    fisher = np.linalg.solve(within.T @ within, means[1] - means[0])
    cosine = abs(axis @ fisher) / np.linalg.norm(axis) / np.linalg.norm(fisher)
    direction = np.asarray(lda.scalings_)[:, 0]
    same = abs(direction @ fisher) / np.linalg.norm(direction) / np.linalg.norm(fisher)
    claims = [
        Claim.at_most("accuracy along one axis of PCA", accuracy["PCA"], 0.6),
        Claim.at_least("accuracy along one axis of LDA", accuracy["LDA"], 0.99),
        Claim.close("cosine: LDA's axis and S⁻¹(μ₁ − μ₂)", float(same), 1.0, tol=1e-8),
        Claim.close("cosine: whiten within, then PCA of the means", float(cosine), 1.0, tol=1e-8),
    ]
    numbers = {"accuracy": accuracy}

    def draw(figure: Figure) -> None:
        for ax, (name, z) in zip(figure.subplots(1, 2), codes.items()):
            for c in (0, 1):
                ax.hist(z[y == c], 50, color=COLOURS[c], alpha=0.6)
            ax.set(title=f"one axis of {name}: accuracy {accuracy[name]:.2f}", yticks=[])

    return Result(claims, numbers, draw, size=(8.0, 3.0))
