"""SoftKMeans: shares at a temperature, its limits, and clusters that are born while cooling."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from groundstate import GaussianMixture, KMeans, SoftKMeans

LINE = np.array([[-2.0], [-1.0], [1.0], [3.0]])
START = np.array([[-1.0], [1.0]])


def shares(T: float) -> np.ndarray:
    model = SoftKMeans(2, temperature=T, init=START, max_iter=1)
    with pytest.warns(UserWarning) if 0 < T < 1e9 else _quiet():
        model.fit(LINE)
    model.cluster_centers_[:] = START
    return model.predict_proba(LINE)


class _quiet:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def test_shares_of_the_notes() -> None:
    np.testing.assert_allclose(
        shares(1.0)[:, 0], [0.982014, 0.880797, 0.119203, 0.002473], atol=1e-6
    )
    np.testing.assert_allclose(shares(100.0)[:, 0], [0.509999, 0.505, 0.495, 0.485005], atol=1e-6)
    cold = shares(0.1)[:, 0]
    assert np.minimum(cold, 1 - cold).max() <= 2.1e-9


def test_temperature_one_is_a_mixture_of_unit_gaussians() -> None:
    X, _ = make_blobs(300, 2, centers=3, random_state=0)
    soft = SoftKMeans(3, init=X[:3], tol=1e-12, max_iter=2000).fit(X)
    mixture = GaussianMixture(
        3, covariance_type="identity", weights="uniform", means_init=X[:3], tol=1e-14, max_iter=2000
    ).fit(X)
    np.testing.assert_allclose(soft.cluster_centers_, mixture.means_, atol=1e-5)
    np.testing.assert_allclose(soft.predict_proba(X), mixture.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("T", [0.0, 1e-4])
def test_cold_is_k_means(T: float) -> None:
    X, _ = make_blobs(300, 2, centers=4, random_state=1)
    soft = SoftKMeans(4, temperature=T, init=X[:4], tol=0, max_iter=500).fit(X)
    hard = KMeans(4, init=X[:4], tol=0).fit(X)
    np.testing.assert_array_equal(soft.labels_, hard.labels_)
    np.testing.assert_allclose(soft.cluster_centers_, hard.cluster_centers_, atol=1e-8)


def test_entropy_rises_and_free_energy_falls() -> None:
    X, _ = make_blobs(200, 2, centers=3, cluster_std=2.0, random_state=0)
    model = SoftKMeans(3, init=X[:3], tol=1e-10, max_iter=500).fit(X)
    assert (np.diff(model.history_.objective) <= 1e-10).all()
    entropy = []
    for T in (0.01, 0.1, 1.0, 10.0, 100.0):
        r = model.set_params(temperature=T).predict_proba(X)
        entropy.append(-(r * np.log(np.clip(r, 1e-300, 1))).sum(1).mean())
    assert (np.diff(entropy) >= 0).all()


def test_annealing_does_not_need_a_good_start() -> None:
    X, _ = make_blobs(500, 2, centers=6, cluster_std=0.5, random_state=4)
    annealed = SoftKMeans(6, temperature=0.05, schedule="anneal", random_state=0, tol=1e-6).fit(X)
    starts = [KMeans(6, init="random", n_init=1, random_state=s).fit(X).inertia_ for s in range(11)]
    assert annealed.inertia_ <= 1.02 * np.median(starts)
    top = np.linalg.eigvalsh(np.cov(X.T, ddof=0))[-1]
    assert annealed.critical_temperature_ == pytest.approx(top, rel=1e-10)


def test_weights_are_repetition() -> None:
    X, _ = make_blobs(100, 2, centers=3, random_state=0)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    one = SoftKMeans(3, random_state=0).fit(X, sample_weight=w)
    two = SoftKMeans(3, random_state=0).fit(np.repeat(X, w, 0))
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-9)
