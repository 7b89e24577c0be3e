"""How many clusters: one table over k."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from groundstate.compute.random import Key
from groundstate.errors import NotConverged
from groundstate.evaluate.clusters.silhouette import silhouette_score
from groundstate.learn.solvers.latent.kmeans.rows import CentroidRows, nearest
from groundstate.learn.solvers.latent.kmeans.start import drawer_of
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

HIGH = {"silhouette", "gap", "stability"}  # the others are best where they are low
REFERENCES, PAIRS = 10, 10


@dataclass(frozen=True)
class ClusterTable:
    """A criterion for every number of clusters, and the number it prefers."""

    criterion: str
    n_clusters: tuple[int, ...]
    scores: tuple[float, ...]
    best: int


def select_n_clusters(
    X: Any,
    n_clusters: Iterable[int] = range(1, 11),
    criterion: str = "bic",
    *,
    n_init: int = 5,
    random_state: Any = 0,
) -> ClusterTable:
    r"""Compare numbers of clusters.

    Parameters
    ----------
    X : (n, d) array
    n_clusters : numbers to compare; those that a criterion has no value for (1 for silhouettes and
        stability) are left out
    criterion : "bic" of a mixture of Gaussians with full covariances (low is good); "silhouette";
        "gap", how much lower log inertia is than that of uniform rows in the same box, the first k
        within one standard error of the next; "stability", the agreement of clusterings of
        subsamples on all rows
    n_init : starts for each k; all runs of k-means share every pass over the rows
    random_state : int, generator, key or None

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    >>> select_n_clusters(X, range(1, 6)).best
    3
    """
    rows = np.ascontiguousarray(np.asarray(X, np.float64))
    ks = [int(k) for k in n_clusters]
    if criterion in ("silhouette", "stability"):
        ks = [k for k in ks if 2 <= k < len(rows)]
    if not ks or min(ks) < 1 or max(ks) > len(rows):
        raise ValueError(f"n_clusters must be between 1 and {len(rows)}, got {list(n_clusters)}")
    key = Key.of(random_state)
    if criterion == "bic":
        scores = [_bic(rows, k, n_init, key) for k in ks]
    elif criterion == "silhouette":
        found = lloyd_many(rows, ks, n_init, key)
        scores = [silhouette_score(rows, label) for _, label in found]
    elif criterion == "gap":
        scores, best = _gap(rows, ks, n_init, key)
        return ClusterTable(criterion, tuple(ks), tuple(scores), best)
    elif criterion == "stability":
        scores = _stability(rows, ks, key)
    else:
        raise ValueError(
            f"criterion must be 'bic', 'silhouette', 'gap' or 'stability', got {criterion!r}"
        )
    pick = np.argmax if criterion in HIGH else np.argmin
    return ClusterTable(criterion, tuple(ks), tuple(scores), ks[int(pick(scores))])


def _bic(X: Any, k: int, n_init: int, key: Key) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        model = GaussianMixture(
            k, max_iter=300, n_init=n_init, random_state=key.fold("bic", k).low % 2**32
        )
        return float(model.fit(X).bic(X))


def lloyd_many(
    X: Any, ks: list[int], n_init: int, key: Key, max_iter: int = 300
) -> list[tuple[float, Any]]:
    """Inertia and labels of the best of ``n_init`` runs for each k; all runs share every pass."""
    x = torch.from_numpy(X)
    rows = CentroidRows(x, None)
    runs = [
        (j, rows.begin(drawer_of(x, None, key.fold("start", k, i)).plus_plus(k)))
        for j, k in enumerate(ks)
        for i in range(n_init)
    ]
    active = [run for _, run in runs]
    for _ in range(max_iter):
        moved = rows.assign(active)
        shifts = [rows.update(run) for run in active]
        threshold = 1e-4 * rows.variance
        kept = zip(active, moved, shifts, strict=True)
        active = [run for run, count, shift in kept if count and shift > threshold]
        if not active:
            break
    best: list[tuple[float, Any]] = [(np.inf, None)] * len(ks)
    for j, run in runs:
        label, inertia = nearest(x, rows.centroids(run))
        if inertia < best[j][0]:
            best[j] = inertia, label.numpy()
    return best


def _gap(X: Any, ks: list[int], n_init: int, key: Key) -> tuple[list[float], int]:
    low, high = X.min(0), X.max(0)
    own = np.log([max(v, 1e-300) for v, _ in lloyd_many(X, ks, n_init, key)])
    rng = key.fold("gap").numpy()
    other = np.log([
        [max(v, 1e-300) for v, _ in lloyd_many(rng.uniform(low, high, X.shape), ks, 1, key)]
        for _ in range(REFERENCES)
    ])  # fmt: skip
    gap = other.mean(0) - own
    error = other.std(0) * np.sqrt(1 + 1 / REFERENCES)
    for i in range(len(ks) - 1):
        if gap[i] >= gap[i + 1] - error[i + 1]:
            return gap.tolist(), ks[i]
    return gap.tolist(), ks[int(np.argmax(gap))]


def _stability(X: Any, ks: list[int], key: Key) -> list[float]:
    """Mean agreement on all rows of clusterings of two halves."""
    rng = key.fold("stability").numpy()
    scores = np.zeros(len(ks))
    for _ in range(PAIRS):
        halves = np.array_split(rng.permutation(len(X)), 2)
        labels = []
        for half in halves:
            found = lloyd_many(np.ascontiguousarray(X[half]), ks, 3, key)
            centres = [
                np.stack([X[half][z == j].mean(0) for j in range(k) if (z == j).any()])
                for k, (_, z) in zip(ks, found, strict=True)
            ]
            labels.append([
                nearest(torch.from_numpy(X), torch.from_numpy(c))[0].numpy() for c in centres
            ])  # fmt: skip
        scores += [adjusted_rand_score(a, b) for a, b in zip(*labels, strict=True)]
    return (scores / PAIRS).tolist()
