"""Stochastic descent: near the optimum of its objective, streams, weights, and the peer's meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import linear_model as peers

from groundstate import Lasso, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from groundstate.errors import NotConverged
from groundstate.models.linear.stochastic.sgd_classifier import LOSSES

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 6))
Y = X @ [2.0, -1.0, 0.5, 0.0, 0.0, 0.0] + 1 + 0.5 * rng.normal(size=400)
TWO = (Y + rng.normal(size=400) > 1).astype(int)
THREE = np.digitize(Y, [0.0, 2.0])
LONG: dict[str, Any] = {"max_iter": 400, "tol": None, "average": True, "random_state": 0}


def squares(model: Any, alpha: float) -> float:
    r = Y - X @ np.ravel(model.coef_) - np.ravel(model.intercept_)[0]
    return float(0.5 * (r**2).mean() + 0.5 * alpha * (np.ravel(model.coef_) ** 2).sum())


def test_squares_end_at_ridge() -> None:
    alpha = 0.1
    exact = Ridge(alpha=alpha * 400).fit(X, Y)
    model = SGDRegressor(alpha=alpha, **LONG).fit(X, Y)
    assert squares(model, alpha) <= squares(exact, alpha) * (1 + 1e-4)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=5e-3)
    peer = peers.SGDRegressor(alpha=alpha, **LONG).fit(X, Y)
    assert squares(model, alpha) <= squares(peer, alpha) * (1 + 1e-3)


def test_log_loss_ends_at_logistic_regression() -> None:
    alpha = 0.01
    exact = LogisticRegression(C=1 / (alpha * 400)).fit(X, TWO)
    model = SGDClassifier("log_loss", alpha=alpha, **LONG).fit(X, TWO)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.03)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.01)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)


def test_l1_ends_at_the_lasso_with_exact_zeros() -> None:
    exact = Lasso(alpha=0.2).fit(X, Y)
    model = SGDRegressor(penalty="l1", alpha=0.2, max_iter=400, tol=None, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.03)
    assert (model.coef_[exact.coef_ == 0] == 0).all()
    net = SGDRegressor(penalty="elasticnet", alpha=0.2, l1_ratio=0.5, **LONG).fit(X, Y)
    wanted = peers.ElasticNet(alpha=0.2, l1_ratio=0.5).fit(X, Y)
    np.testing.assert_allclose(net.coef_, wanted.coef_, atol=0.03)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_every_loss_learns_as_well_as_the_peer(loss: str, y: Any) -> None:
    given: dict[str, Any] = {"loss": loss, "alpha": 0.01, "random_state": 0, "max_iter": 200}
    given |= {"tol": None, "average": True}
    if loss in ("squared_error", "squared_epsilon_insensitive", "squared_hinge"):
        given |= {"learning_rate": "constant", "eta0": 0.005}
    ours, peer = SGDClassifier(**given).fit(X, y), peers.SGDClassifier(**given).fit(X, y)
    assert ours.score(X, y) >= peer.score(X, y) - 0.03
    assert ours.coef_.shape == peer.coef_.shape and ours.intercept_.shape == peer.intercept_.shape


@pytest.mark.parametrize("rate", ["constant", "invscaling", "adaptive", "optimal", "pa1", "pa2"])
def test_rates(rate: str) -> None:
    loss = (
        "squared_error" if rate in ("constant", "invscaling", "adaptive") else "epsilon_insensitive"
    )
    eta0 = 0.01 if not rate.startswith("pa") else 0.1
    given: dict[str, Any] = {"learning_rate": rate, "eta0": eta0, "random_state": 0, "alpha": 1e-3}
    model = SGDRegressor(loss, average=True, max_iter=100, tol=None, **given).fit(X, Y)
    assert model.score(X, Y) > 0.9
    with pytest.raises(ValueError, match="divides by alpha"):
        SGDRegressor(learning_rate="optimal", alpha=0).fit(X, Y)


@pytest.mark.parametrize("average", [False, True])
def test_a_stream_in_halves_is_one_stream(average: bool) -> None:
    given: dict[str, Any] = {"shuffle": False, "random_state": 0, "average": average}
    parts = SGDRegressor(**given)
    for rows in (slice(0, 200), slice(200, 400)):
        parts.partial_fit(X[rows], Y[rows])
    assert parts.t_ == 401 and parts.n_iter_ == 2
    one = SGDRegressor(**given)
    for _ in range(2):
        one.partial_fit(X, Y)
    assert one.t_ == 801 and one.score(X, Y) > 0.5
    classes = SGDClassifier(random_state=0)
    for rows in (slice(0, 200), slice(200, 400)):
        classes.partial_fit(X[rows], THREE[rows], classes=[0, 1, 2])
    assert classes.score(X, THREE) > 0.6
    with pytest.raises(ValueError, match="cannot balance"):
        SGDClassifier(class_weight="balanced").partial_fit(X, TWO, classes=[0, 1])


def test_weights_are_repetitions_and_the_order_of_rows_does_not_matter() -> None:
    w = rng.integers(0, 3, 400).astype(float)
    index = rng.permutation(np.repeat(np.arange(400), w.astype(int)))
    for model, y in ((SGDRegressor, Y), (SGDClassifier, THREE)):
        a = model(random_state=0, max_iter=20, tol=None).fit(X, y, sample_weight=w)
        b = model(random_state=0, max_iter=20, tol=None).fit(X[index], y[index])
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-10)


def test_sparse_rows_early_stopping_and_warnings() -> None:
    dense = SGDClassifier(alpha=0.1, fit_intercept=False, **LONG).fit(X, TWO)
    thin = SGDClassifier(alpha=0.1, fit_intercept=False, **LONG).fit(csr_matrix(X), TWO)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=5e-3)
    for model, y in ((SGDRegressor, Y), (SGDClassifier, TWO)):
        early = model(random_state=0, early_stopping=True).fit(X, y)
        assert early.n_iter_ < 1000 and early.score(X, y) > 0.6
    with pytest.warns(NotConverged, match="used all 2 epochs"):
        SGDRegressor(max_iter=2, tol=1e-12, random_state=0).fit(X, Y)
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        _ = dense.predict_proba
    with pytest.raises(FloatingPointError, match="scale the inputs"):
        SGDRegressor(random_state=0).fit(1e160 * X, Y)
