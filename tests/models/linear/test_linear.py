"""Least squares and ridge: worked numbers, optimality, parity, chunks, sparse rows, scalings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peers
import torch
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_regression

import groundstate
from groundstate import LinearRegression, LogisticRegression, Ridge
from groundstate.learn.solvers.linear.least_squares import solve_sums
from groundstate.learn.solvers.linear.least_squares_sums import RegressionSums, _dense, _on_device

T, U = np.arange(4.0)[:, None], np.array([1.0, 2.0, 2.0, 4.0])
rng = np.random.default_rng(0)
X = rng.normal(size=(90, 7)) * [1, 10, 0.1, 1, 1, 1, 1] + [0, 5, 0, 100, 0, 0, 0]
Y = X @ rng.normal(size=(7, 2)) + rng.normal(size=(90, 2)) + [3.0, -1.0]
THIN = sp.random(200, 60, 0.1, format="csr", random_state=0)
z = THIN @ rng.normal(size=60) + 0.1 * rng.normal(size=200) + 2.0
WIDE = rng.normal(size=(30, 80))


def test_worked_examples() -> None:
    model = LinearRegression().fit(T, U)
    np.testing.assert_allclose([model.intercept_, model.coef_[0]], [0.9, 0.9], atol=1e-12)
    residual = U - model.predict(T)
    assert residual @ residual == pytest.approx(0.7)
    assert model.score(T, U) == pytest.approx(0.852632, abs=1e-6)
    origin = LinearRegression(fit_intercept=False).fit([[1.0], [2.0], [3.0]], [2.0, 3.0, 5.0])
    assert origin.coef_[0] == pytest.approx(23 / 14) and origin.intercept_ == 0.0
    ridge = Ridge(1.0).fit(T, U)
    np.testing.assert_allclose([ridge.coef_[0], ridge.intercept_], [0.75, 1.125], atol=1e-12)


@pytest.mark.parametrize(
    ("shift", "intercept"), [(0.0, False), (1.0, False), (0.0, True), (1.0, True), (1e5, True)]
)
def test_more_columns_than_rows_wherever_the_mean_is(shift: float, intercept: bool) -> None:
    rows, target = WIDE + shift, WIDE[:, :2] + 3.0
    for weight in (None, np.linspace(0.5, 2.0, len(rows))):
        ours = Ridge(0.7, fit_intercept=intercept).fit(rows, target, sample_weight=weight)
        peer = peers.Ridge(0.7, fit_intercept=intercept, solver="svd")
        peer.fit(rows, target, sample_weight=weight)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-9)
        np.testing.assert_allclose(ours.predict(rows), peer.predict(rows), atol=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("target", [Y, Y[:, 0]], ids=["two", "one"])
def test_residuals_are_orthogonal_and_equal_the_peer(intercept: bool, target: Any) -> None:
    ours = LinearRegression(fit_intercept=intercept).fit(X, target)
    peer = peers.LinearRegression(fit_intercept=intercept).fit(X, target)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-8)
    np.testing.assert_allclose(ours.singular_, peer.singular_, rtol=1e-7)
    assert ours.rank_ == peer.rank_ == 7
    assert abs(X.T @ (target - ours.predict(X))).max() < 1e-7


def test_outputs_share_the_factor_but_nothing_else() -> None:
    both = LinearRegression().fit(X, Y)
    for k in range(2):
        np.testing.assert_allclose(both.coef_[k], LinearRegression().fit(X, Y[:, k]).coef_)


def test_duplicate_and_constant_columns_give_the_smallest_norm() -> None:
    rows = np.column_stack([X, X[:, 0], np.full(90, 7.0)])
    model = LinearRegression().fit(rows, Y[:, 0])
    centred = rows - rows.mean(0)
    expected = np.linalg.pinv(centred, rcond=1e-10) @ (Y[:, 0] - Y[:, 0].mean())
    np.testing.assert_allclose(model.coef_, expected, atol=1e-8)
    assert model.rank_ == 7 and model.coef_[-1] == 0.0
    constant = LinearRegression().fit(np.column_stack([X, np.full(90, 1e9)]), Y[:, 0])
    np.testing.assert_allclose(constant.coef_[:-1], LinearRegression().fit(X, Y[:, 0]).coef_)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_of_a_column_change_its_weight_alone(scale: float) -> None:
    plain = LinearRegression().fit(X, Y[:, 0])
    moved = LinearRegression().fit(X * np.r_[scale, np.ones(6)], Y[:, 0])
    np.testing.assert_allclose(moved.coef_ * np.r_[scale, np.ones(6)], plain.coef_, rtol=1e-8)


def test_more_columns_than_rows() -> None:
    target = WIDE[:, :3].sum(1)
    for alpha, peer in ((0.0, peers.LinearRegression()), (0.7, peers.Ridge(0.7))):
        ours = Ridge(alpha).fit(WIDE, target)
        np.testing.assert_allclose(ours.coef_, peer.fit(WIDE, target).coef_, atol=1e-8)
    exact = LinearRegression().fit(WIDE, target)
    np.testing.assert_allclose(exact.predict(WIDE), target, atol=1e-9)
    assert exact.rank_ == 29


def test_ridge_shrinks_from_least_squares_to_zero() -> None:
    norms = [np.linalg.norm(Ridge(a).fit(X, Y[:, 0]).coef_) for a in np.logspace(-6, 8, 15)]
    assert (np.diff(norms) < 0).all() and norms[-1] < 1e-3
    np.testing.assert_allclose(Ridge(1e-10).fit(X, Y).coef_, LinearRegression().fit(X, Y).coef_)


@pytest.mark.parametrize("solver", ["auto", "cholesky", "svd", "lsqr", "sparse_cg", "saga"])
def test_ridge_solvers_agree(solver: str) -> None:
    standard = (X - X.mean(0)) / X.std(0)
    ours = Ridge(2.0, solver=solver, tol=1e-13).fit(standard, Y)
    np.testing.assert_allclose(ours.coef_, peers.Ridge(2.0).fit(standard, Y).coef_, atol=1e-8)


def test_a_strength_for_every_output() -> None:
    ours = Ridge([0.5, 20.0]).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, peers.Ridge([0.5, 20.0]).fit(X, Y).coef_, atol=1e-9)
    wide = Ridge([0.5, 20.0]).fit(WIDE, WIDE[:, :2])
    expected = peers.Ridge([0.5, 20.0]).fit(WIDE, WIDE[:, :2]).coef_
    np.testing.assert_allclose(wide.coef_, expected, atol=1e-9)
    with pytest.raises(ValueError, match="one for each of the 2 targets"):
        Ridge([1.0, 2.0, 3.0]).fit(X, Y)


def test_weights_that_must_not_be_negative() -> None:
    ours = LinearRegression(positive=True).fit(X, Y)
    peer = peers.LinearRegression(positive=True).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-9)
    assert (ours.coef_ >= 0).all() and (ours.coef_ == 0).any()
    ridge = Ridge(5.0, positive=True).fit(X, Y[:, 0])
    slope = X.T @ (Y[:, 0] - ridge.predict(X)) - 5.0 * ridge.coef_
    assert (abs(slope[ridge.coef_ > 0]) < 1e-7).all() and (slope[ridge.coef_ == 0] <= 1e-7).all()


@pytest.mark.parametrize("make", [LinearRegression, Ridge])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_rows_equal_dense_rows(make: Any, weighted: bool) -> None:
    weight = rng.integers(0, 3, 200).astype(float) if weighted else None
    dense = make().fit(THIN.toarray(), z, sample_weight=weight)
    for rows in (THIN, THIN.tocsc()):
        model = make().fit(rows, z, sample_weight=weight)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-9)
        np.testing.assert_allclose(model.predict(rows), dense.predict(THIN.toarray()), atol=1e-9)
    by_steps = make(solver="lsqr", tol=1e-13).fit(THIN, z, sample_weight=weight)
    np.testing.assert_allclose(by_steps.coef_, dense.coef_, atol=1e-7)


def test_sparse_rows_with_many_columns() -> None:
    rows = sp.random(120, 1500, 0.02, format="csr", random_state=1)
    target = rows @ rng.normal(size=1500)
    least = LinearRegression(tol=1e-13).fit(rows, target)
    expected = peers.LinearRegression().fit(rows.toarray(), target).coef_
    np.testing.assert_allclose(least.coef_, expected, atol=1e-7)
    ridge, peer = Ridge(tol=1e-13).fit(rows, target), peers.Ridge().fit(rows.toarray(), target)
    np.testing.assert_allclose(ridge.coef_, peer.coef_, atol=1e-8)


@pytest.mark.parametrize("make", [LinearRegression, lambda: Ridge([0.1, 3.0])])
def test_chunks_equal_the_whole(make: Any, tmp_path: Any) -> None:
    weight = rng.integers(1, 4, 90).astype(float)
    whole, chunked = make().fit(X, Y, sample_weight=weight), make()
    for lo in range(0, 90, 30):
        part = slice(lo, lo + 30)
        chunked.partial_fit(X[part], Y[part], sample_weight=weight[part])
        chunked = groundstate.load(chunked.save(tmp_path / "model.gs"))  # a stream survives a stop
    np.testing.assert_allclose(chunked.coef_, whole.coef_, atol=1e-9)
    np.testing.assert_allclose(chunked.intercept_, whole.intercept_, atol=1e-8)
    again = chunked.fit(X, Y)
    np.testing.assert_allclose(again.coef_, make().fit(X, Y).coef_)
    assert not hasattr(again, "sums_")


def test_sums_add_and_large_means_cost_no_digits() -> None:
    x, y = torch.from_numpy(X + 1e7), torch.from_numpy(Y)
    parts = [RegressionSums.of(x[a:b], y[a:b], None, True) for a, b in ((0, 40), (40, 90))]
    whole, joined = RegressionSums.of(x, y, None, True), parts[0].plus(parts[1])
    centred = X - X.mean(0)
    for sums in (whole, joined):
        np.testing.assert_allclose(sums.xx, centred.T @ centred, rtol=1e-6, atol=1e-6)


def test_many_slices_equal_one_product() -> None:
    rows, target = make_regression(20_000, 5, noise=1.0, random_state=0)
    weight = np.ones(20_000)
    weight[:15_000] = 0.0  # the sampled origin is far from the weighted mean
    rows[:15_000] += 1e3
    ours = LinearRegression().fit(rows, target, sample_weight=weight)
    expected = LinearRegression().fit(rows[15_000:], target[15_000:])
    np.testing.assert_allclose(ours.coef_, expected.coef_, rtol=1e-9)


def test_stochastic_descent_reaches_the_closed_form() -> None:
    rows, target = make_regression(10_000, 20, noise=5.0, random_state=0)
    exact, steps = Ridge().fit(rows, target), Ridge(solver="sgd", max_iter=6).fit(rows, target)
    loss = [((target - m.predict(rows)) ** 2).sum() + (m.coef_**2).sum() for m in (exact, steps)]
    assert loss[1] <= loss[0] * (1 + 1e-3)


def _minimum(loss: Any, size: int) -> Any:
    return minimize(loss, np.zeros(size), method="BFGS", options={"gtol": 1e-9}).x


def test_scalings_of_the_notes() -> None:
    """λ‖w‖² beside a mean or a sum of losses is a known alpha or C."""
    n, lam = 90, 0.3
    rows, target = (X - X.mean(0)) / X.std(0), Y[:, 0]
    labels = (target > target.mean()).astype(int)

    def square(t: Any) -> Any:
        return (target - rows @ t[:-1] - t[-1]) ** 2

    def logistic(t: Any) -> Any:
        f = rows @ t[:-1] + t[-1]
        return np.logaddexp(0, f) - labels * f

    for scale, alpha, C in ((1 / n, n * lam, 1 / (2 * n * lam)), (1.0, lam, 1 / (2 * lam))):
        w = _minimum(lambda t: scale * square(t).sum() + lam * t[:-1] @ t[:-1], 8)  # noqa: B023
        np.testing.assert_allclose(Ridge(alpha).fit(rows, target).coef_, w[:-1], atol=1e-5)
        w = _minimum(lambda t: scale * logistic(t).sum() + lam * t[:-1] @ t[:-1], 8)  # noqa: B023
        model = LogisticRegression(C=C, tol=1e-9).fit(rows, labels)
        np.testing.assert_allclose(model.coef_[0], w[:-1], atol=1e-5)


def test_an_explicit_column_of_ones_predicts_the_same() -> None:
    ones = np.column_stack([np.ones(90), X])
    with_column = LinearRegression(fit_intercept=False).fit(ones, Y).predict(ones)
    np.testing.assert_allclose(with_column, LinearRegression().fit(X, Y).predict(X), atol=1e-8)


def test_energy_is_half_the_squared_distance() -> None:
    model = LinearRegression().fit(X, Y[:, 0])
    e = model.energy(X, Y[:, 0])
    np.testing.assert_allclose(e, 0.5 * (Y[:, 0] - model.predict(X)) ** 2, atol=1e-9)
    np.testing.assert_allclose(model.infer({"x": X[:5]}, "y"), model.predict(X[:5]))


@pytest.mark.parametrize("intercept", [True, False])
def test_sums_off_the_host_are_the_same(intercept: bool) -> None:
    """What runs on a GPU, run with torch's operators on the CPU."""
    weight = rng.integers(0, 3, 90).astype(float)
    host = _dense(X, Y, weight, intercept)
    parts = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(weight)
    device = _on_device(*parts, intercept)
    for strength in (torch.tensor(0.5), torch.tensor([0.1, 2.0])):
        a, b = solve_sums(host, strength.double()), solve_sums(device, strength.double())
        assert a is not None and b is not None
        np.testing.assert_allclose(a[0], b[0].numpy(), atol=1e-9)


@pytest.mark.parametrize("shape", [(20, 40), (200, 10)])
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV"])
def test_sparse_rows_without_intercept(name: str, shape: tuple[int, int]) -> None:
    own = np.random.default_rng(0)
    dense = own.normal(size=shape) * (own.random(shape) < 0.3)
    y = own.normal(size=shape[0])
    model = getattr(groundstate, name)(fit_intercept=False)
    told = [clone(model).fit(rows, y).coef_ for rows in (dense, sp.csr_matrix(dense))]
    np.testing.assert_allclose(told[1], told[0], rtol=1e-6, atol=1e-9)
