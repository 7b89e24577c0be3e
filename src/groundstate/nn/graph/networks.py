r"""Networks on graphs: one trunk of messages, a head for nodes, for pairs of nodes or for graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current
from groundstate.compute.rows import GraphNodes, Graphs, Rows
from groundstate.compute.rows.graph_nodes import LARGE
from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.architectures import architecture
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.blocks.whiten import Standardize
from groundstate.nn.graph.convolutions import GATConv, GCNConv, GINConv, SAGEConv
from groundstate.nn.graph.edges import Edges
from groundstate.nn.graph.pool import edge_to_node, global_pool
from groundstate.nn.graph.sample import NeighborSampler

LEVELS = ("node", "edge", "graph")
Layer = Callable[[int, int, torch.Generator], nn.Module]


class Divide(nn.Module):
    """Divides by a constant, the typical number of what was summed up: a matter of units alone."""

    size: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("size", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return x / self.size


def _gin(inputs: int, outputs: int, generator: torch.Generator, norm: bool = False) -> nn.Module:
    between: list[nn.Module] = [nn.LayerNorm(outputs), nn.ReLU()] if norm else [nn.ReLU()]
    inner = nn.Sequential(Divide(), linear(inputs, outputs), *between, linear(outputs, outputs))
    init_(inner, "he", generator)
    return GINConv(inner, train_eps=True)


def _gat(inputs: int, outputs: int, generator: torch.Generator) -> nn.Module:
    heads = 4 if outputs % 4 == 0 else 1
    return GATConv(inputs, outputs // heads, heads, generator=generator)


class _Alone(nn.Linear):
    """A layer that hears nothing of the neighbours."""

    def forward(self, x: Tensor, edges: Edges | None = None) -> Tensor:
        return super().forward(x)


def _alone(inputs: int, outputs: int, generator: torch.Generator) -> nn.Module:
    layer = _Alone(inputs, outputs)
    init_(layer, "he", generator)
    return layer


LAYERS: dict[str, Layer] = {
    "gcn": lambda i, o, g: GCNConv(i, o, generator=g),
    "sage": lambda i, o, g: SAGEConv(i, o, generator=g),
    "gat": _gat,
    "gin": _gin,
    "mlp": _alone,
}


class GNN(nn.Module):
    r"""Layers of messages, then a linear map of nodes, pairs of nodes or whole graphs.

    .. math:: h^0_v = \operatorname{scale}\Bigl[x_v,\ \sum_{u\to v} e_{uv}\Bigr],\qquad
              h^{k+1} = \operatorname{relu}(\mathrm{conv}_k(h^k, E))

    node: :math:`Wh_v + b`; graph: :math:`W[\rho(h), u] + b` with the pool ρ over its nodes; edge: a
    small network of :math:`[h_u + h_v, |h_u - h_v|, h_u\odot h_v]`, which does not ask which end is
    which. Features of edges reach the nodes they come to.

    Parameters
    ----------
    in_features, edge_features, graph_features : of a node, an edge, a graph
    num_classes : outputs
    conv : "gcn", "sage", "gat", "gin", or "mlp", which hears nothing of the neighbours
    hidden : size of h
    num_layers : rounds of messages
    dropout : probability, after each layer
    level : "node", "edge" or "graph"
    pool : of the nodes of a graph: "mean", "sum" or "max"
    norm : whether the hidden layer inside "gin" is normalised, node by node; sums over neighbours differ
        as much as degrees do, and without it they train slowly (its paper normalises over batches)
    fanout : neighbours of a node that training looks at in graphs of more than 100,000 nodes
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> graphs = Graphs.of([(torch.ones(3, 2), [(0, 1), (1, 2)]), (torch.ones(1, 2), [])])
    >>> GNN(2, 4, level="graph")(graphs).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        edge_features: int = 0,
        graph_features: int = 0,
        conv: str = "gcn",
        hidden: int = 64,
        num_layers: int = 2,
        dropout: float = 0.0,
        level: str = "node",
        pool: str = "mean",
        fanout: int = 10,
        norm: bool = False,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if level not in LEVELS:
            raise Unsupported(f"level {level!r} is not known; use one of {', '.join(LEVELS)}")
        if conv not in LAYERS:
            raise Unsupported(f"conv {conv!r} is not known; use one of {', '.join(LAYERS)}")
        if not in_features + edge_features:
            raise ShapeError("neither nodes nor edges have features; give the nodes their degrees")
        source = generator or torch.Generator().manual_seed(0)
        self._settings = {
            "in_features": in_features, "num_classes": num_classes,
            "edge_features": edge_features, "graph_features": graph_features, "conv": conv,
            "hidden": hidden, "num_layers": num_layers, "dropout": dropout, "level": level,
            "pool": pool, "fanout": fanout, "norm": norm,
        }  # fmt: skip
        self.level, self.pool, self.edge_features = level, pool, edge_features
        sizes = [in_features + edge_features, *[hidden] * num_layers]
        make: Layer = partial(_gin, norm=True) if norm and conv == "gin" else LAYERS[conv]
        made = [make(a, b, source) for a, b in pairwise(sizes)]
        self.layers = nn.ModuleList(made)
        self.scale = Standardize(sizes[0])  # learned by `fit_scale`, until then as it comes
        self.dropout = nn.Dropout(dropout)
        self.pooled = Divide()
        self.sampler = NeighborSampler([fanout] * num_layers, generator=source)
        if level == "edge":
            self.head: nn.Module = nn.Sequential(
                linear(3 * sizes[-1], hidden), nn.ReLU(), linear(hidden, num_classes)
            )
        else:
            more = graph_features if level == "graph" else 0
            self.head = linear(sizes[-1] + more, num_classes)
        init_(self.head, "xavier", source)

    def config(self) -> dict[str, Any]:
        return dict(self._settings)

    def fit_scale(self, graph: Graphs, weight: Tensor | None = None) -> None:
        """Learn mean and scale of what the nodes know, and how many terms the sums over neighbours
        and over nodes have; ``weight`` is that of each node."""
        edges = Edges.of_graphs(graph)
        self.scale.fit(self.inputs(graph, edges), weight)
        own = torch.ones(edges.nodes, device=edges.source.device) if weight is None else weight
        own = own.double()
        degree = current().weighted_mean(edges.degree, own)
        for layer in self.layers:
            if isinstance(layer, GINConv):
                layer.nn[0].size.fill_(1 + degree)  # type: ignore[index]
        sizes = graph.nodes.lengths.double()
        graphs = own[graph.nodes.offsets[:-1].clamp(max=edges.nodes - 1)]
        if self.pool == "sum":
            self.pooled.size.fill_(current().weighted_mean(sizes, graphs))

    def inputs(self, graph: Graphs, edges: Edges) -> Tensor:
        """What the nodes know before the first message, ``(N, in + edge features)``."""
        x = graph.nodes.values
        if not self.edge_features:
            return x
        if graph.edge_features is None:
            raise ShapeError(f"the network takes {self.edge_features} edge features, got none")
        return torch.cat((x, edge_to_node(graph.edge_features.values, edges)), 1)

    def embed(self, x: Tensor, edges: Edges) -> Tensor:
        """Nodes after all messages, ``(N, hidden)``."""
        x = self.scale(x)
        for layer in self.layers:
            x = self.dropout(torch.relu(layer(x, edges)))
        return x

    def forward(self, x: Rows) -> Tensor:
        if isinstance(x, Graphs):
            edges = Edges.of_graphs(x)
            h = self.embed(self.inputs(x, edges), edges)
            return self._of_graphs(h, x) if self.level == "graph" else self._of(h, None)
        assert isinstance(x, GraphNodes)
        edges = Edges.of_graphs(x.graph)
        given = self.inputs(x.graph, edges)
        if not self.training or edges.nodes <= LARGE:
            return self._of(self.embed(given, edges), x.index)
        nodes, part, where = self.sampler(edges, x.index.flatten())
        h = self.embed(given.index_select(0, nodes), part)
        return self._of(h, where.reshape(x.index.shape))

    def _of_graphs(self, h: Tensor, x: Graphs) -> Tensor:
        pooled = self.pooled(global_pool(h, x.nodes.offsets, self.pool))
        if x.graph_features is not None:
            pooled = torch.cat((pooled, x.graph_features), 1)
        out: Tensor = self.head(pooled)
        return out

    def _of(self, h: Tensor, index: Tensor | None) -> Tensor:
        if self.level != "edge":
            if index is None or len(index) < len(h):
                out: Tensor = self.head(h if index is None else h.index_select(0, index))
                return out
            answers: Tensor = self.head(h).index_select(0, index)  # fewer numbers move than of h
            return answers
        if index is None:
            raise ShapeError("pairs of nodes are asked for; pass GraphNodes with pairs")
        a, b = h.index_select(0, index[:, 0]), h.index_select(0, index[:, 1])
        found: Tensor = self.head(torch.cat((a + b, (a - b).abs(), a * b), 1))
        return found


def _example(generator: torch.Generator) -> tuple[Any, ...]:
    nodes = [torch.randn(n, 2, generator=generator) for n in (3, 2)]
    return (Graphs.of([(nodes[0], [(0, 1), (1, 2), (2, 0)]), (nodes[1], [(0, 1), (1, 0)])]),)


_SMALL: dict[str, Any] = {"in_features": 2, "num_classes": 3, "hidden": 4, "level": "graph"}


@architecture("gcn", kind="graph", inputs=_example, small=_SMALL)
def gcn(in_features: int, num_classes: int, **settings: Any) -> GNN:
    """Graph convolutions: neighbours averaged by degree."""
    return GNN(in_features, num_classes, **{"conv": "gcn", **settings})


@architecture("sage", kind="graph", inputs=_example, small=_SMALL)
def sage(in_features: int, num_classes: int, **settings: Any) -> GNN:
    """GraphSAGE: a node beside the mean of its neighbours."""
    return GNN(in_features, num_classes, **{"conv": "sage", **settings})


@architecture("gat", kind="graph", inputs=_example, small=_SMALL)
def gat(in_features: int, num_classes: int, **settings: Any) -> GNN:
    """Graph attention: neighbours weighed by what they are."""
    return GNN(in_features, num_classes, **{"conv": "gat", **settings})


@architecture("gin", kind="graph", inputs=_example, small={**_SMALL, "pool": "sum"})
def gin(in_features: int, num_classes: int, **settings: Any) -> GNN:
    """Graph isomorphism network: a small network of a node plus the sum of its neighbours."""
    return GNN(in_features, num_classes, **{"conv": "gin", "pool": "sum", "norm": True, **settings})


@architecture("graph_mlp", kind="graph", inputs=_example, small=_SMALL)
def graph_mlp(in_features: int, num_classes: int, **settings: Any) -> GNN:
    """Each node for itself, without messages: what any network on graphs has to beat."""
    return GNN(in_features, num_classes, **{"conv": "mlp", **settings})
