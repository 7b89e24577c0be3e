"""FastICA: sources come back, and from the same start the peer's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import FastICA as Peer

from groundstate import FastICA
from groundstate.errors import NotConverged


def mixed(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    S = np.column_stack([rng.laplace(size=n), rng.uniform(-1, 1, n), rng.exponential(size=n)])
    return S, S @ rng.normal(size=(3, 3)) + [1.0, 2.0, 3.0]


def signs(peer: Any) -> np.ndarray:
    """With which the largest entry of every axis is positive, as in all our models."""
    W = peer.components_
    found: np.ndarray = np.sign(W[np.arange(len(W)), np.abs(W).argmax(1)])
    return found


@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube"])
def test_sources_come_back_as_the_peers(algorithm: str, fun: str) -> None:
    S, X = mixed()
    start = np.random.default_rng(1).normal(size=(3, 3))
    settings: dict[str, Any] = {"algorithm": algorithm, "fun": fun, "w_init": start, "tol": 1e-8}
    model = FastICA(max_iter=1000, **settings).fit(X)
    peer = Peer(max_iter=1000, **settings).fit(X)
    sign = signs(peer)
    np.testing.assert_allclose(model.transform(X), peer.transform(X) * sign, atol=1e-5)
    np.testing.assert_allclose(model.components_, peer.components_ * sign[:, None], atol=1e-5)
    np.testing.assert_allclose(model.mixing_, peer.mixing_ * sign, atol=1e-5)
    np.testing.assert_allclose(model.mean_, peer.mean_, atol=1e-5)
    found = np.abs(np.corrcoef(model.transform(X).T, S.T)[:3, 3:])
    assert (found.max(0) > 0.97).all()
    np.testing.assert_allclose(model.transform(X).std(0), 1, rtol=1e-8)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-8)


def test_fewer_sources_and_other_scales() -> None:
    _, X = mixed()
    start = np.random.default_rng(1).normal(size=(2, 2))
    for whiten in ("unit-variance", "arbitrary-variance"):
        model = FastICA(2, whiten=whiten, w_init=start, tol=1e-8, max_iter=1000).fit(X)
        peer = Peer(2, whiten=whiten, w_init=start, tol=1e-8, max_iter=1000).fit(X)
        np.testing.assert_allclose(model.transform(X), peer.transform(X) * signs(peer), atol=1e-5)
    white = np.linalg.qr(X - X.mean(0))[0] * np.sqrt(len(X))
    assert FastICA(whiten=False, random_state=0).fit(white).components_.shape == (3, 3)


def test_weights_are_repetitions() -> None:
    _, X = mixed(400)
    w = np.random.default_rng(0).integers(0, 3, 400)
    a = FastICA(random_state=0, tol=1e-8, max_iter=500).fit(X, sample_weight=w)
    b = FastICA(random_state=0, tol=1e-8, max_iter=500).fit(np.repeat(X, w, 0))
    np.testing.assert_allclose(a.components_, b.components_, rtol=1e-6, atol=1e-8)


def test_it_says_when_it_stops_early_and_what_is_wrong() -> None:
    _, X = mixed(300)
    with pytest.warns(NotConverged, match="max_iter=1 "):
        FastICA(max_iter=1, tol=1e-10, random_state=0).fit(X)
    with pytest.raises(ValueError, match="alpha must be in"):
        FastICA(fun_args={"alpha": 3.0}).fit(X)
    with pytest.raises(ValueError, match="w_init has invalid shape"):
        FastICA(w_init=np.eye(2)).fit(X)
    with pytest.warns(UserWarning, match="n_components is too large"):
        FastICA(5, random_state=0, max_iter=1000).fit(X)


def test_single_precision_stays() -> None:
    rng = np.random.default_rng(0)
    X = (rng.laplace(size=(500, 4)) @ rng.normal(size=(4, 10))).astype(np.float32)
    model = FastICA(4, random_state=0).fit(X)
    for name in ("components_", "mixing_", "mean_", "whitening_"):
        assert getattr(model, name).dtype == np.float32
