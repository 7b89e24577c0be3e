r"""Paths along the data unroll a sheet; straight distances do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_swiss_roll

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.graphs import geodesic_distances
from groundstate.math.neighbors import neighbors_graph
from groundstate.models.diagnosis import diagnose
from groundstate.models.manifolds.classical_mds import ClassicalMDS
from groundstate.models.manifolds.isomap import Isomap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

F64 = NDArray[np.float64]


def arc(t: F64) -> F64:
    """Length of the spiral r = t up to the angle t."""
    return 0.5 * (t * np.sqrt(1 + t * t) + np.arcsinh(t))


def corr(a: F64, b: F64) -> float:
    return float(abs(np.corrcoef(a, b)[0, 1]))


@experiment("UNSX-swiss-roll", theme="unsupervised", title="Geodesic distances unroll")
def swiss_roll(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Isomap lays out :math:`\tau(D_S) = -\tfrac12 H(D_S\circ D_S)H` of the shortest paths
    :math:`D_S` along a graph of near rows, classical scaling the same of straight distances, which is
    principal component analysis. On a rolled sheet of 1,000 rows only the paths find the length
    along the roll, and they are nearly the true geodesics of the sheet, a little too long. Ten
    neighbours, or fewer where ``diagnose`` finds a short circuit among the edges.
    """
    X, t = make_swiss_roll(1000, random_state=seed)
    along, width = arc(t), X[:, 1]
    centred = X - X.mean(0)
    pca = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    maps: dict[str, Any] = {
        "PCA": pca,
        "classical MDS": ClassicalMDS().fit(X).embedding_,
    }
    for k in (10, 8, 6):
        some = Isomap(n_neighbors=k, n_landmarks=100).fit(X)
        if "short circuit" not in diagnose(some, X).names:
            break
    whole = Isomap(n_neighbors=k).fit(X)
    maps |= {"Isomap": whole.embedding_, "landmarks": some.embedding_}
    found = {name: corr(Y[:, 0], along) for name, Y in maps.items()}
    true = np.hypot(along[:, None] - along, width[:, None] - width)
    upper = np.triu_indices(len(X), 1)
    ratio = float(np.median(whole.dist_matrix_[upper] / true[upper]))
    first, last = int(t.argmin()), int(t.argmax())
    ends = float(whole.dist_matrix_[first, last])
    geodesic, chord = float(true[first, last]), float(np.linalg.norm(X[first] - X[last]))
    residual = [whole.residual_variance(p) for p in range(1, 6)]
    claims = [
        Claim.at_most("PCA: correlation with the length along the roll", found["PCA"], 0.5),
        Claim.at_most("classical MDS: the same", found["classical MDS"], 0.5),
        Claim.close("classical MDS is PCA", found["classical MDS"] - found["PCA"], 0.0, tol=1e-6),
        Claim.above("Isomap", found["Isomap"], 0.99),
        Claim.above("Isomap with 100 landmarks", found["landmarks"], 0.99),
        Claim.between("median of paths over true geodesics", ratio, 1.0, 1 + 0.6 / k),
        Claim.above("from end to end, paths over the chord", ends / chord, 2.0),
        Claim.between("and over the true geodesic", ends / geodesic, 1.0, 1.1),
        Claim.at_most("residual variance in two dimensions", residual[1], 0.002),
        Claim.above("and in one", residual[0], 5 * residual[1]),
    ]
    numbers = {"correlation": found, "ratio": ratio, "ends": [ends, geodesic, chord],
               "residual variance": residual, "k": k}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        graph = neighbors_graph(X, k)
        _, before = geodesic_distances(graph, [first], return_predecessors=True)
        path = [last]
        while path[-1] != first:
            path.append(int(before[0, path[-1]]))
        left.scatter(X[:, 0], X[:, 2], c=t, s=4)
        left.plot(X[path, 0], X[path, 2], color=COLOURS[4], label="path")
        left.plot(X[[first, last], 0], X[[first, last], 2], "k--", linewidth=1, label="chord")
        left.set(title="from the side", aspect="equal")
        left.legend()
        middle.scatter(*whole.embedding_.T, c=t, s=4)
        middle.plot(*whole.embedding_[path].T, color=COLOURS[4])
        middle.set(title="Isomap", aspect="equal")
        right.plot(range(1, 6), residual, "o-", color=COLOURS[0])
        right.set(title="residual variance", xlabel="dimensions", yscale="log")

    return Result(claims, numbers, draw, size=(11.0, 3.4))
