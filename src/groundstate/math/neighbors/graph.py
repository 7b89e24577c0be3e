r"""Graphs of near rows: an edge where :math:`j` is among the k nearest of :math:`i`, or within a radius."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.math.arrays import as_tensor
from groundstate.math.distances.euclidean import lowest, reached
from groundstate.math.neighbors.pairwise import EUCLIDEAN, _named, _placed, pairwise
from groundstate.math.neighbors.radius import within, within_by

SYMMETRIES = ("union", "mutual", "none")
LOOKS = 256  # queries whose exact neighbours tell the recall
CELLS = 2**22  # numbers of one tile


def neighbors_graph(
    X: Any, n_neighbors: int | None = None, radius: float | None = None, symmetrize: str = "union",
    *, metric: str | Callable[[Any, Any], float] = "euclidean", metric_params: Any = None,
    approx: str | None = None, random_state: RandomState = 0, return_recall: bool = False,
) -> Any:  # fmt: skip
    r"""Distances to near rows as a sparse matrix ``(n, n)`` in CSR form, without self loops.

    Parameters
    ----------
    X : rows ``(n, d)``; distances ``(n, n)`` for ``metric="precomputed"``, infinite where unknown
    n_neighbors : edges to so many nearest rows; this or ``radius``
    radius : edges to all rows at most this far away
    symmetrize : "union" keeps an edge that either end wants, "mutual" one that both want, "none" the
        directed edges. Equal rows are joined by an edge of length zero, which is stored
    metric, metric_params : as in `pairwise`
    approx : None is exact; "nndescent" improves random neighbours by their neighbours' neighbours,
        which is faster beyond some 100,000 rows (Euclidean metrics, on the CPU)
    random_state : of "nndescent"
    return_recall : also give the fraction of the true neighbours that were found, measured on 256
        rows (1.0 where the search is exact)

    Returns
    -------
    ``scipy.sparse.csr_array``, or a sparse CSR tensor on the device of X

    Examples
    --------
    >>> neighbors_graph([[0.0], [1.0], [5.0]], n_neighbors=1).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 4.0], [0.0, 4.0, 0.0]]
    """
    rows = as_tensor(X, "X", finite=metric != "precomputed").detach()
    if rows.ndim != 2:
        raise ValueError(f"X must be a table (n, d), got shape {tuple(rows.shape)}")
    if (n_neighbors is None) == (radius is None):
        raise ValueError("give one of n_neighbors and radius")
    if symmetrize not in SYMMETRIES:
        raise ValueError(f"symmetrize must be one of {', '.join(SYMMETRIES)}, got {symmetrize!r}")
    if approx not in (None, "nndescent"):
        raise ValueError(f"approx must be None or 'nndescent', got {approx!r}")
    recall = 1.0
    if radius is not None:
        if approx:
            raise ValueError("approx='nndescent' finds n_neighbors, not a radius")
        i, j, d = _within(rows, float(radius), metric, metric_params)
    else:
        k = _checked_count(n_neighbors, len(rows))
        if approx is None:
            distance, index = nearest_others(rows, k, metric, metric_params)
        else:
            distance, index, recall = _descended(rows, k, metric, metric_params, random_state)
        i = torch.arange(len(rows), device=rows.device).repeat_interleave(k)
        j, d = index.reshape(-1), distance.reshape(-1)
    i, j, d = symmetrized(i, j, d, len(rows), symmetrize)
    starts = torch.zeros(len(rows) + 1, dtype=torch.int64, device=rows.device)
    starts[1:] = torch.bincount(i, minlength=len(rows)).cumsum(0)
    shape = (len(rows), len(rows))
    graph: Any
    if isinstance(X, Tensor):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)  # in beta
            graph = torch.sparse_csr_tensor(starts, j, d, shape)
    else:
        graph = csr_array((d.numpy(), j.numpy(), starts.numpy()), shape=shape)
    return (graph, recall) if return_recall else graph


def nearest_others(
    rows: Tensor, k: int, metric: Any = "euclidean", metric_params: Any = None
) -> tuple[Tensor, Tensor]:
    """Distances and indices ``(n, k)`` of the k nearest rows to each row, itself left out.

    >>> nearest_others(torch.tensor([[0.0], [1.0], [5.0]]), 1)[1].tolist()
    [[1], [0], [1]]
    """
    if metric == "precomputed":
        parts = [lowest(part, k + 1) for part in rows.split(max(1, CELLS // max(1, len(rows))))]
        distance = reached(torch.cat([near for near, _ in parts]))
        index = torch.cat([at for _, at in parts])
    else:
        distance, index = pairwise(
            rows, metric=metric, metric_params=metric_params, reduce="topk", k=k + 1
        )
    itself = index == torch.arange(len(rows), device=rows.device)[:, None]
    # among many equal rows it may be missing: the last goes instead
    order = itself.int().argsort(dim=1, stable=True)[:, :k]
    return distance.gather(1, order), index.gather(1, order)


def symmetrized(
    i: Tensor, j: Tensor, d: Tensor, n: int, symmetrize: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Edges in the order of a CSR matrix, each once: either's, both's or their own."""
    key = i * n + j
    if symmetrize != "none":
        key, d = torch.cat([key, j * n + i]), torch.cat([d, d])
    key, order = key.sort(stable=True)
    d = d[order]
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    if symmetrize == "mutual":  # directed edges are unique, so a pair of equal keys is both's
        again = torch.zeros_like(first)
        again[:-1] = ~first[1:]
        first &= again
    key, d = key[first], d[first]
    return key // n, key % n, d


def _checked_count(k: Any, n: int) -> int:
    if not 1 <= k < n:
        raise ValueError(f"n_neighbors must be 1 to {n - 1}, the number of other rows, got {k}")
    return int(k)


def _within(rows: Tensor, radius: float, metric: Any, params: Any) -> tuple[Tensor, Tensor, Tensor]:
    if metric == "euclidean":
        found = within(rows, rows, radius)
    else:

        def every(part: Tensor) -> Tensor:
            if metric == "precomputed":
                return part
            return pairwise(part, rows, metric=metric, metric_params=params)

        found = within_by(every, rows, len(rows), radius)
    i = torch.arange(len(rows), device=rows.device).repeat_interleave(found.count)
    other = i != found.index
    return i[other], found.index[other], found.distance[other].to(rows.dtype)


def _descended(
    rows: Tensor, k: int, metric: Any, params: Any, random_state: RandomState
) -> tuple[Tensor, Tensor, float]:
    from groundstate.math.neighbors.descent import descend

    if metric not in EUCLIDEAN or rows.device.type != "cpu":
        raise ValueError(
            f"approx='nndescent' is for {', '.join(EUCLIDEAN)} on the CPU, got {metric!r} on "
            f"{rows.device.type}; leave approx out"
        )
    placed = _placed(rows, metric, dict(params or {}))
    square, index = descend(placed, k, random_state)
    asked = torch.from_numpy(
        Key.of(random_state).fold("recall").numpy().permutation(len(rows))[:LOOKS]
    )
    _, true = pairwise(placed[asked], placed, reduce="topk", k=k + 1)
    hits = sum(
        len((set(t) - {a}) & set(f))
        for a, t, f in zip(asked.tolist(), true.tolist(), index[asked].tolist(), strict=True)
    )
    return _named(square, metric).to(rows.dtype), index, min(1.0, hits / (k * len(asked)))
