r"""Principal components ignore labels, discriminants use them; distances follow the cloud."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, dots
from groundstate.models.discriminant.linear_discriminant_analysis import LinearDiscriminantAnalysis
from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier


@experiment("SUP-X-lda", theme="supervised", title="PCA ignores labels, LDA uses them")
def lda(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The first principal component maximises :math:`w^\top Sw`, the discriminant
    :math:`w^\top S_Bw/w^\top S_Ww`. Where the widest direction says nothing about the class, the
    first is useless. A normal density falls with
    :math:`d_M^2 = (x - \mu)^\top\Sigma^{-1}(x - \mu)`, not with the Euclidean distance.

    500 rows with standard deviation 5 along x, classes 3 apart along y with standard deviation
    0.5; an elongated cloud of 400 rows, its density and its order of distances from the mean.
    """
    key = Key.of(seed)
    rng = key.fold("data").numpy()
    y = np.arange(500) % 2
    X = np.column_stack([5 * rng.standard_normal(500), 3 * y + 0.5 * rng.standard_normal(500)])
    pca = ProbabilisticPCA(1).fit(X)
    discriminant = LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    flat = {"PCA": pca.transform(X), "LDA": discriminant.transform(X)}
    score = {name: float(LogisticRegression().fit(z, y).score(z, y)) for name, z in flat.items()}
    ways = {
        "PCA": _unit(pca.components_[0]),
        "LDA": _unit(np.linalg.solve(np.cov(X[y == 0].T) + np.cov(X[y == 1].T),
                                     X[y == 1].mean(0) - X[y == 0].mean(0))),
    }  # fmt: skip

    rng = key.fold("cloud").numpy()
    turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    cloud = rng.standard_normal((400, 2)) * np.array([3.0, 0.7]) @ turn.T
    density = GaussianMixture(1, reg_covar=0.0, random_state=0).fit(cloud)
    mean, precision = density.means_[0], np.linalg.inv(density.covariances_[0])
    search = KNeighborsClassifier(metric="mahalanobis", metric_params={"VI": precision})
    away, order = search.fit(cloud, np.zeros(400)).kneighbors(mean[None], n_neighbors=400)
    heights = density.score_samples(cloud)
    in_order = bool((np.diff(heights[order[0]]) <= 1e-9).all())
    pair = mean + 2.5 * turn.T  # along and across the cloud, equally far
    log_p = density.score_samples(pair)
    euclid = np.linalg.norm(pair - mean, axis=1)
    claims = [
        Claim.at_most("accuracy on the first principal component", score["PCA"], 0.6),
        Claim.at_least("accuracy on the discriminant", score["LDA"], 0.98),
        Claim.at_most("two points: difference of Euclidean distances", float(np.ptp(euclid)), 1e-9),
        Claim.at_least("two points: difference of log densities", float(log_p[0] - log_p[1]), 2.0),
        Claim.equal("rows sorted by Mahalanobis distance are sorted by density", in_order, True),
    ]
    numbers = {"accuracy": score, "log densities": log_p.tolist(),
               "largest Mahalanobis distance": float(away[0, -1])}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.3, 1, 1.2))
        dots(left, X, y)
        for (name, way), colour in zip(ways.items(), (COLOURS[2], COLOURS[4])):
            span = np.outer([-1, 1], way) * (8 if name == "PCA" else 4) + X.mean(0)
            left.plot(*span.T, color=colour, linewidth=2.2, label=f"{name}: {score[name]:.2f}")
        left.set(title="directions", xticks=[], yticks=[])
        left.legend()
        for at, z in enumerate(flat.values()):
            z = z[:, 0] / z.std()
            for c in (0, 1):
                middle.hist(z[y == c] + 8 * at, bins=30, color=COLOURS[c], alpha=0.6)
        middle.set(title="rows on PCA (left) and LDA (right)", yticks=[], xticks=[])
        right.scatter(*cloud.T, s=5, color=COLOURS[5])
        a = np.linspace(0, 2 * np.pi, 100)
        circle = np.column_stack([np.cos(a), np.sin(a)])
        root = np.linalg.cholesky(density.covariances_[0])
        for r in (1, 2):
            right.plot(*(mean + r * circle @ root.T).T, color=COLOURS[0], linewidth=1)
        right.plot(*(mean + 2.5 * circle).T, ":", color=COLOURS[1])
        right.plot(*pair.T, "o", color=COLOURS[4])
        right.set(title="equally far, not equally likely", aspect="equal", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(11.5, 3.3))


def _unit(v: F64) -> F64:
    u: F64 = v / np.linalg.norm(v)
    return u
