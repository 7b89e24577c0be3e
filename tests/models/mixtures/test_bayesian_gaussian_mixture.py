"""BayesianGaussianMixture: the peer from the same responsibilities, unused components, weights."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.mixture import BayesianGaussianMixture as Peer

from groundstate import BayesianGaussianMixture, load
from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy
from groundstate.errors import NotConverged
from groundstate.learn import Lloyd, Naive
from groundstate.learn.base import Problem
from groundstate.learn.solvers.latent.kmeans.rows import nearest

X, _ = make_blobs(600, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)


class FromLabels(Peer):
    """The peer, started from given responsibilities."""

    def _initialize_parameters(self, X: Any, random_state: Any, xp: Any = None) -> None:
        self._initialize(X, self.start)


def peer_from(labels: np.ndarray, **settings: Any) -> Peer:
    peer = FromLabels(**settings)
    peer.start = np.eye(peer.n_components)[labels]
    return peer


def start_of(rows: np.ndarray, k: int) -> np.ndarray:
    """Labels that a fit with ``random_state=0`` starts from."""
    x = torch.from_numpy(rows)
    centroids = CentroidEnergy(k, rows.shape[1]).double()
    key = Key.of(0).fold("start", 0)
    Lloyd().run(Problem(centroids, Naive(latent="minimise"), {"x": x}, None, key=key))
    return nearest(x, centroids.mu)[0].numpy()


def close(ours: BayesianGaussianMixture, peer: Peer, rows: np.ndarray, tol: float = 1e-8) -> None:
    names = (
        "weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_",
        "mean_precision_", "degrees_of_freedom_", "mean_prior_", "covariance_prior_",
        "weight_concentration_prior_", "mean_precision_prior_", "degrees_of_freedom_prior_",
    )  # fmt: skip
    for name in names:
        np.testing.assert_allclose(
            getattr(ours, name), getattr(peer, name), rtol=tol, atol=tol, err_msg=name
        )
    np.testing.assert_allclose(
        ours.weight_concentration_, np.asarray(peer.weight_concentration_), rtol=tol
    )
    np.testing.assert_allclose(ours.lower_bounds_, np.ravel(peer.lower_bounds_), rtol=tol)
    np.testing.assert_allclose(ours.score_samples(rows), peer.score_samples(rows), atol=tol)
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=tol)
    assert ours.n_iter_ == peer.n_iter_ and ours.converged_ == peer.converged_


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("prior", ["dirichlet_process", "dirichlet_distribution"])
def test_equals_the_peer_from_the_same_start(kind: str, prior: str) -> None:
    rows = np.column_stack([X, np.random.default_rng(1).normal(size=len(X))])
    settings = {
        "n_components": 5, "covariance_type": kind, "weight_concentration_prior_type": prior,
        "tol": 1e-2, "max_iter": 200, "reg_covar": 1e-4,
    }  # fmt: skip
    ours = BayesianGaussianMixture(random_state=0, **settings).fit(rows)
    close(ours, peer_from(start_of(rows, 5), **settings).fit(rows), rows)
    assert (np.diff(ours.lower_bounds_) >= -1e-9).all()


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_priors_of_the_user(kind: str) -> None:
    cov = {"full": np.diag([1.0, 2.0]), "tied": np.diag([1.0, 2.0]), "diag": np.array([1.0, 2.0])}
    settings = {
        "n_components": 4, "covariance_type": kind, "weight_concentration_prior": 10.0,
        "mean_precision_prior": 0.5, "mean_prior": [1.0, -1.0], "degrees_of_freedom_prior": 5.0,
        "covariance_prior": cov.get(kind, 1.5), "tol": 1e-2, "max_iter": 300,
    }  # fmt: skip
    ours = BayesianGaussianMixture(random_state=0, **settings).fit(X)
    close(ours, peer_from(start_of(X, 4), **settings).fit(X), X)


def test_priors_that_make_no_sense() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"degrees_of_freedom_prior": 1.0}, "greater than 1"),
        ({"mean_prior": [0.0]}, r"'means' should have the shape of \(2,\)"),
        ({"covariance_prior": np.eye(3)}, "'full covariance_prior' should have the shape"),
        ({"covariance_prior": -np.eye(2)}, "should be symmetric, positive-definite"),
        ({"covariance_prior": [1.0, -1.0], "covariance_type": "diag"}, "should be positive"),
    ]
    for settings, message in wrong:
        with pytest.raises(ValueError, match=message):
            BayesianGaussianMixture(2, **settings).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        BayesianGaussianMixture(2).fit(np.full((5, 2), np.nan))


def test_restarts_warm_starts_and_storing(tmp_path: Path) -> None:
    settings = {"n_components": 6, "random_state": 0, "tol": 1e-3, "max_iter": 500}
    model = BayesianGaussianMixture(n_init=3, init_params="random_from_data", **settings).fit(X)
    assert max(model.restarts_) == pytest.approx(model.lower_bound_) and len(model.restarts_) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        half = BayesianGaussianMixture(3, warm_start=True, max_iter=3, random_state=0).fit(X)
        half.fit(X)
        whole = BayesianGaussianMixture(3, max_iter=6, random_state=0).fit(X)
    np.testing.assert_allclose(half.means_, whole.means_, atol=1e-10)
    assert half.lower_bound_ == pytest.approx(whole.lower_bound_)
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    single = BayesianGaussianMixture(**settings).fit(X.astype(np.float32))
    double = BayesianGaussianMixture(**settings).fit(X)
    assert single.means_.dtype == np.float32
    assert single.score(X) == pytest.approx(double.score(X), abs=1e-2)
    held = BayesianGaussianMixture(**settings).fit(torch.from_numpy(X))
    np.testing.assert_allclose(held.means_, double.means_)


def test_exactly_three_components_are_used() -> None:
    model = BayesianGaussianMixture(10, random_state=0, max_iter=1000, tol=1e-4).fit(X)
    assert int((model.weights_ > 0.01).sum()) == 3
    assert (np.diff(model.lower_bounds_) >= -1e-6).all()


def test_weights_are_repetition() -> None:
    w = np.random.default_rng(0).integers(0, 3, len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        one = BayesianGaussianMixture(3, random_state=0).fit(X, sample_weight=w)
        two = BayesianGaussianMixture(3, random_state=0).fit(np.repeat(X, w, 0))
    np.testing.assert_allclose(one.means_, two.means_, atol=1e-8)
    np.testing.assert_allclose(one.weights_, two.weights_, atol=1e-10)
    assert one.lower_bound_ == pytest.approx(two.lower_bound_, rel=1e-10)
