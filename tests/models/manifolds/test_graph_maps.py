"""UMAP, spectral and locally linear embeddings against their peers, identities and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.manifold as peers
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph

from groundstate import UMAP, LocallyLinearEmbedding, SpectralEmbedding, manifold
from groundstate.errors import Unreliable
from groundstate.learn import Callback

DIGITS = load_digits()
ROLL, T = make_swiss_roll(500, random_state=0)


def gap(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference of two maps whose axes may point either way."""
    return float(np.abs(a * np.sign((a * b).sum(0)) - b).max() / np.abs(b).max())


@pytest.mark.slow
def test_umap_keeps_the_neighbours_that_umap_learn_keeps() -> None:
    # umap-learn 0.5.12, UMAP(random_state=s).fit_transform(digits), s = 0..4: trustworthiness at 10
    # .9892 .9879 .9881 .9880 .9892, recall of 10 neighbours .4948 .4931 .4929 .4910 .4947
    X = DIGITS.data
    trust, recall = [], []
    for seed in range(5):
        Y = UMAP(random_state=seed).fit(X).embedding_
        trust.append(float(manifold.trustworthiness(X, Y, 10)))
        recall.append(float(manifold.neighbor_recall(X, Y, 10)))
    assert np.mean(trust) >= 0.9885 and min(trust) >= 0.9879
    assert min(recall) >= 0.4948


def test_umap_is_a_map_of_its_seed() -> None:
    X = DIGITS.data[:300]
    model = UMAP(random_state=3, n_epochs=100).fit(X)
    again = UMAP(random_state=3, n_epochs=100).fit(X)
    np.testing.assert_array_equal(model.embedding_, again.embedding_)
    assert not np.array_equal(
        UMAP(random_state=4, n_epochs=100).fit(X).embedding_, model.embedding_
    )
    order = np.random.default_rng(0).permutation(300)
    other = UMAP(random_state=3, n_epochs=100).fit(X[order])
    np.testing.assert_array_equal(other.embedding_, model.embedding_[order])
    assert (other.graph_ - model.graph_[order][:, order]).max() < 1e-12
    assert model.history_.objective[-1] < model.history_.objective[0]
    assert model.cross_entropy_ == model.history_.objective[-1] and model.n_iter_ == 100


def test_umap_places_new_rows() -> None:
    X, y = DIGITS.data, DIGITS.target
    model = UMAP(random_state=0, n_epochs=200).fit(X[:900])
    placed = model.transform(X[900:1200])
    near = KNeighborsClassifier(10).fit(model.embedding_, y[:900])
    among = KNeighborsClassifier(10).fit(X[:900], y[:900]).score(X[900:1200], y[900:1200])
    assert near.score(placed, y[900:1200]) > among - 0.03
    np.testing.assert_array_equal(model.transform(X[:5]), model.embedding_[:5])
    np.testing.assert_allclose(model.transform(X[900:903]), placed[:3], atol=1e-9)  # one by one
    start = model.energy(X[900:1200], z=np.repeat(model.embedding_.mean(0)[None], 300, 0))
    assert (model.energy(X[900:1200]) < start).mean() > 0.95


def test_memberships_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    d = np.sort(rng.uniform(1, 3, (50, 14)), 1)
    p, rho, sigma = manifold.memberships(d)
    np.testing.assert_allclose(p.sum(1), np.log2(15), atol=1e-8)
    np.testing.assert_array_equal(rho, d[:, 0])
    np.testing.assert_allclose(p, np.exp(-(d - rho[:, None]) / sigma[:, None]), rtol=1e-12)
    np.testing.assert_allclose(manifold.memberships(d, local_connectivity=1.5)[1], d[:, :2].mean(1))
    same, rho, _ = manifold.memberships(np.zeros((2, 4)))  # rows that are all equal
    assert (same == 1).all() and (rho == 0).all()
    a, b = manifold.membership_curve(1.0, 0.1)  # umap-learn: find_ab_params(1.0, 0.1)
    np.testing.assert_allclose([a, b], [1.576943460405378, 0.8950608781227859], rtol=1e-5)


def test_the_fuzzy_graph_is_a_union() -> None:
    X = DIGITS.data[:100]
    graph = manifold.fuzzy_graph(X, 10)
    dense = graph.toarray()
    assert np.allclose(dense, dense.T) and dense.max() <= 1 and not dense.diagonal().any()
    both = manifold.fuzzy_graph(X, 10, set_op_mix_ratio=0.0).toarray()
    assert (both <= dense + 1e-12).all() and 0 < (both > 0).sum() < (dense > 0).sum()
    assert (dense.max(1) > 1 - 1e-9).all()  # the nearest belongs entirely


@pytest.mark.parametrize("n_components", [1, 3])
def test_umap_of_other_dimensions(n_components: int) -> None:
    X = DIGITS.data[:200]
    Y = UMAP(n_components=n_components, n_epochs=100, random_state=0).fit_transform(X)
    assert Y.shape == (200, n_components) and np.isfinite(Y).all()
    assert manifold.trustworthiness(X, Y, 10) > 0.9


def test_umap_of_parts_and_distances() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(50 * c, 1, (40, 3)) for c in range(4)])
    model = UMAP(n_neighbors=8, random_state=0, n_epochs=100).fit(X)
    label = np.repeat(np.arange(4), 40)
    assert KNeighborsClassifier(5).fit(model.embedding_, label).score(model.embedding_, label) == 1
    D = np.linalg.norm(X[:, None] - X, axis=-1)
    given = UMAP(n_neighbors=8, random_state=0, n_epochs=100, metric="precomputed").fit(D)
    assert KNeighborsClassifier(5).fit(given.embedding_, label).score(given.embedding_, label) == 1
    np.testing.assert_allclose(given.graph_.toarray(), model.graph_.toarray(), atol=1e-6)


class _Watched(Callback):
    def __init__(self) -> None:
        self.shapes: list[Any] = []

    def on_epoch(self, run: Any) -> None:
        self.shapes.append(tuple(run.energy.Y.shape))


def test_umap_reports_on_the_way() -> None:
    watched = _Watched()
    UMAP(n_epochs=50, random_state=0, callbacks=[watched]).fit(DIGITS.data[:60])
    assert len(watched.shapes) == 10 and watched.shapes[0] == (60, 2)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_neighbors": 31}, "n_neighbors=31 must be 2 to n_samples=30"),
        ({"min_dist": 2.0}, "min_dist=2.0 must be at most spread"),
        ({"a": 1.0}, "both a and b"),
        ({"init": np.zeros((3, 2))}, "init must hold the coordinates of all rows"),
        ({"init": "pca", "n_components": 9}, "init='pca' needs"),
    ],
)
def test_umap_says_what_it_cannot_do(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        UMAP(n_epochs=5, **settings).fit(ROLL[:30])


@pytest.mark.parametrize("settings", [{}, {"n_neighbors": 12}, {"affinity": "rbf", "gamma": 0.01}])
def test_spectral_embedding_is_the_peers(settings: dict[str, Any]) -> None:
    model, peer = (
        SpectralEmbedding(**settings).fit(ROLL),
        peers.SpectralEmbedding(**settings).fit(ROLL),
    )
    assert gap(model.embedding_, peer.embedding_) < 1e-8
    assert abs(model.affinity_matrix_ - peer.affinity_matrix_).max() < 1e-12
    W = model.affinity_matrix_
    W = W.toarray() if hasattr(W, "toarray") else W
    np.fill_diagonal(W, 0)
    D, Y = np.diag(W.sum(1)), model.embedding_
    np.testing.assert_allclose(Y.T @ D @ Y, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(W @ Y, D @ Y * model.eigenvalues_, atol=1e-9)
    for name in ("n_neighbors_", "gamma_"):
        assert getattr(model, name, None) == getattr(peer, name, None)


def test_spectral_embedding_of_weights_and_of_distances() -> None:
    graph = kneighbors_graph(ROLL, 12, include_self=True)
    W = 0.5 * (graph + graph.T)
    wanted = SpectralEmbedding(n_neighbors=12).fit(ROLL).embedding_
    for given in (W.toarray(), W, csr_array(W)):
        assert gap(SpectralEmbedding(affinity="precomputed").fit(given).embedding_, wanted) < 1e-8
    near = kneighbors_graph(ROLL, 12, mode="distance", include_self=True)
    model = SpectralEmbedding(affinity="precomputed_nearest_neighbors", n_neighbors=12).fit(near)
    assert gap(model.embedding_, wanted) < 1e-8

    def weights(X: Any) -> Any:
        return np.exp(-0.01 * ((X[:, None] - X) ** 2).sum(-1))

    made = SpectralEmbedding(affinity=weights).fit(ROLL[:150])
    rbf = SpectralEmbedding(affinity="rbf", gamma=0.01).fit(ROLL[:150])
    assert gap(made.embedding_, rbf.embedding_) < 1e-8
    np.testing.assert_allclose(
        made.transform(ROLL[150:160]), rbf.transform(ROLL[150:160]), atol=1e-9
    )


def test_affinities_that_are_not_symmetric_are_averaged() -> None:
    one = kneighbors_graph(ROLL, 12, include_self=True).toarray()  # j of i, i not of j
    with pytest.warns(UserWarning, match="not symmetric"):
        given = SpectralEmbedding(affinity="precomputed").fit(one).embedding_
    wanted = SpectralEmbedding(affinity="precomputed").fit(0.5 * (one + one.T)).embedding_
    assert gap(given, wanted) < 1e-8


def test_new_rows_of_a_spectral_embedding_go_beside_their_twins() -> None:
    model = SpectralEmbedding(affinity="rbf", gamma=0.05).fit(ROLL)
    moved = model.transform(ROLL[:50] + 1e-6) - model.embedding_[:50]
    assert np.abs(moved).max() < 0.1 * model.embedding_.std()
    with pytest.warns(Unreliable, match="not fully connected"):
        SpectralEmbedding(n_neighbors=3).fit(np.concatenate([ROLL[:50], ROLL[:50] + 1000]))
    with pytest.raises(ValueError, match="must be square"):
        SpectralEmbedding(affinity="precomputed").fit(ROLL)
    with pytest.raises(ValueError, match="n_neighbors = 600"):
        SpectralEmbedding(n_neighbors=600).fit(ROLL)


@pytest.mark.parametrize("method", ["standard", "modified", "hessian", "ltsa"])
@pytest.mark.parametrize("n_components", [1, 2])
def test_locally_linear_embedding_is_the_peers(method: str, n_components: int) -> None:
    settings = {"n_neighbors": 12, "method": method, "n_components": n_components}
    model = LocallyLinearEmbedding(**settings).fit(ROLL)
    peer = peers.LocallyLinearEmbedding(eigen_solver="dense", **settings).fit(ROLL)
    assert gap(model.embedding_, peer.embedding_) < 1e-6
    np.testing.assert_allclose(model.reconstruction_error_, peer.reconstruction_error_, rtol=1e-5)
    Y = model.embedding_
    np.testing.assert_allclose(Y.T @ Y, np.eye(n_components), atol=1e-8)
    whole = LocallyLinearEmbedding(eigen_solver="dense", **settings).fit(ROLL)
    assert gap(whole.embedding_, Y) < 1e-6
    new = ROLL[:20] + 0.01
    assert gap(model.transform(new), peer.transform(new)) < 1e-5


def test_locally_linear_embedding_of_more_features_than_neighbours() -> None:
    rng = np.random.default_rng(0)
    X = ROLL[:300] @ rng.normal(size=(3, 20)) + 0.1 * rng.normal(size=(300, 20))
    for method in ("standard", "modified", "ltsa"):
        model = LocallyLinearEmbedding(n_neighbors=12, method=method).fit(X)
        peer = peers.LocallyLinearEmbedding(
            n_neighbors=12, method=method, eigen_solver="dense"
        ).fit(X)
        assert gap(model.embedding_, peer.embedding_) < 1e-5


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_components": 4}, "output dimension must be less"),
        ({"n_neighbors": 30}, "n_neighbors = 30"),
        ({"method": "hessian", "n_neighbors": 5}, "must be greater than"),
        ({"method": "modified", "n_neighbors": 1}, "requires n_neighbors"),
    ],
)
def test_locally_linear_embedding_says_what_it_cannot_do(
    settings: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        LocallyLinearEmbedding(**settings).fit(ROLL[:30])
