"""Learned linear metrics: the peer's objective, optimality, what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad
from sklearn.datasets import load_iris
from sklearn.neighbors import NeighborhoodComponentsAnalysis as PeerNCA

from groundstate import (
    LMNN,
    RCA,
    KNeighborsClassifier,
    MahalanobisTransformer,
    NeighborhoodComponentsAnalysis,
)
from groundstate.errors import NotConverged
from groundstate.learn.solvers.metrics.large_margin import Margins, targets
from groundstate.learn.solvers.metrics.neighborhood import TILE, Neighbors
from groundstate.math.distances import check_metric

X, Y = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)


def neighbors(x: Any, y: Any, w: Any = None) -> Neighbors:
    weight = torch.ones(len(x)).double() if w is None else torch.as_tensor(w).double()
    return Neighbors(torch.from_numpy(x), torch.from_numpy(y), weight)


@pytest.mark.parametrize("n", [150, 700])  # one matrix, and tiles
def test_objective_and_gradient_are_the_peers(n: int) -> None:
    x, y = RNG.normal(size=(n, 5)), RNG.integers(0, 4, n)
    assert (n**2 > TILE) == (n == 700)
    J = RNG.normal(size=(3, 5)) * 0.4
    peer = PeerNCA()
    peer.n_iter_, peer.verbose = 0, 0
    value, gradient = peer._loss_grad_lbfgs(J.ravel(), x, y[:, None] == y, -1.0)
    ours = neighbors(x, y)(J.ravel())
    assert ours[0] == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(ours[1], gradient, atol=1e-8 * np.abs(gradient).max())


def test_weights_are_twins() -> None:
    x, y, w = RNG.normal(size=(40, 3)), RNG.integers(0, 2, 40), RNG.integers(1, 4, 40)
    J = RNG.normal(size=6)
    weighted = neighbors(x, y, w)(J)
    repeated = neighbors(np.repeat(x, w, axis=0), np.repeat(y, w))(J)
    assert weighted[0] == pytest.approx(repeated[0], rel=1e-12)
    np.testing.assert_allclose(weighted[1], repeated[1], atol=1e-9)
    far = neighbors(1e3 * x, y)(J)  # all others at probability zero but the nearest
    assert np.isfinite(far[0]) and np.isfinite(far[1]).all()


@pytest.mark.parametrize("p", [2, None])
def test_nca_ends_where_the_peer_ends(p: int | None) -> None:
    ours = NeighborhoodComponentsAnalysis(p).fit(X, Y)
    peer = PeerNCA(p).fit(X, Y)
    objective = neighbors(X, Y)
    value, theirs = (objective(np.asarray(m.components_).ravel())[0] for m in (ours, peer))
    assert value == pytest.approx(theirs, abs=0.01)
    assert ours.history_.objective == sorted(ours.history_.objective, reverse=True)


def test_noise_columns_are_ignored() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    x = np.where(y, 1.2, -1.2)[:, None] + rng.normal(size=(2000, 2))
    wide = np.column_stack([x, 5 * rng.normal(size=(2000, 8))])
    score = lambda rows: (
        KNeighborsClassifier().fit(rows[:1000], y[:1000]).score(rows[1000:], y[1000:])
    )
    assert score(wide) == pytest.approx(0.7, abs=0.05)
    model = NeighborhoodComponentsAnalysis(max_iter=100).fit(wide[:1000], y[:1000])
    assert score(model.transform(wide)) >= 0.92
    by_metric = KNeighborsClassifier(metric=model.metric()).fit(wide[:100], y[:100])
    mapped = KNeighborsClassifier().fit(model.transform(wide[:100]), y[:100])
    assert (by_metric.predict(wide[:20]) == mapped.predict(model.transform(wide[:20]))).all()


def test_starts_and_warm_start() -> None:
    seen: list[int] = []
    first = NeighborhoodComponentsAnalysis(
        2, init="lda", max_iter=3, warm_start=True, callback=lambda J, i: seen.append(i)
    ).fit(X, Y)
    assert seen == list(range(1, first.n_iter_ + 1))
    before = first.history_.objective[-1]
    assert first.fit(X, Y).history_.objective[0] <= before
    given = NeighborhoodComponentsAnalysis(2, init=np.eye(2, 4), max_iter=1).fit(X, Y)
    assert given.components_.shape == (2, 4)
    twins = [
        NeighborhoodComponentsAnalysis(2, init="random", random_state=3).fit(X, Y) for _ in "ab"
    ]
    np.testing.assert_array_equal(twins[0].components_, twins[1].components_)
    with pytest.raises(ValueError, match=r"shape \(n_components, n_features\) = \(2, 4\)"):
        NeighborhoodComponentsAnalysis(2, init=np.eye(3)).fit(X, Y)
    with pytest.raises(ValueError, match="cannot be greater than the number of features, 4"):
        NeighborhoodComponentsAnalysis(5).fit(X, Y)


def test_large_margin_gradient_and_targets() -> None:
    x, y = RNG.normal(size=(50, 3)), RNG.integers(0, 3, 50)
    w = RNG.integers(1, 3, 50).astype(float)
    objective = Margins(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(w), 3, 0.5)
    J = RNG.normal(size=6)
    assert check_grad(lambda j: objective(j)[0], lambda j: objective(j)[1], J) < 1e-3
    index, share = targets(*(torch.from_numpy(a) for a in (x, y, np.ones(50))), 3)
    assert bool((torch.from_numpy(y)[index] == torch.from_numpy(y)[:, None])[share > 0].all())
    assert bool((share.sum(1) == 3).all())
    d = (
        np.linalg.norm(x[:, None] - x, axis=2)
        + np.where(y[:, None] == y, 0, 9e9)
        + 9e9 * np.eye(50)
    )
    assert [set(i) for i in index.tolist()] == [set(i) for i in d.argsort(1)[:, :3].tolist()]
    two = np.repeat(x, w.astype(int), axis=0), np.repeat(y, w.astype(int))
    repeated = Margins(*(torch.from_numpy(a) for a in (*two, np.ones(len(two[1])))), 3, 0.5)
    assert repeated(J)[0] == pytest.approx(objective(J)[0], rel=1e-9)


def test_large_margin_mends_noise() -> None:
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    x = np.column_stack([2 * y + 0.6 * rng.normal(size=400), 5 * rng.normal(size=(400, 4))])
    plain = KNeighborsClassifier(3).fit(x[:250], y[:250]).score(x[250:], y[250:])
    model = LMNN(3).fit(x[:250], y[:250])
    z = model.transform(x)
    assert KNeighborsClassifier(3).fit(z[:250], y[:250]).score(z[250:], y[250:]) > plain + 0.1
    assert model.history_.objective == sorted(model.history_.objective, reverse=True)


def test_relevant_components_are_the_inverse_within_covariance() -> None:
    gap = X - np.stack([X[k == Y].mean(0) for k in range(3)])[Y]
    M = RCA().fit(X, Y).get_mahalanobis_matrix()
    np.testing.assert_allclose(M, np.linalg.inv(gap.T @ gap / len(X)), rtol=1e-8)
    few = RCA(1).fit(X, Y)
    assert few.components_.shape == (1, 4)
    d = few.metric()
    assert check_metric(d, X, n=300).verdict == "pseudometric"  # a rank below d
    assert check_metric(RCA().fit(X, Y).metric(), X, n=300).verdict == "metric"
    with pytest.raises(ValueError, match="no spread within the classes"):
        RCA().fit(np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 0, 1, 1])


def test_mahalanobis_transformer() -> None:
    from sklearn.covariance import OAS, EmpiricalCovariance, LedoitWolf

    model = MahalanobisTransformer().fit(X)
    J = np.asarray(model.components_)
    np.testing.assert_allclose(J.T @ J, np.linalg.inv(np.cov(X.T, ddof=0)), rtol=1e-8)
    np.testing.assert_allclose(np.cov(model.transform(X).T, ddof=0), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(model.mahalanobis(X), EmpiricalCovariance().fit(X).mahalanobis(X))
    z = model.transform(X)
    np.testing.assert_allclose(
        model.distance(X[:5], X[5:9]), np.linalg.norm(z[:5, None] - z[None, 5:9], axis=2), atol=1e-9
    )
    for name, peer in (("ledoit_wolf", LedoitWolf()), ("oas", OAS())):
        ours = MahalanobisTransformer(name).fit(X)
        np.testing.assert_allclose(ours.covariance_, peer.fit(X).covariance_, rtol=1e-10)
    A = RNG.normal(size=(4, 4))
    moved = MahalanobisTransformer().fit(X @ A).mahalanobis(X @ A)
    np.testing.assert_allclose(moved, model.mahalanobis(X), rtol=1e-6)
    with pytest.raises(ValueError, match="whole numbers"):
        MahalanobisTransformer("oas").fit(X, sample_weight=np.full(150, 0.5))


def test_worked_distances() -> None:
    rows = np.array([[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]])  # covariance diag(4, 1)
    model = MahalanobisTransformer().fit(rows)
    np.testing.assert_allclose(
        model.distance([[2.0, 0.0], [0.0, 2.0]], [[0.0, 0.0]])[:, 0], [1.0, 2.0]
    )


def test_steps_that_were_not_enough_are_said_where_asked() -> None:
    with pytest.warns(
        NotConverged, match=r"\[NeighborhoodComponentsAnalysis\] NCA did not converge"
    ):
        NeighborhoodComponentsAnalysis(max_iter=2, verbose=1).fit(X, Y)
