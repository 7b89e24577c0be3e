"""Lasso, elastic net, their paths and cross-validation: numbers, optimality, parity, screening."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peers
import torch
from sklearn.model_selection import KFold

from groundstate import ElasticNet, ElasticNetCV, Lasso, LassoCV, LinearRegression, Ridge, RidgeCV
from groundstate.errors import NotConverged
from groundstate.learn.coordinate_moments import designs_of
from groundstate.learn.coordinate_path import alpha_max, solve_path
from groundstate.models.linear.paths import enet_path, lasso_path

T, U = np.arange(4.0)[:, None], np.array([1.0, 2.0, 2.0, 4.0])
rng = np.random.default_rng(0)
TRUE = np.r_[rng.normal(size=8) * 3, np.zeros(40)]
TALL = rng.normal(size=(200, 48)) + 2.0
y = TALL @ TRUE + rng.normal(size=200) + 5.0
WIDE = rng.normal(size=(60, 300))
z = WIDE[:, :5] @ [3.0, -2.0, 1.0, 2.0, -1.0] + 0.3 * rng.normal(size=60)
THIN = sp.random(150, 400, 0.05, format="csr", random_state=0)
v = THIN @ np.r_[rng.normal(size=12) * 9, np.zeros(388)] + 0.1 * rng.normal(size=150)
ROWS = [(TALL, y), (WIDE, z), (THIN, v)]
IDS = ["tall", "wide", "sparse"]


def gradient(X, target, model) -> np.ndarray:
    X = np.asarray(X.todense()) if sp.issparse(X) else X
    return X.T @ (target - X @ model.coef_ - model.intercept_) / len(target)


def test_worked_examples() -> None:
    lasso = Lasso(alpha=0.5, tol=1e-12).fit(T, U)
    np.testing.assert_allclose([lasso.coef_[0], lasso.intercept_], [0.5, 1.5], atol=1e-9)
    assert Lasso(alpha=1.125).fit(T, U).coef_[0] == 0.0
    assert Lasso(alpha=1.12, tol=1e-12).fit(T, U).coef_[0] > 0.0
    net = ElasticNet(alpha=0.5, tol=1e-12).fit(T, U)
    np.testing.assert_allclose([net.coef_[0], net.intercept_], [0.583333, 1.375], atol=1e-6)


def test_orthonormal_columns_are_soft_thresholded() -> None:
    Q, _ = np.linalg.qr(rng.normal(size=(50, 6)))
    X, target = Q * np.sqrt(50), rng.normal(size=50) * 3
    got = Lasso(alpha=0.2, fit_intercept=False, tol=1e-12).fit(X, target).coef_
    least = X.T @ target / 50
    np.testing.assert_allclose(got, np.sign(least) * np.maximum(abs(least) - 0.2, 0), atol=1e-9)


@pytest.mark.parametrize(("X", "target"), ROWS, ids=IDS)
@pytest.mark.parametrize("ratio", [1.0, 0.6])
@pytest.mark.parametrize("intercept", [True, False])
def test_optimality(X, target, ratio, intercept) -> None:
    alpha = 0.05
    model = ElasticNet(alpha, l1_ratio=ratio, tol=1e-13, max_iter=20_000, fit_intercept=intercept)
    model.fit(X, target)
    g = gradient(X, target, model) - alpha * (1 - ratio) * model.coef_
    on = model.coef_ != 0
    assert 0 < on.sum() < len(on)
    np.testing.assert_allclose(g[on], alpha * ratio * np.sign(model.coef_[on]), atol=1e-6)
    assert (abs(g[~on]) <= alpha * ratio + 1e-6).all()
    if intercept:
        assert abs((target - X @ model.coef_ - model.intercept_).mean()) < 1e-9


@pytest.mark.parametrize(("X", "target"), ROWS, ids=IDS)
@pytest.mark.parametrize("settings", [{}, {"positive": True}, {"fit_intercept": False}])
def test_equals_scikit_learn(X, target, settings) -> None:
    for alpha, ratio in ((0.3, 1.0), (0.02, 1.0), (0.1, 0.4)):
        common = {"alpha": alpha, "l1_ratio": ratio, "tol": 1e-12, "max_iter": 100_000, **settings}
        ours, peer = ElasticNet(**common).fit(X, target), peers.ElasticNet(**common).fit(X, target)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-5)
        assert ours.dual_gap_ <= 1e-12 * (target**2).mean() * (1 + 1e-9)
        np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-4)


def test_ends_of_the_mixing_and_of_the_strength() -> None:
    lasso = Lasso(0.1, tol=1e-10).fit(TALL, y)
    np.testing.assert_allclose(
        ElasticNet(0.1, l1_ratio=1, tol=1e-10).fit(TALL, y).coef_, lasso.coef_
    )
    ridge = Ridge(0.1 * len(y)).fit(TALL, y)
    np.testing.assert_allclose(ElasticNet(0.1, l1_ratio=0).fit(TALL, y).coef_, ridge.coef_)
    with pytest.warns(UserWarning, match="alpha=0, this is least squares"):
        least = Lasso(0.0).fit(TALL, y)
    np.testing.assert_allclose(least.coef_, LinearRegression().fit(TALL, y).coef_)


@pytest.mark.parametrize(("X", "target"), ROWS, ids=IDS)
def test_weight_is_repetition(X, target) -> None:
    w = np.arange(len(target)) % 3
    twice = np.repeat(np.arange(len(target)), w)
    a = Lasso(0.05, tol=1e-13, max_iter=50_000).fit(X, target, sample_weight=w)
    b = Lasso(0.05, tol=1e-13, max_iter=50_000).fit(X[twice], target[twice])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-6)


def test_the_gap_bounds_the_distance_to_the_minimum_and_falls() -> None:
    def objective(w):
        r = y - y.mean() - (TALL - TALL.mean(0)) @ w
        return 0.5 * r @ r / len(y) + 0.1 * abs(w).sum()

    best = objective(Lasso(0.1, tol=1e-14).fit(TALL, y).coef_)
    for tol in (1e-1, 1e-2, 1e-4):
        model = Lasso(0.1, tol=tol).fit(TALL, y)
        assert objective(model.coef_) - best <= model.dual_gap_ + 1e-10
        values = model.history_.objective
        assert all(b <= a + 1e-12 for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(("X", "target"), ROWS, ids=IDS)
@pytest.mark.parametrize("ratio", [1.0, 0.7])
def test_screened_columns_are_zero_at_the_optimum(X, target, ratio) -> None:
    rows = X.tocsc() if sp.issparse(X) else torch.from_numpy(X)
    design = designs_of(rows, torch.from_numpy(target[:, None]), None, True, 1, False)[0]
    top = alpha_max(design, ratio)
    pairs = [
        (a * top * ratio * design.W, a * top * (1 - ratio) * design.W) for a in (0.9, 0.5, 0.2)
    ]
    path = solve_path(design, pairs, tol=1e-8, max_iter=20_000)
    exact = solve_path(design, pairs, tol=1e-14, max_iter=50_000)
    assert sum(len(s) for s in path.screened) > 0
    for k, gone in enumerate(path.screened):
        assert (exact.coefs[gone, k] == 0).all()


@pytest.mark.parametrize(("X", "target"), ROWS, ids=IDS)
def test_paths_equal_scikit_learn(X, target) -> None:
    if not sp.issparse(X):
        X, target = X - X.mean(0), target - target.mean()
    else:
        X = X.tocsc()
    settings = {"tol": 1e-10, "max_iter": 100_000, "eps": 1e-2}
    a, coefs, gaps = lasso_path(X, target, alphas=30, **settings)
    pa, pcoefs, _ = peers.lasso_path(X, target, alphas=30, **settings)
    np.testing.assert_allclose(a, pa, rtol=1e-10)
    np.testing.assert_allclose(coefs, pcoefs, atol=2e-4)
    assert (np.count_nonzero(coefs, 0) == np.count_nonzero(abs(pcoefs) > 1e-9, 0)).mean() > 0.9
    assert (coefs[:, 0] == 0).all() and (gaps <= 1e-10 * (target**2).mean() * (1 + 1e-9)).all()
    last = Lasso(a[-1], fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, target)
    np.testing.assert_allclose(coefs[:, -1], last.coef_, atol=2e-4)
    net = enet_path(X, target, l1_ratio=0.5, alphas=[0.1, 0.5], return_n_iter=True, tol=1e-10)
    assert net[0].tolist() == [0.5, 0.1] and len(net[3]) == 2


@pytest.mark.parametrize(("X", "target"), ROWS, ids=IDS)
def test_cross_validation_equals_scikit_learn(X, target) -> None:
    settings = {"cv": KFold(4), "alphas": 20, "eps": 1e-2, "tol": 1e-9, "max_iter": 100_000}
    ours, peer = LassoCV(**settings).fit(X, target), peers.LassoCV(**settings).fit(X, target)
    np.testing.assert_allclose(ours.alphas_, peer.alphas_, rtol=1e-9)
    np.testing.assert_allclose(ours.mse_path_, peer.mse_path_, rtol=2e-4)
    np.testing.assert_allclose(ours.alpha_, peer.alpha_)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    assert ours.coef_path_.shape == (X.shape[1], 20)
    at = list(ours.alphas_).index(ours.alpha_)
    np.testing.assert_allclose(ours.coef_path_[:, at], ours.coef_, atol=1e-6)
    net = ElasticNetCV(l1_ratio=[0.3, 0.9], **settings).fit(X, target)
    theirs = peers.ElasticNetCV(l1_ratio=[0.3, 0.9], **settings).fit(X, target)
    assert net.l1_ratio_ == theirs.l1_ratio_ and net.mse_path_.shape == (2, 20, 4)
    np.testing.assert_allclose(net.alpha_, theirs.alpha_)


def test_folds_know_weights_and_not_order() -> None:
    w = 1 + np.arange(len(y)) % 2
    twice = rng.permutation(np.repeat(np.arange(len(y)), w))
    a = LassoCV(alphas=15, tol=1e-10).fit(TALL, y, sample_weight=w)
    b = LassoCV(alphas=15, tol=1e-10).fit(TALL[twice], y[twice])
    np.testing.assert_allclose(a.alphas_, b.alphas_, rtol=1e-9)
    np.testing.assert_allclose(a.mse_path_, b.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


def test_outputs_are_independent_and_warm_starts_go_on() -> None:
    two = np.column_stack([y, -2 * y + TALL[:, 20]])
    both = Lasso(0.1, tol=1e-10).fit(TALL, two)
    assert both.coef_.shape == (2, 48) and both.sparse_coef_.shape == (2, 48)
    for k in range(2):
        one = Lasso(0.1, tol=1e-10).fit(TALL, two[:, k])
        np.testing.assert_allclose(both.coef_[k], one.coef_, atol=1e-8)
    warm = Lasso(0.1, tol=1e-8, warm_start=True).fit(TALL, y)
    first = warm.n_iter_
    assert warm.fit(TALL, y).n_iter_ < first


def test_scales_constants_and_impatience() -> None:
    scale = np.logspace(-6, 6, 48)
    model = Lasso(1e-3, tol=1e-8, max_iter=20_000).fit(TALL * scale, y)
    assert np.isfinite(model.coef_).all()
    wide = np.column_stack([TALL, np.ones(200), TALL[:, 0]])
    model = Lasso(0.1).fit(wide, y)
    assert model.coef_[48] == 0.0 and np.isfinite(model.predict(wide)).all()
    assert (Lasso(0.1).fit(TALL, np.full(200, 3.0)).coef_ == 0).all()
    with pytest.warns(NotConverged, match="duality gap of .* raise max_iter"):
        Lasso(1e-4, max_iter=1, tol=1e-12).fit(WIDE, z)


def test_ridge_leaves_rows_out_exactly() -> None:
    model = RidgeCV(alphas=[1.0]).fit(T, U)
    np.testing.assert_allclose(-model.best_score_, 0.924644, atol=5e-7)
    least = RidgeCV(alphas=[0.0], store_cv_results=True).fit(T, U)
    np.testing.assert_allclose(-least.best_score_, 0.742630, atol=5e-7)
    for alpha in (0.1, 3.0):
        wrong = []
        for i in range(30):
            rest = np.delete(np.arange(30), i)
            fold = Ridge(alpha).fit(WIDE[rest, :40], z[rest])
            wrong.append((z[i] - fold.predict(WIDE[i : i + 1, :40])[0]) ** 2)
        got = RidgeCV([alpha], store_cv_results=True).fit(WIDE[:30, :40], z[:30])
        np.testing.assert_allclose(got.cv_results_[:, 0], wrong, rtol=1e-8)


@pytest.mark.parametrize("settings", [{}, {"scoring": "neg_mean_absolute_error"}, {"cv": 3},
                                      {"cv": KFold(4), "scoring": "r2"}, {"fit_intercept": False}])  # fmt: skip
@pytest.mark.parametrize(("X", "target"), ROWS[:2], ids=IDS[:2])
def test_ridge_choice_equals_scikit_learn(X, target, settings) -> None:
    alphas = np.logspace(-2, 3, 9)
    ours, peer = RidgeCV(alphas, **settings), peers.RidgeCV(alphas, **settings)
    ours.fit(X, target), peer.fit(X, target)
    assert ours.alpha_ == peer.alpha_
    np.testing.assert_allclose(ours.best_score_, peer.best_score_, rtol=1e-7)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-6, atol=1e-8)


def test_ridge_weight_is_repetition() -> None:
    w = 1 + np.arange(len(y)) % 3
    twice = np.repeat(np.arange(len(y)), w)
    alphas = np.logspace(-2, 3, 9)
    a = RidgeCV(alphas).fit(TALL, y, sample_weight=w)
    b = RidgeCV(alphas).fit(TALL[twice], y[twice])
    assert a.alpha_ == b.alpha_
    np.testing.assert_allclose(a.best_score_, b.best_score_, rtol=1e-10)
