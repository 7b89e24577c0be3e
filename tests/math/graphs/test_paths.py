"""Shortest paths against SciPy, and their axioms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, floyd_warshall
from scipy.spatial.distance import cdist
from sklearn.datasets import make_swiss_roll

from groundstate.math.graphs import connect, geodesic_distances
from groundstate.math.graphs.paths import _on_device
from groundstate.math.neighbors import neighbors_graph

X, _ = make_swiss_roll(500, random_state=0)
GRAPH = neighbors_graph(X, 8)


def test_paths_are_those_of_scipy() -> None:
    D = geodesic_distances(GRAPH)
    np.testing.assert_allclose(D, dijkstra(GRAPH), rtol=1e-12)
    assert (cdist(X, X) - 1e-9 <= D).all()
    assert (D[:, :, None] + D[None, :, :1] >= D[:, None, :1] - 1e-9).all()
    some = geodesic_distances(GRAPH, [3, 400, 3])
    np.testing.assert_allclose(some, D[[3, 400, 3]], rtol=1e-12)
    many = geodesic_distances(GRAPH, np.r_[0:40, 7])
    np.testing.assert_allclose(many, D[np.r_[0:40, 7]], rtol=1e-12)
    assert geodesic_distances(GRAPH, dtype=np.float32).dtype == np.float32


def test_small_graphs_and_directed_ones() -> None:
    small = neighbors_graph(X[:200], 4)
    np.testing.assert_allclose(geodesic_distances(small), dijkstra(small), rtol=1e-12)
    directed = neighbors_graph(X, 4, symmetrize="none")
    found = geodesic_distances(directed)
    np.testing.assert_allclose(found, dijkstra(directed), rtol=1e-12)
    assert np.isinf(found).any()
    dense = np.where(np.eye(200) > 0, 0, cdist(X[:200], X[:200]))
    np.testing.assert_allclose(geodesic_distances(dense), floyd_warshall(dense), rtol=1e-12)


def test_predecessors_lead_back() -> None:
    for method, sources in (("dijkstra", [0, 9]), ("floyd_warshall", None)):
        graph = neighbors_graph(X[:150], 12)
        D, before = geodesic_distances(graph, sources, method, return_predecessors=True)
        start = 0
        node, length = 149, 0.0
        while node != start:
            previous = before[0, node]
            length += graph[previous, node]
            node = previous
        assert np.isclose(length, D[0, 149]) and before[0, start] == -9999


def test_edges_relaxed_on_a_device_give_the_same() -> None:
    graph = neighbors_graph(torch.from_numpy(X), 8)
    np.testing.assert_allclose(
        _on_device(graph, None, None).numpy(), geodesic_distances(GRAPH), rtol=1e-12
    )
    given = geodesic_distances(graph, [1, 2])
    assert isinstance(given, torch.Tensor)


def test_equal_rows_are_at_distance_zero() -> None:
    rows = np.repeat(np.arange(20.0)[:, None], 2, 0)
    D = geodesic_distances(neighbors_graph(rows, 3))
    assert D[0, 1] == 0 and D[0, 39] == 19


def test_parts_are_joined_by_the_shortest_edges() -> None:
    two = np.concatenate([X[:60], X[60:120] + 1e3, X[120:180] - 1e3])
    graph, parts = connect(neighbors_graph(two, 5), two)
    assert parts >= 3 and np.isfinite(geodesic_distances(graph)).all()
    away = cdist(two[:60], two[60:120])
    assert np.isclose(graph[:60][:, 60:120].max(), away.min())


def test_refusals() -> None:
    with pytest.raises(ValueError, match="negative"):
        geodesic_distances(csr_array([[0.0, -1.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="square"):
        geodesic_distances(np.ones((2, 3)))
    with pytest.raises(ValueError, match="method"):
        geodesic_distances(GRAPH, method="walk")
    with pytest.raises(ValueError, match="sources"):
        geodesic_distances(GRAPH, [500])
