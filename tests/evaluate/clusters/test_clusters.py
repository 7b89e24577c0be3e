"""Silhouettes equal the peer's without its matrix; every criterion finds three groups."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_samples as peer

from groundstate.evaluate.clusters import select, select_n_clusters, silhouette
from groundstate.evaluate.clusters.silhouette import silhouette_samples, silhouette_score

X, y = make_blobs(300, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)


@pytest.mark.parametrize("cells", [2**22, 500])
def test_silhouettes_equal_the_peer(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silhouette, "CELLS", cells)
    labels = np.random.default_rng(0).integers(0, 5, len(X))
    labels[0] = 9  # a cluster of one row
    np.testing.assert_allclose(silhouette_samples(X, labels), peer(X, labels), atol=1e-10)
    assert silhouette_score(X, y) == pytest.approx(peer(X, y).mean(), abs=1e-10)


def test_silhouettes_need_two_clusters() -> None:
    with pytest.raises(ValueError, match="between 2 and 299 clusters, got 1"):
        silhouette_samples(X, np.zeros(300))
    with pytest.raises(ValueError, match="one for each row"):
        silhouette_samples(X, np.zeros(3))


@pytest.mark.parametrize("criterion", ["bic", "silhouette", "gap", "stability"])
def test_three_groups_by_every_criterion(criterion: str) -> None:
    table = select_n_clusters(X, range(1, 7), criterion=criterion)
    assert table.best == 3
    assert (
        len(table.scores)
        == len(table.n_clusters)
        == (5 if criterion in ("silhouette", "stability") else 6)
    )


def test_all_numbers_of_clusters_share_a_run() -> None:
    from groundstate.compute.random import Key

    together = select.lloyd_many(X, [2, 3], 2, Key.of(0))
    for k, (inertia, _) in zip([2, 3], together, strict=True):
        assert inertia == pytest.approx(select.lloyd_many(X, [k], 2, Key.of(0))[0][0], rel=1e-12)


def test_bad_requests() -> None:
    with pytest.raises(ValueError, match="criterion must be"):
        select_n_clusters(X, range(1, 3), criterion="elbow")
    with pytest.raises(ValueError, match="between 1 and 300"):
        select_n_clusters(X, [0, 1])
