"""What people have as graphs: networkx graphs, adjacency matrices, features with edge lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from groundstate.compute.rows import Graphs, Rows
from groundstate.data.reading import RowReader, as_list
from groundstate.errors import DataError


class GraphRows(RowReader):
    """Graphs of different size; an undirected edge becomes one in each direction.

    A graph without node features gets the degree of each node.
    """

    kind = "graph"
    accepts = (
        "a list of networkx graphs, of sparse adjacency matrices, or of (node features, edges) "
        "with edges (source, target)"
    )

    def takes(self, value: Any) -> bool:
        if isinstance(value, Graphs):
            return True
        rows = as_list(value)
        return bool(rows) and all(_is_networkx(r) or issparse(r) for r in rows or ())

    def read(self, value: Any) -> Rows:
        if isinstance(value, Graphs):
            return value
        rows = as_list(value)
        if rows is None:
            raise DataError(f"got {type(value).__name__}, expected {self.accepts}")
        return Graphs.of([self._one(row, i) for i, row in enumerate(rows)])

    def _one(self, row: Any, i: int) -> tuple[Any, ...]:
        if _is_networkx(row):
            return _of_networkx(row, i)
        if issparse(row):
            return _of_matrix(row, i)
        if isinstance(row, Mapping):
            row = tuple(row[k] for k in ("nodes", "edges", "edge_features") if k in row)
        if isinstance(row, tuple | list) and len(row) in (2, 3):
            return tuple(row)
        raise DataError(f"graph {i} is {type(row).__name__}, expected {self.accepts}")


def _is_networkx(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "networkx" and hasattr(value, "nodes")


def _degrees(edges: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    return np.bincount(edges[:, 1], minlength=n).astype(np.float64)[:, None]


def _of_networkx(graph: Any, i: int) -> tuple[Any, ...]:
    names = {node: j for j, node in enumerate(graph.nodes)}
    pairs = [(names[a], names[b]) for a, b in graph.edges()]
    if not graph.is_directed():
        pairs += [(b, a) for a, b in pairs if a != b]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    given = [graph.nodes[node].get("x") for node in graph.nodes]
    if all(x is None for x in given):
        return _degrees(edges, len(names)), edges
    if any(x is None for x in given):
        raise DataError(f"graph {i} has nodes with and without features 'x'; give one to each node")
    return np.array(given, dtype=float).reshape(len(given), -1), edges


def _of_matrix(matrix: Any, i: int) -> tuple[Any, ...]:
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"the adjacency matrix of graph {i} has shape {matrix.shape}, not (n, n)")
    entries = matrix.tocoo()
    edges = np.column_stack([entries.row, entries.col]).astype(np.int64)
    nodes = _degrees(edges, matrix.shape[0])
    if (entries.data == 1).all():
        return nodes, edges
    return nodes, edges, np.asarray(entries.data, dtype=float)[:, None]
