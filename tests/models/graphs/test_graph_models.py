"""Labels of nodes, pairs of nodes and graphs; values of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.metrics import roc_auc_score

import groundstate
from groundstate import EdgeClassifier, GraphClassifier, GraphRegressor, NodeClassifier
from groundstate.compute.rows import GraphNodes
from groundstate.data import Graph
from groundstate.errors import DataError, ShapeError
from groundstate.models.graphs.edge_classifier import links_to_learn
from groundstate.nn.graph import networks
from groundstate.nn.graph.sample import NeighborSampler


def blocks(n: int = 90, k: int = 3, seed: int = 0) -> Graph:
    """A graph of communities with noisy features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    p = np.where(y[:, None] == y, 0.25, 0.02)
    links = np.triu(rng.random((n, n)) < p, 1)
    x = np.eye(k)[y] + 1.5 * rng.normal(size=(n, k))
    return Graph(x, np.argwhere(links | links.T).T, y=y)


def some_labels(graph: Graph, every: int = 5) -> np.ndarray:
    y = np.array(graph.y)
    y[np.arange(len(y)) % every != 0] = -1
    return y


def test_neighbours_tell_more_than_a_node_alone() -> None:
    graph = blocks()
    y = some_labels(graph, 5)
    hidden = np.array(graph.y).copy()
    hidden[y != -1] = -1
    with_links = NodeClassifier(random_state=0).fit(graph, y).score(graph, hidden)
    alone = NodeClassifier("graph_mlp", random_state=0).fit(graph, y).score(graph, hidden)
    assert with_links > alone + 0.2


def test_renumbered_nodes_get_the_same_answers() -> None:
    graph = blocks(60)
    y = some_labels(graph)
    order = np.random.default_rng(1).permutation(60)  # node i becomes order[i]
    back = np.argsort(order)
    other = Graph(graph.x[back], torch.from_numpy(order)[graph.edge_index])
    model = NodeClassifier(random_state=0, max_epochs=20)
    p = model.fit(graph, y).predict_proba(graph)
    assert np.allclose(model.predict_proba(other)[order], p, atol=1e-5)
    again = NodeClassifier(random_state=0, max_epochs=20).fit(other, y[back])
    assert np.allclose(again.predict_proba(other)[order], p, atol=1e-3)


def test_labels_stand_in_the_graph_or_beside_it() -> None:
    graph = blocks(30)
    held = NodeClassifier(random_state=0, max_epochs=5).fit(graph)
    given = NodeClassifier(random_state=0, max_epochs=5).fit(graph, graph.y)
    assert np.array_equal(held.predict_proba(graph), given.predict_proba(graph))
    assert held.score(graph) == given.score(graph, graph.y)
    named = np.array(["a", "b", "c"], object)[graph.y]
    named[::4] = None
    assert set(NodeClassifier(random_state=0, max_epochs=5).fit(graph, list(named)).classes_) == {
        "a", "b", "c",
    }  # fmt: skip


def test_node_labels_from_features_of_edges_alone() -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 40, (2, 160))
    weight = rng.normal(size=160)
    total = np.bincount(ends[1], weights=weight, minlength=40)
    graph = Graph(None, ends, weight, nodes=40)
    model = NodeClassifier("graph_mlp", max_epochs=300, random_state=0)
    assert model.fit(graph, total > 0.1).score(graph, total > 0.1) == 1.0


def test_isolated_nodes_and_unknown_ones() -> None:
    graph = Graph(torch.ones(4, 1), [[0, 1], [1, 0]])
    model = NodeClassifier(random_state=0, max_epochs=3).fit(graph, [0, 1, 0, 1])
    assert model.predict_proba(graph).shape == (4, 2)
    with pytest.raises(DataError, match="edges name nodes 0 to 9, the graph has 4, 0 to 3"):
        Graph(torch.ones(4, 1), [[0], [9]])
    with pytest.raises(ShapeError, match="the graph has 4 nodes, y has 2"):
        NodeClassifier().fit(graph, [0, 1])
    with pytest.raises(DataError, match="no node has a label"):
        NodeClassifier().fit(graph, [-1] * 4)
    with pytest.raises(ShapeError, match="was fitted to"):
        model.predict(Graph(torch.ones(4, 2), [[0], [1]]))


def test_large_graphs_are_learned_from_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = blocks(200, seed=3)
    y = some_labels(graph, 2)
    monkeypatch.setattr(networks, "LARGE", 50)
    whole = NodeClassifier("sage", random_state=0, max_epochs=20, batch_size=16)
    model = whole.fit(graph, y)
    assert model.score(graph) > 0.7
    other = NodeClassifier("sage", random_state=0, max_epochs=20, batch_size=16).fit(graph, y)
    assert np.array_equal(model.predict_proba(graph), other.predict_proba(graph))


def test_a_part_of_a_graph_has_the_edges_it_should() -> None:
    graph = Graph.batch([blocks(50)])
    edges = networks.Edges.of_graphs(graph)
    index = torch.tensor([3, 7, 3])
    nodes, part, where = NeighborSampler((1000, 1000))(edges, index)
    assert torch.equal(nodes[where], index)
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    full = edges.propagate(edges.propagate(x))
    seen = part.propagate(part.propagate(x[nodes]))
    assert torch.allclose(seen[where], full[index], atol=1e-5)  # all neighbours: two steps exactly
    _, few, _ = NeighborSampler((2, 2))(edges, index)
    assert int(few.degree.max()) <= 2


def test_graphs_by_kind_and_by_value(tmp_path: Path) -> None:
    X = [nx.cycle_graph(n) for n in range(3, 23)] + [nx.star_graph(n) for n in range(3, 23)]
    y = ["cycle"] * 20 + ["star"] * 20
    model = GraphClassifier(max_epochs=30, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    loaded = groundstate.load(model.save(tmp_path / "graphs.gs"))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    shuffled = [nx.relabel_nodes(g, dict(zip(g, reversed(list(g))))) for g in X]
    assert np.allclose(model.predict_proba(shuffled), model.predict_proba(X), atol=1e-5)
    edges = [g.number_of_edges() for g in X]
    values = GraphRegressor(val_fraction=0, random_state=0).fit(X, edges)
    assert values.score(X, edges) > 0.9


def test_features_of_graphs_count() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = [Graph(torch.ones(3, 1), [[0, 1], [1, 2]], u=[v + 0.1 * rng.normal()], y=int(v)) for v in y]
    assert GraphClassifier(max_epochs=100, random_state=0).fit(X).score(X, y) == 1.0
    alone, together = X[3], Graph.batch(X)
    model = GraphClassifier(max_epochs=3, random_state=0).fit(X)
    assert np.allclose(model.predict_proba([alone]), model.predict_proba(together)[3], atol=1e-6)


def test_links_are_predicted_without_giving_them_away() -> None:
    graph = blocks(90, seed=1)
    rng = np.random.default_rng(0)
    both = {tuple(e) for e in graph.edge_index.T.tolist()}
    held = {e for e in both if e[0] < e[1] and rng.random() < 0.2}
    left = [e for e in both if e not in held and e[::-1] not in held]
    known = Graph(graph.x, np.array(left).T)
    free = [(a, b) for a in range(90) for b in range(a + 1, 90) if (a, b) not in both]
    absent = [free[i] for i in rng.permutation(len(free))[: len(held)]]
    model = EdgeClassifier(random_state=0).fit(known)
    p = model.predict_proba((known, [*held, *absent]))[:, 1]
    truth = np.repeat([1, 0], [len(held), len(absent)])
    assert roc_auc_score(truth, p) > 0.65
    rows, y = links_to_learn(Graph.batch([known]), 0.3, groundstate.compute.random.Key.of(0))
    remaining = {tuple(e) for e in rows.graph.edges.values.tolist()}
    for pair, label in zip(rows.index.tolist(), y, strict=True):
        assert tuple(pair) not in remaining and ((tuple(pair) in set(left)) == bool(label))


def test_labels_of_pairs() -> None:
    graph = blocks(60)
    pairs = np.argwhere(np.ones((60, 60)))[::7]
    same = np.array(graph.y)[pairs[:, 0]] == np.array(graph.y)[pairs[:, 1]]
    model = EdgeClassifier(random_state=0).fit((graph, pairs), same)
    assert model.score((graph, pairs), same) > 0.8
    flipped = model.predict_proba((graph, pairs[:, ::-1].copy()))
    assert np.allclose(flipped, model.predict_proba((graph, pairs)), atol=1e-5)
    with pytest.raises(DataError, match=r"pairs must be \(n, 2\)"):
        model.predict((graph, [1, 2, 3]))


def test_nodes_that_no_message_tells_apart_are_one_row() -> None:
    ring = Graph.batch([Graph(torch.ones(6, 1), [[*range(6)], [1, 2, 3, 4, 5, 0]])])
    assert len(set(GraphNodes.all(ring).hashes())) == 1
    path = Graph.batch([Graph(torch.ones(5, 1), [[0, 1, 2, 3], [1, 2, 3, 4]]).undirected()])
    assert len(set(GraphNodes.all(path).hashes())) == 3


@pytest.mark.parametrize("form", ["scipy", "networkx", "pair", "csv"])
def test_forms_of_one_graph(form: str, tmp_path: Path) -> None:
    graph = blocks(30)
    ends = graph.edge_index.numpy()
    given: Any
    if form == "scipy":
        matrix = scipy.sparse.coo_array((np.ones(ends.shape[1]), tuple(ends)), (30, 30))
        given = Graph.from_scipy(matrix, graph.x)
    elif form == "networkx":
        made = nx.Graph()
        made.add_nodes_from((i, {"x": graph.x[i].tolist()}) for i in range(30))
        made.add_edges_from(ends.T.tolist())
        given = made
    elif form == "pair":
        given = (graph.x, ends.T)
    else:
        head = "id,a,b,c,kind\n"
        lines = [
            ",".join([f"n{i}", *map(repr, graph.x[i].tolist()), "xyz"[graph.y[i]]])
            for i in range(30)
        ]
        (tmp_path / "nodes.csv").write_text(head + "\n".join(lines))
        pairs = [f"n{a},n{b}" for a, b in ends.T.tolist() if a < b]
        (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(pairs))
        given = Graph.from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", target="kind")
        assert given.y[:3] == ["x", "y", "z"]
    model = NodeClassifier(random_state=0, max_epochs=3).fit(graph, graph.y)
    assert np.allclose(model.predict_proba(given), model.predict_proba(graph), atol=1e-5)


def test_folders_of_the_tu_collection(tmp_path: Path) -> None:
    (tmp_path / "T_A.txt").write_text("1, 2\n2, 1\n3, 4\n4, 3\n")
    (tmp_path / "T_graph_indicator.txt").write_text("1\n1\n2\n2\n2\n")
    (tmp_path / "T_graph_labels.txt").write_text("-1\n1\n")
    (tmp_path / "T_node_labels.txt").write_text("0\n2\n2\n0\n2\n")
    one, two = Graph.from_tu(tmp_path)
    assert (one.num_nodes, two.num_nodes, one.y, two.y) == (2, 3, -1.0, 1.0)
    assert one.x.tolist() == [[1, 0], [0, 1]] and two.edge_index.tolist() == [[0, 1], [1, 0]]


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,a\nx,1\ny,2\n")
    edges.write_text("source,target\nx,z\n")
    with pytest.raises(DataError, match="names the node 'z'"):
        Graph.from_csv(nodes, edges)
    with pytest.raises(DataError, match="has no column 'kind', only id, a"):
        Graph.from_csv(nodes, edges, target="kind")
    nodes.write_text("id,a\nx,one\ny,2\n")
    with pytest.raises(DataError, match="column 'a' .* must hold numbers"):
        Graph.from_csv(nodes, edges)
