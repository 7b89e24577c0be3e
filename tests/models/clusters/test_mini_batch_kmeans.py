"""MiniBatchKMeans: as good as KMeans on blobs, from a stream, with weights that mean repetition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_blobs

from groundstate import KMeans, MiniBatchKMeans

X, _ = make_blobs(4000, 3, centers=8, cluster_std=0.7, random_state=0)


def test_nearly_the_inertia_of_all_rows() -> None:
    whole = min(KMeans(8, random_state=s).fit(X).inertia_ for s in range(3))
    parts = [MiniBatchKMeans(8, random_state=s, n_init=3).fit(X) for s in range(5)]
    assert np.median([p.inertia_ for p in parts]) <= 1.05 * whole
    assert parts[0].n_steps_ > 1 and parts[0].counts_.sum() > 0
    np.testing.assert_array_equal(parts[0].predict(X), parts[0].labels_)


def test_a_stream_of_chunks() -> None:
    model = MiniBatchKMeans(8, random_state=0)
    for at in range(0, len(X), 500):
        model.partial_fit(X[at : at + 500])
    assert model.n_steps_ == 8
    assert -model.score(X) <= 1.5 * KMeans(8, random_state=0).fit(X).inertia_


def test_one_step_by_hand() -> None:
    model = MiniBatchKMeans(2, init=np.array([[0.0], [10.0]]), reassignment_ratio=0.0)
    model.partial_fit(np.array([[1.0], [3.0], [8.0]]))
    np.testing.assert_allclose(model.cluster_centers_.ravel(), [2.0, 8.0])
    model.partial_fit(np.array([[5.0], [9.0]]), sample_weight=[2.0, 1.0])
    # a tie at 5 goes to the lowest index
    np.testing.assert_allclose(model.cluster_centers_.ravel(), [(1 + 3 + 2 * 5) / 4, 8.5])


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_are_repetition_and_order_does_not_matter(sparse: bool) -> None:
    w = np.random.default_rng(0).integers(1, 3, 600)
    rows = np.repeat(X[:600], w, 0)[::-1].copy()
    make = csr_matrix if sparse else np.asarray
    settings = {"batch_size": 128, "max_iter": 3, "random_state": 0}
    one = MiniBatchKMeans(5, **settings).fit(make(X[:600]), sample_weight=w.astype(float))
    two = MiniBatchKMeans(5, **settings).fit(make(rows))
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-7)


def test_a_batch_of_all_rows_takes_the_passes_of_kmeans() -> None:
    w = np.random.default_rng(0).integers(1, 3, 200).astype(float)
    model = MiniBatchKMeans(5, random_state=0).fit(X[:200], sample_weight=w)
    for z, centre in enumerate(model.cluster_centers_):
        own = model.labels_ == z
        np.testing.assert_allclose(centre, np.average(X[:200][own], axis=0, weights=w[own]))
        assert model.counts_[z] == w[own].sum()
    assert model.history_.converged and model.n_steps_ == model.n_iter_
    model.partial_fit(X[200:300])
    assert model.counts_.sum() == w.sum() + 100


def test_settings_without_effect_are_said() -> None:
    with pytest.warns(RuntimeWarning, match="performing only one init in MiniBatchKMeans instead"):
        MiniBatchKMeans(2, init=X[:2], n_init=3, random_state=0).fit(X[:50])
    with pytest.warns(RuntimeWarning, match="init_size=2 should be larger than n_clusters=4"):
        MiniBatchKMeans(4, init_size=2, random_state=0).fit(X[:50])
    with pytest.warns(RuntimeWarning, match="doesn't make sense for a single cluster"):
        KMeans(1, algorithm="elkan", random_state=0).fit(X[:50])
