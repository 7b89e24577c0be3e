"""KMeans: the numbers of the notes, the peer from the same start, and what bounds may not change."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans as PeerKMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from groundstate import KMeans
from groundstate.energy import CentroidEnergy
from groundstate.errors import NotConverged
from groundstate.learn import EM, Lloyd, Naive, fit
from groundstate.learn.solvers.latent.kmeans.rows import CentroidRows


def line(*values: float) -> np.ndarray:
    return np.array(values, float)[:, None]


@pytest.mark.parametrize(
    ("X", "start", "centers", "inertia"),
    [
        (line(0, 1, 9, 10), line(0, 1), line(0.5, 9.5), 1.0),
        (line(-2, -1, 1, 3), line(-1, 1), line(-1.5, 2.0), 2.5),
        ([[0, 0], [0, 1], [4, 0], [4, 1]], [[2, 0], [2, 1]], [[2, 0], [2, 1]], 16.0),
        ([[0, 0], [0, 1], [4, 0], [4, 1]], [[0, 0.5], [4, 0.5]], [[0, 0.5], [4, 0.5]], 1.0),
    ],
)
def test_worked_examples(X: object, start: object, centers: object, inertia: float) -> None:
    model = KMeans(2, init=start).fit(np.asarray(X, float))
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-12)
    assert model.inertia_ == pytest.approx(inertia, abs=1e-12)


def test_one_step_of_the_first_example() -> None:
    with pytest.warns(NotConverged, match="raise max_iter"):
        model = KMeans(2, init=line(0, 1), max_iter=1).fit(line(0, 1, 9, 10))
    np.testing.assert_allclose(model.cluster_centers_, line(0, 20 / 3))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_peer_from_the_same_start(dtype: type, weighted: bool) -> None:
    X, _ = make_blobs(3000, 7, centers=20, cluster_std=4.0, random_state=0)
    X = (X + 100).astype(dtype)
    w = np.random.default_rng(0).uniform(0, 3, len(X)) if weighted else None
    start = X[:20]
    ours = KMeans(20, init=start, tol=0).fit(X, sample_weight=w)
    peer = PeerKMeans(20, init=start, n_init=1, tol=0).fit(X, sample_weight=w)
    assert ours.cluster_centers_.dtype == dtype
    assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-12 if dtype is np.float64 else 1e-4)
    if dtype is np.float64:  # in single precision a tie may send the runs apart
        assert ours.n_iter_ == peer.n_iter_
        np.testing.assert_array_equal(ours.labels_, peer.labels_)
        np.testing.assert_allclose(ours.cluster_centers_, peer.cluster_centers_, rtol=1e-12)


@pytest.mark.parametrize("bounds", ["hamerly", "yinyang", "elkan"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_bounds_change_no_label_of_any_iteration(bounds: str, dtype: torch.dtype) -> None:
    X, _ = make_blobs(4000, 8, centers=30, cluster_std=2.5, random_state=1)
    x = torch.from_numpy(X).to(dtype)
    rows, plain = CentroidRows(x, None, bounds), CentroidRows(x, None, "lloyd")
    one, other = rows.begin(x[:30].clone()), plain.begin(x[:30].clone())
    for _ in range(20):
        assert rows.assign([one]) == plain.assign([other])
        assert torch.equal(one.label, other.label)
        assert rows.update(one) == pytest.approx(plain.update(other), rel=1e-9, abs=1e-12)
    assert one.compared < 0.5 * other.compared == 0.5 * 20 * 4000


def test_hamerly_compares_a_fifth_of_the_rows() -> None:
    X, _ = make_blobs(20000, n_features=8, centers=50, cluster_std=1.5, random_state=0)
    rows = CentroidRows(torch.from_numpy(X), None, "hamerly")
    run = rows.begin(torch.from_numpy(X[:50]))
    for _ in range(20):
        rows.assign([run])
        rows.update(run)
    assert run.compared <= 0.25 * 20 * len(X)


def test_runs_share_a_pass_and_end_as_alone() -> None:
    X, _ = make_blobs(9000, 4, centers=12, random_state=0)
    x = torch.from_numpy(X)
    rows = CentroidRows(x, None)
    together = [rows.begin(x[i : i + 10 + i]) for i in range(3)]  # also of different sizes
    alone = [rows.begin(x[i : i + 10 + i]) for i in range(3)]
    for _ in range(6):
        moved = rows.assign(together)
        assert moved == [rows.assign([run])[0] for run in alone]
        for one, other in zip(together, alone, strict=True):
            assert rows.update(one) == rows.update(other)
            assert torch.equal(one.mu, other.mu)


def test_objective_never_rises_and_is_half_the_mean_inertia() -> None:
    X = load_iris().data
    model = KMeans(3, random_state=0, tol=0).fit(X)
    objective = np.array(model.history_.objective)
    assert (np.diff(objective) <= 1e-12).all()
    assert objective[-1] * 2 * len(X) == pytest.approx(model.inertia_, rel=1e-10)


def test_is_em_at_temperature_zero() -> None:
    X = torch.from_numpy(load_iris().data)
    energies = [CentroidEnergy(3, 4).double() for _ in range(2)]
    for energy in energies:
        energy.mu.data.copy_(X[[0, 60, 120]])
    fit(energies[0], {"x": X}, Naive(latent="minimise"), EM(tol=1e-12))
    fit(energies[1], {"x": X}, Naive(latent="minimise"), Lloyd(init=None, tol=0))
    torch.testing.assert_close(energies[0].mu, energies[1].mu)


def test_it_is_the_solver_of_choice() -> None:
    energy = CentroidEnergy(2, 1).double()
    x = torch.tensor([[0.0], [1.0], [9.0], [10.0]], dtype=torch.float64)
    assert fit(energy, {"x": x}, Naive(latent="minimise"), random_state=0).solver == "Lloyd"


def test_empty_clusters_move_to_the_farthest_rows_as_in_the_peer() -> None:
    X = np.vstack([np.zeros((5, 2)), np.full((5, 2), 4.0), [[9.0, 9.0]]])
    start = np.array([[0.0, 0.0], [50.0, 50.0], [60.0, 60.0]])
    ours = KMeans(3, init=start).fit(X)
    peer = PeerKMeans(3, init=start, n_init=1).fit(X)
    np.testing.assert_allclose(ours.cluster_centers_, peer.cluster_centers_)
    assert ours.inertia_ < 1e-20


def test_relocation_moves_a_repeated_row_like_a_heavy_one() -> None:
    X = np.array([[0.0], [1.0], [2.0], [30.0]])
    start = np.array([[0.0], [500.0]])
    weighted = KMeans(2, init=start, max_iter=300).fit(X, sample_weight=[1, 1, 1, 3])
    repeated = KMeans(2, init=start, max_iter=300).fit(X[[3, 0, 1, 3, 2, 3]])
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)


def test_more_clusters_than_different_rows() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 4, axis=0)
    for init in ("k-means++", "random"):
        with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\)"):
            model = KMeans(4, init=init, random_state=0).fit(X)
        assert model.inertia_ == 0.0 and len(np.unique(model.labels_)) == 2


def test_plus_plus_beats_random_starts() -> None:
    X, _ = make_blobs(2000, centers=25, cluster_std=0.15, center_box=(-10, 10), random_state=1)
    runs = {
        init: [KMeans(25, init=init, n_init=1, random_state=s).fit(X).inertia_ for s in range(15)]
        for init in ("k-means++", "random")
    }
    best = min(runs["k-means++"])
    assert np.median(runs["k-means++"]) <= 1.5 * best < 5 * best < np.median(runs["random"])


def test_restarts_keep_the_best() -> None:
    X, _ = make_blobs(600, centers=12, cluster_std=0.3, random_state=3)
    once = KMeans(12, init="random", n_init=1, random_state=0).fit(X)
    often = KMeans(12, init="random", random_state=0).fit(X)  # "auto" is 10
    assert often.inertia_ <= once.inertia_
    assert often.n_iter_ == len(often.history_.objective)


def test_callable_and_bad_starts() -> None:
    X = load_iris().data
    seen = []

    def start(X: np.ndarray, k: int, random_state: np.random.RandomState) -> np.ndarray:
        seen.append(random_state.randint(1000))
        return X[:k]

    KMeans(3, init=start, n_init=2, random_state=0).fit(X)
    assert len(seen) == 2 and seen[0] != seen[1]
    with pytest.raises(ValueError, match=r"one row per cluster, \(3, 4\), got \(2, 4\)"):
        KMeans(3, init=X[:2]).fit(X)
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        KMeans(3).fit(X[:2])


def test_answers() -> None:
    X = load_iris().data
    model = KMeans(3, random_state=0).fit(X)
    distances = model.transform(X)
    assert distances.shape == (150, 3)
    np.testing.assert_array_equal(distances.argmin(1), model.labels_)
    np.testing.assert_array_equal(model.fit_predict(X), model.labels_)
    assert model.labels_.dtype == np.int32
    assert model.score(X) == pytest.approx(-model.inertia_)
    assert model.score(X, sample_weight=np.full(150, 2.0)) == pytest.approx(-2 * model.inertia_)
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]
    energy = model.energy(X, z=model.labels_)
    np.testing.assert_allclose(2 * energy.sum(), model.inertia_)
    best = model.infer({"x": X}, "z")
    np.testing.assert_array_equal(best, model.labels_)
    drawn = model.infer({"z": [0, 1, 2]}, "x", "sample", n=2000, random_state=0)
    np.testing.assert_allclose(drawn.mean(0), model.cluster_centers_, atol=0.1)


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_rows_are_dense_rows(init: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, (400, 30)) * rng.uniform(0.5, 2, (400, 30))  # no ties
    w = rng.uniform(0, 2, len(X)) if weighted else None
    start = X[:5]
    dense = KMeans(5, init=start, tol=0).fit(X, sample_weight=w)
    sparse = KMeans(5, init=start, tol=0).fit(csr_matrix(X), sample_weight=w)
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, atol=1e-12)
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-10)
    np.testing.assert_array_equal(sparse.predict(csr_matrix(X)), dense.predict(X))
    np.testing.assert_allclose(sparse.transform(csr_matrix(X)), dense.transform(X), atol=1e-7)
    np.testing.assert_allclose(sparse.energy(csr_matrix(X)), dense.energy(X), rtol=1e-10)
    drawn = KMeans(5, init=init, random_state=0).fit(csr_matrix(X), sample_weight=w)
    turned = KMeans(5, init=init, random_state=0)
    turned.fit(csr_matrix(X[::-1]), sample_weight=None if w is None else w[::-1])
    np.testing.assert_allclose(drawn.cluster_centers_, turned.cluster_centers_, atol=1e-9)


def test_empty_clusters_stay_where_asked() -> None:
    X = line(0, 1, 2, 3)
    kept = KMeans(2, init=line(1, 50), empty="keep")
    with pytest.warns(ConvergenceWarning):
        kept.fit(X)
    np.testing.assert_allclose(kept.cluster_centers_, line(1.5, 50))


def test_largest_shift_as_the_rule_to_stop() -> None:
    X, _ = make_blobs(500, 3, centers=6, cluster_std=3.0, random_state=0)
    model = KMeans(6, init=X[:6], stop="max_shift", tol=0.05).fit(X)
    moves = model.history_.extra["max_shift"]
    assert len(moves) == model.n_iter_
    assert moves[-1] < 0.05 <= min(moves[:-1])
    assert (model.predict(X) == model.labels_).all()


def test_scalable_start_is_as_good_and_counts_weights() -> None:
    X, _ = make_blobs(2000, centers=25, cluster_std=0.15, center_box=(-10, 10), random_state=1)
    plain = [KMeans(25, random_state=s).fit(X).inertia_ for s in range(10)]
    other = [
        KMeans(25, init="scalable-k-means++", random_state=s).fit(X).inertia_ for s in range(10)
    ]
    assert np.median(other) < 1.3 * np.median(plain)
    w = np.random.default_rng(0).integers(1, 4, 300).astype(float)
    one = KMeans(6, init="scalable-k-means++", random_state=0).fit(X[:300], sample_weight=w)
    two = KMeans(6, init="scalable-k-means++", random_state=0).fit(
        np.repeat(X[:300], w.astype(int), 0)
    )
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-9)


def test_plus_plus_over_fifty_seeds() -> None:
    X, _ = make_blobs(2000, centers=25, cluster_std=0.15, center_box=(-10, 10), random_state=1)
    found = {
        init: np.array(
            [KMeans(25, init=init, n_init=1, random_state=s).fit(X).inertia_ for s in range(50)]
        )
        for init in ("k-means++", "random")
    }
    best = min(v.min() for v in found.values())
    assert np.median(found["k-means++"]) / best <= 1.3
    assert np.median(found["random"]) / best >= 10


def test_given_starts_are_tried_once() -> None:
    X = line(0, 1, 9, 10)
    with pytest.warns(RuntimeWarning, match="performing only one init"):
        KMeans(2, init=line(0, 1), n_init=3).fit(X)


@pytest.mark.parametrize("algorithm", ["auto", "lloyd", "hamerly", "yinyang", "elkan"])
def test_algorithms_agree_at_every_iteration(algorithm: str) -> None:
    X, _ = make_blobs(1500, 5, centers=40, cluster_std=2.0, random_state=2)
    plain = KMeans(40, init=X[:40], algorithm="lloyd", tol=0).fit(X)
    other = KMeans(40, init=X[:40], algorithm=algorithm, tol=0).fit(X)
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_allclose(other.history_.objective, plain.history_.objective, rtol=1e-12)


def test_huge_and_tiny_values() -> None:
    X, _ = make_blobs(200, 2, centers=3, random_state=0)
    plain = KMeans(3, random_state=0).fit(X)
    for scale in (2.0**300, 2.0**-300):
        other = KMeans(3, random_state=0).fit(X * scale)
        assert adjusted_rand_score(other.labels_, plain.labels_) == 1.0
