"""Distances of all pairs, their reductions, and graphs of near rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph

from groundstate.math.neighbors import nearest_device, neighbors_graph, pairwise
from groundstate.math.neighbors.nearest import NearestRows
from groundstate.math.neighbors.nearest_device import nearest_on_device

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 7)) * 3 + 5
X[5] = X[6]
Z = RNG.normal(size=(90, 7))
VI = np.linalg.inv(np.cov(X.T))


@pytest.mark.parametrize(
    ("metric", "peer", "params"),
    [
        ("euclidean", "euclidean", {}),
        ("sqeuclidean", "sqeuclidean", {}),
        ("cosine", "cosine", {}),
        ("mahalanobis", "mahalanobis", {"VI": VI}),
        ("manhattan", "cityblock", {}),
        ("minkowski", "minkowski", {"p": 3.0}),
        (lambda a, b: abs(a - b).max(), "chebyshev", {}),
    ],
)
def test_distances_are_those_of_scipy(metric: Any, peer: str, params: dict[str, Any]) -> None:
    given = {} if callable(metric) else {"metric_params": params}
    for A, B in ((X, Z), (X, X)):
        table = cdist(A, B, peer, **params)
        np.testing.assert_allclose(
            pairwise(A, B, metric=metric, **given), table, rtol=1e-10, atol=1e-10
        )
        np.testing.assert_array_equal(
            pairwise(A, B, metric=metric, reduce="argmin", **given), table.argmin(1)
        )
        near, _ = pairwise(A, B, metric=metric, reduce="topk", k=4, **given)
        np.testing.assert_allclose(near, np.sort(table, 1)[:, :4], atol=1e-10)
    np.testing.assert_allclose(
        pairwise(X, Z, metric=metric, reduce="logsumexp", T=3.0, **given),
        np.log(np.exp(-cdist(X, Z, peer, **params) / 3).sum(1)), atol=1e-9,
    )  # fmt: skip
    np.testing.assert_allclose(
        pairwise(X, Z, metric=metric, reduce="sum", **given), cdist(X, Z, peer, **params).sum(1)
    )


def test_far_from_the_origin_single_precision_makes_no_error() -> None:
    rows, centres = (
        RNG.normal(size=(n, 12)).astype(np.float32) + np.float32(1e4) for n in (2000, 50)
    )
    true = cdist(rows.astype(float), centres.astype(float)).argmin(1)
    np.testing.assert_array_equal(pairwise(rows, centres, reduce="argmin"), true)
    plain = (rows**2).sum(1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(1)
    assert (plain.argmin(1) != true).mean() > 0.9  # without the mean taken off


def test_tiles_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__("groundstate.math.neighbors.pairwise", fromlist=["CELLS"])
    whole = pairwise(X, Z), pairwise(X, Z, reduce="sum")
    monkeypatch.setattr(module, "CELLS", 100)
    np.testing.assert_allclose(pairwise(X, Z), whole[0], rtol=1e-13)
    np.testing.assert_allclose(pairwise(X, Z, reduce="sum"), whole[1], rtol=1e-13)


def test_gradients() -> None:
    a = torch.tensor(X[:6], requires_grad=True)
    b = torch.tensor(Z[:4], requires_grad=True)
    for reduce in (None, "logsumexp", "sum"):
        assert torch.autograd.gradcheck(lambda a, b, r=reduce: pairwise(a, b, reduce=r), (a, b))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="reduce must be"):
        pairwise(X, reduce="mean")
    with pytest.raises(ValueError, match="same columns"):
        pairwise(X, Z[:, :3])
    with pytest.raises(ValueError, match="k must be 1 to 90"):
        pairwise(X, Z, reduce="topk", k=91)
    with pytest.raises(ValueError, match="NaN"):
        pairwise(np.full((2, 2), np.nan))
    with pytest.raises(TypeError, match="no metric"):
        pairwise(X, metric="warp")


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_search_of_a_device_is_that_of_the_host(offset: float) -> None:
    rows = (torch.randn(9000, 8, generator=torch.Generator().manual_seed(0)) + offset).float()
    value, index = nearest_on_device(rows[:200], rows, 9, cells=2**20)
    other = NearestRows(rows.numpy()).query(rows[:200].numpy(), 9)
    np.testing.assert_array_equal(index.numpy(), other[1])
    np.testing.assert_allclose(value.numpy(), other[0], atol=1e-12)
    tied = torch.randint(0, 3, (6000, 3), generator=torch.Generator().manual_seed(0)).float()
    found = nearest_on_device(tied[:50], tied, 5)[1]
    np.testing.assert_array_equal(
        found.numpy(), NearestRows(tied.numpy()).query(tied[:50].numpy(), 5)[1]
    )


def test_coarse_products_are_bounded() -> None:
    """Rounded to TF32 the proved answers are right, and the others are marked."""
    rows = torch.randn(20_000, 16, generator=torch.Generator().manual_seed(0))
    cut = (rows.view(torch.int32) & ~0x1FFF).view(torch.float32)  # what TF32 keeps of a factor
    _, index, open_ = nearest_device._level("tf32", rows[:300], rows, 10, 2**24)
    assert not bool(open_.all())
    assert float((cut - rows).abs().max() / rows.abs().max()) < 2.0**-10
    true = NearestRows(rows.numpy()).query(rows[:300].numpy(), 10)[1]
    np.testing.assert_array_equal(index[~open_].numpy(), true[~open_.numpy()])


def test_graphs_are_those_of_the_peer() -> None:
    rows = RNG.normal(size=(400, 3))
    peer = kneighbors_graph(rows, 10, mode="distance")
    for symmetrize, expected in (
        ("none", peer),
        ("union", peer.maximum(peer.T)),
        ("mutual", peer.minimum(peer.T)),
    ):
        ours = neighbors_graph(rows, 10, symmetrize=symmetrize)
        np.testing.assert_allclose(ours.toarray(), expected.toarray(), atol=1e-12)
        assert (ours.diagonal() == 0).all()
    union = neighbors_graph(rows, 10)
    assert abs(union - union.T).max() == 0
    near = radius_neighbors_graph(rows, 0.6, mode="distance")
    np.testing.assert_allclose(
        neighbors_graph(rows, radius=0.6).toarray(), near.toarray(), atol=1e-12
    )
    assert neighbors_graph(rows[:30], 29).nnz == 30 * 29
    tensor = neighbors_graph(torch.from_numpy(rows), 10)
    np.testing.assert_array_equal(tensor.to_dense().numpy(), union.toarray())
    given = neighbors_graph(cdist(rows, rows), 10, metric="precomputed")
    np.testing.assert_allclose(given.toarray(), union.toarray(), atol=1e-12)


def test_equal_rows_are_joined_by_stored_zeros() -> None:
    graph = neighbors_graph(np.zeros((5, 2)), 2)
    assert graph.nnz >= 10 and (graph.data == 0).all()


def test_descent_finds_nearly_all_neighbours() -> None:
    rows = RNG.normal(size=(3000, 10)).astype(np.float32)
    graph, recall = neighbors_graph(
        rows, 10, approx="nndescent", symmetrize="none", return_recall=True
    )
    exact = neighbors_graph(rows, 10, symmetrize="none")
    hits = (graph != 0).multiply(exact != 0).sum() / exact.nnz
    assert recall > 0.97 and abs(hits - recall) < 0.03
    again = neighbors_graph(rows, 10, approx="nndescent", symmetrize="none")
    assert (again != graph).nnz == 0
    assert neighbors_graph(rows, 3, return_recall=True)[1] == 1.0


def test_graph_refusals() -> None:
    with pytest.raises(ValueError, match="one of n_neighbors and radius"):
        neighbors_graph(X)
    with pytest.raises(ValueError, match="n_neighbors must be 1 to 299"):
        neighbors_graph(X, 300)
    with pytest.raises(ValueError, match="not a radius"):
        neighbors_graph(X, radius=1.0, approx="nndescent")
    with pytest.raises(ValueError, match="symmetrize"):
        neighbors_graph(X, 3, symmetrize="both")
