"""Nearest neighbours: worked examples, exactness against brute force, metrics, weights, ties."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.neighbors as peers
import torch
from sklearn.datasets import load_iris, make_regression

import groundstate
from groundstate import KNeighborsClassifier, KNeighborsRegressor
from groundstate.errors import Unsupported
from groundstate.math.neighbors.nearest import NearestRows
from groundstate.math.neighbors.nearest_device import nearest_on_device

rng = np.random.default_rng(0)
X, y = load_iris(return_X_y=True)
A, b = make_regression(300, 5, n_targets=2, random_state=0)
Q = rng.normal(size=(80, 5))
VI = np.linalg.inv(np.cov(A.T) + 0.1 * np.eye(5))


def brute(queries: np.ndarray, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The definition: all distances, sorted, ties to the lower index."""
    d = np.array([[np.sqrt(((q - r) ** 2).sum()) for r in rows] for q in queries])
    index = np.argsort(d, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(d, index, 1), index


def test_worked_example() -> None:
    line, label = np.array([[0.0], [1.0], [2.0], [10.0]]), np.array(["a", "a", "b", "b"])
    votes = [
        KNeighborsClassifier(3, weights=w).fit(line, label).predict([[3.0]])[0]
        for w in ("uniform", "distance")
    ]
    assert votes == ["a", "b"]


def test_one_neighbour_knows_the_rows_and_all_neighbours_the_majority() -> None:
    rows, label = A, (A[:, 0] > 0.3).astype(int)
    assert KNeighborsClassifier(1).fit(rows, label).score(rows, label) == 1.0
    everybody = KNeighborsClassifier(len(rows)).fit(rows, label)
    assert (everybody.predict(Q) == np.bincount(label).argmax()).all()


@pytest.mark.parametrize("algorithm", ["brute", "tree"])
@pytest.mark.parametrize(
    "rows",
    [
        rng.normal(size=(3000, 8)),
        rng.normal(size=(3000, 8)).astype(np.float32),
        rng.normal(size=(3000, 8)) * [1e6, 1, 1, 1, 1, 1, 1, 1],  # beyond single precision
        rng.normal(size=(3000, 8)) + 1e5,  # far from the origin
        np.round(rng.normal(size=(3000, 2))),  # many ties
        np.repeat(rng.normal(size=(30, 4)), 100, 0),  # every row a hundred times
    ],
    ids=["normal", "single", "scales", "offset", "ties", "copies"],
)
def test_search_is_exact(rows, algorithm) -> None:
    queries = np.concatenate([rows[::61], rows[:20] + 0.25])
    distance, index = NearestRows(rows, algorithm).query(queries, 7)
    expected = brute(queries.astype(np.float64), rows.astype(np.float64), 7)
    np.testing.assert_array_equal(index, expected[1])
    np.testing.assert_allclose(distance, expected[0], rtol=1e-9, atol=1e-9)
    tensors = torch.from_numpy(queries), torch.from_numpy(rows)
    on_device = nearest_on_device(*tensors, 7)
    np.testing.assert_array_equal(on_device[1].numpy(), expected[1])


def test_threads_do_not_change_the_answer_or_the_setting() -> None:
    rows, queries = rng.normal(size=(5000, 12)), rng.normal(size=(700, 12))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = NearestRows(rows).query(queries, 5)[1]
        torch.set_num_threads(2)
        two = NearestRows(rows).query(queries, 5)[1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weights": "distance"},
        {"weights": lambda d: np.exp(-d)},
        {"metric": "manhattan"},
        {"p": 3},
        {"metric": "chebyshev", "weights": "distance"},
        {"metric": "cosine"},
        {"metric": "mahalanobis", "metric_params": {"VI": VI}},
        {"metric": lambda a, b: np.abs(a - b).max()},
        {"algorithm": "kd_tree", "n_neighbors": 11},
    ],
)
def test_equals_scikit_learn(settings) -> None:
    theirs = dict(settings)
    if theirs.get("metric") in ("cosine", "mahalanobis") or callable(theirs.get("metric")):
        theirs["algorithm"] = "brute"
    label = (A[:, 0] > 0).astype(int) + (A[:, 1] > 0)
    ours = KNeighborsClassifier(**settings).fit(A, label)
    peer = peers.KNeighborsClassifier(**theirs).fit(A, label)
    np.testing.assert_allclose(ours.predict_proba(Q), peer.predict_proba(Q), atol=1e-9)
    assert (ours.predict(Q) == peer.predict(Q)).all()
    ours, peer = KNeighborsRegressor(**settings).fit(A, b), peers.KNeighborsRegressor(**theirs)
    np.testing.assert_allclose(ours.predict(Q), peer.fit(A, b).predict(Q), rtol=1e-9)
    mine, other = ours.kneighbors(Q), peer.kneighbors(Q)
    np.testing.assert_array_equal(mine[1], other[1])
    np.testing.assert_allclose(mine[0], other[0], atol=1e-9)


def test_mahalanobis_is_euclidean_after_a_linear_map() -> None:
    root = np.linalg.cholesky(VI)
    a = KNeighborsRegressor(metric="mahalanobis", metric_params={"VI": VI}).fit(A, b)
    c = KNeighborsRegressor().fit(A @ root, b)
    np.testing.assert_array_equal(a.kneighbors(Q)[1], c.kneighbors(Q @ root)[1])


def test_fitted_rows_are_not_their_own_neighbours() -> None:
    ours, peer = KNeighborsRegressor(4).fit(A, b), peers.KNeighborsRegressor(4).fit(A, b)
    np.testing.assert_array_equal(ours.kneighbors()[1], peer.kneighbors()[1])
    for mode in ("connectivity", "distance"):
        difference = ours.kneighbors_graph(Q, mode=mode) - peer.kneighbors_graph(Q, mode=mode)
        assert abs(difference).max() < 1e-12


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_weight_is_repetition(weights) -> None:
    w = np.arange(len(A)) % 4
    many = np.repeat(np.arange(len(A)), w)
    label = (A[:, 0] > 0).astype(int)
    a = KNeighborsClassifier(weights=weights).fit(A, label, sample_weight=w)
    c = KNeighborsClassifier(weights=weights).fit(A[many], label[many])
    np.testing.assert_allclose(a.predict_proba(Q), c.predict_proba(Q), atol=1e-12)
    a = KNeighborsRegressor(weights=weights).fit(A, b, sample_weight=w)
    c = KNeighborsRegressor(weights=weights).fit(A[many], b[many])
    np.testing.assert_allclose(a.predict(Q), c.predict(Q), rtol=1e-10)


def test_half_weights_need_twice_the_rows() -> None:
    label = (A[:, 0] > 0).astype(int)
    half = KNeighborsClassifier(5).fit(A, label, sample_weight=np.full(len(A), 0.5))
    np.testing.assert_allclose(
        half.predict_proba(Q), KNeighborsClassifier(10).fit(A, label).predict_proba(Q)
    )


def test_energy_is_minus_log_of_the_votes() -> None:
    model = KNeighborsClassifier().fit(X, y)
    with np.errstate(divide="ignore"):
        expected = -np.log(model.predict_proba(X))
    got = np.column_stack([model.energy(X, np.full(len(X), c)) for c in range(3)])
    np.testing.assert_allclose(got, expected)
    np.testing.assert_allclose(model.energy(X), 0.0, atol=1e-12)


def test_far_rows_and_columns_of_noise() -> None:
    model = KNeighborsClassifier().fit(X, y)
    assert np.isfinite(model.predict_proba(np.full((1, 4), 1e200))).all()
    noisy = np.column_stack([X, rng.normal(0, 1000, len(X))])
    assert KNeighborsClassifier().fit(noisy[::2], y[::2]).score(noisy[1::2], y[1::2]) < 0.6


def test_refusals_say_why() -> None:
    with pytest.raises(ValueError, match="n_neighbors = 5, n_samples_fit = 3"):
        KNeighborsClassifier().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="n_neighbors = 400, n_samples_fit = 150"):
        KNeighborsClassifier().fit(X, y).kneighbors(X, 400)
    with pytest.raises(Unsupported, match="no metric 'nope'; choose one of minkowski"):
        KNeighborsClassifier(metric="nope").fit(X, y)
    with pytest.raises(ValueError, match="VI must be positive definite"):
        KNeighborsClassifier(metric="mahalanobis", metric_params={"VI": -np.eye(4)}).fit(X, y)
    with pytest.raises(ValueError, match="has no parameter 'q'"):
        KNeighborsClassifier(metric_params={"q": 1}).fit(X, y)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_none_asks_about_the_rows_without_themselves(weights: str) -> None:
    ours, peer = (
        m.KNeighborsClassifier(5, weights=weights).fit(A, b[:, 0] > 0) for m in (groundstate, peers)
    )
    np.testing.assert_allclose(ours.predict_proba(None), peer.predict_proba(None), atol=1e-12)
    assert ours.score(None, b[:, 0] > 0) == peer.score(None, b[:, 0] > 0)
    ours, peer = (m.KNeighborsRegressor(5, weights=weights).fit(A, b) for m in (groundstate, peers))
    np.testing.assert_allclose(ours.predict(None), peer.predict(None), atol=1e-9)
    settings = {"radius": 1.5, "weights": weights, "outlier_label": "most_frequent"}
    ours, peer = (m.RadiusNeighborsClassifier(**settings).fit(X, y) for m in (groundstate, peers))
    np.testing.assert_allclose(ours.predict_proba(None), peer.predict_proba(None), atol=1e-12)
    ours, peer = (
        m.RadiusNeighborsRegressor(radius=2.0, weights=weights).fit(X, 1.0 * y)
        for m in (groundstate, peers)
    )
    np.testing.assert_allclose(ours.predict(None), peer.predict(None), atol=1e-12)
    count = 1 + np.arange(150) % 2
    weighted = KNeighborsClassifier(3, weights=weights).fit(X, y, count)
    repeated = KNeighborsClassifier(3, weights=weights).fit(X.repeat(count, 0), y.repeat(count))
    np.testing.assert_allclose(
        weighted.predict_proba(None).repeat(count, 0), repeated.predict_proba(None), atol=1e-12
    )
    with pytest.raises(ValueError, match="Expected n_neighbors < n_samples_fit"):
        KNeighborsClassifier(3).fit(X[:3], [0, 1, 1]).predict(None)
