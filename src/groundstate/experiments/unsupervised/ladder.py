r"""PCA, LDA, MDS, Isomap, t-SNE keep more and more of the neighbourhoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits

from groundstate.experiments.base import Claim, Result, experiment
from groundstate.math import manifold
from groundstate.models.discriminant.linear_discriminant_analysis import LinearDiscriminantAnalysis
from groundstate.models.manifolds.classical_mds import ClassicalMDS
from groundstate.models.manifolds.isomap import Isomap
from groundstate.models.manifolds.locally_linear_embedding import LocallyLinearEmbedding
from groundstate.models.manifolds.spectral_embedding import SpectralEmbedding
from groundstate.models.manifolds.tsne import TSNE
from groundstate.models.manifolds.umap import UMAP
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy(Y: Any, y: Any) -> float:
    """Of ten neighbours in the map, each row judged by the others."""
    model = KNeighborsClassifier(11).fit(Y, y)
    index = model.kneighbors(Y, 11, return_distance=False)[:, 1:]
    votes = np.array([np.bincount(y[near], minlength=10).argmax() for near in index])
    return float((votes == y).mean())


def scaled(X: Any, Y: Any) -> Any:
    """A map in the units in which its stress is least."""
    given, found = (np.linalg.norm(A[:, None] - A, axis=-1) for A in (X, Y))
    return Y * float((given**2).sum() / (given * found).sum())


@experiment("UNSX-ladder", theme="unsupervised", title="Maps by numbers", slow=True)
def ladder(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Five maps of 1,000 digits in the plane: the directions of largest variance, those that part the
    classes best (which saw the labels), classical scaling of distances (which is the first again),
    scaling of paths, and t-SNE. Accuracy of ten neighbours in the map and trustworthiness,
    :math:`1 - c\sum_i\sum_{j \in U_k(i)}(r(i, j) - k)`, climb from one to the next. Beside them
    three more: a spectral embedding, locally linear embedding (modified) and UMAP.

    The first 1,000 digits; the seed is that of UMAP's draws. Eight neighbours for Isomap: with five its
    graph is in two parts, and trustworthiness falls from .885 at eight to .864 at thirty. The first
    1,000 are kind to Isomap: on three random thousands it is .01, .04 and .03 above scaling, not .08.
    """
    digits = load_digits()
    X, y = digits.data[:1000], digits.target[:1000]
    centred = X - X.mean(0)
    lda = LinearDiscriminantAnalysis(n_components=2, solver="eigen", shrinkage=1e-3)
    maps: dict[str, Any] = {
        "PCA": centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T,
        "LDA": lda.fit(X, y).transform(X),
        "MDS": ClassicalMDS().fit_transform(X),
        "Isomap": Isomap(n_neighbors=8).fit_transform(X),
        "spectral": SpectralEmbedding(n_neighbors=10).fit_transform(X),
        "LLE": LocallyLinearEmbedding(n_neighbors=15, method="modified").fit_transform(X),
        "UMAP": UMAP(random_state=seed).fit_transform(X),
        "t-SNE": TSNE().fit_transform(X),
    }  # fmt: skip
    right = {name: accuracy(Y, y) for name, Y in maps.items()}
    trust = {name: float(manifold.trustworthiness(X, Y, 10)) for name, Y in maps.items()}
    table = {
        name: {
            "accuracy": right[name],
            "trustworthiness": trust[name],
            "continuity": float(manifold.continuity(X, Y, 10)),
            "recall": float(manifold.neighbor_recall(X, Y, 10)),
            "residual variance": float(manifold.residual_variance(X, Y)),
            "stress": float(manifold.stress1(X, scaled(X, Y))),
            "dimension": float(manifold.intrinsic_dimension(Y)),
        }
        for name, Y in maps.items()
    }
    claims = [
        Claim.close("accuracy of neighbours: MDS less PCA", right["MDS"] - right["PCA"], 0.0, tol=0.01),
        Claim.between("PCA", right["PCA"], 0.48, 0.68),
        Claim.above("LDA, which saw the labels, less PCA", right["LDA"] - right["PCA"], 0.05),
        Claim.above("Isomap less PCA", right["Isomap"] - right["PCA"], 0.1),
        Claim.at_least("t-SNE", right["t-SNE"], 0.92),
        Claim.at_least("UMAP", right["UMAP"], 0.92),
        Claim.between("trustworthiness: PCA", trust["PCA"], 0.77, 0.85),
        Claim.above("Isomap less MDS", trust["Isomap"] - trust["MDS"], 0.08),
        Claim.at_least("t-SNE", trust["t-SNE"], 0.985),
        Claim.at_least("UMAP", trust["UMAP"], 0.97),
        Claim.above("distances are given up: residual variance, t-SNE less PCA",
                    table["t-SNE"]["residual variance"] - table["PCA"]["residual variance"], 0.0),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        for ax, (name, Y) in zip(figure.subplots(2, 4).ravel(), maps.items(), strict=True):
            ax.scatter(*Y.T, c=y, cmap="tab10", s=2)
            ax.set(title=f"{name}: {right[name]:.2f}, {trust[name]:.2f}", xticks=[], yticks=[])

    return Result(claims, {"maps": table}, draw, size=(11.0, 5.4))
