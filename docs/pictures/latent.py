"""Pictures of the models with a hidden variable."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from common import COLOURS, figure, landscape, regions, scatter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from sklearn.datasets import make_blobs, make_moons

from groundstate import (
    DBSCAN,
    HDBSCAN,
    AgglomerativeClustering,
    BayesianGaussianMixture,
    GaussianMixture,
    KMeans,
    MiniBatchKMeans,
    MixtureModel,
    ProbabilisticPCA,
    SoftKMeans,
    TableMixture,
)

BLOBS, _ = make_blobs(150, centers=[[0, 0], [4, 1], [1, 4]], cluster_std=0.9, random_state=0)
LONG = BLOBS @ np.array([[1.0, 0.7], [0.0, 0.6]])


def kmeans() -> Figure:
    """Cells of the nearest centroid, and how the sum of squares falls."""
    model = KMeans(3, init=BLOBS[:3], tol=0).fit(BLOBS)
    fig, (left, right) = figure(2)
    regions(left, BLOBS, model.labels_, model.predict)
    left.scatter(*model.cluster_centers_.T, marker="x", s=70, color="black")
    left.set_title("nearest centroid: the z of lowest energy")
    right.plot(np.array(model.history_.objective), color=COLOURS[0], marker="o", markersize=4)
    right.set(xlabel="iteration", ylabel="mean energy", title="neither half-step can raise it")
    return fig


def ellipse(ax: Axes, mean: np.ndarray, cov: np.ndarray, colour: str) -> None:
    """Two standard deviations around a Gaussian."""
    values, vectors = np.linalg.eigh(cov)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    width, height = 4 * np.sqrt(values[::-1])
    ax.add_patch(Ellipse(tuple(mean), width, height, angle=angle, fill=False, color=colour, lw=1.5))


def gaussian_mixture() -> Figure:
    """The free energy and its components; a missing coordinate filled in."""
    model = GaussianMixture(3, random_state=0).fit(LONG)
    fig, (left, right) = figure(2)
    landscape(left, LONG, model.energy)
    for mean, cov in zip(model.means_, model.covariances_, strict=True):
        ellipse(left, mean, cov, "white")
    left.scatter(*LONG.T, s=6, color="white", alpha=0.6)
    left.set_title("free energy, two standard deviations")
    scatter(right, LONG, model.predict(LONG))
    at = np.linspace(LONG[:, 0].min(), LONG[:, 0].max(), 80)
    known = np.column_stack([at, np.full(80, np.nan)])
    right.plot(*model.impute(known).T, color="black", label="mean of the second, given the first")
    right.legend(fontsize=7)
    right.set_title("x known in part is filled in")
    return fig


def probabilistic_pca() -> Figure:
    """The valley of a linear code, and codes pulled towards zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1)) * [[2.0, 1.0]] + rng.normal(0, 0.5, (120, 2))
    model = ProbabilisticPCA(1).fit(X)
    fig, (left, right) = figure(2)
    landscape(left, X, model.energy)
    axis = model.mean_ + np.linspace(-4, 4, 2)[:, None] * model.components_
    left.plot(*axis.T, color="white")
    left.scatter(*X.T, s=6, color="white", alpha=0.6)
    left.set(
        title="free energy and the first axis", ylim=(X[:, 1].min() - 0.8, X[:, 1].max() + 0.8)
    )
    decoded = model.inverse_transform(model.transform(X))
    scatter(right, X)
    for row, image in zip(X[::3], decoded[::3], strict=True):
        right.plot(*np.column_stack([row, image]), color="grey", linewidth=0.6)
    right.scatter(*decoded.T, s=10, color=COLOURS[1])
    right.set_title("rows and what their codes decode to")
    return fig


def mini_batch_kmeans() -> Figure:
    """The path of centroids over mini-batches, and how the sum of squares falls."""
    model = MiniBatchKMeans(3, init=BLOBS[:3], random_state=0)
    rng = np.random.default_rng(0)
    path, loss = [BLOBS[:3]], []
    for _ in range(60):
        model.partial_fit(BLOBS[rng.integers(len(BLOBS), size=10)])
        path.append(model.cluster_centers_.copy())
        loss.append(-model.score(BLOBS))
    fig, (left, right) = figure(2)
    scatter(left, BLOBS, model.predict(BLOBS))
    for k in range(3):
        left.plot(*np.array(path)[:, k].T, color="black", lw=1)
    left.set_title("centroids over 60 mini-batches of ten rows")
    right.plot(loss, color=COLOURS[0])
    right.set(xlabel="mini-batch", ylabel="sum of squares", title="not monotone, but it falls")
    return fig


def soft_kmeans() -> Figure:
    """Shares at a temperature, and centroids that part while it falls."""
    fig, (left, right) = figure(2)
    model = SoftKMeans(3, temperature=1.5, init=BLOBS[:3]).fit(BLOBS)
    colours = model.predict_proba(BLOBS)
    left.scatter(*BLOBS.T, s=12, c=np.clip(colours, 0, 1))
    left.scatter(*model.cluster_centers_.T, marker="x", s=70, color="black")
    left.set_title("shares of three centroids at T = 1.5")
    top = float(np.linalg.eigvalsh(np.cov(BLOBS.T, ddof=0))[-1])
    for T in np.geomspace(1.5 * top, 0.05 * top, 40):
        cooled = SoftKMeans(
            3, temperature=float(T), schedule="anneal", random_state=0, max_iter=2000
        ).fit(BLOBS)
        right.scatter([T] * 3, cooled.cluster_centers_[:, 0], s=8, color=COLOURS[0])
    right.axvline(top, color="black", ls="--", lw=1)
    right.set(xscale="log", xlabel="temperature", title="centroids part below the largest variance")
    right.invert_xaxis()
    return fig


def bayesian_gaussian_mixture() -> Figure:
    """Components that are left of ten, and their weights."""
    model = BayesianGaussianMixture(10, random_state=0, max_iter=2000).fit(LONG)
    fig, (left, right) = figure(2)
    scatter(left, LONG, model.predict(LONG))
    for weight, mean, cov in zip(model.weights_, model.means_, model.covariances_, strict=True):
        if weight > 0.02:
            ellipse(left, mean, cov, "black")
    left.set_title("components with more than 2 % of the weight")
    right.bar(range(10), np.sort(model.weights_)[::-1], color=COLOURS[0])
    right.set(xlabel="component", ylabel="weight", title="the others are emptied")
    return fig


def table_mixture() -> Figure:
    """Held-out rows choose the number of components; real rows beside drawn ones."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 3, 400)
    numbers = np.array([[0, 0], [4, 1], [1, 4]])[z] + rng.normal(size=(400, 2)) @ [
        [1, 0.7],
        [0, 0.6],
    ]
    kind = np.where(rng.random(400) < np.array([0.95, 0.1, 0.5])[z], "a", "b")
    table = pd.DataFrame({"x": numbers[:, 0], "y": numbers[:, 1], "kind": kind})
    model = TableMixture(random_state=0).fit(table)
    fig, (left, middle, right) = figure(3)
    left.plot(list(model.held_out_), list(model.held_out_.values()), marker="o", color=COLOURS[0])
    left.set(xlabel="components", ylabel="held-out log-likelihood", xscale="log")
    left.set_xticks(list(model.held_out_), [str(k) for k in model.held_out_])
    left.minorticks_off()
    drawn = model.sample(400, random_state=0)
    for ax, rows, title in ((middle, table, "rows of the table"), (right, drawn, "rows drawn")):
        ax.scatter(rows["x"], rows["y"], s=8, c=np.array(COLOURS)[(rows["kind"] == "b") * 1])
        ax.set(title=title, xlim=(-4, 8), ylim=(-4, 8))
    return fig


def mixture_model() -> Figure:
    """Prototypes of bits, and counts."""
    from sklearn.datasets import load_digits

    X = (load_digits().data >= 8).astype(float)
    model = MixtureModel("bernoulli", 10, random_state=0, max_iter=500).fit(X)
    fig, (left, right) = figure(2)
    p = model.energy_.families[0].p.detach().numpy().reshape(2, 5, 8, 8)
    left.imshow(p.transpose(0, 2, 1, 3).reshape(16, 40), cmap="Greys", vmin=0, vmax=1)
    left.set(xticks=[], yticks=[], title="ten Bernoulli components of digits")
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.poisson(2, 300), rng.poisson(11, 200)])[:, None].astype(float)
    poisson = MixtureModel("poisson", 2, random_state=0).fit(counts)
    at = np.arange(22.0)[:, None]
    right.hist(counts[:, 0], bins=np.arange(-0.5, 22), density=True, color="lightgrey")
    right.plot(at, np.exp(poisson.score_samples(at)), marker="o", ms=4, color=COLOURS[0])
    right.set(xlabel="count", title="two Poisson components")
    return fig


MOONS = np.r_[
    make_moons(200, noise=0.06, random_state=0)[0],
    np.random.default_rng(0).uniform([-1.5, -1.0], [2.5, 1.5], (15, 2)),
]


def dbscan() -> Figure:
    """Groups of any shape, noise, and the energy of one more row."""
    model = DBSCAN(eps=0.2).fit(MOONS)
    fig, (left, right) = figure(2)
    noise = model.labels_ == -1
    scatter(left, MOONS[~noise], model.labels_[~noise])
    left.scatter(*MOONS[noise].T, marker="x", s=25, color="grey")
    left.set_title("groups of dense rows; crosses are noise")
    landscape(
        right,
        MOONS,
        lambda X: np.sqrt(2 * model.energy_.table("z", x=_rows(X))[:, :-1].min(1).values),
    )
    right.scatter(*model.components_.T, s=5, color="white", alpha=0.6)
    right.set_title("distance to the nearest core row")
    return fig


def hdbscan() -> Figure:
    """Groups of different density."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal([0, 0], 0.15, (100, 2)), rng.normal([3, 0], 0.9, (100, 2)),
              rng.uniform([-2, -3], [6, 3], (20, 2))]  # fmt: skip
    fig, (left, right) = figure(2)
    models = {"HDBSCAN": HDBSCAN(10), "DBSCAN(eps=0.2)": DBSCAN(0.2)}
    for ax, (name, model) in zip((left, right), models.items(), strict=True):
        labels = model.fit(X).labels_
        noise = labels == -1
        scatter(ax, X[~noise], labels[~noise])
        ax.scatter(*X[noise].T, marker="x", s=25, color="grey")
        ax.set_title(f"{name}: {labels.max() + 1} groups")
    return fig


def agglomerative_clustering() -> Figure:
    """Groups, and the distances at which they were merged."""
    model = AgglomerativeClustering(3, compute_distances=True).fit(BLOBS)
    fig, (left, right) = figure(2)
    regions(left, BLOBS, model.labels_, model.predict)
    left.set_title("which group one more row would join")
    last = model.distances_[-15:]
    right.plot(np.arange(len(last), 0, -1), last, color=COLOURS[0], marker="o", markersize=4)
    right.axvline(3, color="grey", lw=1)
    right.set(xlabel="groups that are left to merge", ylabel="distance", title="the last mergers")
    return fig


def _rows(X: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(X))


PICTURES = {
    "AgglomerativeClustering": agglomerative_clustering,
    "BayesianGaussianMixture": bayesian_gaussian_mixture,
    "DBSCAN": dbscan,
    "GaussianMixture": gaussian_mixture,
    "HDBSCAN": hdbscan,
    "KMeans": kmeans,
    "MiniBatchKMeans": mini_batch_kmeans,
    "MixtureModel": mixture_model,
    "TableMixture": table_mixture,
    "ProbabilisticPCA": probabilistic_pca,
    "SoftKMeans": soft_kmeans,
}
