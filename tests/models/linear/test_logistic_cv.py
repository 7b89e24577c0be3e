"""LogisticRegressionCV: parity with the peer, populations equal to separate fits, weights, cost."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peers
import torch
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from groundstate import LogisticRegression, LogisticRegressionCV
from groundstate.learn.solvers.lasso.feature_sign import feature_sign
from groundstate.learn.solvers.logistic.folds import fold_paths

X, y = make_classification(240, 6, n_informative=4, n_redundant=0, flip_y=0.1, random_state=1)
IRIS, SPECIES = load_iris(return_X_y=True)
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


def peer(**settings: Any) -> Any:
    defaults = {"cv": FOLDS, "tol": 1e-9, "max_iter": 5000, "scoring": "accuracy"}
    return peers.LogisticRegressionCV(
        use_legacy_attributes=False, **{**defaults, "l1_ratios": (0.0,), **settings}
    )


@pytest.mark.parametrize(("rows", "labels"), [(X, y), (IRIS, SPECIES)], ids=["two", "three"])
@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}, {"fit_intercept": False}])
def test_equals_scikit_learn(rows: Any, labels: Any, settings: dict[str, Any]) -> None:
    grid = {"Cs": [0.5, 0.001, 20.0], **settings}
    ours = LogisticRegressionCV(cv=FOLDS, tol=1e-8, **grid).fit(rows, labels)
    theirs = peer(solver="newton-cholesky", **grid).fit(rows, labels)
    np.testing.assert_array_equal(ours.scores_, theirs.scores_)
    np.testing.assert_allclose(ours.coefs_paths_, theirs.coefs_paths_, atol=2e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.C_ == theirs.C_ and ours.Cs_.tolist() == grid["Cs"]


@pytest.mark.parametrize("cv", [None, 3])
def test_numbers_of_folds_are_scikit_learns(cv: int | None) -> None:
    for rows, labels in ((X, y), (IRIS, SPECIES)):
        ours = LogisticRegressionCV(Cs=6, cv=cv, tol=1e-8).fit(rows, labels)
        theirs = peer(Cs=6, cv=cv, solver="newton-cholesky").fit(rows, labels)
        np.testing.assert_array_equal(ours.scores_, theirs.scores_)
        assert ours.C_ == theirs.C_


def test_penalties_are_chosen_too() -> None:
    grid = {"Cs": [0.05, 1.0], "l1_ratios": (0.0, 0.5, 1.0), "scoring": "neg_log_loss"}
    ours = LogisticRegressionCV(cv=FOLDS, tol=1e-6, **grid).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peer(solver="saga", **grid).fit(X, y)
    np.testing.assert_allclose(ours.scores_, theirs.scores_, atol=1e-5)
    assert (ours.C_, ours.l1_ratio_) == (theirs.C_, theirs.l1_ratio_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.coefs_paths_.shape == theirs.coefs_paths_.shape == (4, 3, 2, 1, 7)


def test_the_population_equals_separate_fits() -> None:
    rng = np.random.default_rng(0)
    for rows, labels, classes in ((X, y, 2), (IRIS, SPECIES, 3)):
        weights = rng.integers(0, 3, (3, len(rows))).astype(float)
        strengths = np.array([100.0, 3.0, 0.1])
        data = torch.from_numpy(rows), torch.from_numpy(labels)
        found = fold_paths(*data, weights, strengths, classes, True, tol=1e-9)
        for f, c in np.ndindex(3, 3):
            alone = LogisticRegression(C=1 / strengths[c], tol=1e-9)
            alone.fit(rows, labels, sample_weight=weights[f])
            expected = np.column_stack([alone.coef_, alone.intercept_])
            np.testing.assert_allclose(found.theta[f, c], expected, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("intercept", "tol"), [(True, 1e-4), (False, 1e-8)])
def test_a_hundred_members_have_small_gradients(classes: int, intercept: bool, tol: float) -> None:
    rows, labels = make_classification(1500, 12, n_informative=8, n_classes=classes, random_state=2)
    fold = np.arange(1500) % 5
    weights = np.array([(fold != f) * 1.0 for f in range(5)])
    strengths = np.logspace(4, -4, 20)
    data = torch.from_numpy(rows), torch.from_numpy(labels)
    found = fold_paths(*data, weights, strengths, classes, intercept, tol)
    x = np.c_[rows, np.ones(1500)] if intercept else rows
    s = found.theta @ x.T  # (F, S, R, n)
    s = np.concatenate([np.zeros_like(s), s], 2) if classes == 2 else s
    p = np.exp(s - s.max(2, keepdims=True))
    p /= p.sum(2, keepdims=True)
    p -= np.eye(classes)[:, labels]
    slope = (p[:, :, 1:] if classes == 2 else p) * weights[:, None, None] @ x
    slope[..., :12] += strengths[:, None, None] * found.theta[..., :12]
    assert abs(slope).max() / 1200 <= tol
    assert found.steps.max() <= 14  # none was left to itself


def test_hard_rows_are_solved_too() -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(900, 12)) * np.logspace(-2, 3, 12)
    apart = rng.normal(size=(900, 12))
    for rows, labels in ((wide, wide[:, 0] > 0), (apart, apart[:, 0] > 0)):
        y = labels.astype(int)
        y[rng.random(900) < (0.1 if rows is wide else 0.0)] ^= 1
        strengths = np.logspace(3, -3, 9)
        data = torch.from_numpy(rows), torch.from_numpy(y)
        found = fold_paths(*data, np.ones((2, 900)), strengths, 2, True)
        p = 0.5 + 0.5 * np.tanh(0.5 * (found.theta[0, :, 0] @ np.c_[rows, np.ones(900)].T))
        slope = (p - y) @ rows + strengths[:, None] * found.theta[0, :, 0, :-1]
        assert abs(slope).max() / 900 <= 1e-4


def test_single_precision_is_used_where_it_will_do() -> None:
    rows, labels = make_classification(4000, 20, random_state=0)
    moved = rows + 1e4  # columns far from zero need all digits
    grid = {"Cs": [0.01, 1.0], "cv": FOLDS}
    near = LogisticRegressionCV(**grid).fit(rows, labels)
    far = LogisticRegressionCV(**grid).fit(moved, labels)
    np.testing.assert_allclose(near.scores_, far.scores_, atol=2e-3)
    exact = LogisticRegressionCV(tol=1e-8, **grid).fit(rows, labels)
    np.testing.assert_allclose(near.coefs_paths_, exact.coefs_paths_, atol=2e-3)


def test_sparse_rows_equal_dense_rows() -> None:
    thin = sp.random(200, 30, 0.2, format="csr", random_state=0)
    labels = (thin[:, 0].toarray()[:, 0] + thin[:, 1].toarray()[:, 0] > 0).astype(int)
    a = LogisticRegressionCV(Cs=[0.1, 1.0], cv=FOLDS, tol=1e-7).fit(thin, labels)
    b = LogisticRegressionCV(Cs=[0.1, 1.0], cv=FOLDS, tol=1e-7).fit(thin.toarray(), labels)
    np.testing.assert_allclose(a.coefs_paths_, b.coefs_paths_, atol=1e-4)
    assert LogisticRegressionCV(Cs=3).fit(thin, labels).scores_.shape == (5, 1, 3)


def test_a_population_on_sparse_rows() -> None:
    thin = sp.random(2000, 30, 0.2, format="csr", random_state=0)
    noise = np.random.default_rng(0).normal(size=2000)
    labels = (thin[:, :4].toarray().sum(1) + 0.3 * noise > 0.4).astype(int)
    grid = {"Cs": [0.01, 0.1, 1.0, 10.0], "cv": FOLDS, "tol": 1e-7}
    a = LogisticRegressionCV(**grid).fit(thin, labels)
    b = LogisticRegressionCV(**grid).fit(thin.toarray(), labels)
    np.testing.assert_allclose(a.coefs_paths_, b.coefs_paths_, atol=1e-3)
    np.testing.assert_allclose(a.scores_, b.scores_)


def test_averaged_folds_and_older_shapes() -> None:
    model = LogisticRegressionCV(Cs=3, cv=FOLDS, refit=False, use_legacy_attributes=True).fit(X, y)
    best = model.scores_[1][:, :, 0].argmax(1)
    mean = np.mean([model.coefs_paths_[1][f, b, 0] for f, b in enumerate(best)], 0)
    np.testing.assert_allclose(np.r_[model.coef_[0], model.intercept_], mean)
    assert model.C_.shape == (1,) and model.history_.solver == "FixedParameters"


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"Cs": [-1.0]}, "positive values"), ({"l1_ratios": (2.0,)}, "between 0 and 1")],
)
def test_bad_grids_get_one_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LogisticRegressionCV(**settings).fit(X, y)


def test_feature_sign_meets_the_conditions() -> None:
    rng = np.random.default_rng(3)
    for m in (1, 5, 20):
        A = rng.normal(size=(30, m))
        G, c = A.T @ A + 1e-9 * np.eye(m), A.T @ rng.normal(size=30) * 3
        for start in (np.zeros(m), rng.normal(size=m)):
            w = feature_sign(G, c, 2.0, start)
            slope = c - G @ w
            np.testing.assert_allclose(slope[w != 0], 2.0 * np.sign(w[w != 0]), atol=1e-7)
            assert (abs(slope[w == 0]) <= 2.0 + 1e-7).all()


def test_the_score_is_what_was_asked_for() -> None:
    for scoring in ("neg_log_loss", None):
        ours = LogisticRegressionCV(Cs=3, cv=3, scoring=scoring).fit(X, y)
        w = np.random.default_rng(0).random(len(y))
        by = {"neg_log_loss": -log_loss(y, ours.predict_proba(X), sample_weight=w)}
        expected = by.get(str(scoring), np.average(ours.predict(X) == y, weights=w))
        assert ours.score(X, y, sample_weight=w) == pytest.approx(expected)


def test_far_columns_do_not_change_the_folds_paths() -> None:
    cv = list(FOLDS.split(X, y))
    near, far = (LogisticRegressionCV(Cs=4, cv=cv).fit(rows, y) for rows in (X, X + 1e6))
    np.testing.assert_allclose(far.coefs_paths_[..., :-1], near.coefs_paths_[..., :-1], atol=1e-3)
    np.testing.assert_allclose(far.scores_, near.scores_, atol=0.02)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)


@pytest.mark.parametrize(("rows", "labels"), [(X, y), (IRIS, SPECIES)], ids=["two", "three"])
def test_log_loss_of_folds_is_scikit_learns(rows: Any, labels: Any) -> None:
    grid = {"Cs": [0.01, 1.0, 1e3], "scoring": "neg_log_loss"}
    ours = LogisticRegressionCV(cv=FOLDS, tol=1e-9, **grid).fit(rows, labels)
    theirs = peer(solver="newton-cholesky", **grid).fit(rows, labels)
    np.testing.assert_allclose(ours.scores_, theirs.scores_, rtol=1e-5)


def test_a_fold_without_a_class() -> None:
    labels = np.repeat([0, 1], len(y) // 2)
    labels[7] = 2  # in one fold alone
    with pytest.warns(UserWarning, match="least populated"):
        model = LogisticRegressionCV(scoring="neg_log_loss").fit(X, labels)
    assert np.isfinite(model.scores_).all() and model.predict_proba(X).shape == (len(y), 3)
