"""Isolation forests and local outlier factors: the peer's numbers, its signs, weights as repetition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest as PeerForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor as PeerFactor

from groundstate import EnergyOutlier, IsolationForest, LocalMetric, LocalOutlierFactor
from groundstate.energy.trees.isolation import mean_path

RNG = np.random.default_rng(0)
X = load_iris().data + 1e-6 * RNG.normal(size=(150, 4))  # no ties between neighbours
NEW = RNG.normal(size=(40, 4)) * 2 + X.mean(0)


def two_clouds(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A dense and a thin cloud, and rows near the dense one."""
    rng = np.random.default_rng(seed)
    dense, thin = 0.1 * rng.normal(size=(150, 2)), 2 * rng.normal(size=(150, 2)) + 12
    angle = rng.uniform(0, 2 * np.pi, 10)
    out = 1.2 * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([dense, thin, out]), np.repeat([False, True], [300, 10])


@pytest.mark.parametrize("k", [1, 5, 20, 149])
def test_factors_are_the_peers(k: int) -> None:
    ours, peer = (cls(n_neighbors=k).fit(X) for cls in (LocalOutlierFactor, PeerFactor))
    np.testing.assert_allclose(
        ours.negative_outlier_factor_, peer.negative_outlier_factor_, rtol=1e-9
    )
    assert ours.n_neighbors_ == peer.n_neighbors_ and ours.offset_ == peer.offset_ == -1.5
    assert (ours.fit_predict(X) == peer.fit_predict(X)).all()
    settings: dict[str, Any] = {"n_neighbors": k, "novelty": True, "contamination": 0.1}
    ours, peer = (cls(**settings).fit(X) for cls in (LocalOutlierFactor, PeerFactor))
    assert ours.offset_ == pytest.approx(peer.offset_, rel=1e-9)
    for ask in ("score_samples", "decision_function", "predict"):
        np.testing.assert_allclose(getattr(ours, ask)(NEW), getattr(peer, ask)(NEW), rtol=1e-8)
    np.testing.assert_array_equal(ours.kneighbors(NEW)[1], peer.kneighbors(NEW)[1])


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "cosine", "canberra"])
def test_factors_of_other_metrics(metric: str) -> None:
    settings: dict[str, Any] = {"n_neighbors": 7, "metric": metric, "novelty": True}
    ours, peer = (cls(**settings).fit(X) for cls in (LocalOutlierFactor, PeerFactor))
    np.testing.assert_allclose(ours.score_samples(NEW), peer.score_samples(NEW), rtol=1e-6)


def test_the_factor_of_one_place_by_hand() -> None:
    rows = np.array([[0.0], [1.0], [2.0]])
    model = LocalOutlierFactor(n_neighbors=1, novelty=True).fit(rows)
    # 5 is 3 from its neighbour 2, whose own neighbour is 1 away: 3 times as thin
    np.testing.assert_allclose(model.score_samples([[5.0]]), [-3.0], rtol=1e-9)
    np.testing.assert_allclose(model.energy([[5.0]], z=[0]), [3.0], rtol=1e-9)
    assert model.infer({"x": [[5.0], [1.1]]}, "z").tolist() == [1, 0]


def test_what_each_kind_of_factor_answers() -> None:
    own, new = LocalOutlierFactor(), LocalOutlierFactor(novelty=True)
    assert hasattr(own, "fit_predict") and not hasattr(own, "predict")
    assert hasattr(new, "predict") and not hasattr(new, "fit_predict")
    with pytest.raises(AttributeError, match="no attribute 'predict'") as info:
        own.predict(X)
    assert "novelty=True" in str(info.value.__cause__)
    with pytest.warns(UserWarning, match=r"n_neighbors will be set to \(n_samples - 1\)"):
        assert LocalOutlierFactor(n_neighbors=20).fit(X[:9]).n_neighbors_ == 8
    with pytest.warns(UserWarning, match="Duplicate values are leading"):
        LocalOutlierFactor(n_neighbors=2).fit(np.r_[np.zeros(5), 9.0][:, None])


@pytest.mark.parametrize("seed", range(3))
def test_both_find_rows_beside_a_dense_cloud(seed: int) -> None:
    rows, out = two_clouds(seed)
    local = -LocalOutlierFactor(20).fit(rows).negative_outlier_factor_
    forest = -IsolationForest(random_state=seed).fit(rows).score_samples(rows)
    assert roc_auc_score(out, local) > 0.98 and roc_auc_score(out, forest) > 0.95
    plain = ((rows - rows.mean(0)) ** 2).sum(1)  # these rows are not far from the mean of all
    assert roc_auc_score(out, plain) < 0.6


@pytest.mark.parametrize(
    "model",
    [
        LocalOutlierFactor(4, novelty=True, contamination=0.1),
        IsolationForest(n_estimators=10, random_state=0, contamination=0.1),
        IsolationForest(n_estimators=10, max_samples=40, max_features=0.5, random_state=3),
        IsolationForest(n_estimators=10, max_samples=0.3, bootstrap=True, random_state=1),
    ],
)
def test_weights_are_repetitions(model: Any) -> None:
    w = RNG.integers(0, 4, len(X))
    index = RNG.permutation(np.repeat(np.arange(len(X)), w))
    weighted = model.fit(X, sample_weight=w)
    scores, offset = weighted.score_samples(NEW), weighted.offset_
    repeated = model.fit(X[index])
    np.testing.assert_allclose(repeated.score_samples(NEW), scores, rtol=1e-9)
    assert repeated.offset_ == pytest.approx(offset, rel=1e-9)
    order = RNG.permutation(len(X))
    first = model.fit(X).score_samples(NEW)
    np.testing.assert_allclose(model.fit(X[order]).score_samples(NEW), first, rtol=1e-9)


def test_mean_paths() -> None:
    harmonic = np.cumsum(1 / np.arange(1, 300))
    exact = 2 * harmonic[254] - 2 * 255 / 256
    assert mean_path(256) == pytest.approx(exact, rel=1e-3)
    assert mean_path([0, 1, 2]).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "settings", [{}, {"max_samples": 64, "max_features": 2}, {"bootstrap": True}]
)
def test_forests_score_as_the_peer_does(settings: dict[str, Any]) -> None:
    rows = np.vstack([RNG.normal(size=(300, 3)), RNG.uniform(4, 6, (6, 3))])
    ours, peer = (
        np.mean(
            [cls(random_state=s, **settings).fit(rows).score_samples(rows) for s in range(6)], 0
        )
        for cls in (IsolationForest, PeerForest)
    )
    # of a row drawn twice the peer counts one, so that its paths are shorter
    assert np.abs(ours - peer).mean() < (0.03 if "bootstrap" in settings else 0.01)
    assert np.corrcoef(ours, peer)[0, 1] > 0.97
    assert set(np.argsort(ours)[:6]) == set(range(300, 306))
    model = IsolationForest(random_state=0, contamination=0.02, **settings).fit(rows)
    assert abs(int((model.predict(rows) < 0).sum()) - 0.02 * 306) <= 1
    assert model.max_samples_ == settings.get("max_samples", 256)
    assert len(model.estimators_) == len(model.estimators_samples_) == 100
    sizes = {len(s) for s in model.estimators_samples_}
    assert sizes == {model.max_samples_}


def test_paths_are_those_of_the_trees() -> None:
    model = IsolationForest(n_estimators=7, random_state=0).fit(X)
    paths = np.mean([tree.predict(X) for tree in model.estimators_], 0)
    np.testing.assert_allclose(model.path_lengths(X), paths, rtol=1e-6)
    expected = -(2 ** (-paths / mean_path(model.max_samples_)))
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-6)
    assert ((model.infer({"x": X}, "z") == 1) == (model.predict(X) == -1)).all()
    tree = model.energy_.nodes.tree(0)
    inner = tree.feature >= 0
    split = tree.weight[tree.left[inner]] + tree.weight[tree.right[inner]]
    np.testing.assert_allclose(split, tree.weight[inner])  # no row is lost
    depth = int(np.ceil(np.log2(model.max_samples_)))
    assert tree.value[~inner].max() <= depth + mean_path(tree.weight[~inner]).max()


def test_more_trees_by_warm_start_are_the_trees_of_a_cold_one() -> None:
    warm = IsolationForest(n_estimators=5, warm_start=True, random_state=0).fit(X)
    warm.set_params(n_estimators=9).fit(X)
    cold = IsolationForest(n_estimators=9, random_state=0).fit(X)
    np.testing.assert_array_equal(warm.score_samples(NEW), cold.score_samples(NEW))
    assert len(warm.estimators_samples_) == 9
    with pytest.warns(UserWarning, match="does not fit new trees"):
        warm.fit(X)
    with pytest.raises(ValueError, match="larger or equal to len"):
        warm.set_params(n_estimators=2).fit(X)


def test_missing_values_sparse_rows_and_constants() -> None:
    holes = X.copy()
    holes[RNG.random(X.shape) < 0.1] = np.nan
    model = IsolationForest(n_estimators=20, random_state=0).fit(holes)
    assert np.isfinite(model.score_samples(holes)).all()
    sparse = IsolationForest(n_estimators=5, random_state=0).fit(csr_matrix(X))
    dense = IsolationForest(n_estimators=5, random_state=0).fit(X)
    np.testing.assert_array_equal(sparse.score_samples(csr_matrix(X)), dense.score_samples(X))
    flat = IsolationForest(n_estimators=5, random_state=0).fit(np.ones((50, 3)))
    assert (flat.predict(np.ones((4, 3))) == 1).all()
    tensor = IsolationForest(n_estimators=5, random_state=0).fit(torch.from_numpy(X))
    assert isinstance(tensor.predict(torch.from_numpy(X)), torch.Tensor)
    with pytest.warns(UserWarning, match="max_samples will be set to n_samples"):
        assert IsolationForest(n_estimators=2, max_samples=1000).fit(X).max_samples_ == 150
    with pytest.raises(ValueError, match="max_features=9 is above the 4"):
        IsolationForest(max_features=9).fit(X)


def test_a_local_metric_finds_outliers_by_its_volume() -> None:
    rows = np.vstack([RNG.normal(size=(200, 2)), [[5.0, 5.0], [-5.0, 4.0]]])
    found = EnergyOutlier(LocalMetric(), contamination=0.01).fit(rows).predict(rows)
    assert (found[-2:] == -1).all()


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_single_precision_stays(contamination: Any) -> None:
    X = np.random.default_rng(0).random((60, 4))
    for kind in (np.float32, np.float64):
        own = LocalOutlierFactor(5, contamination=contamination).fit(X.astype(kind))
        assert own.negative_outlier_factor_.dtype == kind
        new = LocalOutlierFactor(5, contamination=contamination, novelty=True).fit(X.astype(kind))
        assert new.score_samples(X.astype(kind)).dtype == kind
