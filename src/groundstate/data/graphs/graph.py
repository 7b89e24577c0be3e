"""One graph: features of nodes, edges and the whole, and who is connected to whom."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from groundstate.compute.rows import Graphs
from groundstate.errors import DataError, ShapeError


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph with features.

    Parameters
    ----------
    x : ``(nodes, features)``; None where only the edges have features, or the degrees say enough
    edge_index : int64 ``(2, edges)``, source → target; an undirected edge stands in both directions
    edge_attr : ``(edges, features)`` or None
    u : features of the whole graph ``(features,)``, or None
    y : labels of the nodes, of the edges or of the graph, or None
    nodes : number of nodes, where x is None; by default one more than the largest number

    Attributes
    ----------
    names : of the nodes, where what it was made from had names

    Examples
    --------
    >>> path = Graph(torch.ones(3, 1), [[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> path
    Graph(3 nodes with 1 features, 4 edges)
    >>> Graph.batch([path, path])
    2 graphs of 3 nodes with 1 features and 4 edges
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    u: Tensor | None
    y: Any
    names: list[Any] | None

    def __init__(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Any = None,
        u: Any = None,
        y: Any = None,
        *,
        nodes: int | None = None,
        names: Sequence[Any] | None = None,
    ) -> None:
        index = _tensor(edge_index, torch.int64)
        if index.ndim != 2 or len(index) != 2:
            raise ShapeError(f"edge_index must be (2, edges), got {tuple(index.shape)}")
        attr = None if edge_attr is None else _features(edge_attr)
        if attr is not None and len(attr) != index.shape[1]:
            raise ShapeError(f"{index.shape[1]} edges need as many edge_attr, got {len(attr)}")
        given = None if x is None else _features(x)
        if given is None:
            n = nodes or (int(index.max()) + 1 if index.numel() else 0)
        else:
            n = len(given)
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < n:
            raise DataError(
                f"edges name nodes {int(index.min())} to {int(index.max())}, the graph has {n}, 0 to "
                f"{n - 1}"
            )
        if given is None and attr is None:
            given = torch.bincount(index[1], minlength=n).float()[:, None]
        elif given is None:  # the network makes features of the nodes out of those of the edges
            given = torch.zeros(n, 0)
        whole = None if u is None else _tensor(u, torch.float32).reshape(-1)
        kept = {"x": given, "edge_index": index, "edge_attr": attr, "u": whole, "y": y,
                "names": None if names is None else list(names)}  # fmt: skip
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def num_nodes(self) -> int:
        return len(self.x)

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    def __repr__(self) -> str:
        edges = f"{self.num_edges} edges"
        if self.edge_attr is not None:
            edges += f" with {self.edge_attr.shape[1]} features"
        return f"Graph({self.num_nodes} nodes with {self.x.shape[1]} features, {edges})"

    def undirected(self) -> Graph:
        """With every edge in both directions, and none twice.

        >>> Graph(None, [[0, 1, 1], [1, 0, 2]]).undirected().edge_index.tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
        """
        both = torch.cat((self.edge_index, self.edge_index.flip(0)), 1)
        n = max(self.num_nodes, 1)
        code, where = np.unique((both[0] * n + both[1]).cpu().numpy(), return_index=True)
        index = torch.from_numpy(np.stack((code // n, code % n)))
        attr = None
        if self.edge_attr is not None:
            attr = self.edge_attr.repeat(2, 1)[torch.from_numpy(where)]
        return Graph(self.x, index, attr, self.u, self.y, names=self.names)

    @staticmethod
    def batch(graphs: Sequence[Graph]) -> Graphs:
        """Several graphs as rows; what a network makes of them is what it makes of each."""
        return Graphs.of([g.parts() for g in graphs])

    def parts(self) -> tuple[Any, ...]:
        """Node features, edges ``(edges, 2)``, edge features and features of the graph."""
        u = None if self.u is None else self.u[:, None]
        return self.x, self.edge_index.T, self.edge_attr, u

    # --- from what people have -----------------------------------------------------------

    @classmethod
    def from_networkx(cls, graph: Any, x: str = "x", y: str | None = None) -> Graph:
        """A networkx graph; features in the node attribute ``x``, edge features in ``weight`` or
        ``x``, labels in the node attribute ``y``."""
        names = list(graph.nodes)
        number = {node: i for i, node in enumerate(names)}
        ends = [(number[a], number[b], data) for a, b, data in graph.edges(data=True)]
        if not graph.is_directed():
            ends += [(b, a, data) for a, b, data in ends if a != b]
        index = np.array([(a, b) for a, b, _ in ends], dtype=np.int64).reshape(-1, 2).T
        given = _all_or_none([graph.nodes[n].get(x) for n in names], "node", f"the attribute {x!r}")
        sent = [data.get(x, data.get("weight")) for *_, data in ends]
        attr = _all_or_none(sent, "edge", f"the attribute {x!r} or 'weight'")
        labels = None if y is None else [graph.nodes[n].get(y) for n in names]
        return cls(given, index, attr, y=labels, nodes=len(names), names=names)

    @classmethod
    def from_scipy(cls, adjacency: Any, x: Any = None, y: Any = None) -> Graph:
        """A sparse adjacency matrix, entry (i, j) an edge from i to j; values other than 1 are edge
        features."""
        if not issparse(adjacency) or adjacency.shape[0] != adjacency.shape[1]:
            raise DataError(f"a sparse matrix (n, n) is needed, got {_form(adjacency)}")
        entries = adjacency.tocoo()
        index = np.stack([entries.row, entries.col]).astype(np.int64)
        attr = None if (entries.data == 1).all() else np.asarray(entries.data, float)[:, None]
        return cls(x, index, attr, y=y, nodes=adjacency.shape[0])

    @classmethod
    def from_csv(
        cls,
        nodes: str | Path,
        edges: str | Path,
        target: str | None = None,
        *,
        directed: bool = False,
        only_numbers: bool = False,
    ) -> Graph:
        """Two tables with a header: nodes with their name in the column ``id`` (or the first), and
        edges with the columns ``source`` and ``target`` (or the first two). All other columns are
        numbers, the features; ``target`` names the column of labels, where an empty cell is none.
        With ``only_numbers`` columns of nodes that hold anything else are left out."""
        names, table = _columns(nodes)
        key = "id" if "id" in names else names[0]
        if target is not None and target not in names:
            raise DataError(f"{str(nodes)!r} has no column {target!r}, only {', '.join(names)}")
        labels = None if target is None else [v or None for v in table[target]]
        number = {name: i for i, name in enumerate(table[key])}
        if len(number) < len(table[key]):
            raise DataError(f"column {key!r} of {str(nodes)!r} names some nodes more than once")
        used = [n for n in names if n not in (key, target)]
        if only_numbers:
            used = [n for n in used if all(map(_is_number, table[n]))]
        x = _numbers(table, used, nodes)
        heads, ends = _columns(edges)
        a, b = ("source", "target") if {"source", "target"} <= set(heads) else heads[:2]
        unknown = next((v for v in (*ends[a], *ends[b]) if v not in number), None)
        if unknown is not None:
            raise DataError(f"{str(edges)!r} names the node {unknown!r}, {str(nodes)!r} does not")
        index = [[number[v] for v in ends[a]], [number[v] for v in ends[b]]]
        attr = _numbers(ends, [h for h in heads if h not in (a, b)], edges)
        made = cls(x, index, attr, y=labels, nodes=len(number), names=list(number))
        return made if directed else made.undirected()

    @classmethod
    def from_tu(cls, folder: str | Path) -> list[Graph]:
        """A folder in the format of the TU Dortmund collection: ``NAME_A.txt`` and so on."""
        root = Path(folder)
        found = sorted(root.glob("*_A.txt"))
        if len(found) != 1:
            raise DataError(f"{str(root)!r} holds {len(found)} files NAME_A.txt, one is expected")
        name = str(found[0])[: -len("A.txt")]
        edges = _table(name + "A.txt").astype(np.int64) - 1
        home = _table(name + "graph_indicator.txt").astype(np.int64)[:, 0] - 1
        parts = {k: _table(p) if (p := name + k + ".txt") and Path(p).exists() else None
                 for k in ("node_attributes", "node_labels", "edge_attributes", "edge_labels",
                           "graph_labels", "graph_attributes")}  # fmt: skip
        x = _beside(parts["node_attributes"], parts["node_labels"])
        e = _beside(parts["edge_attributes"], parts["edge_labels"])
        y = parts["graph_labels"]
        values = parts["graph_attributes"] if y is None else y
        out = []
        start = np.searchsorted(home, np.arange(home.max() + 2))
        for g, (lo, hi) in enumerate(pairwise(start)):
            own = home[edges[:, 0]] == g
            out.append(cls(
                None if x is None else x[lo:hi], edges[own].T - lo, None if e is None else e[own],
                y=None if values is None else values[g, 0].item(), nodes=int(hi - lo),
            ))  # fmt: skip
        return out


def _tensor(values: Any, dtype: torch.dtype) -> Tensor:
    if isinstance(values, Tensor):
        return values.to(dtype)
    return torch.from_numpy(np.array(values)).to(dtype)


def _features(values: Any) -> Tensor:
    found = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, float))
    found = found if found.dtype == torch.float64 and isinstance(values, Tensor) else found.float()
    return found[:, None] if found.ndim == 1 else found


def _all_or_none(values: list[Any], what: str, which: str) -> Any:
    if all(v is None for v in values):
        return None
    if any(v is None for v in values):
        raise DataError(f"some {what}s have {which} and some have not; give one to each {what}")
    return np.array(values, dtype=float).reshape(len(values), -1)


def _columns(path: str | Path) -> tuple[list[str], dict[str, list[str]]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise DataError(f"{str(path)!r} is empty; the first line names the columns")
    head = [name.strip() for name in rows[0]]
    short = next((i for i, row in enumerate(rows[1:], 2) if len(row) != len(head)), None)
    if short is not None:
        raise DataError(f"line {short} of {str(path)!r} has another number of cells than the first")
    return head, {name: [r[i].strip() for r in rows[1:]] for i, name in enumerate(head)}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(table: dict[str, list[str]], names: list[str], path: str | Path) -> Any:
    if not names:
        return None
    found = np.empty((len(table[names[0]]), len(names)))
    for j, name in enumerate(names):
        try:
            found[:, j] = [float(v) for v in table[name]]
        except ValueError as error:
            raise DataError(
                f"column {name!r} of {str(path)!r} must hold numbers: {error}"
            ) from None
    return found


def _table(path: str) -> Any:
    return np.loadtxt(path, delimiter=",", ndmin=2)


def _beside(values: Any, labels: Any) -> Any:
    """Attributes and one column of zeros and ones for each label."""
    coded = None
    if labels is not None:
        coded = np.concatenate(
            [c[:, None] == np.unique(c) for c in labels.T.astype(np.int64)], 1
        ).astype(float)
    found = [part for part in (values, coded) if part is not None]
    return np.concatenate(found, 1) if found else None


def _form(value: Any) -> str:
    shape = getattr(value, "shape", "")
    return f"{type(value).__name__} {tuple(shape) if shape else ''}".strip()
