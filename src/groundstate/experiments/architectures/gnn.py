r"""Who is connected to whom tells what noisy features do not."""

from __future__ import annotations

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.data.graphs.graph import Graph
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.models.graphs.node_classifier import NodeClassifier
from groundstate.nn.graph.edges import Edges
from groundstate.nn.graph.layers import ORDERS, GraphNetwork

NODES, BLOCKS, LABELS, INSIDE, ACROSS, NOISE = 300, 3, 60, 0.1, 0.01, 1.5


def block_model(key: Key) -> Graph:
    """A stochastic block model with features that hardly tell the block."""
    draw = key.numpy()
    y = np.arange(NODES) % BLOCKS
    links = np.triu(draw.random((NODES, NODES)) < np.where(y[:, None] == y, INSIDE, ACROSS), 1)
    x = np.eye(BLOCKS)[y] + NOISE * draw.normal(size=(NODES, BLOCKS))
    return Graph(x, np.argwhere(links | links.T).T, y=y)


def rewired(graph: Graph, key: Key) -> Graph:
    """As many links of every node, to anybody: the ends of all edges are dealt anew."""
    ends = graph.edge_index.numpy()
    once = ends[:, ends[0] < ends[1]]
    stubs = key.numpy().permutation(once.flatten()).reshape(2, -1)
    return Graph(graph.x, np.concatenate((stubs, stubs[::-1]), 1), y=graph.y)


@experiment("ARC-x-gnn", theme="architectures", title="Connectivity matters", slow=True)
def gnn(seed: int = 0, *, quick: bool = False) -> Result:
    r"""In a stochastic block model with noisy features a graph convolution
    :math:`\tilde D^{-1/2}(A+I)\tilde D^{-1/2}XW` averages over nodes of mostly the same block, and so
    over the noise: with 60 labels of 300 nodes it is far better than a network of the features
    alone, and no better once the edges are dealt anew. Labels that are a sum over edges are found
    from the features of the edges alone.
    """
    key = Key.of(seed)
    graph = block_model(key.fold("graph"))
    chosen = key.fold("labels").numpy().permutation(NODES)
    truth = np.array(graph.y)
    given, asked = truth.copy(), truth.copy()
    given[chosen[LABELS:]], asked[chosen[:LABELS]] = -1, -1
    dealt = rewired(graph, key.fold("rewired"))
    models = {"features alone": ("graph_mlp", graph), "graph convolution": ("gcn", graph),
              "edges dealt anew": ("gcn", dealt)}  # fmt: skip
    score, predicted = {}, {}
    for name, (network, g) in models.items():
        model = NodeClassifier(network, {"dropout": 0.5}, random_state=seed).fit(g, given)
        score[name], predicted[name] = model.score(g, asked), model.predict(g)
    summed = _edge_sums(key.fold("sums"), seed)
    sizes = _orders(key.fold("orders"))
    conv, alone, anew = (
        score[k] for k in ("graph convolution", "features alone", "edges dealt anew")
    )
    claims = [
        Claim.above("graph convolution − features alone, accuracy", conv - alone, 0.25),
        Claim.between("edges dealt anew − features alone", anew - alone, -0.15, 0.15),
        Claim.equal("labels from features of edges, accuracy", summed, 1.0),
        Claim.equal("update orders that keep the connections", sizes, len(ORDERS)),
    ]  # fmt: skip
    place = _layout(graph, key.fold("layout"))

    def draw(figure: Figure) -> None:
        shown = {"true blocks": truth, **predicted}
        for ax, (name, y) in zip(figure.subplots(1, len(shown)), shown.items()):
            ends = place[graph.edge_index.numpy()]  # (2, E, 2)
            ax.plot(ends[..., 0], ends[..., 1], color="#bbbbbb", lw=0.2, zorder=1, rasterized=True)
            ax.scatter(*place.T, c=y, s=8, cmap="viridis", zorder=2)
            right = "" if name == "true blocks" else f": {score[name]:.2f}"
            ax.set(title=name + right, xticks=[], yticks=[])

    return Result(claims, {"accuracy": score, "edge sums": summed}, draw, size=(11.0, 3.2))


def _edge_sums(key: Key, seed: int) -> float:
    """Accuracy of a label that says whether what the edges bring adds up to more than a threshold."""
    draw = key.numpy()
    ends, weight = draw.integers(0, 60, (2, 240)), draw.normal(size=240)
    total = np.bincount(ends[1], weights=weight, minlength=60)
    label = total > np.median(total) + 0.01
    graph = Graph(None, ends, weight, nodes=60)
    model = NodeClassifier("graph_mlp", max_epochs=500, random_state=seed)
    return model.fit(graph, label).score(graph, label)


def _orders(key: Key) -> int:
    """How many orders of updating nodes and edges give new features on the same edges."""
    g = key.torch()
    edges = Edges.of(torch.randint(8, (2, 20), generator=g), 8)
    x, e, u = (torch.randn(n, d, generator=g) for n, d in ((8, 3), (20, 2), (1, 4)))
    before = edges.edge_index.clone()
    good = 0
    for order in ORDERS:
        shapes = [tuple(v.shape) for v in GraphNetwork(3, 2, 4, 5, order)(x, edges, e, u)]
        good += shapes == [(8, 5), (20, 5), (1, 5)] and torch.equal(before, edges.edge_index)
    return good


def _layout(graph: Graph, key: Key) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Places in the plane: neighbours attract, all repel."""
    place = key.numpy().normal(size=(graph.num_nodes, 2))
    a, b = graph.edge_index.numpy()
    for step in range(150):
        gap = place[:, None] - place
        push = (gap / (np.square(gap).sum(-1, keepdims=True) + 0.05)).mean(1)
        pull = np.zeros_like(place)
        np.add.at(pull, a, place[b] - place[a])
        place = place + 0.3 * (1 - step / 150) * (2.0 * push + 0.02 * pull)
    return place
