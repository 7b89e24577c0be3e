"""Lasso, elastic net, their paths and cross-validation: numbers, optimality, parity, screening."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peers
import torch
from sklearn.model_selection import KFold

import groundstate
from groundstate import ElasticNet, ElasticNetCV, Lasso, LassoCV, LinearRegression, Ridge, RidgeCV
from groundstate.errors import NotConverged
from groundstate.evaluate import folds
from groundstate.learn.solvers.lasso.design import GramDesign
from groundstate.learn.solvers.lasso.gram_numba import working_set
from groundstate.learn.solvers.lasso.moments import designs_of
from groundstate.learn.solvers.lasso.path import alpha_max, solve_path
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


@pytest.mark.parametrize(("X", "target"), ROWS[:2], ids=IDS[:2])
@pytest.mark.parametrize(("ratio", "positive"), [(1.0, False), (1.0, True), (0.6, False)])
def test_a_compiled_path_takes_the_rounds_of_the_interpreted_one(
    X, target, ratio, positive
) -> None:
    X = np.column_stack([X, np.full(len(X), 3.0)])  # a constant column
    rows, column = torch.from_numpy(X), torch.from_numpy(target[:, None])
    design = designs_of(rows, column, None, True, 1, True)[0]
    assert isinstance(design, GramDesign)
    top = alpha_max(design, ratio, positive) * design.W
    pairs = [(top * a * ratio, top * a * (1 - ratio)) for a in (0.7, 0.3, 0.1, 0.02)]
    settings = {"tol": 1e-9, "max_iter": 20_000, "positive": positive}
    told = []
    plain = solve_path(design, pairs, on_round=lambda w, value: told.append(value), **settings)
    found = solve_path(design, pairs, **settings)
    np.testing.assert_allclose(found.coefs, plain.coefs, atol=1e-7)
    np.testing.assert_allclose(found.objectives, plain.objectives, rtol=1e-9)
    assert (found.gaps <= 1e-9 * design.yy).all() and found.coefs.flags.writeable
    assert [len(r) for r in found.rounds] == [len(r) for r in plain.rounds]
    np.testing.assert_allclose([*itertools.chain(*found.rounds)], told, rtol=1e-6)
    for a, b in zip(found.screened, plain.screened, strict=True):
        assert a.tolist() == b.tolist() and a[-1] == X.shape[1] - 1


def test_working_sets_hold_the_support_and_the_worst() -> None:
    reach = np.array([5.0, 9.0, 0.1, 7.0, 7.0, 8.0, 7.0, 0.2, *np.full(20, 3.0)])
    w, alive = np.zeros(28), np.arange(28)
    w[2] = 1.0
    chosen, complete = working_set(reach, w, alive, 1.0, np.inf, 5)
    assert chosen.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10] and not complete  # ties in order
    chosen, complete = working_set(reach, w, alive, 4.0, np.inf, 5)
    assert chosen.tolist() == [0, 1, 2, 3, 4, 5, 6] and complete
    chosen, complete = working_set(reach, w, alive[2:], 4.0, 8.0, 40)  # the strong rule: above 2
    assert chosen.tolist() == [2, 3, 4, 5, 6, *range(8, 28)] and complete


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


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("model", ["LassoCV", "ElasticNetCV", "RidgeCV"])
def test_numbers_of_folds_are_scikit_learns(model: str, cv: int | None) -> None:
    settings = {} if model == "RidgeCV" else {"tol": 1e-10, "max_iter": 100_000}
    ours, peer = (getattr(room, model)(cv=cv, **settings) for room in (groundstate, peers))
    w = 1.0 + np.arange(len(y)) % 2
    for extra in ({}, {"sample_weight": w}):
        np.testing.assert_allclose(
            ours.fit(TALL, y, **extra).alpha_, peer.fit(TALL, y, **extra).alpha_
        )


def test_folds_know_weights_and_not_order() -> None:
    w = 1 + np.arange(len(y)) % 2
    twice = rng.permutation(np.repeat(np.arange(len(y)), w))
    kept = folds(TALL, y, k=5)
    pairs = [(part.train_rows, part.test_rows) for part in kept]
    again = [tuple(np.flatnonzero(np.isin(twice, at)) for at in pair) for pair in pairs]
    a = LassoCV(alphas=15, tol=1e-10, cv=pairs).fit(TALL, y, sample_weight=w)
    b = LassoCV(alphas=15, tol=1e-10, cv=again).fit(TALL[twice], y[twice])
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


def test_a_strength_for_every_target_is_chosen_on_its_own() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    Y = X @ rng.normal(size=(6, 3)) * [0.0, 1.0, 3.0] + rng.normal(size=(30, 3))
    for scoring in (None, "neg_mean_absolute_error"):
        settings = {"alphas": [0.1, 1.0, 10.0, 100.0], "alpha_per_target": True, "scoring": scoring}
        ours, peer = RidgeCV(**settings).fit(X, Y), peers.RidgeCV(**settings).fit(X, Y)
        assert ours.alpha_.tolist() == peer.alpha_.tolist()
        np.testing.assert_allclose(ours.best_score_, peer.best_score_, rtol=1e-9)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-10)
    with pytest.raises(ValueError, match="cv!=None and alpha_per_target=True are incompatible"):
        RidgeCV(cv=3, alpha_per_target=True).fit(X, Y)


@pytest.mark.parametrize("cv", [None, 3])
def test_ridge_chooses_on_sparse_rows(cv: int | None) -> None:
    S = sp.random_array((40, 10), density=0.3, rng=np.random.default_rng(0)).tocsr()
    y = np.random.default_rng(1).normal(size=40)
    sparse, dense = RidgeCV(cv=cv).fit(S, y), RidgeCV(cv=cv).fit(S.toarray(), y)
    assert sparse.alpha_ == dense.alpha_
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-12)
    np.testing.assert_allclose(sparse.predict(S), dense.predict(S.toarray()), atol=1e-12)


def test_folds_of_unequal_size_count_alike() -> None:
    rng = np.random.default_rng(0)
    for seed in range(6):
        X = rng.normal(size=(11, 4))
        y = X[:, 0] + rng.normal(size=11)
        w = rng.random(11) + 0.1
        settings = {
            "cv": KFold(3),
            "alphas": 8,
            "tol": 1e-8,
            "l1_ratio": [0.2, 0.8],
            "max_iter": 9999,
        }
        ours, peer = ElasticNetCV(**settings).fit(X, y, w), peers.ElasticNetCV(**settings)
        peer.fit(X, y, sample_weight=w)
        assert ours.alpha_ == pytest.approx(peer.alpha_), seed
        assert ours.l1_ratio_ == peer.l1_ratio_


def test_shapes_of_a_given_grid() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    for ratio in (0.5, [0.5], [0.2, 0.8]):
        for alphas in (4, [1.0, 0.1]):
            ours = ElasticNetCV(l1_ratio=ratio, alphas=alphas, cv=3).fit(X, X[:, 0])
            peer = peers.ElasticNetCV(l1_ratio=ratio, alphas=alphas, cv=3).fit(X, X[:, 0])
            assert ours.alphas_.shape == peer.alphas_.shape
            assert ours.mse_path_.shape == peer.mse_path_.shape


@pytest.mark.parametrize("name", ["Ridge", "RidgeCV", "Lasso", "ElasticNet"])
def test_a_column_of_targets_is_one_target(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = X @ [[1.0], [2.0], [0.0]] + 1.0
    model, peer = globals()[name]().fit(X, y), getattr(peers, name)().fit(X, y)
    assert model.coef_.shape == peer.coef_.shape == (3,)
    assert model.intercept_.shape == peer.intercept_.shape == (1,)
    assert model.predict(X).shape == peer.predict(X).shape == (20,)


def test_ridge_says_what_solved_it() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = X[:, 0]
    said = [Ridge(solver=s).fit(X, y).solver_ for s in ("auto", "svd", "sparse_cg")]
    assert said == ["cholesky", "svd", "sparse_cg"]


def test_what_scikit_learn_takes_is_taken() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    y = X[:, 0] - X[:, 1]
    plain = Lasso(alpha=0.1).fit(X, y)
    given = Lasso(alpha=0.1, precompute=X.T @ X, max_iter=None).fit(X, y)
    np.testing.assert_allclose(given.coef_, plain.coef_, atol=1e-6)
    assert LassoCV(precompute=X.T @ X, alphas=5).fit(X, y).alphas_.shape == (5,)
    settings = {"alphas": [0.5, 0.1], "precompute": X.T @ X, "Xy": X.T @ y, "copy_X": False}
    for ours, peer in ((Lasso, peers.Lasso), (LassoCV, peers.LassoCV)):
        np.testing.assert_allclose(
            ours.path(X, y, **settings)[1], peer.path(X, y, **settings)[1], atol=1e-3
        )


def test_the_penalty_chosen_on_a_wide_table_does_not_depend_on_the_order_of_columns() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 90))
    y = X[:, :4] @ np.array([2.0, -1.5, 1.0, 0.5]) + 0.5 * rng.normal(size=40)
    one = LassoCV(cv=3).fit(X, y)
    for _ in range(3):
        p = rng.permutation(90)
        two = LassoCV(cv=3).fit(X[:, p], y)
        assert two.alpha_ == pytest.approx(one.alpha_, rel=1e-9)
