r"""Shortest paths over neighbouring rows, as first guesses of shortest curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree
from torch import Tensor

from groundstate.math.distances.riemannian import RiemannianMetric

NEIGHBORS = 10


@torch.no_grad()
def graph_paths(
    metric: RiemannianMetric, a: Tensor, b: Tensor, n: int, k: int = NEIGHBORS
) -> tuple[Tensor, Tensor]:
    """Paths from a to b over the metric's rows, resampled to n points, and which pairs have one.

    Rows are joined to their k nearest; an edge is as long as it is under the metric. Ends are joined
    to their nearest row. A pair in two parts of the graph has no path.

    Returns
    -------
    curves : ``(S, n, d)``
    pairs : ``(S,)``
    """
    assert metric.rows is not None
    rows = metric.rows.detach().to(a)
    x = rows.cpu().double().numpy()
    tree = KDTree(x)
    graph = neighbor_graph(metric, rows, tree, k)
    ends = [tree.query(p.detach().cpu().double().numpy())[1] for p in (a, b)]
    sources, where = np.unique(ends[0], return_inverse=True)
    _, back = dijkstra(graph, directed=False, indices=sources, return_predecessors=True)
    firsts, lasts = (p.cpu().double().numpy() for p in (a, b))
    curves, pairs = [], []
    for i, (source, end) in enumerate(zip(where, ends[1], strict=True)):
        way = _way(back[source], int(sources[source]), int(end))
        if way is not None:
            curves.append(_resampled(np.vstack([firsts[i], x[way], lasts[i]]), n))
            pairs.append(i)
    found = np.stack(curves) if curves else np.zeros((0, n, x.shape[1]))
    return torch.from_numpy(found).to(a), torch.tensor(pairs, dtype=torch.int64, device=a.device)


def neighbor_graph(metric: RiemannianMetric, rows: Tensor, tree: KDTree, k: int) -> Any:
    """Lengths of the edges between neighbours, ``(n, n)`` sparse."""
    x = rows.cpu().double().numpy()
    size = len(x)
    many = min(k + 1, size)
    _, near = tree.query(x, many)
    near = np.asarray(near).reshape(size, -1)
    start = np.repeat(np.arange(size), near.shape[1])
    end = near.ravel()
    keep = start != end
    start, end = start[keep], end[keep]
    edges = torch.stack([rows[start], rows[end]], 1)  # (E, 2, d)
    length = metric.length(edges).double().cpu().numpy()
    # an edge between twins would read as no edge
    return csr_matrix((np.maximum(length, 1e-300), (start, end)), shape=(size, size))


def _way(back: NDArray[Any], start: int, end: int) -> list[int] | None:
    way = [end]
    while way[-1] != start:
        before = int(back[way[-1]])
        if before < 0:
            return None
        way.append(before)
    return way[::-1]


def _resampled(path: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The path smoothed a little, by n points at even distances."""
    for _ in range(2):
        path[1:-1] = 0.25 * path[:-2] + 0.5 * path[1:-1] + 0.25 * path[2:]
    at = np.concatenate([[0.0], np.linalg.norm(np.diff(path, axis=0), axis=1).cumsum()])
    even = np.linspace(0, at[-1], n)
    return np.stack([np.interp(even, at, column) for column in path.T], 1)
