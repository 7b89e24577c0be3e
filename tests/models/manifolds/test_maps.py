"""Maps of distances, paths and neighbours against their peers and the numbers of the specification."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.manifold as peers
import torch
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_s_curve, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsTransformer

from groundstate import MDS, TSNE, ClassicalMDS, Isomap, LandmarkMDS, load, manifold
from groundstate.errors import DataError, Unreliable
from groundstate.learn import Callback
from groundstate.models.manifolds.views import compare_views

ROLL, T = make_swiss_roll(1000, random_state=0)
ARC = 0.5 * (T * np.sqrt(1 + T * T) + np.arcsinh(T))
DIGITS = load_digits()
TRIANGLE = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])


def gaps(Y: np.ndarray) -> np.ndarray:
    return np.linalg.norm(Y[:, None] - Y, axis=-1)


def corr(a: np.ndarray, b: np.ndarray) -> float:
    return float(abs(np.corrcoef(a, b)[0, 1]))


def test_triangle() -> None:
    model = ClassicalMDS(3, metric="precomputed").fit(TRIANGLE)
    np.testing.assert_allclose(model.eigenvalues_, [12.964148, 3.702519, 0], atol=1e-6)
    np.testing.assert_allclose(gaps(model.embedding_), TRIANGLE, atol=1e-7)
    assert model.negative_mass_ < 1e-12
    np.testing.assert_allclose(MDS(metric="precomputed").fit(TRIANGLE).stress_, 0, atol=1e-8)


def test_classical_scaling_of_rows_is_pca() -> None:
    X = ROLL[:300]
    model, peer = ClassicalMDS(3).fit(X), peers.ClassicalMDS(3).fit(X)
    scores = PCA(3).fit_transform(X)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(scores), atol=1e-8)
    np.testing.assert_allclose(model.eigenvalues_, peer.eigenvalues_, rtol=1e-10)
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    turned = ClassicalMDS(3).fit(X @ Q + 7)
    np.testing.assert_allclose(turned.embedding_, model.embedding_, atol=1e-8)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-8)
    big = ClassicalMDS(2).fit(ROLL)  # beyond the size at which all eigenvalues are found
    np.testing.assert_allclose(
        np.abs(big.embedding_), np.abs(PCA(2).fit_transform(ROLL)), atol=1e-7
    )


def test_distances_that_no_rows_have() -> None:
    D = np.ones((4, 4)) - np.eye(4)
    D[0, 1] = D[1, 0] = 1.99
    D[2, 3] = D[3, 2] = 1.99
    plain = ClassicalMDS(2, metric="precomputed").fit(D)
    assert plain.negative_mass_ > 0.05 and plain.constant_ == 0
    mended = ClassicalMDS(3, metric="precomputed", add_constant=True).fit(D)
    assert mended.negative_mass_ < 1e-9 and mended.constant_ > 0
    wanted = D + mended.constant_ * (1 - np.eye(4))
    np.testing.assert_allclose(gaps(mended.embedding_), wanted, atol=1e-7)


@pytest.mark.parametrize(
    ("D", "match"),
    [
        (np.ones((3, 2)), "square"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "symmetric"),
        (np.array([[1.0, 1.0], [1.0, 1.0]]), "zero on the diagonal"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), "should be positive"),
    ],
)
def test_what_cannot_be_distances_is_refused(D: np.ndarray, match: str) -> None:
    for kind in (ClassicalMDS, MDS):
        with pytest.raises(ValueError, match=match):
            kind(metric="precomputed").fit(D)


def test_landmarks_of_flat_rows_give_the_whole_map() -> None:
    X = np.random.default_rng(0).normal(size=(700, 2)) @ np.random.default_rng(1).normal(
        size=(2, 9)
    )
    model, whole = LandmarkMDS(2, n_landmarks=25).fit(X), ClassicalMDS(2).fit(X)
    np.testing.assert_allclose(gaps(model.embedding_), gaps(whole.embedding_), atol=1e-8)
    np.testing.assert_allclose(model.transform(X[:9]), model.embedding_[:9], atol=1e-9)
    assert len(np.unique(model.landmarks_)) == 25
    D = gaps(X)
    given = LandmarkMDS(2, n_landmarks=25, metric="precomputed").fit(D)
    np.testing.assert_allclose(gaps(given.embedding_), D, atol=1e-8)
    np.testing.assert_allclose(given.transform(D[:5]), given.embedding_[:5], atol=1e-9)


def test_stress_never_rises_and_is_the_peers() -> None:
    X = DIGITS.data[:150]
    model = MDS(eps=1e-9, max_iter=200).fit(X)
    assert np.diff(model.history_.objective).max() <= 1e-9 * model.stress_
    peer = peers.MDS(init="classical_mds", n_init=1, eps=1e-9, max_iter=200).fit(X)
    assert model.stress_ <= peer.stress_ * (1 + 1e-9)
    upper = np.triu_indices(150, 1)
    raw = ((gaps(model.embedding_) - gaps(X))[upper] ** 2).sum()
    assert np.isclose(raw, model.stress_)
    flat = np.random.default_rng(0).normal(size=(60, 2))
    assert (
        MDS(init="random", n_init=4, random_state=0, eps=0, max_iter=3000).fit(flat).stress_ < 1e-8
    )
    weighted = MDS(weights=np.ones((150, 150)), eps=1e-9, max_iter=200).fit(X)
    np.testing.assert_allclose(weighted.embedding_, model.embedding_, atol=1e-6)


def test_missing_pairs_do_not_count() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    D, W = gaps(X), np.ones((40, 40))
    lost = np.triu(rng.random((40, 40)) < 0.2, 1)
    lost |= lost.T
    broken = np.where(lost, 9.0, D)
    W[lost] = 0
    start = X + 0.1 * rng.normal(size=X.shape)
    model = MDS(metric="precomputed", weights=W, eps=0, max_iter=4000, init=start).fit(broken)
    assert model.stress_ < 1e-6
    np.testing.assert_allclose(gaps(model.embedding_), D, atol=1e-2)


def test_order_alone() -> None:
    D = gaps(DIGITS.data[:80])
    model = MDS(metric="precomputed", metric_mds=False).fit(D)
    for bent in (D**3, np.log1p(D)):
        other = MDS(metric="precomputed", metric_mds=False).fit(bent)
        np.testing.assert_allclose(other.embedding_, model.embedding_, atol=1e-9)
    peer = peers.MDS(metric="precomputed", metric_mds=False, init="classical_mds", n_init=1).fit(D)
    assert model.stress_ <= peer.stress_ * 1.01


def test_isomap_unrolls() -> None:
    model = Isomap(n_neighbors=10).fit(ROLL)
    assert corr(model.embedding_[:, 0], ARC) > 0.9999
    assert np.isclose(corr(model.embedding_[:, 1], ROLL[:, 1]), 0.992, atol=1e-3)
    assert np.isclose(model.residual_variance(1), 0.016, atol=1e-3)
    assert np.isclose(model.residual_variance(2), 0.0006, atol=1e-4)
    peer = peers.Isomap(n_neighbors=10).fit(ROLL)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(peer.embedding_), atol=1e-6)
    np.testing.assert_allclose(model.dist_matrix_, peer.dist_matrix_, rtol=1e-10)
    assert np.isclose(model.reconstruction_error(), peer.reconstruction_error(), rtol=1e-6)
    new = ROLL[:50] + 0.05
    np.testing.assert_allclose(np.abs(model.transform(new)), np.abs(peer.transform(new)), atol=1e-6)
    some = Isomap(n_neighbors=10, n_landmarks=100).fit(ROLL)
    assert corr(some.embedding_[:, 0], ARC) > 0.9999
    assert np.isclose(corr(some.embedding_[:, 1], ROLL[:, 1]), 0.992, atol=1e-3)
    assert some.dist_matrix_.shape == (100, 1000) and some.residual_variance() < 0.001
    np.testing.assert_allclose(some.transform(ROLL[:20]), some.embedding_[:20], atol=1e-9)


def test_a_complete_graph_is_classical_scaling() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = Isomap(n_neighbors=59).fit(X)
    np.testing.assert_allclose(model.embedding_, ClassicalMDS().fit(X).embedding_, atol=1e-8)
    given = Isomap(n_neighbors=59, metric="precomputed").fit(gaps(X))
    np.testing.assert_allclose(given.embedding_, model.embedding_, atol=1e-8)
    near = Isomap(n_neighbors=None, radius=100.0).fit(X)
    np.testing.assert_allclose(near.embedding_, model.embedding_, atol=1e-8)


def test_graphs_in_parts() -> None:
    X = np.concatenate([ROLL[:50], ROLL[50:80] + 1e3])
    with pytest.warns(Unreliable, match="has 2 parts; they are joined"):
        joined = Isomap(n_neighbors=8).fit(X)
    assert joined.n_parts_ == 2 and np.isfinite(joined.embedding_).all()
    with pytest.warns(Unreliable, match="50 of 80 rows"):
        largest = Isomap(n_neighbors=8, on_disconnected="largest").fit(X)
    assert np.isnan(largest.embedding_[50:]).all() and np.isfinite(largest.embedding_[:50]).all()
    with pytest.raises(DataError, match="has 2 parts; raise n_neighbors"):
        Isomap(n_neighbors=8, on_disconnected="error").fit(X)


def test_isomap_settings() -> None:
    with pytest.raises(ValueError, match="Both n_neighbors and radius"):
        Isomap(radius=1.0).fit(ROLL[:50])
    with pytest.raises(ValueError, match="n_neighbors or radius"):
        Isomap(n_neighbors=None).fit(ROLL[:50])
    with pytest.raises(ValueError, match="n_neighbors < n_samples"):
        Isomap(n_neighbors=50).fit(ROLL[:50])


class Watch(Callback):
    def __init__(self) -> None:
        self.values: list[float] = []

    def on_epoch(self, run: Any) -> None:
        self.values.append(run.objective)
        assert run.energy.Y.shape == (400, 2)


def test_digits_by_neighbours() -> None:
    X, y = DIGITS.data[:1000], DIGITS.target[:1000]
    model = TSNE().fit(X)
    assert model.kl_divergence_ <= 0.57
    assert manifold.trustworthiness(X, model.embedding_, 10) >= 0.99
    score = KNeighborsClassifier(10).fit(model.embedding_, y).score(model.embedding_, y)
    assert score >= 0.93
    # new rows: near where the fit put them, and of the right class
    placed = model.energy_.place(torch.from_numpy(X)).numpy()
    moved = np.linalg.norm(placed - model.embedding_, axis=1)
    near = np.sort(gaps(model.embedding_), 1)[:, 1:11].mean(1)
    assert np.median(moved) < np.median(near)
    held, truth = DIGITS.data[1000:1300], DIGITS.target[1000:1300]
    judge = KNeighborsClassifier(10).fit(model.embedding_, y)
    assert judge.score(model.transform(held), truth) >= score - 0.05
    assert judge.score(placed, y) >= score - 0.02
    np.testing.assert_array_equal(model.transform(X[:7]), model.embedding_[:7])


def test_fast_sums_end_where_exact_ones_do() -> None:
    X = DIGITS.data[:1200]
    P = manifold.affinities(X, 30, sparse=True).toarray()
    truth = TSNE(method="exact", max_iter=500).fit(X).kl_divergence_
    for method in ("barnes_hut", "fft"):
        fast = TSNE(method=method, max_iter=500).fit(X)
        ours = manifold.kl_divergence(P, fast.embedding_)
        assert abs(ours - truth) < 0.02 * truth
        assert abs(fast.kl_divergence_ - ours) < 0.02 * ours


def test_order_threads_and_weights_do_not_matter() -> None:
    X = DIGITS.data[:120]
    order = np.random.default_rng(0).permutation(120)
    for model in (TSNE(perplexity=8, max_iter=300), MDS(init="random", random_state=0)):
        plain = copy.deepcopy(model).fit(X).embedding_
        np.testing.assert_array_equal(copy.deepcopy(model).fit(X[order]).embedding_, plain[order])
        weight = np.ones(120)
        weight[:5], weight[7] = 2, 0
        index = np.repeat(np.arange(120), weight.astype(int))
        weighted = copy.deepcopy(model).fit(X, sample_weight=weight)
        repeated = copy.deepcopy(model).fit(X[index])
        np.testing.assert_array_equal(
            weighted.embedding_[index], _first(repeated.embedding_, index)
        )
        assert np.isfinite(weighted.embedding_).all()
        with pytest.raises(ValueError, match="whole numbers"):
            copy.deepcopy(model).fit(X, sample_weight=np.full(120, 0.5))


def _first(Y: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Of copies of a row, the place of the first."""
    return Y[np.searchsorted(index, index)]


def test_callbacks_see_the_map() -> None:
    watch = Watch()
    model = TSNE(max_iter=300, perplexity=10, callbacks=[watch]).fit(DIGITS.data[:400])
    assert len(watch.values) == 6 and watch.values == model.history_.objective
    assert watch.values[-1] == model.kl_divergence_


def test_settings_of_neighbour_maps() -> None:
    X = DIGITS.data[:100]
    with pytest.raises(ValueError, match="less than n_samples"):
        TSNE(perplexity=100).fit(X)
    with pytest.raises(ValueError, match="precomputed"):
        TSNE(metric="precomputed", perplexity=5).fit(gaps(X))
    with pytest.raises(ValueError, match="1 or 2 dimensions"):
        TSNE(3, method="fft", perplexity=5).fit(X)
    with pytest.raises(ValueError, match="coordinates of all rows"):
        TSNE(init=np.zeros((3, 2)), perplexity=5).fit(X)
    given = TSNE(metric="precomputed", init="random", random_state=0, perplexity=5, max_iter=250)
    assert np.isfinite(given.fit(gaps(X)).embedding_).all()
    for settings in ({"kernel": "gaussian"}, {"dof": 0.7}, {"distance_power": "intrinsic"},
                     {"metric": "cosine"}, {"n_components": 3}, {"n_components": 1}):  # fmt: skip
        model = TSNE(perplexity=5, max_iter=250, **settings).fit(X)
        assert np.isfinite(model.embedding_).all() and model.kl_divergence_ >= 0


def test_tensors_stay_tensors() -> None:
    X = torch.from_numpy(DIGITS.data[:100]).float()
    Y = TSNE(perplexity=5, max_iter=250).fit_transform(X)
    assert isinstance(Y, torch.Tensor) and Y.dtype == torch.float32
    assert isinstance(Isomap(n_neighbors=20).fit(X).transform(X), torch.Tensor)


def test_a_map_needs_an_extension_and_a_metric_does_not() -> None:
    X, _ = make_swiss_roll(1000, random_state=0)
    found = compare_views(X[:800], X[800:], Isomap(n_neighbors=8))
    assert found.moved_new < 0.05 and np.isfinite(found.distances).all()
    assert found.asymmetry < 1e-9 and found.distances.shape == (200, 800)
    loose = compare_views(X[:150], X[150:200], TSNE(perplexity=10, max_iter=300))
    assert loose.moved_new > 0.01 and loose.moved_known > 0.01


def test_the_roll_of_the_specification() -> None:
    """Paths a little longer than the geodesics of the sheet, and much longer than the chord."""
    paths = Isomap(n_neighbors=10).fit(ROLL).dist_matrix_
    true = np.hypot(ARC[:, None] - ARC, ROLL[:, 1][:, None] - ROLL[:, 1])
    upper = np.triu_indices(1000, 1)
    assert np.isclose(np.median(paths[upper] / true[upper]), 1.037, atol=1e-3)
    a, b = T.argmin(), T.argmax()
    ends = [paths[a, b], true[a, b], np.linalg.norm(ROLL[a] - ROLL[b])]
    np.testing.assert_allclose(ends, [91.7, 89.6, 20.1], atol=0.06)


def test_a_start_may_be_given_to_fit() -> None:
    X = DIGITS.data[:60]
    start = ClassicalMDS().fit_transform(X)
    given = MDS(init="random", random_state=0).fit_transform(X, init=start)
    np.testing.assert_allclose(given, MDS(init=start).fit(X).embedding_)


@pytest.mark.parametrize(
    "model", [TSNE(perplexity=5, max_iter=250), Isomap(n_neighbors=9), MDS(n_init=1)]
)
def test_sparse_rows_are_dense_rows(model: Any) -> None:
    from scipy.sparse import csr_matrix

    X = DIGITS.data[:40]
    model.set_params(**({"random_state": 0} if "random_state" in model.get_params() else {}))
    np.testing.assert_array_equal(model.fit_transform(csr_matrix(X)), model.fit_transform(X))


def test_perplexity_of_all_others_and_no_more() -> None:
    X = DIGITS.data[:12]
    maps = [TSNE(perplexity=p, max_iter=250, random_state=0).fit_transform(X) for p in (11, 11.9)]
    np.testing.assert_array_equal(*maps)
    with pytest.raises(DataError, match="must be less than n_samples"):
        TSNE(perplexity=12, max_iter=250).fit(X)


def test_distances_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="the metric given is not correct: the least is -1"):
        TSNE(metric=lambda a, b: -1.0, perplexity=5, max_iter=250).fit(DIGITS.data[:30])


@pytest.mark.parametrize("shape", [(60, 4), (9, 30), (5, 2)])
def test_classical_scaling_of_rows_is_that_of_their_distances(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).normal(size=shape) + 1e4
    rows, given = ClassicalMDS(3).fit(X), ClassicalMDS(3, metric="precomputed").fit(cdist(X, X))
    np.testing.assert_allclose(rows.embedding_, given.embedding_, atol=1e-5)
    np.testing.assert_allclose(rows.eigenvalues_, given.eigenvalues_, atol=1e-6)
    np.testing.assert_allclose(
        rows.energy(X[:4] + 0.1), given.energy(cdist(X[:4] + 0.1, X)), rtol=1e-5, atol=1e-8
    )


def test_new_rows_of_an_isomap_of_a_radius_begin_within_it(tmp_path: Path) -> None:
    X, _ = make_s_curve(200, random_state=0)
    model = Isomap(n_neighbors=None, radius=0.5, n_components=10).fit(X)
    new = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    peer = peers.Isomap(n_neighbors=None, radius=0.5, n_components=10).fit(X)
    np.testing.assert_allclose(abs(model.transform(new)), abs(peer.transform(new)), atol=1e-9)
    model.save(tmp_path / "map")
    np.testing.assert_array_equal(load(tmp_path / "map").transform(new), model.transform(new))
    graph = RadiusNeighborsTransformer(radius=0.5).fit(X)
    given = Isomap(n_neighbors=None, radius=0.5, n_components=10, metric="precomputed")
    given.fit(graph.transform(X))
    np.testing.assert_allclose(
        given.transform(graph.transform(new)), model.transform(new), atol=1e-7
    )
    assert np.isfinite(model.transform(X[:2] + 50)).all()  # beyond it, from the nearest
    with pytest.raises(DataError, match="1 neighbors are required .* have only 0"):
        given.transform(graph.transform(X[:2] + 50))
