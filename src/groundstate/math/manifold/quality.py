r"""How good a map is, from rows X and places Y alone: what of the neighbours and distances it keeps."""

from __future__ import annotations

from typing import Any

import torch
from scipy.sparse import issparse
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.neighbors.graph import nearest_others
from groundstate.math.neighbors.pairwise import pairwise

DIRECT = "donot_use_mm_for_euclid_dist"
CELLS = 2**22  # distances of one tile


def trustworthiness(X: Any, Y: Any, n_neighbors: int = 10, *, metric: Any = "euclidean") -> Any:
    r"""How far the neighbours in the map are neighbours among the rows; 1 is all of them.

    :math:`1 - \frac{2}{nk(2n - 3k - 1)}\sum_i\sum_{j \in U_k(i)}(r(i, j) - k)` with :math:`r(i, j)`
    the rank of j among the neighbours of i in X, summed over those of the k nearest in Y that are
    not among the k nearest in X. scikit-learn's, in tiles and on the device of X.

    Parameters
    ----------
    X, Y : rows ``(n, d)``, which may be sparse, and places ``(n, p)``
    n_neighbors : k, less than n/2
    metric : of X

    Examples
    --------
    >>> trustworthiness([[0.0], [1.0], [3.0], [6.0], [10.0]], [[0.0], [1.0], [3.0], [6.0], [10.0]], 2)
    1.0
    """
    return _trusted(X.toarray() if issparse(X) else X, Y, n_neighbors, metric)


@takes_arrays("X", "Y")
def _trusted(X: Any, Y: Any, k: int, metric: Any) -> Any:
    n = len(X)
    _check(X, Y)
    if not 1 <= k < n / 2:
        raise ValueError(f"n_neighbors must be at least 1 and less than n / 2 = {n / 2:g}, got {k}")
    near = nearest_others(Y, k)[1]  # (n, k)
    total = torch.zeros((), dtype=torch.float64, device=X.device)
    every = torch.arange(n, device=X.device)
    for at, away in _tiles(X, metric):
        away[every[: len(at)], at] = -1.0  # itself is no neighbour: rank zero
        rank = away.sort(dim=1, stable=True).indices.argsort(1)
        over = (rank.gather(1, near[at]) - k).clamp_min(0)
        total = total + over.sum()
    return 1.0 - total * (2.0 / (n * k * (2.0 * n - 3.0 * k - 1.0)))


def continuity(X: Any, Y: Any, n_neighbors: int = 10) -> Any:
    """How far the neighbours among the rows are neighbours in the map: trustworthiness of X by Y.

    >>> continuity([[0.0], [1.0], [3.0], [6.0], [10.0]], [[0.0], [1.0], [3.0], [6.0], [10.0]], 2)
    1.0
    """
    return trustworthiness(Y, X, n_neighbors)


@takes_arrays("X", "Y")
def neighbor_recall(X: Any, Y: Any, n_neighbors: int = 10, *, metric: Any = "euclidean") -> Any:
    """Fraction of the k nearest rows that are among the k nearest in the map.

    >>> neighbor_recall([[0.0], [1.0], [3.0], [6.0]], [[0.0], [1.0], [3.0], [6.0]], 2)
    1.0
    """
    _check(X, Y)
    if not 1 <= n_neighbors < len(X):
        raise ValueError(f"n_neighbors must be 1 to {len(X) - 1}, got {n_neighbors}")
    rows, places = (
        nearest_others(X, n_neighbors, metric)[1],
        nearest_others(Y, n_neighbors)[1],
    )
    hits = sum(
        (rows[:, c : c + 1] == places).any(1).sum(dtype=torch.float64) for c in range(n_neighbors)
    )
    return hits / (len(X) * n_neighbors)


@takes_arrays("X", "Y")
def residual_variance(
    X: Any, Y: Any, *, metric: Any = "euclidean", precomputed: bool = False
) -> Any:
    r""":math:`1 - \mathrm{corr}^2` of the distances of all pairs among the rows and in the map.

    Parameters
    ----------
    X, Y : rows and places; with ``precomputed``, X are the distances ``(n, n)``

    Examples
    --------
    >>> round(residual_variance([[0.0], [1.0], [3.0]], [[0.0], [2.0], [6.0]]), 12)
    0.0
    """
    sums = _moments(X, Y, "precomputed" if precomputed else metric)
    n, a, b, aa, bb, ab = sums
    cov, va, vb = ab - a * b / n, aa - a * a / n, bb - b * b / n
    return (1.0 - cov.square() / (va * vb)).clamp(0.0, 1.0)


@takes_arrays("X", "Y")
def stress1(X: Any, Y: Any, *, metric: Any = "euclidean", precomputed: bool = False) -> Any:
    r""":math:`\sqrt{\sum_{i<j}(d_{ij} - \delta_{ij})^2/\sum_{i<j}d_{ij}^2}` of distances in the map.

    >>> stress1([[0.0], [1.0], [3.0]], [[0.0], [1.0], [3.0]])
    0.0
    """
    _, _, _, aa, bb, ab = _moments(X, Y, "precomputed" if precomputed else metric)
    return ((aa + bb - 2 * ab).clamp_min(0) / bb).sqrt()


def _moments(X: Tensor, Y: Tensor, metric: Any) -> list[Tensor]:
    """Count, sums and sums of products of the distances of all pairs i < j."""
    _check(X, Y)
    totals = [torch.zeros((), dtype=torch.float64, device=X.device) for _ in range(6)]
    for at, away in _tiles(X, metric):
        later = torch.arange(len(X), device=X.device) > at[:, None]
        a = away.double()[later]
        b = pairwise(Y[at], Y).double()[later]
        parts = (torch.ones_like(a).sum(), a.sum(), b.sum(), (a * a).sum(), (b * b).sum(),
                 (a * b).sum())  # fmt: skip
        totals = [t + part for t, part in zip(totals, parts, strict=True)]
    return totals


def _tiles(X: Tensor, metric: Any) -> Any:
    """Row numbers and their distances to all rows, tile by tile."""
    n = len(X)
    for at in torch.arange(n, device=X.device).split(max(1, CELLS // max(1, n))):
        if metric == "precomputed":
            yield at, X[at].clone()
        elif metric == "euclidean":  # from differences: equal distances must come out equal
            yield at, torch.cdist(X[at].double(), X.double(), compute_mode=DIRECT)
        else:
            yield at, pairwise(X[at], X, metric=metric)


def _check(X: Tensor, Y: Tensor) -> None:
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or len(X) < 3:
        raise ValueError(
            f"X and Y must hold the same rows, at least 3, got shapes {tuple(X.shape)} and "
            f"{tuple(Y.shape)}"
        )
