"""Nodes of one graph as rows, or pairs of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.torch import register_pytree_node
from groundstate.compute.rows.base import RowContainer
from groundstate.compute.rows.graphs import Graphs
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.hashing_torch import mix64_torch, tensor_sum
from groundstate.errors import DataError

LARGE = 100_000  # nodes above which networks look at a part of the graph around their batch
ROUNDS = 8  # how many steps far the content of a node reaches


@dataclass(frozen=True, eq=False, repr=False)
class GraphNodes(RowContainer):
    """Nodes of one graph, or pairs of nodes; all rows see the whole graph.

    Two nodes have the same content where features, neighbours, their neighbours and so on agree
    (colours of Weisfeiler and Leman): no network of messages of that depth tells them apart. The
    numbering of the nodes does not matter.

    Parameters
    ----------
    graph : Graphs of one graph
    index : int64 ``(n,)`` nodes, or ``(n, 2)`` pairs

    Examples
    --------
    >>> path = Graphs.of([(torch.ones(3, 1), [(0, 1), (1, 0), (1, 2), (2, 1)])])
    >>> rows = GraphNodes(path, torch.arange(3))
    >>> rows
    3 nodes of a graph of 3 nodes with 1 features and 4 edges
    >>> a, b, c = rows.hashes()
    >>> a == c, a == b
    (np.True_, np.False_)
    """

    graph: Graphs
    index: Tensor

    def __post_init__(self) -> None:
        if len(self.graph) != 1:
            raise DataError(f"nodes are rows of one graph, got {len(self.graph)} graphs")
        n = len(self.graph.nodes.values)
        if self.index.numel() and not 0 <= int(self.index.min()) <= int(self.index.max()) < n:
            raise DataError(
                f"the graph has nodes 0 to {n - 1}, asked for {int(self.index.min())} to "
                f"{int(self.index.max())}"
            )

    @classmethod
    def _of(cls, graph: Graphs, index: Tensor) -> Self:
        """Without the checks, which wait for a GPU."""
        made = object.__new__(cls)
        object.__setattr__(made, "graph", graph)
        object.__setattr__(made, "index", index)
        return made

    @classmethod
    def all(cls, graph: Graphs) -> Self:
        """Every node of a graph."""
        n = len(graph.nodes.values)
        return cls(graph, torch.arange(n, device=graph.device))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def of_one_shape(self) -> bool:
        return len(self.graph.nodes.values) <= LARGE

    def take(self, index: Tensor) -> Self:
        return self._of(self.graph, self.index.index_select(0, index.to(self.index.device)))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        if any(p.graph is not parts[0].graph for p in parts):
            raise DataError("nodes of different graphs are not joined; make one graph of them")
        return cls._of(parts[0].graph, torch.cat([p.index for p in parts]))

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Self:
        if self.graph.device == device:
            return self
        graph = self.graph.to(device, non_blocking=non_blocking)
        return self._of(graph, self.index.to(device, non_blocking=non_blocking))

    def floating(self, dtype: torch.dtype) -> Self:
        if self.graph.nodes.values.dtype == dtype:
            return self
        return self._of(self.graph.floating(dtype), self.index)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.graph.tensors()

    @property
    def device(self) -> torch.device:
        return self.graph.device

    def hashes(self) -> NDArray[np.uint64]:
        colours = _colours(self.graph).cpu().numpy().view(np.uint64)
        own = colours[self.index.cpu().numpy()]
        return own if own.ndim == 1 else row_hash(*(own[:, i].view(np.int64) for i in (0, 1)))

    def describe(self) -> str:
        what = "nodes" if self.index.ndim == 1 else "pairs of nodes"
        g = self.graph
        return (
            f"{len(self)} {what} of a graph of {len(g.nodes.values)} nodes with "
            f"{g.nodes.values.shape[-1]} features and {len(g.edges.values)} edges"
        )


@dataclass(frozen=True)
class _Same:
    """A graph that stays, told from others by being another object; its description is long work."""

    graph: Graphs

    def __repr__(self) -> str:
        return f"graph {id(self.graph)}"


def _unflattened(parts: Iterable[Any], same: Any) -> GraphNodes:
    (index,) = parts
    return GraphNodes._of(same.graph, index)


# steps are recorded for batches of nodes of one graph: their numbers change, the graph does not
register_pytree_node(GraphNodes, lambda rows: ([rows.index], _Same(rows.graph)), _unflattened)


def _colours(graph: Graphs) -> Tensor:
    """A word for each node that says what is around it, int64 ``(N,)``."""
    kept: Tensor | None = graph.__dict__.get("_colours")
    if kept is not None:
        return kept
    colour = mix64_torch(tensor_sum(graph.nodes.values, 1))
    source, target = graph.edge_index
    own = torch.zeros_like(source)
    if graph.edge_features is not None:
        own = mix64_torch(tensor_sum(graph.edge_features.values, 2))
    for _ in range(ROUNDS):
        came = torch.zeros_like(colour).index_add_(0, target, mix64_torch(colour[source] ^ own))
        colour = mix64_torch(colour + mix64_torch(came))
    graph.__dict__["_colours"] = colour  # of a frozen graph, so it stays true
    return colour
