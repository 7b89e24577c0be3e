"""Groups by density and by mergers: scikit-learn's labels, and the energy of one more row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn import cluster as peer
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import pairwise_distances

from groundstate import DBSCAN, HDBSCAN, AgglomerativeClustering
from groundstate.energy.latent.linkage import LinkageEnergy
from groundstate.errors import DataError
from groundstate.math.neighbors.mergers import cut, mergers

X = np.r_[
    make_moons(120, noise=0.07, random_state=0)[0],
    np.random.default_rng(1).uniform([-1.5, -1.0], [2.5, 1.5], (12, 2)),
]
PAIRS: list[tuple[type, type, dict[str, Any]]] = [
    (DBSCAN, peer.DBSCAN, {"eps": 0.25}),
    (DBSCAN, peer.DBSCAN, {"eps": 0.3, "min_samples": 3, "metric": "manhattan"}),
    (DBSCAN, peer.DBSCAN, {"eps": 0.3, "metric": "minkowski", "p": 3.0}),
    (HDBSCAN, peer.HDBSCAN, {"copy": True}),
    (HDBSCAN, peer.HDBSCAN, {"min_cluster_size": 8, "min_samples": 3, "copy": True}),
    (HDBSCAN, peer.HDBSCAN, {"cluster_selection_method": "leaf", "copy": True}),
    *(
        (AgglomerativeClustering, peer.AgglomerativeClustering, {"n_clusters": 4, "linkage": how})
        for how in ("ward", "complete", "average", "single")
    ),
    (
        AgglomerativeClustering,
        peer.AgglomerativeClustering,
        {"n_clusters": None, "distance_threshold": 1.0, "linkage": "average", "metric": "l1"},
    ),
]


@pytest.mark.parametrize(("ours", "theirs", "settings"), PAIRS)
def test_labels_are_the_peers(ours: Any, theirs: Any, settings: dict[str, Any]) -> None:
    model, expected = ours(**settings).fit(X), theirs(**settings).fit(X)
    if ours is HDBSCAN:  # the same groups, the largest first
        size = np.bincount(model.labels_[model.labels_ >= 0])
        assert (np.diff(size) <= 0).all()
        number = dict(zip(expected.labels_, model.labels_, strict=True))
        expected.labels_ = np.array([number[label] for label in expected.labels_])
        assert len(set(number.values())) == len(number)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(ours(**settings).fit_predict(X), expected.labels_)
    for name in vars(expected):
        if name.endswith("_") and not name.startswith("_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(expected, name), name)


@pytest.mark.parametrize(("ours", "theirs", "settings"), PAIRS)
def test_parameters_are_the_peers(ours: Any, theirs: Any, settings: dict[str, Any]) -> None:
    given = ours().get_params()
    for name, value in theirs().get_params().items():
        assert given[name] == value or name == "copy", name


@pytest.mark.parametrize(
    "model", [DBSCAN(0.25), HDBSCAN(8), AgglomerativeClustering(4, linkage="average")]
)
def test_distances_in_place_of_rows(model: Any) -> None:
    D = pairwise_distances(X)
    plain = model.fit(X)
    labels, new, e = plain.labels_, plain.predict(X[:9] + 0.03), plain.energy(X[:9] + 0.03)
    square = type(model)(**{**model.get_params(), "metric": "precomputed"}).fit(D)
    np.testing.assert_array_equal(square.labels_, labels)
    away = pairwise_distances(X[:9] + 0.03, X)
    np.testing.assert_array_equal(square.predict(away), new)
    np.testing.assert_allclose(square.energy(away), e, rtol=1e-6, atol=1e-9)


def test_rows_far_from_all_groups_are_noise() -> None:
    for model in (DBSCAN(0.25), HDBSCAN()):
        model.fit(X)
        assert model.predict([[50.0, 50.0]]).tolist() == [-1]
        assert model.infer({"x": [[50.0, 50.0]]}, "z").tolist() == [-1]
        core = X[model.labels_ >= 0]
        np.testing.assert_array_equal(model.predict(core), model.labels_[model.labels_ >= 0])
    everywhere = DBSCAN(1e-6).fit(X)
    assert (everywhere.labels_ == -1).all() and (everywhere.predict(X) == -1).all()
    assert everywhere.components_.shape == (0, 2)


def test_the_energy_of_ward_is_the_growth_of_the_squares_within() -> None:
    model = AgglomerativeClustering(3).fit(X)

    def within(rows: np.ndarray, labels: np.ndarray) -> float:
        groups = (rows[labels == z] for z in range(3))
        return sum(0.5 * float(np.square(g - g.mean(0)).sum()) for g in groups)

    row = np.array([[0.4, 0.1]])
    for z in range(3):
        more = within(np.r_[X, row], np.r_[model.labels_, z]) - within(X, model.labels_)
        assert model.energy(row, z=[z])[0] == pytest.approx(more, rel=1e-9)


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "ward"])
def test_gradients_of_all_linkages(linkage: str) -> None:
    energy = LinkageEnergy(2, 2, linkage=linkage).double()
    energy.remember(torch.from_numpy(X[:6]), torch.tensor([0, 0, 1, 1, 1, 0]))
    x = torch.tensor([[0.3, 0.1], [2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(energy.energies, (x,))


@pytest.mark.parametrize("model", [DBSCAN(0.25), HDBSCAN(), AgglomerativeClustering(3)])
def test_weights_are_copies(model: Any) -> None:
    rows = X[np.lexsort(X.T)]
    weight = np.ones(len(rows))
    weight[::4], weight[1::9] = 2.0, 0.0
    index = np.repeat(np.arange(len(rows)), weight.astype(int))
    labels = model.fit(rows, sample_weight=weight).labels_
    e = model.energy(rows)
    copies = model.fit(rows[index])
    np.testing.assert_array_equal(labels[index], copies.labels_)
    np.testing.assert_allclose(e, copies.energy(rows), rtol=1e-9)
    np.testing.assert_array_equal(labels[weight == 0], copies.predict(rows[weight == 0]))


def test_halves_count_for_density_alone() -> None:
    half = np.full(len(X), 0.5)
    np.testing.assert_array_equal(
        DBSCAN(0.25, min_samples=2).fit(X, sample_weight=half).labels_,
        DBSCAN(0.25, min_samples=4).fit(X).labels_,
    )
    for model in (HDBSCAN(), AgglomerativeClustering()):
        with pytest.raises(DataError, match="whole numbers, got 0.5"):
            model.fit(X, sample_weight=half)


def test_refusals() -> None:
    for model in (DBSCAN(metric="precomputed"), HDBSCAN(metric="precomputed")):
        with pytest.raises(DataError, match=r"must be square, .* got shape \(5, 2\)"):
            model.fit(X[:5])
    with pytest.raises(ValueError, match="'eps' parameter"):
        DBSCAN(eps=-1.0).fit(X)


def test_sparse_rows_are_dense_rows() -> None:
    from scipy.sparse import csr_matrix

    Z, _ = make_blobs(60, 3, random_state=0)
    Z[Z < 0] = 0.0
    np.testing.assert_array_equal(
        DBSCAN(1.0).fit_predict(csr_matrix(Z)), DBSCAN(1.0).fit_predict(Z)
    )


@pytest.mark.parametrize("kind", ["array", "frame", "tensor"])
def test_rows_without_a_place_have_labels_of_their_own(kind: str) -> None:
    import polars as pl

    Z = X.copy()
    Z[5, 0], Z[40, 1], Z[60] = np.nan, np.inf, [np.inf, np.nan]
    given: Any = {"frame": pl.DataFrame, "tensor": torch.from_numpy}.get(kind, np.asarray)(Z)
    model, expected = HDBSCAN().fit(given), peer.HDBSCAN(copy=True).fit(Z)
    odd = [5, 40, 60]
    assert model.labels_[odd].tolist() == expected.labels_[odd].tolist() == [-3, -2, -3]
    np.testing.assert_array_equal(model.probabilities_, expected.probabilities_)
    assert len(set(zip(model.labels_, expected.labels_, strict=True))) == len(set(model.labels_))
    kept = np.setdiff1d(np.arange(len(Z)), odd)
    np.testing.assert_array_equal(model.labels_[kept], HDBSCAN().fit(Z[kept]).labels_)
    answer = model.predict(given)
    assert isinstance(answer, torch.Tensor) == (kind == "tensor")
    np.testing.assert_array_equal(np.asarray(answer)[odd], [-3, -2, -3])
    with pytest.raises(ValueError, match="NaN"):
        HDBSCAN(metric="precomputed").fit(np.full((9, 9), np.nan))


@pytest.mark.parametrize("cut", [0.1, 0.25, 1.0])
def test_one_cut_through_the_tree(cut: float) -> None:
    Z = np.r_[X, [[np.nan, 0.0]]]
    model, expected = HDBSCAN().fit(Z), peer.HDBSCAN(copy=True).fit(Z)
    ours, theirs = model.dbscan_clustering(cut, 4), expected.dbscan_clustering(cut, 4)
    pairs = set(zip(ours, theirs, strict=True))
    assert len(pairs) == len(set(ours)) == len(set(theirs)) and (-3, -3) in pairs
    np.testing.assert_array_equal(ours == -1, theirs == -1)
    weight = np.r_[2.0, 0.0, np.ones(len(X) - 2)]
    twice = np.r_[X[:1], X[:1], X[2:]]
    np.testing.assert_array_equal(
        HDBSCAN().fit(X, sample_weight=weight).dbscan_clustering(cut)[2:],
        HDBSCAN().fit(twice).dbscan_clustering(cut)[2:],
    )


@pytest.mark.parametrize("seed", range(8))
def test_dense_groups_with_ties_and_borders(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 6, size=(60, 2)).astype(np.float32 if seed % 2 else np.float64)
    w = rng.integers(0, 3, 60).astype(float)
    ours = DBSCAN(eps=1.0, min_samples=6).fit(rows, sample_weight=w)
    some = w > 0
    theirs = peer.DBSCAN(eps=1.0, min_samples=6).fit(rows[some], sample_weight=w[some])
    np.testing.assert_array_equal(ours.labels_[some], theirs.labels_)
    np.testing.assert_array_equal(
        ours.core_sample_indices_, np.flatnonzero(some)[theirs.core_sample_indices_]
    )


@pytest.mark.parametrize("linkage", ["ward", "complete", "average"])
@pytest.mark.parametrize("ties", [False, True])
def test_the_cut_of_a_tree_is_numbered_as_the_peer_numbers_it(linkage: str, ties: bool) -> None:
    X = np.random.default_rng(0).normal(size=(70, 2))
    X = np.round(X) if ties else X
    for k in (1, 2, 5, 69, 70):
        theirs = peer.AgglomerativeClustering(k, linkage=linkage, compute_distances=True).fit(X)
        children, distances = mergers(X, linkage)
        np.testing.assert_array_equal(children, theirs.children_)
        np.testing.assert_allclose(distances, theirs.distances_)
        np.testing.assert_array_equal(cut(children, k), theirs.labels_)
        ours = AgglomerativeClustering(k, linkage=linkage, compute_distances=True).fit(X)
        for name in ("labels_", "children_", "distances_", "n_clusters_", "n_leaves_",
                     "n_connected_components_"):  # fmt: skip
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    with pytest.raises(ValueError, match="more clusters than samples"):
        AgglomerativeClustering(71, linkage=linkage).fit(X)
