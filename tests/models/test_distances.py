"""Distances in place of rows: whole tables, and sparse graphs of near rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.cluster as clusters
import sklearn.neighbors as peers
import torch
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.manifold import trustworthiness
from sklearn.metrics import DistanceMetric, pairwise_distances
from sklearn.pipeline import make_pipeline

from groundstate import (
    DBSCAN,
    HDBSCAN,
    MDS,
    TSNE,
    UMAP,
    AgglomerativeClustering,
    ClassicalMDS,
    Isomap,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LandmarkMDS,
    LocalOutlierFactor,
    NearestNeighbors,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
    SpectralEmbedding,
)
from groundstate.errors import DataError
from groundstate.math.manifold.affinities import joint
from groundstate.models.distances import with_gaps, without_gaps

X, Y = make_blobs(120, centers=3, random_state=0)
NEW = X[:30] + 0.1
LINE = np.column_stack([np.linspace(0, 4, 100), np.random.default_rng(0).random(100)])
NEAR = peers.KNeighborsTransformer(n_neighbors=20).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(5),
        KNeighborsClassifier(7, weights="distance"),
        KNeighborsRegressor(5, weights="distance"),
        RadiusNeighborsClassifier(1.0, outlier_label=0),
        RadiusNeighborsRegressor(4.0),
    ],
)
def test_supervised_models_after_cached_neighbours(model: Any) -> None:
    reach = peers.RadiusNeighborsTransformer(radius=6.0)
    for cached in (clone(NEAR), reach) if "radius" not in model.get_params() else (reach,):
        chain = make_pipeline(cached, clone(model).set_params(metric="precomputed"))
        plain = clone(model)
        np.testing.assert_allclose(chain.fit(X, Y).predict(NEW), plain.fit(X, Y).predict(NEW))
        np.testing.assert_allclose(chain[-1].predict(None), plain.predict(None))


def test_stored_zeros_are_distances_and_what_is_not_stored_is_no_neighbour() -> None:
    graph = csr_array((np.array([0.0, 3.0, 0.0, 2.0]), ([0, 0, 1, 1], [1, 2, 0, 2])), shape=(2, 3))
    inf = np.inf
    np.testing.assert_array_equal(with_gaps(graph), [[inf, 0.0, 3.0], [0.0, inf, 2.0]])
    np.testing.assert_array_equal(with_gaps(without_gaps(with_gaps(graph))), with_gaps(graph))
    fitted = NearestNeighbors(n_neighbors=2, metric="precomputed").fit(NEAR.transform(X))
    distance, index = fitted.kneighbors(graph_row := NEAR.transform(NEW))
    want = peers.NearestNeighbors(n_neighbors=2, metric="precomputed").fit(NEAR.transform(X))
    np.testing.assert_array_equal(index, want.kneighbors(graph_row)[1])
    np.testing.assert_allclose(distance, want.kneighbors(graph_row)[0])
    own = fitted.kneighbors()[1]  # also of a graph that leaves out its diagonal
    bare = NearestNeighbors(n_neighbors=20).fit(X).kneighbors_graph(mode="distance")
    assert bare.diagonal().max() == 0 and bare.nnz == 20 * len(X)
    again = NearestNeighbors(n_neighbors=2, metric="precomputed").fit(bare)
    np.testing.assert_array_equal(again.kneighbors()[1], own)
    reached = NearestNeighbors(metric="precomputed", radius=np.inf).fit(bare)
    assert [len(near) for near in reached.radius_neighbors()[1]] == [20] * len(X)


def test_more_neighbours_than_the_graph_holds_is_an_error() -> None:
    model = KNeighborsClassifier(25, metric="precomputed").fit(NEAR.transform(X), Y)
    with pytest.raises(DataError, match="25 neighbors are required .* have only 21 neighbors"):
        model.predict(NEAR.transform(NEW))
    with pytest.raises(DataError, match="31 neighbors are required"):
        Isomap(n_neighbors=30, metric="precomputed").fit(NEAR.transform(X))


def test_outliers_after_cached_neighbours() -> None:
    graph = NEAR.transform(X)
    given = LocalOutlierFactor(10, metric="precomputed").fit(graph)
    plain = LocalOutlierFactor(10).fit(X)
    np.testing.assert_allclose(given.negative_outlier_factor_, plain.negative_outlier_factor_)
    new = LocalOutlierFactor(10, metric="precomputed", novelty=True).fit(graph)
    np.testing.assert_allclose(
        new.score_samples(NEAR.transform(NEW)),
        LocalOutlierFactor(10, novelty=True).fit(X).score_samples(NEW),
    )


def test_groups_after_cached_neighbours() -> None:
    reach = peers.RadiusNeighborsTransformer(radius=0.5).fit(X)
    graph = reach.transform(X)
    given, plain = DBSCAN(0.5, metric="precomputed").fit(graph), DBSCAN(0.5).fit(X)
    np.testing.assert_array_equal(given.labels_, plain.labels_)
    np.testing.assert_array_equal(given.predict(reach.transform(NEW)), plain.predict(NEW))
    weight = np.arange(120) % 3
    np.testing.assert_array_equal(
        DBSCAN(0.5, metric="precomputed").fit(graph, sample_weight=weight).labels_,
        DBSCAN(0.5).fit(X, sample_weight=weight).labels_,
    )


def test_groups_of_any_density_from_distances_with_gaps() -> None:
    D = pairwise_distances(X + 2 * Y[:, None])
    D[D > 9] = np.inf
    given = HDBSCAN(metric="precomputed").fit(D)
    theirs = clusters.HDBSCAN(metric="precomputed", copy=True).fit(D).labels_
    assert len(set(zip(given.labels_, theirs, strict=True))) == len(set(theirs))
    graph = csr_matrix(without_gaps(D))
    np.testing.assert_array_equal(HDBSCAN(metric="precomputed").fit(graph).labels_, given.labels_)
    np.testing.assert_array_equal(given.predict(D[:9]), given.predict(graph[:9]))
    apart = np.kron(np.eye(2), np.ones((60, 60)))
    np.fill_diagonal(apart, 0)
    with pytest.raises(ValueError, match="disconnected graph"):
        HDBSCAN(metric="precomputed").fit(csr_matrix(apart))
    D[0, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        HDBSCAN(metric="precomputed").fit(D)


def test_maps_after_cached_neighbours() -> None:
    near = peers.KNeighborsTransformer(n_neighbors=40).fit(LINE)
    graph, new = near.transform(LINE), LINE[:7] + 0.01
    given = Isomap(n_neighbors=10, metric="precomputed").fit(graph)
    plain = Isomap(n_neighbors=10).fit(LINE)
    np.testing.assert_allclose(given.embedding_, plain.embedding_, atol=1e-9)
    np.testing.assert_allclose(
        given.transform(near.transform(new)), plain.transform(new), atol=1e-9
    )
    for mine, rows in zip(
        joint(torch.from_numpy(with_gaps(graph)), 10.0, "precomputed"),
        joint(torch.from_numpy(LINE), 10.0),
        strict=True,
    ):
        np.testing.assert_allclose(mine, rows, rtol=1e-6)
    laid = TSNE(metric="precomputed", init="random", perplexity=10, random_state=0).fit(graph)
    assert trustworthiness(LINE, laid.embedding_) > 0.95
    settings = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 8}
    np.testing.assert_allclose(
        SpectralEmbedding(**settings).fit_transform(graph),
        SpectralEmbedding(n_neighbors=8).fit_transform(LINE),
        atol=1e-8,
    )
    spectral = SpectralEmbedding(**settings).fit(graph)
    np.testing.assert_allclose(
        spectral.transform(near.transform(new)),
        SpectralEmbedding(n_neighbors=8).fit(LINE).transform(new),
        atol=1e-8,
    )
    laid = UMAP(metric="precomputed", n_neighbors=15, random_state=0).fit(graph)
    assert trustworthiness(LINE, laid.embedding_) > 0.9
    with pytest.raises(DataError, match="method='exact' needs the distances of all pairs"):
        TSNE(metric="precomputed", init="random", perplexity=10, method="exact").fit(graph)


def test_parts_of_a_graph_without_a_distance_between_them() -> None:
    graph = peers.KNeighborsTransformer(n_neighbors=4).fit_transform(np.r_[LINE, LINE + 50])
    with (
        pytest.warns(UserWarning, match="2 parts"),
        pytest.raises(DataError, match="2 parts, between which no distance was given"),
    ):
        Isomap(n_neighbors=3, metric="precomputed").fit(graph)


@pytest.mark.parametrize(
    "model", [MDS(), ClassicalMDS(), LandmarkMDS(), AgglomerativeClustering(linkage="single")]
)
def test_models_of_all_pairs_refuse_graphs(model: Any) -> None:
    with pytest.raises(TypeError, match="needs the distances of all pairs, got a sparse matrix"):
        clone(model).set_params(metric="precomputed").fit(NEAR.transform(X))


def test_distances_of_standardised_columns() -> None:
    V = X.var(0)
    for model in (HDBSCAN, Isomap, LocalOutlierFactor):
        given = model(metric="seuclidean", metric_params={"V": V}).fit(X)
        scaled = model().fit(X / np.sqrt(V))
        name = next(n for n in ("labels_", "dist_matrix_", "negative_outlier_factor_")
                    if hasattr(given, n))  # fmt: skip
        np.testing.assert_allclose(getattr(given, name), getattr(scaled, name), rtol=1e-6)


def test_a_function_of_the_table_is_a_metric_of_merged_groups() -> None:
    given = AgglomerativeClustering(metric=pairwise_distances, linkage="average").fit(X)
    plain = AgglomerativeClustering(linkage="average").fit(X)
    np.testing.assert_array_equal(given.labels_, plain.labels_)
    np.testing.assert_array_equal(given.predict(NEW), plain.predict(NEW))
    np.testing.assert_allclose(given.energy(NEW), plain.energy(NEW), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["euclidean", "manhattan", "minkowski"])
def test_metrics_as_objects(name: str, kind: Any) -> None:
    p = {"p": 3} if name == "minkowski" else {}
    metric = DistanceMetric.get_metric(name, dtype=kind, **p)
    rows, new = X.astype(kind), NEW.astype(kind)
    ours = NearestNeighbors(metric=metric).fit(rows)
    theirs = peers.NearestNeighbors(metric=metric, algorithm="brute").fit(rows)
    distance, index = theirs.kneighbors(new)
    np.testing.assert_array_equal(ours.kneighbors(new)[1], index)
    np.testing.assert_allclose(ours.kneighbors(new)[0], distance, rtol=1e-5)
    named = RadiusNeighborsClassifier(1.0, metric=name, outlier_label=0, **p).fit(rows, Y)
    given = RadiusNeighborsClassifier(1.0, metric=metric, outlier_label=0).fit(rows, Y)
    np.testing.assert_array_equal(given.predict(new), named.predict(new))
