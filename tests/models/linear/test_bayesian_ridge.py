"""BayesianRidge: the notes' numbers, parity, and the evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from sklearn import linear_model as peers

from groundstate import BayesianRidge, Ridge
from groundstate.errors import NotConverged

rng = np.random.default_rng(0)


def test_fixed_precisions_give_the_conjugate_posterior() -> None:
    model = BayesianRidge(max_iter=0, alpha_init=1.0, lambda_init=1.0, fit_intercept=False)
    model.fit([[1.0], [2.0], [3.0]], [2.0, 3.0, 5.0])
    assert np.isclose(model.coef_[0], 23 / 15) and np.isclose(model.sigma_[0, 0], 1 / 15)
    _, std = model.predict([[2.0]], return_std=True)
    assert np.isclose(std[0] ** 2, 1 + 4 / 15)  # noise and weights


@pytest.mark.parametrize(("n", "p"), [(100, 5), (12, 30), (6, 6)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_parity_with_scikit_learn(n: int, p: int, weighted: bool, intercept: bool) -> None:
    X = rng.normal(size=(n, p)) + 3
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    w = rng.uniform(0.5, 2, n) if weighted else None
    given: dict[str, Any] = {"fit_intercept": intercept, "compute_score": True}
    a, b = (cls(**given).fit(X, y, sample_weight=w) for cls in (BayesianRidge, peers.BayesianRidge))
    for name in ("coef_", "intercept_", "alpha_", "lambda_", "sigma_", "n_iter_"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        np.array(a.predict(X, return_std=True)), np.array(b.predict(X, return_std=True)), rtol=1e-6
    )
    np.testing.assert_allclose(a.scores_[:-1], b.scores_[:-1], rtol=1e-6, atol=1e-6)


def test_the_evidence_is_the_density_of_y() -> None:
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    flat = {"alpha_1": 0.0, "alpha_2": 0.0, "lambda_1": 0.0, "lambda_2": 0.0}
    model = BayesianRidge(fit_intercept=False, compute_score=True, tol=1e-10, **flat).fit(X, y)
    covariance = np.eye(20) / model.alpha_ + X @ X.T / model.lambda_
    density = scipy.stats.multivariate_normal.logpdf(y, cov=covariance)
    assert np.isclose(model.scores_[-1], density)
    assert (np.diff(model.scores_) > -1e-9).all()


def test_it_is_ridge_with_the_ratio_of_precisions() -> None:
    X = rng.normal(size=(40, 4))
    y = X @ [1.0, 0.0, -1.0, 2.0] + rng.normal(size=40)
    model = BayesianRidge().fit(X, y)
    ridge = Ridge(alpha=model.lambda_ / model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-8)
    assert not len(model.scores_)


def test_it_says_when_it_did_not_settle() -> None:
    with pytest.warns(NotConverged, match="raise max_iter"):
        BayesianRidge(max_iter=1, tol=1e-12).fit(rng.normal(size=(9, 2)), rng.normal(size=9))


def test_weights_of_less_than_a_row_leave_a_precision() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 30)), rng.normal(size=8)
    model = BayesianRidge().fit(X, y, sample_weight=np.full(8, 0.3))  # 2.4 rows in 7 directions
    assert model.alpha_ > 0
    assert np.isfinite(model.coef_).all()
