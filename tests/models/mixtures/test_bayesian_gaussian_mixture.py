"""BayesianGaussianMixture: the peer from the same responsibilities, unused components, weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.mixture import BayesianGaussianMixture as Peer

from groundstate import BayesianGaussianMixture
from groundstate.errors import NotConverged

X, _ = make_blobs(600, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("prior", ["dirichlet_process", "dirichlet_distribution"])
def test_equals_the_peer_from_the_same_start(kind: str, prior: str) -> None:
    settings = {
        "covariance_type": kind, "weight_concentration_prior_type": prior, "tol": 0.0, "max_iter": 20,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = BayesianGaussianMixture(3, random_state=0, **settings).fit(X)
        peer = Peer(n_components=3, random_state=0, **settings).fit(X)
    order, other = (
        np.argsort(ours.means_[:, 0] + 2 * ours.means_[:, 1]),
        np.argsort(peer.means_[:, 0] + 2 * peer.means_[:, 1]),
    )
    if prior == "dirichlet_distribution":  # which stick is broken first is the start's business
        np.testing.assert_allclose(ours.means_[order], peer.means_[other], atol=1e-5)
        np.testing.assert_allclose(ours.weights_[order], peer.weights_[other], atol=1e-5)
        np.testing.assert_allclose(ours.score_samples(X), peer.score_samples(X), atol=1e-5)
        assert ours.lower_bound_ == pytest.approx(peer.lower_bound_, rel=1e-6)
    else:
        np.testing.assert_allclose(ours.means_[order], peer.means_[other], atol=0.05)
    assert (np.diff(ours.lower_bounds_) >= -1e-6).all()


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
