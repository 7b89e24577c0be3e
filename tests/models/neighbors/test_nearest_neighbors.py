"""Search for near rows: scikit-learn's answers, radius and edge, weights, and the energy behind it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn.neighbors as peers
import torch

import groundstate
from groundstate import NearestNeighbors
from groundstate.energy.neighbors.index import NeighborIndexEnergy
from groundstate.math.neighbors import radius as tiles
from groundstate.math.neighbors.radius import within

rng = np.random.default_rng(0)
A = rng.normal(size=(300, 5))
Q = rng.normal(size=(80, 5))
VI = np.linalg.inv(np.cov(A.T) + 0.1 * np.eye(5))
SETTINGS = [
    {},
    {"algorithm": "kd_tree"},
    {"metric": "manhattan", "radius": 2.5},
    {"p": 3},
    {"metric": "chebyshev", "radius": 0.8},
    {"metric": "cosine", "radius": 0.2},
    {"metric": "mahalanobis", "metric_params": {"VI": VI}, "radius": 1.5},
    {"metric": lambda a, b: np.abs(a - b).max()},
]


def pair(settings) -> tuple[NearestNeighbors, peers.NearestNeighbors]:
    theirs = dict(settings)
    if theirs.get("metric") in ("cosine", "mahalanobis") or callable(theirs.get("metric")):
        theirs["algorithm"] = "brute"
    return NearestNeighbors(**settings).fit(A), peers.NearestNeighbors(**theirs).fit(A)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("queries", [Q, None], ids=["new", "fitted"])
def test_equals_scikit_learn(settings, queries) -> None:
    ours, peer = pair(settings)
    mine, other = ours.kneighbors(queries), peer.kneighbors(queries)
    np.testing.assert_array_equal(mine[1], other[1])
    np.testing.assert_allclose(mine[0], other[0], atol=1e-9)
    mine = ours.radius_neighbors(queries, sort_results=True)
    other = peer.radius_neighbors(queries, sort_results=True)
    assert sum(map(len, mine[1])) > 20
    for k in range(len(other[1])):
        np.testing.assert_array_equal(mine[1][k], other[1][k])
        np.testing.assert_allclose(mine[0][k], other[0][k], atol=1e-7)
    for graph in ("kneighbors_graph", "radius_neighbors_graph"):
        for mode in ("connectivity", "distance"):
            a, b = (getattr(model, graph)(queries, mode=mode) for model in (ours, peer))
            assert a.shape == b.shape and abs(a - b).max() < 1e-7
    assert ours.n_samples_fit_ == peer.n_samples_fit_
    assert ours.effective_metric_ == peer.effective_metric_
    assert set(ours.effective_metric_params_) == set(peer.effective_metric_params_)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_minkowski_goes_by_its_own_name(p) -> None:
    ours, peer = (module.NearestNeighbors(p=p).fit(A) for module in (groundstate, peers))
    assert ours.effective_metric_ == peer.effective_metric_


def test_signature_is_scikit_learns() -> None:
    theirs, ours = peers.NearestNeighbors().get_params(), NearestNeighbors().get_params()
    assert theirs == {name: ours[name] for name in theirs}


def test_unsorted_results_come_in_the_order_of_the_rows() -> None:
    model = NearestNeighbors(radius=2.0).fit(A)
    found = model.radius_neighbors(Q, return_distance=False)
    assert found.dtype == object and all((np.diff(index) > 0).all() for index in found)
    distance = model.radius_neighbors(Q, sort_results=True)[0]
    assert all((np.diff(d) >= 0).all() for d in distance)


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
@pytest.mark.parametrize(
    ("rows", "r"),
    [
        (rng.normal(size=(2500, 6)), 1.5),
        (rng.normal(size=(2500, 6)).astype(np.float32), 1.5),
        (rng.normal(size=(2500, 3)) * [1e6, 1, 1], 5e3),
        (rng.normal(size=(2500, 3)) + 1e6, 0.4),  # far from the origin
        (np.round(rng.normal(size=(2500, 2)) * 2), 2.0),  # many at exactly the radius
        (np.repeat(rng.normal(size=(25, 4)), 100, 0), 0.0),  # copies alone
    ],
    ids=["normal", "single", "scales", "offset", "edge", "copies"],
)
def test_radius_is_exact(rows, r, algorithm) -> None:
    queries = np.concatenate([rows[::83], rows[:10] + 0.25]).astype(rows.dtype)
    model = NearestNeighbors(radius=r, algorithm=algorithm).fit(rows)
    distance, index = model.radius_neighbors(queries)
    gap = queries[:, None].astype(np.float64) - rows[None].astype(np.float64)
    true = np.sqrt((gap**2).sum(-1))
    for k, row in enumerate(true):
        np.testing.assert_array_equal(index[k], np.flatnonzero(row <= r))
        np.testing.assert_allclose(distance[k], row[row <= r], rtol=1e-6)


@pytest.mark.parametrize("share", [0.002, 0.5])
def test_boxes_and_products_find_the_same(share) -> None:
    rows = np.random.default_rng(1).normal(size=(3000, 3))
    rows[1000:1200] = rows[0]  # more copies than a box holds
    r = float(np.quantile(np.linalg.norm(rows - rows[5], axis=1), share))
    answers = [
        NearestNeighbors(radius=r, algorithm=name).fit(rows).radius_neighbors(rows[:300])
        for name in ("auto", "kd_tree", "brute")
    ]
    for distance, index in answers[:2]:
        for k in range(300):
            np.testing.assert_array_equal(index[k], answers[2][1][k])
            np.testing.assert_array_equal(distance[k], answers[2][0][k])


def test_tiles_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    x, rows = torch.from_numpy(Q), torch.from_numpy(A)
    whole = within(x, rows, 1.5)
    for name, size in (("QUERIES", 7), ("ROWS", 11), ("CELLS", 40)):
        monkeypatch.setattr(tiles, name, size)
    cut = within(x, rows, 1.5)
    assert torch.equal(whole.count, cut.count) and torch.equal(whole.index, cut.index)
    assert torch.equal(whole.distance, cut.distance)


def test_nobody_near_and_everybody_near() -> None:
    model = NearestNeighbors().fit(A)
    assert [len(i) for i in model.radius_neighbors(Q + 1e3)[1]] == [0] * len(Q)
    assert model.radius_neighbors_graph(Q + 1e3).nnz == 0
    assert [len(i) for i in model.radius_neighbors(Q, np.inf)[1]] == [len(A)] * len(Q)
    huge = NearestNeighbors().fit(np.array([[1e200], [-1e200]]))
    assert [i.tolist() for i in huge.radius_neighbors([[1e200]])[1]] == [[0]]
    large = NearestNeighbors(radius=4e19).fit(np.array([[1e20], [0.0], [9e19]], np.float32))
    assert large.radius_neighbors(np.array([[1e20]], np.float32))[1][0].tolist() == [0, 2]
    assert [len(i) for i in model.radius_neighbors(Q, 1e200)[1]] == [len(A)] * len(Q)


def test_copies_of_a_row_are_neighbours_of_it() -> None:
    model = NearestNeighbors(n_neighbors=2, radius=0.0).fit(np.zeros((5, 1)))
    index = model.kneighbors(return_distance=False)
    assert all(k not in found for k, found in enumerate(index))
    assert [len(found) for found in model.radius_neighbors()[1]] == [4] * 5


def test_weight_is_repetition() -> None:
    w = np.arange(len(A)) % 4
    many = np.repeat(np.arange(len(A)), w)
    kept = np.cumsum(w > 0) - 1
    a = NearestNeighbors().fit(A, sample_weight=w)
    c = NearestNeighbors().fit(A[many])
    np.testing.assert_allclose(a.transform(Q), c.transform(Q), atol=1e-12)
    np.testing.assert_array_equal(a.kneighbors(Q)[1], kept[many[c.kneighbors(Q)[1]]])
    np.testing.assert_allclose(a.energy(Q), c.energy(Q), rtol=1e-10)
    first = np.flatnonzero(np.diff(many, prepend=-1))
    np.testing.assert_allclose(a.kneighbors()[0], c.kneighbors()[0][first], atol=1e-12)
    for mine, other in zip(a.radius_neighbors(Q)[1], c.radius_neighbors(Q)[1], strict=True):
        assert mine.tolist() == sorted(set(kept[many[other]]))
    own, others = a.radius_neighbors()[1], c.radius_neighbors()[1][first]
    for mine, other in zip(own, others, strict=True):
        assert mine.tolist() == sorted(set(kept[many[other]]))
    graph = a.kneighbors_graph(Q)
    assert (graph.sum(1) == 5).all() and graph.max() > 1
    far = a.kneighbors_graph(Q, mode="distance")
    assert np.isclose(far.max(), a.kneighbors(Q)[0].max())


def test_half_weights_need_twice_the_rows() -> None:
    half = NearestNeighbors().fit(A, sample_weight=np.full(len(A), 0.5))
    every = NearestNeighbors(n_neighbors=10).fit(A)
    np.testing.assert_array_equal(half.transform(Q), every.transform(Q)[:, 1::2])


def test_energy_orders_the_rows_and_its_distribution_is_a_softmin() -> None:
    model = NearestNeighbors().fit(A)
    true = ((Q[:, None] - A) ** 2).sum(-1) / 2
    energies = np.column_stack([model.energy(Q, z=np.full(len(Q), k)) for k in range(len(A))])
    np.testing.assert_allclose(energies, true, rtol=1e-10)
    nearest = np.argsort(energies, 1, kind="stable")[:, :5]
    np.testing.assert_array_equal(nearest, model.kneighbors(Q)[1])
    np.testing.assert_array_equal(model.infer({"x": Q}, "z"), nearest[:, 0])
    np.testing.assert_allclose(model.energy(Q), -np.log(np.exp(-true).sum(1)), rtol=1e-10)
    distribution = model.energy_.distribution(torch.from_numpy(Q)).probs.numpy()
    soft = np.exp(-true)
    np.testing.assert_allclose(distribution, soft / soft.sum(1, keepdims=True), rtol=1e-8)


@pytest.mark.parametrize("metric", ["minkowski", "chebyshev", "cosine", "mahalanobis"])
def test_one_row_and_all_rows_have_the_same_energies(metric) -> None:
    energy = NeighborIndexEnergy(5, metric=metric, p=3.0).double()
    energy.remember(torch.from_numpy(A[:9]))
    x = torch.from_numpy(Q)
    each = [energy(x=x, z=torch.full((len(x),), k)) for k in range(9)]
    torch.testing.assert_close(torch.stack(each, 1), energy.energies(x))
    assert torch.equal(energy.nearest(x), energy.energies(x).argmin(1))


def test_tensors_come_back_as_tensors() -> None:
    model = NearestNeighbors().fit(torch.from_numpy(A))
    distance, index = model.radius_neighbors(torch.from_numpy(Q))
    assert len(index) == len(Q) and all(isinstance(i, torch.Tensor) for i in (*index, *distance))
    assert model.kneighbors_graph(torch.from_numpy(Q)).shape == (80, 300)


def test_names_of_the_columns_and_the_file(tmp_path: Path) -> None:
    model = NearestNeighbors(n_neighbors=2, metric="mahalanobis", metric_params={"VI": VI})
    model.fit(A, sample_weight=np.arange(len(A)) % 3)
    names = model.get_feature_names_out().tolist()
    assert names == ["nearestneighbors0", "nearestneighbors1"]
    loaded = groundstate.load(model.save(tmp_path / "rows.gs"))
    np.testing.assert_array_equal(loaded.transform(Q), model.transform(Q))
    np.testing.assert_array_equal(loaded.energy(Q), model.energy(Q))


def test_few_rows_are_refused_when_asked() -> None:
    model = NearestNeighbors().fit(np.eye(3))
    with pytest.raises(ValueError, match="n_neighbors = 5, n_samples_fit = 3"):
        model.kneighbors(np.eye(3))
    with pytest.raises(ValueError, match="n_neighbors < n_samples_fit"):
        model.kneighbors(n_neighbors=3)
    with pytest.raises(ValueError, match="radius must be a number of at least 0, .* got -1"):
        model.radius_neighbors(np.eye(3), -1)
    with pytest.raises(ValueError, match="return_distance must be True"):
        model.radius_neighbors(np.eye(3), return_distance=False, sort_results=True)
    with pytest.raises(ValueError, match="mode must be"):
        model.radius_neighbors_graph(np.eye(3), mode="both")
