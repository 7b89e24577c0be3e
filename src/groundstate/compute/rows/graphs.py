"""Graphs as rows: nodes and edges of all of them, one graph after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.rows.ragged import Ragged
from groundstate.compute.rows.record import Record
from groundstate.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Graphs(Record):
    """A batch of graphs.

    Edges name nodes of their own graph, 0, 1, ..., so that taking or joining graphs renumbers
    nothing; ``edge_index`` numbers the nodes of the whole batch. Edges are kept in the order of
    their targets.

    Parameters
    ----------
    nodes : Ragged, items ``(node features,)``
    edges : Ragged of int64, items ``(2,)``: source and target
    edge_features : Ragged with items ``(edge features,)``, one per edge, or None
    graph_features : ``(graphs, features)``, or None

    Examples
    --------
    >>> path = torch.ones(3, 1), [(0, 1), (1, 2)]
    >>> graphs = Graphs.of([path, (torch.ones(2, 1), [(0, 1)])])
    >>> graphs
    2 graphs of 2 to 3 nodes with 1 features and 1 to 2 edges
    >>> graphs[[1, 0]].edge_index.tolist()
    [[0, 2, 3], [1, 3, 4]]
    """

    nodes: Ragged
    edges: Ragged
    edge_features: Ragged | None = None
    graph_features: Tensor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.edges.values.ndim != 2 or self.edges.values.shape[1] != 2:
            raise DataError(
                f"edges must have shape (edges, 2), got {tuple(self.edges.values.shape)}"
            )

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Self:
        """From ``(node features, edges)`` per graph, followed by edge features (or None) and by
        features of the graph where there are some."""
        nodes = Ragged.of([_floats(r[0]) for r in rows])
        edges = [_pairs(r[1]) for r in rows]
        whole = torch.stack([_floats(r[3])[:, 0] for r in rows]) if _has(rows, 3) else None
        features = [_floats(r[2]) for r in rows] if _has(rows, 2) else None
        order = [torch.from_numpy(np.lexsort((e[:, 0].numpy(), e[:, 1].numpy()))) for e in edges]
        for i, (x, e) in enumerate(zip(nodes.lengths.tolist(), edges, strict=True)):
            if len(e) and not (int(e.min()) >= 0 and int(e.max()) < x):
                raise DataError(
                    f"graph {i} has {x} nodes, 0 to {x - 1}, but its edges name "
                    f"{int(e.min())} to {int(e.max())}"
                )
        kept = [e[o] for e, o in zip(edges, order, strict=True)]
        lengths = torch.tensor([len(e) for e in kept], dtype=torch.int64)
        flat = torch.cat(kept) if kept else torch.zeros(0, 2, dtype=torch.int64)
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        own = None
        if features is not None:
            own = Ragged(torch.cat([f[o] for f, o in zip(features, order, strict=True)]), offsets)
        return cls(nodes, Ragged(flat, offsets), own, whole)

    @property
    def edge_index(self) -> Tensor:
        """Sources and targets in the numbers of the batch's nodes, ``(2, E)``."""
        return (self.edges.values + self.nodes.offsets[self.edges.row][:, None]).T

    def describe(self) -> str:
        more = ""
        if self.edge_features is not None:
            more = f" with {self.edge_features.values.shape[1]} features"
        return (
            f"{len(self)} graphs of {self.nodes._sizes('nodes')} with "
            f"{self.nodes.values.shape[-1]} features and {self.edges._sizes('edges')}{more}"
        )


def _has(rows: Sequence[Sequence[Any]], part: int) -> bool:
    """Whether all graphs have a part; all or none must."""
    there = [len(r) > part and r[part] is not None for r in rows]
    if any(there) and not all(there):
        raise DataError(
            f"graph {there.index(False)} has no {'edge' if part == 2 else 'graph'} features, others "
            "have; give them to all graphs or to none"
        )
    return bool(there) and there[0]


def _pairs(values: Any) -> Tensor:
    found = (
        values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, dtype=np.int64))
    )
    return found.long().reshape(-1, 2)


def _floats(values: Any) -> Tensor:
    found = (
        values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, dtype=float))
    )
    found = found.float()
    return found[:, None] if found.ndim == 1 else found
