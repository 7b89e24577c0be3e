"""What people have as graphs, and as nodes of one graph: networkx, matrices, features with edges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from scipy.sparse import issparse

from groundstate.compute.rows import GraphNodes, Graphs, Rows
from groundstate.data.graphs.graph import Graph
from groundstate.data.reading import RowReader, as_list
from groundstate.errors import DataError


class GraphRows(RowReader):
    """Graphs of different size; an undirected edge becomes one in each direction.

    A graph without node features gets the degree of each node.
    """

    kind = "graph"
    accepts = (
        "a list of Graph, of networkx graphs, of sparse adjacency matrices, or of (node features, "
        "edges) with edges (source, target), or a folder in the format of the TU collection"
    )

    def takes(self, value: Any) -> bool:
        if isinstance(value, Graphs):
            return True
        rows = as_list(value)
        return bool(rows) and all(_is_graph(r) for r in rows or ())

    def read(self, value: Any) -> Rows:
        if isinstance(value, Graphs):
            return value
        if isinstance(value, str | Path):
            return Graph.batch(Graph.from_tu(value))
        rows = as_list(value)
        if rows is None:
            raise DataError(f"got {type(value).__name__}, expected {self.accepts}")
        return Graph.batch(
            [one_graph(row, f"graph {i}", self.accepts) for i, row in enumerate(rows)]
        )


class NodeReader(RowReader):
    """All nodes of one graph."""

    kind = "node"
    accepts = (
        "one Graph, networkx graph, sparse adjacency matrix, or (node features, edges) with edges "
        "(source, target)"
    )

    def takes(self, value: Any) -> bool:
        pairs = isinstance(value, GraphNodes) and value.index.ndim == 1
        return pairs or _is_graph(value)

    def read(self, value: Any) -> Rows:
        if isinstance(value, GraphNodes):
            return value
        if isinstance(value, Graphs):
            return GraphNodes.all(value)
        return GraphNodes.all(Graph.batch([one_graph(value, "X", self.accepts)]))


class PairReader(RowReader):
    """Pairs of nodes of one graph: its edges, or those that are named beside it."""

    kind = "pair"
    accepts = "(graph, pairs), pairs (n, 2) of node numbers, or a graph alone for all its edges"

    def takes(self, value: Any) -> bool:
        return isinstance(value, GraphNodes) and value.index.ndim == 2

    def read(self, value: Any) -> Rows:
        if isinstance(value, GraphNodes):
            return value
        pairs = None
        if isinstance(value, tuple) and len(value) == 2 and _is_graph(value[0]):
            value, pairs = value
        graph = Graph.batch([one_graph(value, "X", self.accepts)])
        index = graph.edges.values if pairs is None else torch.as_tensor(pairs).long()
        if index.ndim != 2 or index.shape[1] != 2:
            raise DataError(f"pairs must be (n, 2) node numbers, got {tuple(index.shape)}")
        return GraphNodes(graph, index)


def one_graph(value: Any, what: str, accepts: str) -> Graph:
    """One graph of what people call a graph."""
    if isinstance(value, Graph):
        return value
    if _is_networkx(value) or issparse(value):
        make = Graph.from_scipy if issparse(value) else Graph.from_networkx
        try:
            return make(value)
        except DataError as error:
            raise DataError(f"{what}: {error}") from None
    if isinstance(value, Mapping):
        value = tuple(value[k] for k in ("nodes", "edges", "edge_features") if k in value)
    if isinstance(value, tuple | list) and len(value) in (2, 3):
        nodes, edges, *more = value
        index = torch.as_tensor(edges).long().reshape(-1, 2).T
        return Graph(nodes, index, *more)
    raise DataError(f"{what} is {type(value).__name__}, expected {accepts}")


def _is_graph(value: Any) -> bool:
    return isinstance(value, Graph) or _is_networkx(value) or issparse(value)


def _is_networkx(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "networkx" and hasattr(value, "nodes")
