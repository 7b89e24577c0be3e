"""Neighbours by any metric of scikit-learn, by given distances, and with several labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn.neighbors as peers
import torch
from scipy.sparse import csr_matrix
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import cross_val_score

import groundstate
from groundstate import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from groundstate.energy.neighbors.memory import Memory
from groundstate.errors import DataError

rng = np.random.default_rng(0)
A, Q = rng.normal(size=(80, 4)), rng.normal(size=(20, 4))
y = (A[:, 0] > 0).astype(int) + (A[:, 1] > 0.5)
LABELS = np.column_stack([np.array(list("cab"))[y], np.where(A[:, 2] > 0, "x", "y")])
HOLES = np.where(rng.random(A.shape) < 0.2, np.nan, A)
SETTINGS = [
    {"metric": "infinity"},
    {"metric": "sqeuclidean"},
    {"metric": "canberra"},
    {"metric": "braycurtis"},
    {"metric": "correlation"},
    {"metric": "seuclidean", "metric_params": {"V": [0.5, 1.0, 2.0, 3.0]}},
    {"metric_params": {"w": [0.5, 1.0, 2.0, 3.0]}},
    {"p": 3, "metric_params": {"w": [0.5, 1.0, 2.0, 3.0]}},
    {"p": 1, "metric_params": {"w": [0.5, 1.0, 2.0, 3.0]}},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_metrics_by_name(settings, scale) -> None:
    if settings.get("metric") == "seuclidean":
        settings = settings | {"metric_params": {"V": np.multiply(scale**2, [0.5, 1.0, 2.0, 3.0])}}
    ours = NearestNeighbors(radius=scale, **settings).fit(A * scale)
    name, params = settings.get("metric", "minkowski"), settings.get("metric_params", {})
    name = "chebyshev" if name == "infinity" else name
    params = params | ({"p": settings.get("p", 2)} if name == "minkowski" else {})
    table = pairwise_distances(Q * scale, A * scale, metric=name, **params)
    distance, index = ours.kneighbors(Q * scale)
    np.testing.assert_array_equal(index, np.argsort(table, axis=1, kind="stable")[:, :5])
    np.testing.assert_allclose(distance, np.sort(table, axis=1)[:, :5], rtol=1e-9)
    found = ours.radius_neighbors_graph(Q * scale).toarray() > 0
    np.testing.assert_array_equal(found, table <= scale)
    grid = torch.tensor(Q * scale)[:, None].expand(-1, 80, -1).reshape(-1, 4)
    energy = ours.energy_(x=grid, z=torch.arange(80).repeat(20)).reshape(20, 80)
    np.testing.assert_allclose(energy, 0.5 * table**2, rtol=1e-9, atol=1e-30)


@pytest.mark.parametrize(
    "metric", ["hamming", "jaccard", "dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]
)
def test_scores_of_sets(metric) -> None:
    sets, asked = A > 0.3, Q > 0.3
    ours = NearestNeighbors(n_neighbors=80, metric=metric).fit(sets)
    distance, index = ours.kneighbors(asked)
    table = pairwise_distances(asked, sets, metric=metric)
    table[np.isnan(table)] = 0.0  # two empty sets
    np.testing.assert_allclose(distance, np.take_along_axis(table, index, 1), atol=1e-12)
    np.testing.assert_allclose(distance, np.sort(table, axis=1), atol=1e-12)


def test_missing_values_and_the_globe() -> None:
    ours = KNeighborsClassifier(metric="nan_euclidean").fit(HOLES, y)
    peer = peers.KNeighborsClassifier(metric="nan_euclidean").fit(HOLES, y)
    np.testing.assert_allclose(ours.kneighbors(HOLES)[0], peer.kneighbors(HOLES)[0], atol=1e-9)
    np.testing.assert_array_equal(ours.predict(HOLES), peer.predict(HOLES))
    with pytest.raises(DataError, match="contains NaN in"):
        KNeighborsClassifier().fit(HOLES, y)
    ours = NearestNeighbors(metric="haversine").fit(A[:, :2])
    peer = peers.NearestNeighbors(metric="haversine").fit(A[:, :2])
    np.testing.assert_allclose(ours.kneighbors(Q[:, :2])[0], peer.kneighbors(Q[:, :2])[0])
    with pytest.raises(ValueError, match="'haversine' needs 2 features"):
        NearestNeighbors(metric="haversine").fit(A)


def test_given_distances(tmp_path: Path) -> None:
    own, asked = pairwise_distances(A), pairwise_distances(Q, A)
    by_rows = KNeighborsClassifier(weights="distance").fit(A, y)
    given = KNeighborsClassifier(weights="distance", metric="precomputed").fit(own, y)
    np.testing.assert_allclose(given.predict_proba(asked), by_rows.predict_proba(Q))
    np.testing.assert_array_equal(given.kneighbors()[1], by_rows.kneighbors()[1])
    weight = rng.integers(0, 3, 80)
    by_rows = KNeighborsClassifier().fit(A, y, weight)
    given = KNeighborsClassifier(metric="precomputed").fit(own, y, weight)
    given.save(tmp_path / "model")
    for model in (given, groundstate.load(tmp_path / "model")):
        np.testing.assert_array_equal(model.predict_proba(asked), by_rows.predict_proba(Q))
        np.testing.assert_array_equal(model.kneighbors()[1], by_rows.kneighbors()[1])
    scores = cross_val_score(KNeighborsRegressor(metric="precomputed"), own, A[:, 0])
    np.testing.assert_allclose(scores, cross_val_score(KNeighborsRegressor(), A, A[:, 0]))
    with pytest.raises(DataError, match=r"must be square.*got shape \(20, 80\)"):
        KNeighborsClassifier(metric="precomputed").fit(asked, y[:20])
    with pytest.raises(DataError, match="Negative values"):
        KNeighborsClassifier(metric="precomputed").fit(-own, y)


def test_sparse_rows_are_rows() -> None:
    rows = np.where(np.abs(A) > 0.5, A, 0.0)
    for model in (KNeighborsClassifier(), KNeighborsRegressor()):
        dense = model.fit(rows, y).predict(Q)
        np.testing.assert_array_equal(model.fit(csr_matrix(rows), y).predict(csr_matrix(Q)), dense)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_several_labels(weights, tmp_path: Path) -> None:
    ours = KNeighborsClassifier(4, weights=weights).fit(A, LABELS)
    peer = peers.KNeighborsClassifier(4, weights=weights).fit(A, LABELS)
    assert ours.outputs_2d_ and [list(v) for v in ours.classes_] == [list("abc"), list("xy")]
    np.testing.assert_array_equal(ours.predict(Q), peer.predict(Q))
    for mine, theirs in zip(ours.predict_proba(Q), peer.predict_proba(Q)):
        np.testing.assert_allclose(mine, theirs)
    ours.save(tmp_path / "model")
    np.testing.assert_array_equal(groundstate.load(tmp_path / "model").predict(Q), ours.predict(Q))
    one = KNeighborsClassifier(1).fit(A, LABELS)
    np.testing.assert_array_equal(one.infer({"x": A}, "y"), LABELS)
    np.testing.assert_array_equal(one.energy(A, LABELS), 0.0)
    single = KNeighborsClassifier(4, weights=weights).fit(A, LABELS[:, 0])
    assert not single.outputs_2d_
    np.testing.assert_allclose(ours.predict_proba(Q)[0], single.predict_proba(Q))
    with pytest.raises(ValueError, match="combination of labels not seen in fit"):
        ours.energy(A[:1], np.array([["z", "x"]]))


def test_a_metric_without_its_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="'mahalanobis' needs metric_params"):
        NearestNeighbors(metric="mahalanobis").fit(A)
    with pytest.raises(ValueError, match="'seuclidean' needs metric_params"):
        NearestNeighbors(metric="seuclidean").fit(A)
    with pytest.raises(ValueError, match="one weight of at least 0 for each of the 4 features"):
        NearestNeighbors(metric_params={"w": [1.0]}).fit(A)
    with pytest.raises(ValueError, match="finite p"):
        NearestNeighbors(p=np.inf, metric_params={"w": np.ones(4)}).fit(A)


def test_cosine_distances_of_tiny_rows() -> None:
    memory = Memory(4, metric="cosine")
    memory.keep(torch.tensor(A * 1e-9), None)
    x = torch.tensor(Q * 1e-9)
    index = torch.arange(80).expand(20, -1)
    torch.testing.assert_close(memory.measured(x, index), memory.every(x))
