"""Support vector regression: the peer, optimality, weights, kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVR as Peer

from groundstate import SVR
from groundstate.errors import NotConverged

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=90)
W = rng.integers(1, 4, 90).astype(float)


def objective(model: Any, C: float, eps: float) -> float:
    """½‖f‖² + C Σ w max(0, |r| − ε), from the support vectors."""
    beta, rows = model.dual_coef_[0], model.support_vectors_
    K = pairwise_kernels(
        rows, metric=model.kernel, filter_params=True, gamma=0.3, degree=3, coef0=0.0
    )
    return float(0.5 * beta @ K @ beta + C * W @ np.maximum(abs(Y - model.predict(X)) - eps, 0))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize(("C", "eps"), [(1.0, 0.1), (20.0, 0.0), (0.3, 0.5)])
def test_equals_scikit_learn(kernel: str, C: float, eps: float) -> None:
    given: dict[str, Any] = {"kernel": kernel, "C": C, "epsilon": eps, "gamma": 0.3}
    ours, peer = SVR(tol=1e-7, **given).fit(X, Y, W), Peer(tol=1e-7, **given).fit(X, Y, W)
    assert objective(ours, C, eps) <= objective(peer, C, eps) * (1 + 1e-8)
    # its kernel values are of single precision
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-3)
    assert set(ours.support_) ^ set(peer.support_) <= set(np.flatnonzero(
        np.isclose(np.abs(Y - ours.predict(X)), eps, atol=1e-3)))  # fmt: skip
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    assert ours.intercept_.shape == peer.intercept_.shape
    assert ours.dual_coef_.shape[0] == peer.dual_coef_.shape[0] == 1


def test_optimality_conditions_and_the_gap() -> None:
    C, eps = 5.0, 0.2
    model = SVR(C=C, epsilon=eps, tol=1e-8).fit(X, Y)
    beta = np.zeros(90)
    beta[model.support_] = model.dual_coef_[0]
    r = Y - model.predict(X)
    assert abs(beta.sum()) < 1e-9 and np.abs(beta).max() <= C + 1e-12
    free = (np.abs(beta) > 1e-9) & (np.abs(beta) < C - 1e-9)
    np.testing.assert_allclose(r[free], eps * np.sign(beta[free]), atol=1e-6)  # on the edge
    assert (np.abs(r[beta == 0]) <= eps + 1e-6).all()  # inside
    out = np.abs(beta) >= C - 1e-9
    assert (r[out] * np.sign(beta[out]) >= eps - 1e-6).all()  # beyond
    K = rbf_kernel(X, gamma=1 / (3 * X.var()))
    size = beta @ K @ beta
    primal = 0.5 * size + C * np.maximum(np.abs(r) - eps, 0).sum()
    dual = Y @ beta - eps * np.abs(beta).sum() - 0.5 * size
    assert primal - dual < 1e-5 * primal
    assert model.history_.extra["dual"][0] == pytest.approx(dual, rel=1e-9)


def test_rows_of_every_kind() -> None:
    plain = SVR().fit(X, Y)
    np.testing.assert_allclose(SVR().fit(csr_matrix(X), Y).predict(X), plain.predict(X), atol=1e-9)
    gamma = 1 / (3 * X.var())
    K = rbf_kernel(X, gamma=gamma)
    given = SVR(kernel="precomputed").fit(K, Y)
    np.testing.assert_allclose(given.predict(K), plain.predict(X), atol=2e-3)
    called = SVR(kernel=lambda a, b: rbf_kernel(a, b, gamma=gamma)).fit(X, Y)
    np.testing.assert_allclose(called.predict(X), plain.predict(X), atol=2e-3)
    with pytest.raises(ValueError, match="square matrix"):
        SVR(kernel="precomputed").fit(X, Y)


def test_large_tables_go_in_blocks() -> None:
    more = np.random.default_rng(1)
    rows = more.normal(size=(900, 4))
    y = np.sin(rows[:, 0]) + 0.1 * more.normal(size=900)
    ours, peer = SVR(tol=1e-5).fit(rows, y), Peer(tol=1e-5).fit(rows, y)
    np.testing.assert_allclose(ours.predict(rows), peer.predict(rows), atol=1e-3)


def test_a_wide_tube_is_a_constant_and_few_steps_warn() -> None:
    flat = SVR(epsilon=100.0).fit(X, Y)
    assert len(flat.support_) == 0 and np.ptp(flat.predict(X)) == 0
    with pytest.warns(NotConverged, match="raise max_iter"):
        model = SVR(max_iter=3, C=100).fit(X, Y)
    assert model.fit_status_ == 1
