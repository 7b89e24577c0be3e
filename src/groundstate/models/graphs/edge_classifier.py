"""Labels of pairs of nodes: kinds of edges, or whether there is one."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key
from groundstate.compute.rows import GraphNodes, Graphs
from groundstate.data.graphs.read import PairReader
from groundstate.errors import DataError
from groundstate.models.graphs.in_graph import InGraph
from groundstate.registry import models


@models.register(family="graphs", task="classification", role="classifier", auto=False)
class EdgeClassifier(InGraph):
    r"""Labels of pairs of nodes of a graph; without labels, whether the two are connected.

    .. math:: e(G, u, v, y) = -f_\theta(h_u, h_v)_y,\qquad h = \text{messages over } G

    X is ``(graph, pairs)`` with pairs ``(n, 2)`` of node numbers and y their labels. With a graph
    alone and no y it learns to predict links: a part of its edges (label 1) is taken out of the graph,
    so that messages do not give them away, and as many unconnected pairs (label 0) stand beside them.

    Parameters
    ----------
    network : str, module, class or function, default="gcn"
        "gcn", "sage", "gat", "gin", "graph_mlp", or a module from ``GraphNodes`` of pairs to scores.
    link_fraction : float, default=0.3
        Share of the edges that is learned from, where links are predicted; the others carry messages.

    Examples
    --------
    >>> import networkx as nx
    >>> from groundstate import EdgeClassifier
    >>> graph = nx.planted_partition_graph(3, 20, 0.5, 0.02, seed=0)
    >>> model = EdgeClassifier(random_state=0, max_epochs=60).fit((np.eye(60), np.array(
    ...     [*graph.edges, *(e[::-1] for e in graph.edges)])))
    >>> inside, across = [(0, i) for i in range(1, 20)], [(0, i) for i in range(40, 59)]
    >>> edges = np.array([*graph.edges, *(e[::-1] for e in graph.edges)])
    >>> from groundstate.data import Graph
    >>> known = Graph(np.eye(60), edges.T)
    >>> near = model.predict_proba((known, inside))[:, 1].mean()
    >>> near > model.predict_proba((known, across))[:, 1].mean()
    np.True_
    """

    rows: ClassVar[str] = "pair"
    level: ClassVar[str] = "edge"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "link_fraction": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        network: Any = "gcn",
        network_params: dict[str, Any] | None = None,
        *,
        link_fraction: float = 0.3,
        max_epochs: int = 200,
        batch_size: Any = "auto",
        optimizer: Any = "adamw",
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        val_fraction: float = 0.1,
        patience: int | None = 30,
        schedule: Any = None,
        clip_norm: float | None = None,
        precision: str = "32",
        compile: bool | str = False,
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from pairs and their labels, or from a graph alone to predict links."""
        if y is None:
            if sample_weight is not None:
                raise ValueError("links that are predicted have no weights; pass pairs with labels")
            rows: Any = PairReader().read(X)
            key = Key.of(self.random_state).fold("links")
            X, y = links_to_learn(rows.graph, self.link_fraction, key)
        return super().fit(X, y, sample_weight)


def links_to_learn(graph: Graphs, share: float, key: Key) -> tuple[GraphNodes, Any]:
    """Some of a graph's links without their edges, as many pairs without one, and labels 1 and 0."""
    n = len(graph.nodes.values)
    ends = graph.edges.values.cpu()
    low, high = ends.min(1).values, ends.max(1).values
    code = low * n + high
    distinct = torch.unique(code[low != high])
    if len(distinct) < 4:
        raise DataError(f"links are learned from at least 4 edges, the graph has {len(distinct)}")
    draw = key.numpy()
    many = min(len(distinct) - 1, max(2, round(share * len(distinct))))
    chosen = distinct[torch.from_numpy(np.sort(draw.permutation(len(distinct))[:many]))]
    absent = _absent(distinct.numpy(), n, many, draw)
    keep = ~torch.isin(code, chosen)
    left = graph.edges.values[keep.to(graph.device)]
    own = None
    if graph.edge_features is not None:
        own = graph.edge_features.values[keep.to(graph.device)]
    u = None if graph.graph_features is None else graph.graph_features[0][:, None]
    thinned = Graphs.of([(graph.nodes.values, left, own, u)])
    code = torch.cat((chosen, torch.from_numpy(absent)))
    pairs = torch.stack((code // n, code % n), 1).to(graph.device)
    return GraphNodes(thinned, pairs), np.repeat([1, 0], [many, len(absent)])


def _absent(present: Any, n: int, many: int, draw: Any) -> Any:
    """Codes of unconnected pairs, as many as asked for or as there are."""
    possible = n * (n - 1) // 2 - len(present)
    if possible < 1:
        raise DataError("every node is connected to every other; there is no link to be missing")
    found = np.zeros(0, np.int64)
    while len(found) < min(many, possible):
        a, b = draw.integers(0, n, (2, 2 * many + 16))
        code = np.minimum(a, b) * n + np.maximum(a, b)
        code = code[(a != b) & ~np.isin(code, present)]
        found = np.concatenate((found, code))
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
    return np.sort(found[:many])
