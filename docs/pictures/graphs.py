"""Pictures of graphs: messages, labels of nodes, links, kinds and values."""

from __future__ import annotations

import networkx as nx
import numpy as np
from common import COLOURS, experiment, figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from groundstate import EdgeClassifier, GraphClassifier, GraphRegressor, NodeClassifier
from groundstate.data import Graph


def _net(
    ax: Axes, graph: nx.Graph, places: dict[int, np.ndarray], colour: object, title: str
) -> None:
    ends = np.array([[places[a], places[b]] for a, b in graph.edges]).transpose(1, 0, 2)
    ax.plot(ends[..., 0], ends[..., 1], color="#999999", linewidth=0.6, zorder=1)
    spots = np.array([places[v] for v in graph])
    ax.scatter(
        *spots.T, c=colour, cmap="coolwarm", vmin=0, vmax=1, s=40, edgecolor="black", zorder=2
    )
    ax.set(title=title, xticks=[], yticks=[])


def nodes() -> Figure:
    """The karate club: six known members, and what the others are taken for."""
    club = nx.karate_club_graph()
    graph = Graph.from_scipy(nx.to_scipy_sparse_array(club, weight=None), np.eye(34))
    side = np.array([club.nodes[v]["club"] for v in club], dtype=object)
    known = np.where(np.isin(np.arange(34), [0, 1, 2, 31, 32, 33]), side, None)
    model = NodeClassifier(random_state=0).fit(graph, known)
    places = nx.spring_layout(club, seed=1)
    shown = {
        "six labels": [0.5 if s is None else float(s == "Officer") for s in known],
        "probability of the officer's side": model.predict_proba(graph)[:, 1],
        "what they did": [float(s == "Officer") for s in side],
    }
    fig, axes = figure(3, width=11.0)
    for ax, (title, colour) in zip(axes, shown.items()):
        _net(ax, club, places, colour, title)
    return fig


def links() -> Figure:
    """Three communities: their links, and the probability of a link between any two nodes."""
    made = nx.planted_partition_graph(3, 20, 0.4, 0.03, seed=0)
    graph = Graph(np.eye(60), Graph.from_networkx(made).edge_index)
    model = EdgeClassifier(random_state=0).fit(graph)
    pairs = np.argwhere(np.ones((60, 60)))
    p = model.predict_proba((graph, pairs))[:, 1].reshape(60, 60)
    fig, (left, right) = figure(2)
    left.imshow(nx.to_numpy_array(made), cmap="Greys")
    right.imshow(p, cmap="viridis", vmin=0, vmax=1)
    left.set(title="links", xlabel="node", ylabel="node")
    right.set(title="probability of a link", xlabel="node")
    return fig


def kinds() -> Figure:
    """Rings and stars of sizes that were not learned from."""
    X = [nx.cycle_graph(n) for n in range(3, 23)] + [nx.star_graph(n) for n in range(3, 23)]
    model = GraphClassifier(max_epochs=30, random_state=0).fit(X, [0] * 20 + [1] * 20)
    new = [nx.cycle_graph(9), nx.star_graph(12), nx.path_graph(9), nx.wheel_graph(8)]
    names = ("ring", "star", "path", "wheel")
    p = model.predict_proba(new)[:, 1]
    fig, axes = figure(4, width=11.0)
    for ax, g, name, own in zip(axes, new, names, p):
        _net(ax, g, nx.kamada_kawai_layout(g), [own] * len(g), f"{name}: star {own:.2f}")
    return fig


def values() -> Figure:
    """Numbers of edges, of graphs that were learned from and of new ones."""
    rng = np.random.default_rng(0)

    def some(n: int) -> list[nx.Graph]:
        return [nx.gnp_random_graph(int(rng.integers(5, 20)), rng.random(), seed=int(i))
                for i in rng.integers(0, 10**6, n)]  # fmt: skip

    X, new = some(120), some(120)
    model = GraphRegressor(random_state=0).fit(X, [g.number_of_edges() for g in X])
    fig, (ax,) = figure(1, width=5.0)
    for rows, name, colour in ((X, "learned from", COLOURS[0]), (new, "new", COLOURS[1])):
        ax.scatter(
            [g.number_of_edges() for g in rows], model.predict(rows), s=10, color=colour, label=name
        )
    ax.axline((0, 0), slope=1, color="black", linewidth=0.7)
    ax.set(xlabel="edges", ylabel="predicted")
    ax.legend(frameon=False)
    return fig


def gather() -> Figure:
    """A layer's one step: what edges carry is gathered by their targets and added up."""
    edges = np.array([(1, 0), (2, 0), (3, 0), (0, 1), (3, 2)])
    carried = np.array([2.0, 1.0, 4.0, 3.0, 5.0])
    order = np.lexsort((edges[:, 0], edges[:, 1]))
    fig, (left, middle, right) = figure(3, width=10.0)
    places = np.array([[0.0, 0.0], [1.0, 0.8], [1.2, -0.3], [0.2, -1.2]])
    for (a, b), w in zip(edges, carried):
        left.annotate("", places[b], places[a], arrowprops={"arrowstyle": "-|>", "shrinkA": 9, "shrinkB": 9,
                      "connectionstyle": "arc3,rad=0.15", "color": COLOURS[b]})  # fmt: skip
        left.text(*(0.6 * places[a] + 0.4 * places[b] + 0.07), f"{w:g}", color=COLOURS[b])
    left.scatter(*places.T, s=260, c=COLOURS, zorder=3)
    for v, at in enumerate(places):
        left.text(*at, str(v), ha="center", va="center", color="white", zorder=4)
    left.set(title="edges carry numbers", xlim=(-0.5, 1.7), ylim=(-1.6, 1.2), xticks=[], yticks=[])
    for row, i in enumerate(order):
        middle.barh(row, carried[i], color=COLOURS[edges[i, 1]])
        middle.text(
            0.1, row, f"{edges[i, 0]} → {edges[i, 1]}", va="center", color="white", fontsize=8
        )
    middle.set(title="in the order of targets", yticks=[], xlabel="carried")
    middle.invert_yaxis()
    sums = np.bincount(edges[:, 1], weights=carried, minlength=4)
    right.barh(range(4), sums, color=COLOURS)
    right.set(title="the sum of each node", yticks=range(4), xlabel="came")
    right.invert_yaxis()
    return fig


def blocks() -> Figure:
    """What links are worth."""
    return experiment("ARC-x-gnn").figure()


PICTURES = {
    "NodeClassifier": nodes,
    "EdgeClassifier": links,
    "GraphClassifier": kinds,
    "GraphRegressor": values,
    "graph-gather": gather,
    "gallery-graphs": blocks,
}
