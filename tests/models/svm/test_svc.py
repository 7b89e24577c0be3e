"""The kernel support vector machine: worked examples, optimality, and agreement with libsvm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, load_iris, make_blobs, make_circles, make_moons
from sklearn.svm import SVC as Libsvm

import groundstate
from groundstate import SVC
from groundstate.errors import NotConverged, NotSeparableError
from groundstate.math.kernels import RBF, Linear, Polynomial
from groundstate.registry import models

TIGHT = 1e-9
LINE = np.arange(4.0)[:, None], np.array([-1, 1, -1, 1])


def alphas(model: SVC, n: int) -> np.ndarray:
    out = np.zeros(n)
    out[model.support_] = np.abs(model.dual_coef_[0])
    return out


@pytest.mark.parametrize(("C", "alpha"), [(5.0, 0.5), (0.5, 0.5), (0.2, 0.2)])
def test_two_points(C: float, alpha: float) -> None:
    model = SVC(kernel="linear", C=C, tol=TIGHT).fit([[-1.0], [1.0]], [-1, 1])
    np.testing.assert_allclose(alphas(model, 2), alpha)


def test_four_points_on_a_line() -> None:
    X, y = LINE
    model = SVC(kernel="linear", C=1.0, tol=TIGHT).fit(X, y)
    report = model.report()
    np.testing.assert_allclose(model.coef_, [[0.666667]], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-6)
    np.testing.assert_allclose(alphas(model, 4), [0.555556, 1, 1, 0.555556], atol=1e-6)
    np.testing.assert_allclose([report.primal[0], report.dual[0]], 2.888889, atol=1e-6)
    assert (report.free[0], report.bound[0], report.zero[0]) == (2, 2, 0)
    assert (report.wrong[0], report.inside[0]) == (2, 0)


def test_without_free_vectors_the_intercept_is_in_the_middle() -> None:
    X, y = LINE
    model = SVC(kernel="linear", C=0.1, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(model.coef_, [[0.2]], atol=1e-9)
    np.testing.assert_allclose(model.intercept_, [-0.3], atol=1e-9)
    report = model.report()
    np.testing.assert_allclose([report.primal[0], report.dual[0]], 0.38, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "alpha"), [(RBF(gamma=0.5), 1.337533), (Polynomial(2, 1.0), 0.125)]
)
def test_exclusive_or(kernel: Any, alpha: float) -> None:
    X = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]])
    model = SVC(kernel=kernel, C=100.0, tol=TIGHT).fit(X, [1, 1, -1, -1])
    np.testing.assert_allclose(alphas(model, 4), alpha, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, 0.0, atol=1e-9)
    assert model.score(X, [1, 1, -1, -1]) == 1.0


def test_hard_margin() -> None:
    model = SVC(kernel="linear", C=np.inf, tol=TIGHT).fit([[2.0, 2.0], [0.0, 0.0]], [1, -1])
    np.testing.assert_allclose(model.coef_, [[0.5, 0.5]], atol=1e-9)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-9)
    np.testing.assert_allclose(alphas(model, 2), [0.25, 0.25], atol=1e-9)
    np.testing.assert_allclose(2 * model.margin_, 2.828427, atol=1e-6)
    other = SVC(kernel="linear", C=np.inf, tol=TIGHT).fit([[1.0, 0.0], [-1.0, 0.0]], [1, -1])
    np.testing.assert_allclose(other.coef_, [[1.0, 0.0]], atol=1e-9)


def test_hard_margin_is_a_large_c_and_rests_on_its_support_vectors() -> None:
    X, y = make_blobs(80, centers=[[0, 0], [5, 4]], random_state=0)
    hard = SVC(kernel="linear", C=np.inf, tol=TIGHT).fit(X, y)
    large = Libsvm(kernel="linear", C=1e8, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(hard.coef_, large.coef_, rtol=1e-4)
    again = SVC(kernel="linear", C=np.inf, tol=TIGHT).fit(X[hard.support_], y[hard.support_])
    np.testing.assert_allclose(again.coef_, hard.coef_, atol=1e-6)
    signed = np.where(y == 1, 1, -1) * hard.decision_function(X)
    np.testing.assert_allclose(signed.min(), 1.0, atol=1e-6)


def test_hard_margin_refuses_classes_that_overlap() -> None:
    X, y = LINE
    with pytest.raises(NotSeparableError, match="no margin separates.*finite C"):
        SVC(kernel="linear", C=np.inf).fit(X, y)


PARITY = [
    {}, {"kernel": "poly", "degree": 2, "coef0": 1.0}, {"C": 0.01}, {"gamma": "auto", "C": 10.0},
    {"class_weight": "balanced"}, {"class_weight": {0: 3.0}}, {"kernel": "sigmoid", "gamma": 0.01},
]  # fmt: skip


@pytest.mark.parametrize("settings", PARITY, ids=str)
def test_agrees_with_libsvm(settings: dict[str, Any]) -> None:
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    ours = SVC(tol=1e-8, **settings).fit(X, y)
    peer = Libsvm(tol=1e-8, **settings).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=2e-6)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    ours.set_params(decision_function_shape="ovo")
    peer.set_params(decision_function_shape="ovo")
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=2e-5)


def test_attributes_are_those_of_libsvm() -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    ours, peer = SVC(tol=1e-6).fit(X, y), Libsvm(tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(ours.support_, peer.support_)
    np.testing.assert_array_equal(ours.n_support_, peer.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, peer.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-4)


def test_optimality_conditions() -> None:
    X, y = make_moons(300, noise=0.3, random_state=0)
    C, tol = 2.0, 1e-6
    model = SVC(C=C, tol=tol).fit(X, y)
    report = model.report()
    assert 0 <= report.gap[0] <= tol * len(X) * C
    alpha = alphas(model, len(X))
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    free = (alpha > 0) & (alpha < C * (1 - 1e-9))
    assert (margin[alpha == 0] >= 1 - 2 * tol).all()
    np.testing.assert_allclose(margin[free], 1.0, atol=2 * tol)
    assert (margin[alpha >= C * (1 - 1e-9)] <= 1 + 2 * tol).all()
    assert abs(model.dual_coef_.sum()) < 1e-9
    assert report.zero[0] + report.free[0] + report.bound[0] == len(X)
    assert report.wrong[0] == (margin < 0).sum()


def test_kernel_objects_functions_and_matrices_agree() -> None:
    X, y = make_circles(80, noise=0.1, factor=0.5, random_state=0)
    named = SVC(gamma=0.7, tol=1e-6).fit(X, y)
    gram = RBF(gamma=0.7)(X)
    others = {
        "object": (SVC(kernel=RBF(gamma=0.7), tol=1e-6), X),
        "function": (SVC(kernel=lambda a, b: RBF(gamma=0.7)(a, b), tol=1e-6), X),
        "precomputed": (SVC(kernel="precomputed", tol=1e-6), gram),
    }
    for model, rows in others.values():
        found = model.fit(rows, y).decision_function(rows)
        np.testing.assert_allclose(found, named.decision_function(X), atol=1e-5)


def test_precomputed_is_checked_saved_and_loaded(tmp_path: Path) -> None:
    X, y = make_moons(40, noise=0.1, random_state=0)
    K = Linear()(X)
    model = SVC(kernel="precomputed").fit(K, y)
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    np.testing.assert_array_equal(loaded.predict(K), model.predict(K))
    with pytest.raises(ValueError, match="square matrix"):
        SVC(kernel="precomputed").fit(K[:, :5], y)


def test_weights_are_repetitions_to_the_bit() -> None:
    X, y = make_moons(120, noise=0.3, random_state=0)
    weight = np.random.default_rng(0).integers(0, 4, 120)
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(120), weight))
    a, b = SVC().fit(X, y, sample_weight=weight), SVC().fit(X[index], y[index])
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))


def test_ties_are_broken_as_asked() -> None:
    X, y = load_digits(return_X_y=True)
    peer, ours = Libsvm(C=0.01).fit(X, y), SVC(C=0.01, tol=1e-4).fit(X, y)
    assert (ours.predict(X) == peer.predict(X)).mean() > 0.995
    ours.set_params(break_ties=True)
    np.testing.assert_array_equal(ours.predict(X), ours.infer({"x": X}, "y"))


def test_limit_is_reported() -> None:
    X, y = make_moons(100, noise=0.3, random_state=0)
    with pytest.warns(NotConverged, match="violation of .* not tol=0.001, in 3 steps"):
        SVC(max_iter=3).fit(X, y)


def test_energies_are_half_the_score_with_opposite_signs() -> None:
    X, y = make_moons(60, noise=0.2, random_state=0)
    model = SVC().fit(X, y)
    f = model.decision_function(X)
    np.testing.assert_allclose(model.energy(X, np.ones(60, int)), -f / 2, atol=1e-12)
    np.testing.assert_allclose(model.energy(X, np.zeros(60, int)), f / 2, atol=1e-12)
    assert isinstance(model.decision_function(torch.from_numpy(X)), torch.Tensor)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_sparse_rows_are_dense_rows(kernel: str) -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    model = SVC(kernel=kernel, gamma=1e-3).fit(X, y)
    sparse = SVC(kernel=kernel, gamma=1e-3).fit(csr_matrix(X), y)
    np.testing.assert_array_equal(
        sparse.decision_function(csr_matrix(X)), model.decision_function(X)
    )
    np.testing.assert_array_equal(sparse.support_, model.support_)


def test_pairs_in_blocks_are_pairs_of_the_whole() -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    whole = SVC(tol=1e-5).fit(X, y)
    blocks = SVC(tol=1e-5, cache_size=0.5).fit(X, y)
    np.testing.assert_allclose(blocks.decision_function(X), whole.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(blocks.report().dual, whole.report().dual, rtol=1e-4)


def test_what_else_libsvm_tells() -> None:
    X, y = load_iris(return_X_y=True)
    settings: dict[str, Any] = {"class_weight": "balanced", "random_state": 0, "verbose": False}
    ours, peer = SVC(**settings).fit(X, y), Libsvm(**settings).fit(X, y)
    assert (ours.fit_status_, ours.shape_fit_) == (peer.fit_status_, peer.shape_fit_)
    np.testing.assert_allclose(ours.class_weight_, peer.class_weight_)
    with pytest.warns(NotConverged):
        assert SVC(max_iter=1).fit(X, y).fit_status_ == 1


def test_tables_too_large_for_it_leave_it_out() -> None:
    row = models["SVC"]
    assert row.max_rows == 20_000


def test_scalings_of_the_notes() -> None:
    """‖w‖² or λ‖w‖² beside hinges, and a width instead of gamma, are a known C and gamma."""
    from scipy.optimize import minimize

    from groundstate.math.kernels import RBF

    rng = np.random.default_rng(3)
    n, d, lam = 16, 2, 0.7
    rows = rng.normal(size=(n, d))
    sign = np.where(rows[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    inside = [
        {"type": "ineq", "fun": lambda t: sign * (rows @ t[:d] + t[d]) - 1 + t[d + 1 :]},
        {"type": "ineq", "fun": lambda t: t[d + 1 :]},
    ]
    start = np.r_[np.zeros(d + 1), np.full(n, 2.0)]
    for norm, slack, C in ((1.0, lam, lam / 2), (0.5, lam, lam), (lam, 1 / n, 1 / (2 * lam * n))):

        def cost(t, norm=norm, slack=slack):  # type: ignore[no-untyped-def]
            return norm * t[:d] @ t[:d] + slack * t[d + 1 :].sum()

        found = minimize(
            cost, start, constraints=inside, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500}
        )
        model = SVC(kernel="linear", C=C, tol=1e-8).fit(rows, sign)
        np.testing.assert_allclose(model.coef_[0], found.x[:d], atol=1e-5)
    width = 1.3
    one = SVC(kernel=RBF(width), tol=1e-8).fit(rows, sign)
    other = SVC(kernel="rbf", gamma=1 / (2 * width**2), tol=1e-8).fit(rows, sign)
    np.testing.assert_allclose(
        one.decision_function(rows), other.decision_function(rows), atol=1e-6
    )
