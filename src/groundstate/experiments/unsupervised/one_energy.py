r"""One energy clusters, encodes, completes and generates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.datasets import make_blobs

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.infer import impute, minimise, posterior, sample
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-one-energy", theme="unsupervised", title="One energy call does all of it")
def one_energy(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Minimise, sum out or sample the free parts of :math:`e(x, z)`.

    Free z finite is clustering, free z real is a code, a free part of x is completion, free x and z
    is generation: the core operations on three energies give what the estimators give.
    """
    X, _ = make_blobs(300, centers=3, random_state=seed)
    X = X @ np.array([[1.0, 0.4], [0.0, 0.8]])
    x = torch.from_numpy(X)
    means, mixture = (
        KMeans(3, random_state=seed).fit(X),
        GaussianMixture(3, random_state=seed).fit(X),
    )
    factor = ProbabilisticPCA(1).fit(X)
    with torch.no_grad():
        labels = minimise(means.energy_, "z", {"x": x})["z"].numpy()
        code = posterior(factor.energy_, "z", {"x": x}).mean.numpy()
        gaps = x.clone()
        gaps[:, 1] = torch.nan
        filled = impute(mixture.energy_, gaps, "mean").numpy()
        drawn = sample(mixture.energy_, ("x", "z"), n=2000, generator=Key.of(seed).torch())
    expected = []
    for value in X[:20, 0]:
        given = mixture.condition({0: float(value)})
        expected.append(float(given.weights_ @ given.means_[:, 0]))
    new = drawn["x"].reshape(-1, 2).numpy()
    middle = mixture.weights_ @ mixture.means_
    spread = X.std(0) / np.sqrt(len(new))
    claims = [
        Claim.equal("labels are KMeans.predict", bool((labels == means.predict(X)).all()), True),
        Claim.at_most(
            "codes against ProbabilisticPCA.transform",
            float(np.abs(code - factor.transform(X)).max()),
            1e-8,
        ),
        Claim.at_most(
            "completion against the conditional mean",
            float(np.abs(filled[:20, 1] - expected).max()),
            1e-8,
        ),
        Claim.at_most(
            "mean of drawn rows, in standard errors",
            float((np.abs(new.mean(0) - middle) / spread).max()),
            5.0,
        ),
    ]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        axes[0].scatter(*X.T, s=5, c=[COLOURS[int(i)] for i in labels])
        axes[1].scatter(*X.T, s=5, c=code[:, 0])
        axes[2].scatter(*X.T, s=5, color="lightgrey")
        axes[2].scatter(*filled.T, s=5, color=COLOURS[0])
        axes[3].scatter(*new[:300].T, s=5, color=COLOURS[1])
        for ax, title in zip(axes, ("cluster", "encode", "complete", "generate"), strict=True):
            ax.set(xticks=[], yticks=[], title=title)

    numbers = {"labels": labels[:20].tolist(), "filled": filled[:20, 1].tolist()}
    return Result(claims, numbers, draw, size=(10.0, 2.6))
