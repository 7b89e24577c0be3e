r"""Layers on graphs: node, edge and graph features in, the same graph with new features out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.graph.edges import AGGREGATES, Edges

Function = Callable[..., Tensor]
ORDERS = ("edge_first", "node_first", "weave")


class GraphIndependent(nn.Module):
    """Nodes, edges and the graph each for itself: V' = f_V(V), E' = f_E(E), U' = f_U(U).

    Parameters
    ----------
    node, edge, graph : modules, or None to leave features as they are
    """

    def __init__(
        self,
        node: nn.Module | None = None,
        edge: nn.Module | None = None,
        graph: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.node, self.edge, self.graph = node, edge, graph

    def forward(
        self, x: Tensor, edges: Edges, e: Tensor | None = None, u: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Node ``(N, ·)``, edge ``(E, ·)`` and graph ``(G, ·)`` features to new ones."""
        return _by(self.node, x), _by(self.edge, e), _by(self.graph, u)


class MessagePassing(nn.Module):
    r"""Nodes hear from their neighbours.

    .. math:: h'_v = f\Bigl(h_v,\ \bigoplus_{u\to v} g(h_u, h_v, e_{uv})\Bigr)

    k layers reach k steps far. Nodes may be renumbered: outputs are renumbered alike.

    Parameters
    ----------
    message : g, a function of source features ``(E, F)``, target features ``(E, F)`` and edge
        features (None without); None sends what the source has
    aggregate : :math:`\oplus`: "sum", "mean", "max" or "std"
    update : f, a function of node features and what came ``(N, ·)``; None takes what came

    Examples
    --------
    >>> edges = Edges.of(torch.tensor([[0, 1], [1, 0]]), 2)
    >>> MessagePassing()(torch.tensor([[1.0], [2.0]]), edges).tolist()
    [[2.0], [1.0]]
    """

    def __init__(
        self,
        message: Function | None = None,
        aggregate: str = "sum",
        update: Function | None = None,
    ) -> None:
        super().__init__()
        if aggregate not in AGGREGATES:
            raise Unsupported(
                f"aggregate {aggregate!r} is not known; use one of {', '.join(AGGREGATES)}"
            )
        self.message, self.aggregate, self.update = message, aggregate, update

    def forward(self, x: Tensor, edges: Edges, e: Tensor | None = None) -> Tensor:
        if self.message is None and self.aggregate == "sum" and x.ndim == 2:
            came = edges.propagate(x)
        else:
            sent = edges.from_source(x)
            if self.message is not None:
                sent = self.message(sent, edges.from_target(x), e)
            came = edges.aggregate(sent, self.aggregate)
        return came if self.update is None else self.update(x, came)


class GraphNetwork(nn.Module):
    r"""Edges, nodes and the graph are updated in turn, each from what it touches.

    .. math:: e' = \phi_e(e, h_u, h_v, u),\qquad h' = \phi_v\bigl(h, \textstyle\sum_{u\to v}e', u\bigr),
              \qquad u' = \phi_u\bigl(u, \textstyle\sum_v h', \sum_{uv}e'\bigr)

    each :math:`\phi` a ReLU of one linear map of all its arguments side by side. ``order`` says
    whether edges or nodes come first ("node_first" sends old edges), or both use the old features
    of the other ("weave"). Sizes of nodes, edges and graph may differ; connectivity never changes.

    Parameters
    ----------
    node, edge, graph : features coming in, 0 for none
    out : features going out, of each kind that is there
    order : "edge_first", "node_first" or "weave"
    generator : source of the initial weights; None is a fixed seed
    """

    def __init__(
        self,
        node: int,
        edge: int,
        graph: int,
        out: int,
        order: str = "edge_first",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if order not in ORDERS:
            raise Unsupported(f"order {order!r} is not known; use one of {', '.join(ORDERS)}")
        if not node:
            raise ShapeError("a GraphNetwork needs node features; make some with edge_to_node")
        self.sizes, self.out, self.order = (node, edge, graph), out, order
        after_node = out if order == "node_first" else node
        after_edge = out if order == "edge_first" else edge
        self.to_edge = linear(edge + 2 * after_node + graph, out) if edge else None
        self.to_node = linear(node + (after_edge if edge else node) + graph, out)
        self.to_graph = linear(graph + out + (out if edge else 0), out) if graph else None
        init_(self, "he", generator)

    def config(self) -> dict[str, Any]:
        node, edge, graph = self.sizes
        return {"node": node, "edge": edge, "graph": graph, "out": self.out, "order": self.order}

    def forward(
        self,
        x: Tensor,
        edges: Edges,
        e: Tensor | None = None,
        u: Tensor | None = None,
        graph_offsets: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """New node, edge and graph features; with graph features ``(G, ·)`` nodes of graph g are
        those from ``graph_offsets[g]`` on."""
        home = _home(x, u, graph_offsets)
        new_x, new_e = x, e
        if self.order == "edge_first":
            new_e = self._edges(x, edges, e, u, home)
            new_x = self._nodes(x, edges, new_e, u, home)
        elif self.order == "node_first":
            new_x = self._nodes(x, edges, e, u, home)
            new_e = self._edges(new_x, edges, e, u, home)
        else:
            new_e = self._edges(x, edges, e, u, home)
            new_x = self._nodes(x, edges, e, u, home)
        return new_x, new_e, self._graph(new_x, edges, new_e, u, home)

    def _edges(
        self, x: Tensor, edges: Edges, e: Tensor | None, u: Tensor | None, home: Tensor | None
    ) -> Tensor | None:
        if self.to_edge is None or e is None:
            return None
        parts = [e, edges.from_source(x), edges.from_target(x)]
        if u is not None and home is not None:
            parts.append(u[home[edges.target]])
        return torch.relu(self.to_edge(torch.cat(parts, 1)))

    def _nodes(
        self, x: Tensor, edges: Edges, e: Tensor | None, u: Tensor | None, home: Tensor | None
    ) -> Tensor:
        parts = [x, edges.propagate(x) if e is None else edges.aggregate(e)]
        if u is not None and home is not None:
            parts.append(u[home])
        return torch.relu(self.to_node(torch.cat(parts, 1)))

    def _graph(
        self, x: Tensor, edges: Edges, e: Tensor | None, u: Tensor | None, home: Tensor | None
    ) -> Tensor | None:
        if self.to_graph is None or u is None or home is None:
            return None
        parts = [u, u.new_zeros(len(u), self.out).index_add(0, home, x)]
        if e is not None:
            parts.append(u.new_zeros(len(u), self.out).index_add(0, home[edges.target], e))
        return torch.relu(self.to_graph(torch.cat(parts, 1)))


def _by(f: nn.Module | None, features: Tensor | None) -> Any:
    return features if f is None or features is None else f(features)


def _home(x: Tensor, u: Tensor | None, offsets: Tensor | None) -> Tensor | None:
    """The graph of each node."""
    if u is None:
        return None
    if offsets is None:
        if len(u) != 1:
            raise ShapeError(f"{len(u)} graphs need graph_offsets, where the nodes of each begin")
        return torch.zeros(len(x), dtype=torch.int64, device=x.device)
    return torch.searchsorted(offsets[1:].contiguous(), torch.arange(len(x), device=x.device),
                              right=True)  # fmt: skip
