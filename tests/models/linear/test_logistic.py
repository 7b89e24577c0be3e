"""Logistic and softmax regression: numbers, optimality, parity, sparse rows, separation, streams."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peers
import torch
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import recall_score
from sklearn.model_selection import FixedThresholdClassifier

from groundstate import LinearSVC, LogisticRegression, Perceptron, load
from groundstate.energy import LinearEnergy
from groundstate.errors import SeparationWarning, Unsupported
from groundstate.learn import L2, Newton, SoftMin, fit, is_separable
from groundstate.learn.base import Problem
from groundstate.learn.solvers.logistic.objective import SoftmaxObjective

T, B = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([0, 1, 0, 1])
IRIS, SPECIES = load_iris(return_X_y=True)
rng = np.random.default_rng(0)
X, y = make_classification(300, 8, n_informative=5, n_redundant=0, random_state=0)
THIN = sp.random(400, 50, 0.1, format="csr", random_state=0)
t = (THIN @ rng.normal(size=(50, 3)) + rng.gumbel(size=(400, 3)) * 0.3).argmax(1)


def objective(model: Any, X: Any, y: Any, C: float, ratio: float = 0.0) -> float:
    """CΣℓ + (1 − ρ)‖w‖²/2 + ρ‖w‖₁."""
    loss = -model.predict_log_proba(X)[np.arange(len(y)), y].sum()
    w = model.coef_
    return float(C * loss + 0.5 * (1 - ratio) * (w**2).sum() + ratio * abs(w).sum())


def gradient(model: Any, X: Any, y: Any) -> np.ndarray:
    """Σ(p − 1_y)x over the rows, as coef_."""
    residual = model.predict_proba(X)
    residual[np.arange(len(y)), y] -= 1.0
    residual = residual[:, 1:] if residual.shape[1] == 2 else residual
    return np.asarray((X.T @ residual).T)


def test_worked_examples() -> None:
    free = LogisticRegression(C=np.inf, tol=1e-9).fit(T, B)
    got = [free.intercept_[0], free.coef_[0, 0]]
    np.testing.assert_allclose(got, [-0.454092, 0.908184], atol=1e-6)
    assert free.predict_log_proba(T)[range(4), B].sum() == pytest.approx(-2.347487, abs=1e-6)
    held = LogisticRegression(tol=1e-9).fit(T, B)
    got = [held.intercept_[0], held.coef_[0, 0]]
    np.testing.assert_allclose(got, [-0.226438, 0.452875], atol=1e-6)
    np.testing.assert_allclose(held.odds_ratio_, np.exp(held.coef_))
    assert not held.separable_ and not free.separable_


def test_worked_losses() -> None:
    e = LinearEnergy(1, 3).double()
    x, label = torch.zeros(1, 1, dtype=torch.float64), torch.tensor([2])
    assert SoftMin()(e, {"x": x, "y": label}).loss.item() == pytest.approx(np.log(3))
    e.b.data.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert SoftMin()(e, {"x": x, "y": label}).loss.item() == pytest.approx(0.407606, abs=1e-6)
    two = LinearEnergy(1, 2).double()
    data = {"x": torch.tensor([[1.0], [2.0], [-1.0]]).double(), "y": torch.tensor([1, 1, 0])}
    rows = SoftmaxObjective(Problem(two, SoftMin(), data))
    value, slope = rows.evaluate(np.zeros((1, 2)))
    assert value == pytest.approx(np.log(2)) and slope[0, 0] == pytest.approx(-2 / 3)
    assert rows.evaluate(np.array([[2.0, 0.0]]))[0] > 0.0


def test_intercept_alone_gives_the_shares() -> None:
    model = LogisticRegression(C=np.inf, tol=1e-10)
    model.fit(np.zeros((4, 1)), [0, 0, 1, 2])
    np.testing.assert_allclose(model.predict_proba([[0.0]])[0], [0.5, 0.25, 0.25], atol=1e-9)
    loss = -model.predict_log_proba(np.zeros((4, 1)))[range(4), [0, 0, 1, 2]].mean()
    assert loss == pytest.approx(1.039721, abs=1e-6)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg", "newton-cholesky", "saga"])
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (IRIS, SPECIES)], ids=["two", "three"])
@pytest.mark.parametrize("intercept", [True, False])
def test_equals_scikit_learn(solver: str, rows: Any, labels: Any, intercept: bool) -> None:
    settings = {"C": 0.7, "max_iter": 5000, "fit_intercept": intercept}
    ours = LogisticRegression(solver=solver, tol=1e-9, **settings).fit(rows, labels)
    peer = peers.LogisticRegression(solver="newton-cholesky", tol=1e-11, **settings)
    peer.fit(rows, labels)
    near = 1e-5 if solver == "lbfgs" else 1e-6  # it stops where the objective stops falling
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=near)
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=near)
    slope = 0.7 * gradient(ours, rows, labels) + ours.coef_
    assert abs(slope).max() < 10 * near
    if len(ours.coef_) == 3:
        assert abs(gradient(ours, rows, labels).sum(0)).max() < 1e-8


@pytest.mark.parametrize("way", ["exact", "metric", "sampled", "conjugate"])
@pytest.mark.parametrize("classes", [2, 4])
def test_ways_of_newton_meet(way: Any, classes: int) -> None:
    rows, labels = make_classification(
        900, 6, n_informative=5, n_redundant=0, n_classes=classes, random_state=1
    )
    weight = torch.from_numpy(np.random.default_rng(2).integers(0, 3, 900).astype(float))
    data = {"x": torch.from_numpy(rows), "y": torch.from_numpy(labels)}
    energy = LinearEnergy(6, classes).double()
    fit(energy, data, SoftMin(), Newton(tol=1e-9, way=way), penalty=L2(0.5), sample_weight=weight)
    loss = (SoftMin()(energy, data).loss * weight).sum() + 0.25 * (energy.W**2).sum()
    (slope,) = torch.autograd.grad(loss / weight.sum(), [energy.W])
    assert slope.abs().max() < 1e-9  # convex: there is one such place


def test_many_rows_use_a_part_for_the_curvature() -> None:
    rows, labels = make_classification(60_000, 40, n_informative=10, random_state=0)
    model = LogisticRegression(tol=1e-6).fit(rows, labels)
    slope = (gradient(model, rows, labels) + model.coef_) / 60_000
    assert abs(slope).max() <= 1e-6
    assert model.history_.n_iter < 25


def test_unpenalised_weights_sum_to_zero_over_classes() -> None:
    noisy = IRIS + rng.normal(size=IRIS.shape)
    model = LogisticRegression(C=np.inf, tol=1e-8).fit(noisy, SPECIES)
    assert abs(model.coef_.sum(0)).max() < 1e-8 and abs(model.intercept_.sum()) < 1e-8


def test_sparse_rows_equal_dense_rows() -> None:
    weight = rng.integers(0, 3, 400).astype(float)
    for labels in (t, (t > 0).astype(int)):
        for settings in ({}, {"l1_ratio": 1.0, "C": 2.0}, {"solver": "newton-cg"}):
            dense = LogisticRegression(tol=1e-7, **settings)
            dense.fit(THIN.toarray(), labels, sample_weight=weight)
            for rows in (THIN, THIN.tocsc()):
                thin = LogisticRegression(tol=1e-7, **settings)
                thin.fit(rows, labels, sample_weight=weight)
                np.testing.assert_allclose(thin.coef_, dense.coef_, atol=2e-5)
                np.testing.assert_allclose(
                    thin.predict_proba(rows), dense.predict_proba(THIN.toarray()), atol=1e-5
                )
    e = thin.energy(THIN[:5], labels[:5])
    np.testing.assert_allclose(e, dense.energy(THIN[:5].toarray(), labels[:5]), atol=1e-4)


@pytest.mark.parametrize(("rows", "labels"), [(X, y), (IRIS, SPECIES)], ids=["two", "three"])
@pytest.mark.parametrize("ratio", [1.0, 0.4])
@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_weights_are_optimal(rows: Any, labels: Any, ratio: float, intercept: bool) -> None:
    C = 0.2
    model = LogisticRegression(C=C, l1_ratio=ratio, tol=1e-5, fit_intercept=intercept)
    model.fit(rows, labels)
    slope = -C * gradient(model, rows, labels) - (1 - ratio) * model.coef_
    on = model.coef_ != 0
    assert 0 < on.sum() < on.size
    np.testing.assert_allclose(slope[on], ratio * np.sign(model.coef_[on]), atol=1e-5)
    assert (abs(slope[~on]) <= ratio + 1e-5).all()
    peer = peers.LogisticRegression(
        C=C, l1_ratio=ratio, solver="saga", tol=1e-7, max_iter=20_000, fit_intercept=intercept
    ).fit(rows, labels)
    best = objective(peer, rows, labels, C, ratio)
    assert objective(model, rows, labels, C, ratio) <= best * (1 + 1e-5)
    assert model.history_.extra["dual_gap"][0] < 1e-8


def test_a_strong_penalty_leaves_nothing() -> None:
    smallest = 1.0 / abs(X.T @ (y - y.mean())).max()
    assert not LogisticRegression(C=smallest * 0.999, l1_ratio=1.0).fit(X, y).coef_.any()
    assert LogisticRegression(C=smallest * 1.01, l1_ratio=1.0).fit(X, y).coef_.any()


def test_more_columns_than_rows_are_screened() -> None:
    wide = np.random.default_rng(4).normal(size=(60, 500))
    labels = (wide[:, 0] - wide[:, 1] > 0).astype(int)
    model = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-5).fit(wide, labels)
    slope = abs(gradient(model, wide, labels)[0])
    assert (slope <= 2.0 + 1e-4).all() and model.history_.extra["screened"][0] > 0
    assert {0, 1} <= set(np.flatnonzero(model.coef_[0]))


def test_separable_classes_are_told() -> None:
    rows, labels = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    with pytest.warns(SeparationWarning, match="classes are separable"):
        model = LogisticRegression(C=np.inf, tol=1e-12).fit(rows, labels)
    assert model.separable_ and (model.predict(rows) == labels).all()
    assert is_separable(rows, labels) and is_separable(sp.csr_matrix(rows), labels)
    flipped = np.array([0, 1, 0, 1])
    assert not is_separable(rows, flipped)
    assert not LogisticRegression(C=np.inf).fit(rows, flipped).separable_
    assert not is_separable(IRIS, SPECIES) and is_separable(IRIS[:100], SPECIES[:100])
    assert is_separable(np.eye(3), [0, 1, 2], fit_intercept=False)
    assert not is_separable([[1.0], [2.0]], [0, 1], fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticRegression().fit(rows, labels)


def test_three_separable_classes_are_told() -> None:
    rows = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]]).repeat(3, 0) + rng.normal(size=(9, 2)) / 9
    with pytest.warns(SeparationWarning):
        assert LogisticRegression(C=np.inf).fit(rows, np.arange(9) // 3).separable_


def test_thresholds_are_shifts_of_the_log_odds() -> None:
    model = LogisticRegression().fit(X, y)
    p, f = model.predict_proba(X)[:, 1], model.decision_function(X)
    for delta in (0.1, 0.5, 0.8):
        np.testing.assert_array_equal(p > delta, f > np.log(delta / (1 - delta)))
    np.testing.assert_array_equal(model.predict(X), (f > 0).astype(int))
    recall = [
        recall_score(
            y, FixedThresholdClassifier(model, threshold=d, pos_label=1).fit(X, y).predict(X)
        )
        for d in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]
    assert (np.diff(recall) <= 0).all()


def test_energies_are_scores_turned_round() -> None:
    model = LogisticRegression().fit(IRIS, SPECIES)
    e = model.energies(IRIS)
    np.testing.assert_allclose(e, -(IRIS @ model.coef_.T + model.intercept_), atol=1e-9)
    np.testing.assert_array_equal(model.predict(IRIS), e.argmin(1))
    np.testing.assert_array_equal((3.0 * e + 7.0).argmin(1), e.argmin(1))
    np.testing.assert_allclose(model.decision_function(IRIS), -e)
    np.testing.assert_allclose(model.energy(IRIS, SPECIES), e[np.arange(150), SPECIES], atol=1e-9)
    two = LogisticRegression().fit(X, y)
    f = two.decision_function(X)
    np.testing.assert_allclose(two.energies(X), np.column_stack([f, -f]) / 2, atol=1e-9)
    x = torch.from_numpy(IRIS[:1])
    energy = model.energy_
    W, b = torch.autograd.grad(energy(x=x, y=torch.tensor([1])).sum(), [energy.W, energy.b])
    torch.testing.assert_close(W[1], -x[0])
    assert not W[[0, 2]].any() and b.tolist() == [0.0, -1.0, 0.0]


def test_a_tie_goes_to_the_first_class() -> None:
    model = LogisticRegression(fit_intercept=False).fit([[-1.0], [1.0]], ["a", "b"])
    assert model.predict([[0.0]]).tolist() == ["a"]


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_any_units_of_a_column(scale: float, ratio: float) -> None:
    rows = X * np.r_[scale, np.ones(7)]
    model = LogisticRegression(C=10.0, l1_ratio=ratio).fit(rows, y)
    without = LogisticRegression(C=10.0, l1_ratio=ratio).fit(X[:, 1:], y)
    assert model.score(rows, y) >= without.score(X[:, 1:], y) - 0.02


def test_warm_start_goes_on() -> None:
    cold = LogisticRegression(tol=1e-8).fit(X, y)
    warm = LogisticRegression(tol=1e-8, warm_start=True).fit(X, y)
    assert warm.fit(X, y).n_iter_ < cold.n_iter_
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-8)


def test_balanced_classes_equal_repeated_rows() -> None:
    few = np.r_[np.flatnonzero(y == 0)[:100], np.flatnonzero(y == 1)[:50]]
    balanced = LogisticRegression(class_weight="balanced", tol=1e-9).fit(X[few], y[few])
    weight = np.where(y[few] == 0, 150 / 200, 150 / 100)
    plain = LogisticRegression(tol=1e-9).fit(X[few], y[few], sample_weight=weight)
    np.testing.assert_allclose(balanced.coef_, plain.coef_, atol=1e-9)


def test_a_stream_in_halves_is_one_stream() -> None:
    whole = LogisticRegression().partial_fit(X, y, classes=[0, 1])
    halves = LogisticRegression()
    for part in (slice(0, 200), slice(200, None)):
        halves.partial_fit(X[part], y[part], classes=[0, 1])
    np.testing.assert_allclose(halves.coef_, whole.coef_, atol=1e-10)
    sparse = LogisticRegression().partial_fit(sp.csr_matrix(X), y, classes=[0, 1])
    np.testing.assert_allclose(sparse.coef_, whole.coef_, atol=1e-10)
    assert whole.score(X, y) > 0.75
    with pytest.raises(ValueError, match="partial_fit needs l1_ratio=0"):
        LogisticRegression(l1_ratio=1.0).partial_fit(X, y, classes=[0, 1])


def test_stochastic_descent_reaches_the_minimum() -> None:
    exact = LogisticRegression(tol=1e-8).fit(X, y)
    steps = LogisticRegression(solver="sgd", max_iter=50).fit(X, y)
    assert objective(steps, X, y, 1.0) <= objective(exact, X, y, 1.0) * (1 + 1e-2)
    with pytest.raises(Unsupported, match="dense rows"):
        LogisticRegression(solver="sgd").fit(THIN, t)


@pytest.mark.parametrize("classes", [2, 4])
def test_sums_off_the_host_are_the_same(classes: int) -> None:
    """What runs on a GPU, run with torch's operators on the CPU."""
    rows, labels = make_classification(
        200, 6, n_informative=5, n_redundant=0, n_classes=classes, random_state=0
    )
    data = {"x": torch.from_numpy(rows), "y": torch.from_numpy(labels)}
    weight = torch.from_numpy(rng.integers(0, 3, 200).astype(float))
    problem = Problem(LinearEnergy(6, classes).double(), SoftMin(), data, weight, L2(1.0))
    host, device = SoftmaxObjective(problem), SoftmaxObjective(problem, on_host=False)
    theta = rng.normal(size=host.shape)
    move = torch.from_numpy(theta)
    for a, b in (
        (host.evaluate(theta)[1], device.evaluate(move)[1]),
        (host.hessian(theta, 3), device.hessian(move, 3)),
        (host.product(host.curvature(theta), theta), device.product(device.curvature(move), move)),
    ):
        np.testing.assert_allclose(a, b.numpy(), atol=1e-12)
    assert host.separates(theta) == device.separates(move)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg"])
@pytest.mark.parametrize(("classes", "n"), [(2, 60), (3, 60), (3, 3000)])
def test_far_columns_are_seen_from_their_means(classes: int, n: int, solver: str) -> None:
    rng = np.random.default_rng(classes)
    Z = rng.normal(size=(n, 5))
    y = (Z @ rng.normal(size=(5, classes)) + rng.gumbel(size=(n, classes))).argmax(1)
    w = rng.integers(0, 3, n).astype(float)
    X = Z + 1e5 * np.arange(5)
    near = LogisticRegression(C=10, tol=1e-8, solver=solver, max_iter=1000).fit(Z, y, w)
    far = LogisticRegression(C=10, tol=1e-8, solver=solver, max_iter=1000).fit(X, y, w)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=2e-4)
    np.testing.assert_allclose(far.predict_proba(X), near.predict_proba(Z), atol=1e-4)
    again = far.set_params(warm_start=True).fit(X, y, w)  # begins where it ended
    np.testing.assert_allclose(again.coef_, near.coef_, atol=2e-4)


def test_newton_ends_where_steps_are_below_rounding() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) * [1e-3, 1e6]
    y = rng.integers(2, size=150)
    model = LogisticRegression(C=10, tol=1e-13, max_iter=2000, fit_intercept=False).fit(X, y)
    assert model.n_iter_ < 20


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(), Perceptron()])
def test_weights_may_be_kept_sparse(model: Any, tmp_path: Any) -> None:
    X, y = load_iris(return_X_y=True)
    dense = model.fit(X, y).coef_.copy()
    told = model.predict(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_array_equal(model.predict(X), told)
    np.testing.assert_array_equal(load(model.save(tmp_path / "m")).predict(X), told)
    np.testing.assert_array_equal(model.densify().coef_, dense)
