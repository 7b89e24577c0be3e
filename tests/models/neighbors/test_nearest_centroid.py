"""NearestCentroid: parity with scikit-learn, weights as repeated rows, draws and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.neighbors import NearestCentroid as Peer

from groundstate import NearestCentroid
from groundstate.energy.classes.centroids import CentroidClassEnergy

IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
SPARSE = make_classification(120, 30, n_informative=4, random_state=0)
SETTINGS = [
    {},
    {"metric": "manhattan"},
    {"shrink_threshold": 0.5},
    {"priors": "empirical"},
    {"priors": [0.2, 0.3, 0.5], "shrink_threshold": 2.0},
    {"metric": "manhattan", "priors": [0.2, 0.3, 0.5], "shrink_threshold": 2.0},
]


@pytest.mark.parametrize("rows", [IRIS, WINE], ids=["iris", "wine"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_equals_scikit_learn(rows, settings) -> None:
    X, y = rows
    ours, peer = NearestCentroid(**settings).fit(X, y), Peer(**settings).fit(X, y)
    for name in ("centroids_", "deviations_", "within_class_std_dev_", "class_prior_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    if ours.metric == "euclidean":
        for question in ("decision_function", "predict_proba", "predict_log_proba"):
            expected = getattr(peer, question)(X)
            np.testing.assert_allclose(getattr(ours, question)(X), expected, rtol=1e-7, atol=1e-9)
    else:
        assert not hasattr(ours, "predict_proba") and not hasattr(ours, "decision_function")


def test_sparse_rows_two_classes() -> None:
    X, y = SPARSE
    X = np.where(np.abs(X) > 1, X, 0.0)
    ours, peer = NearestCentroid().fit(sp.csr_matrix(X), y), Peer().fit(X, y)
    np.testing.assert_allclose(ours.centroids_, peer.centroids_, atol=1e-12)
    np.testing.assert_allclose(
        ours.decision_function(sp.csr_matrix(X)), peer.decision_function(X), rtol=1e-8
    )


def test_shrinking_silences_features() -> None:
    X, y = SPARSE
    model = NearestCentroid(shrink_threshold=1.0).fit(X, y)
    silent = (model.deviations_ == 0).all(0)
    assert 0 < silent.sum() < 30
    np.testing.assert_allclose(model.centroids_[0, silent], model.centroids_[1, silent])


@pytest.mark.parametrize("settings", SETTINGS)
def test_weights_are_repetitions_in_any_order(settings) -> None:
    X, y = IRIS
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), weight))
    weighted = NearestCentroid(**settings).fit(X, y, sample_weight=weight)
    repeated = NearestCentroid(**settings).fit(X[index], y[index])
    for name in ("centroids_", "deviations_", "within_class_std_dev_", "class_prior_"):
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(repeated, name), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_draws_follow_the_density(metric) -> None:
    X, y = IRIS
    energy = NearestCentroid(metric, priors=[0.2, 0.3, 0.5]).fit(X, y).energy_
    drawn = energy.ancestral(20_000, generator=torch.Generator().manual_seed(0))
    away = (drawn["x"] - energy.mu.detach()[drawn["y"]]) / energy.scale
    size = away.norm(dim=1) if metric == "euclidean" else away.abs().sum(1)
    # both densities fall with half the squared distance, so that it is chi-squared
    assert abs(float(size.square().mean()) - X.shape[1]) < 0.1
    np.testing.assert_allclose(np.bincount(drawn["y"].numpy()) / 20_000, [0.2, 0.3, 0.5], atol=0.02)


def test_bad_input_is_named() -> None:
    X, y = IRIS
    with pytest.raises(ValueError, match="zero variance"):
        NearestCentroid().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="non-negative"):
        NearestCentroid(priors=[-0.5, 0.5, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match="one entry per class"):
        NearestCentroid(priors=[0.5, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="metric"):
        NearestCentroid("cosine").fit(X, y)
    with pytest.warns(UserWarning, match="do not sum to 1"):
        model = NearestCentroid(priors=[1.0, 1.0, 2.0]).fit(X, y)
    np.testing.assert_allclose(model.class_prior_, [0.25, 0.25, 0.5])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_the_density_sums_to_one(metric) -> None:
    energy = CentroidClassEnergy(2, 2, metric).double()
    energy.scale.copy_(torch.tensor([0.8, 1.5]))
    line = torch.linspace(-12, 12, 801, dtype=torch.float64)
    x = torch.cartesian_prod(line, line)
    total = (-energy.table("y", x=x)).exp().sum() * (line[1] - line[0]) ** 2
    assert abs(total.item() - 1) < 1e-3


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e8])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_the_unit_of_the_columns_does_not_matter(scale: float, metric: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=150), [-0.5, 0.5])
    plain = NearestCentroid(metric).fit(X, y).predict(X)
    found = NearestCentroid(metric).fit(X * scale, y).predict(X * scale)
    np.testing.assert_array_equal(found, plain)
