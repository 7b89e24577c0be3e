"""Points near an optimum become the optimum: lasso's active columns, free coefficients of a machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from groundstate.learn.solvers.lasso import polish as lasso
from groundstate.learn.solvers.lasso.design import GramDesign
from groundstate.learn.solvers.lasso.path import solve_path
from groundstate.learn.solvers.svm.smo import polish as machine

rng = np.random.default_rng(0)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("mu", [0.0, 3.0])
def test_active_columns_are_found(mu: float, positive: bool) -> None:
    X = rng.normal(size=(60, 12))
    y = X[:, :4] @ np.array([2.0, -1.5, 1.0, 0.3]) + rng.normal(size=60)
    G, q, lam = X.T @ X, X.T @ y, 8.0
    design = GramDesign(60.0, G, q, float(y @ y), np.zeros(12), 0.0)
    near = np.where(np.abs(q) > 4 * lam, np.sign(q), 0.0)
    near[-1] = 0.1  # not active at the optimum
    near = np.maximum(near, 0.0) if positive else near
    w = lasso.polished(design, near, lam, mu, positive)
    g = q - G @ w - mu * w
    at = w != 0
    np.testing.assert_allclose(g[at], lam * np.sign(w[at]), rtol=1e-9)
    assert ((g if positive else abs(g))[~at] <= lam * (1 + 1e-9)).all()
    assert not positive or (w >= 0).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("mu", [0.0, 3.0])
@pytest.mark.parametrize("lam", [0.01, 8.0, 60.0, 1e4])
def test_few_columns_need_nothing_compiled(
    monkeypatch: pytest.MonkeyPatch, lam: float, mu: float, positive: bool
) -> None:
    X = rng.normal(size=(60, 12))
    y = X[:, :4] @ np.array([2.0, -1.5, 1.0, 0.3]) + rng.normal(size=60)
    design = GramDesign(60.0, X.T @ X, X.T @ y, float(y @ y), np.zeros(12), 0.0)
    by_descent = solve_path(design, [(lam, mu)], tol=1e-12, max_iter=10**5, positive=positive)
    with monkeypatch.context() as patch:
        patch.setattr(lasso, "solve_path", None)
        for start in (np.zeros(12), by_descent.coefs[:, 0] + 0.0, np.ones(12)):
            path = lasso.solve_few(design, start, lam, mu, positive, 1e-4)
            assert path is not None and path.gaps[0] <= 1e-10 * design.yy
            np.testing.assert_allclose(path.coefs, by_descent.coefs, atol=1e-5)
            assert path.rounds[0][-1] == path.objectives[0] <= path.rounds[0][0] * (1 + 1e-12)
    assert lasso.solve_few(design, np.zeros(12), lam, mu, positive, -1.0) is None  # not certified
    wide = np.eye(lasso.FEW + 1)
    other = GramDesign(1.0, wide, wide[0], 1.0, wide[0], 0.0)
    assert lasso.solve_few(other, wide[0], lam, mu, positive, 1e-4) is None


def test_what_is_no_neighbour_of_the_optimum_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    design = GramDesign(2.0, np.ones((2, 2)), np.ones(2), 1.0, np.zeros(2), 0.0)
    twins = np.array([0.4, 0.5])  # equal columns: no system has one solution
    np.testing.assert_array_equal(lasso.polished(design, twins, 0.1, 0.0, False), twins)
    assert not lasso.polished(design, np.zeros(2), 5.0, 0.0, False).any()
    monkeypatch.setattr(lasso, "MOST", 1)
    assert lasso.polished(design, twins, 0.1, 1.0, False) is twins


def test_free_coefficients_are_found() -> None:
    x = rng.normal(size=(40, 2))
    t = np.where(x[:, 0] + 0.5 * rng.normal(size=40) > 0, 1.0, -1.0)
    K = np.exp(-((x[:, None] - x) ** 2).sum(-1))
    lo, hi = np.where(t > 0, 0.0, -2.0), np.where(t > 0, 2.0, 0.0)
    rough = minimize(
        lambda b: 0.5 * b @ K @ b - t @ b, np.zeros(40), jac=lambda b: K @ b - t, method="SLSQP",
        bounds=list(zip(lo, hi, strict=True)), constraints={"type": "eq", "fun": np.sum},
        options={"maxiter": 500, "ftol": 1e-10},
    ).x  # fmt: skip
    near = np.where(rough - lo < 1e-3, lo, np.where(hi - rough < 1e-3, hi, rough))
    beta, F = machine.polished(K, t, lo, hi, near, t - K @ near)
    np.testing.assert_allclose(F, t - K @ beta, atol=1e-10)
    assert abs(beta.sum()) < 1e-9 and (beta >= lo).all() and (beta <= hi).all()
    assert F[beta < hi].max() - F[beta > lo].min() < 1e-8
    assert 0.5 * beta @ K @ beta - t @ beta <= 0.5 * rough @ K @ rough - t @ rough + 1e-6
