r"""Lengths of shortest paths, :math:`D(s, v) = \min_{s \to \dots \to v}\sum_e w_e`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from groundstate.compute.tiles import over_slices
from groundstate.errors import DataError
from groundstate.math.neighbors.pairwise import pairwise

METHODS = ("auto", "dijkstra", "floyd_warshall")
FEW = 300  # nodes up to which all pairs at once are faster
CELLS = 2**27  # numbers of one block of relaxed edges on a GPU


def geodesic_distances(
    graph: Any, sources: Any = None, method: str = "auto", return_predecessors: bool = False,
    *, dtype: Any = None,
) -> Any:  # fmt: skip
    r"""Lengths of the shortest paths from some nodes to all nodes.

    Parameters
    ----------
    graph : sparse matrix ``(n, n)`` of the lengths of the edges i → j; stored zeros are edges of
        length zero. A dense matrix has an edge where an entry is neither zero nor infinite
    sources : nodes to start from, ``(m,)``; None is all
    method : "dijkstra" for each source, "floyd_warshall" for all pairs at once; "auto" takes the
        latter up to 300 nodes
    return_predecessors : also the node before each node on its path, ``(m, n)``, −9999 where there
        is none
    dtype : of the distances; None is that of the graph

    Returns
    -------
    distances ``(m, n)``, infinite where no path leads; tensors for a sparse tensor, relaxed edge by
    edge on its device

    Examples
    --------
    >>> from groundstate.math.neighbors import neighbors_graph
    >>> geodesic_distances(neighbors_graph([[0.0], [1.0], [5.0]], n_neighbors=1)).tolist()
    [[0.0, 1.0, 5.0], [1.0, 0.0, 4.0], [5.0, 4.0, 0.0]]
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if len(graph.shape) != 2 or graph.shape[0] != graph.shape[1]:
        raise ValueError(f"graph must be a square matrix, got shape {tuple(graph.shape)}")
    if isinstance(graph, Tensor) and graph.device.type != "cpu" and not return_predecessors:
        return _on_device(graph, sources, dtype)
    matrix = _csr(graph)
    n = matrix.shape[0]
    if n and matrix.nnz and not float(matrix.data.min()) >= 0:
        raise ValueError(
            "graph has an edge of negative length or NaN; shortest paths need lengths of at least 0"
        )
    if method == "auto":
        method = "floyd_warshall" if n <= FEW and sources is None else "dijkstra"
    start = np.arange(n) if sources is None else np.atleast_1d(np.asarray(_host(sources), np.int64))
    if len(start) and not (start.min() >= 0 and start.max() < n):
        raise ValueError(f"sources must be nodes 0 to {n - 1}, got {start.min()} to {start.max()}")
    kind = np.dtype(_name(dtype)) if dtype is not None else matrix.dtype
    found, before = _paths(matrix, start, method, return_predecessors, kind)
    if isinstance(graph, Tensor):
        device = graph.device
        found, before = torch.from_numpy(found).to(device), torch.from_numpy(before).to(device)
    return (found, before) if return_predecessors else found


def _paths(matrix: Any, start: Any, method: str, predecessors: bool, kind: Any) -> tuple[Any, Any]:
    from groundstate.math.graphs import paths_numba as kernels

    n = matrix.shape[0]
    if method == "floyd_warshall":
        table = np.full((n, n), np.inf)
        before = np.full((n, n), kernels.NONE, np.int32)
        i = np.repeat(np.arange(n), np.diff(matrix.indptr))
        np.minimum.at(table, (i, matrix.indices), matrix.data.astype(np.float64))
        before[i, matrix.indices] = i
        np.fill_diagonal(table, 0.0)
        np.fill_diagonal(before, kernels.NONE)
        kernels.floyd_warshall(table, before)
        return table[start].astype(kind), before[start]
    out = np.empty((len(start), n), kind)
    before = np.full((len(start) if predecessors else 0, n), kernels.NONE, np.int32)
    parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
    weight = matrix.data.astype(np.float64)
    if not predecessors and len(start) >= kernels.WIDTH and _is_symmetric(matrix):
        wanted = np.zeros(n, np.bool_)
        wanted[start] = True
        order = np.empty(int(wanted.sum()), np.int64)
        kernels.neighbouring(*parts, wanted, order)
        once = len(order) == len(start)
        table = out if once else np.empty((len(order), n), kind)
        place = np.empty(n, np.int64)
        place[start if once else order] = np.arange(len(order))
        for _ in over_slices(
            lambda lo, hi: kernels.together(*parts, weight, order, place[order], lo, hi, table),
            len(order), 4 * kernels.WIDTH,
        ):  # fmt: skip
            pass
        return (out if once else table[place[start]]), before
    step = max(1, min(64, len(start) // 16))
    for _ in over_slices(
        lambda lo, hi: kernels.dijkstra(*parts, weight, start, lo, hi, out, before),
        len(start), step,
    ):  # fmt: skip
        pass
    return out, before


@torch.no_grad()
def _on_device(graph: Tensor, sources: Any, dtype: Any) -> Tensor:
    """Every edge relaxed until nothing changes; minima do not depend on their order."""
    if graph.layout == torch.sparse_csr:
        starts, to, weight = graph.crow_indices(), graph.col_indices(), graph.values()
        of = torch.arange(len(starts) - 1, device=graph.device).repeat_interleave(starts.diff())
    else:
        dense = graph.to_dense()
        of, to = ((dense != 0) & torch.isfinite(dense)).nonzero(as_tuple=True)
        weight = dense[of, to]
    if len(weight) and not bool((weight >= 0).all()):
        raise ValueError(
            "graph has an edge of negative length or NaN; shortest paths need lengths of at least 0"
        )
    n = graph.shape[0]
    kind = getattr(torch, _name(dtype)) if dtype is not None else weight.dtype
    every = torch.arange(n, device=graph.device)
    start = every if sources is None else torch.as_tensor(sources, device=graph.device).reshape(-1)
    out = torch.empty(len(start), n, dtype=kind, device=graph.device)
    step = max(1, CELLS // max(1, len(weight)))
    for lo in range(0, len(start), step):
        part = start[lo : lo + step]
        away = torch.full((n, len(part)), torch.inf, dtype=kind, device=graph.device)
        away[part, torch.arange(len(part), device=graph.device)] = 0.0
        while True:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="index_reduce", category=UserWarning)
                nearer = away.index_reduce(0, to, away[of] + weight[:, None].to(kind), "amin")
            if torch.equal(nearer, away):
                break
            away = nearer
        out[lo : lo + step] = away.T
    return out


def connect(graph: Any, X: Any, *, metric: Any = "euclidean", metric_params: Any = None) -> Any:
    """Join the parts of a symmetric graph by the shortest edges between them until it is one.

    Parameters
    ----------
    graph : sparse matrix ``(n, n)`` of distances
    X : the rows it was made of, or their distances for ``metric="precomputed"``

    Returns
    -------
    graph and how many parts it had

    Examples
    --------
    >>> from groundstate.math.neighbors import neighbors_graph
    >>> X = [[0.0], [1.0], [5.0], [7.0]]
    >>> graph, parts = connect(neighbors_graph(X, n_neighbors=1), X)
    >>> parts, float(graph[1, 2])
    (2, 4.0)
    """
    matrix = _csr(graph)
    count, label = connected_components(matrix, directed=False)
    parts = int(count)
    rows = np.asarray(_host(X))
    while count > 1:
        # the nearest row outside of each part, one edge a part: a step of Boruvka's tree
        new: dict[tuple[int, int], float] = {}
        for part in range(count):
            own, others = np.flatnonzero(label == part), np.flatnonzero(label != part)
            if metric == "precomputed":
                table = rows[np.ix_(own, others)]
                at = np.unravel_index(table.argmin(), table.shape)
                i, j, d = own[at[0]], others[at[1]], float(table[at])
                if np.isinf(d):
                    raise DataError(
                        f"the graph has {parts} parts, between which no distance was given; make the "
                        "graph with more neighbors, or pass all distances"
                    )
            else:
                found: Any = pairwise(
                    rows[own], rows[others], metric=metric, metric_params=metric_params,
                    reduce="topk", k=1,
                )  # fmt: skip
                at0 = int(found[0][:, 0].argmin())
                i, j, d = own[at0], others[found[1][at0, 0]], float(found[0][at0, 0])
            new[(min(i, j), max(i, j))] = d
        i, j = np.array(list(new)).T
        lengths = np.array(list(new.values()))
        coo = matrix.tocoo()
        matrix = csr_array(
            (
                np.concatenate([coo.data, lengths, lengths]),
                (np.concatenate([coo.row, i, j]), np.concatenate([coo.col, j, i])),
            ),
            shape=matrix.shape,
        )
        count, label = connected_components(matrix, directed=False)
    return matrix, parts


def _csr(graph: Any) -> Any:
    """A SciPy CSR matrix of the edges."""
    if isinstance(graph, Tensor):
        graph = graph.detach().cpu()
        if graph.layout == torch.sparse_csr:
            parts = (graph.values(), graph.col_indices(), graph.crow_indices())
            return csr_array(tuple(part.numpy() for part in parts), shape=tuple(graph.shape))
        graph = graph.to_dense().numpy()
    if issparse(graph):
        matrix = graph.tocsr()
    else:
        table = np.asarray(graph)
        matrix = csr_array(np.where(np.isinf(table), 0, table))
    return matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)


def _is_symmetric(matrix: Any) -> bool:
    """Whether every edge leads both ways; the columns of a row may stand in any order."""
    other = matrix.T.tocsr()
    own = matrix if matrix.has_sorted_indices else matrix.sorted_indices()
    return all(
        np.array_equal(getattr(own, name), getattr(other, name))
        for name in ("indptr", "indices", "data")
    )


def _host(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def _name(dtype: Any) -> str:
    return (
        str(dtype).removeprefix("torch.")
        if isinstance(dtype, torch.dtype)
        else np.dtype(dtype).name
    )
