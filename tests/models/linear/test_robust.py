"""Lines with a loss of the residual: Huber's, quantiles, tubes; optimality, peers, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn import linear_model as peers
from sklearn.svm import LinearSVR as PeerLinearSVR

from groundstate import HuberRegressor, LinearSVR, QuantileRegressor
from groundstate.energy import LinearLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn import L2, Naive, TubeDual, TubeInterior, fit
from groundstate.math.losses import EpsilonInsensitive, Huber, loss_of

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 5))
Y = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 3 + 0.5 * rng.standard_t(2, 120)
W = rng.integers(0, 4, 120).astype(float)


# --- HuberRegressor ------------------------------------------------------------------------


def huber_objective(model: Any, alpha: float, epsilon: float, w: Any = None) -> float:
    """Scikit-learn's: Σ w (σ + H(r/σ)σ) + α‖W‖²."""
    u = np.abs(Y - X @ model.coef_ - model.intercept_) / model.scale_
    each = np.where(u < epsilon, u**2, 2 * epsilon * u - epsilon**2)
    weight = np.ones(len(Y)) if w is None else w
    whole = weight @ (model.scale_ + each * model.scale_)
    return float(whole + alpha * (model.coef_**2).sum())


@pytest.mark.parametrize("epsilon", [1.1, 1.35, 3.0])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 10.0])
def test_huber_equals_scikit_learn(epsilon: float, alpha: float) -> None:
    ours = HuberRegressor(epsilon=epsilon, alpha=alpha).fit(X, Y, W)
    peer = peers.HuberRegressor(epsilon=epsilon, alpha=alpha, tol=1e-9, max_iter=5000)
    peer.fit(X, Y, W)
    low, high = (huber_objective(m, alpha, epsilon, W) for m in (ours, peer))
    assert low <= high * (1 + 1e-12)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-4)
    assert ours.scale_ == pytest.approx(peer.scale_, abs=2e-4)
    np.testing.assert_array_equal(ours.outliers_, peer.outliers_)


def test_huber_is_stationary_in_line_and_scale() -> None:
    model = HuberRegressor(alpha=0.5, tol=1e-12).fit(X, Y)
    u = (X @ model.coef_ + model.intercept_ - Y) / model.scale_
    slope = np.clip(u, -1.35, 1.35)
    np.testing.assert_allclose(slope @ X + 0.5 * model.coef_, 0, atol=1e-8)
    assert abs(slope.sum()) < 1e-8
    value = Huber(1.35).value(torch.from_numpy(u), torch.zeros(120).double()).numpy()
    assert abs(float((0.5 + value - slope * u).sum())) < 1e-8


def test_huber_follows_the_units_of_y_and_forgets_outliers() -> None:
    one = HuberRegressor(alpha=0).fit(X, Y)
    ten = HuberRegressor(alpha=0).fit(X, 1000 * Y)
    np.testing.assert_allclose(ten.coef_, 1000 * one.coef_, rtol=1e-6)
    assert ten.scale_ == pytest.approx(1000 * one.scale_, rel=1e-6)
    far = Y.copy()
    far[:3] += 1e6
    moved = HuberRegressor(alpha=0).fit(X, far)
    assert np.abs(moved.coef_ - one.coef_).max() < 0.1 and moved.outliers_[:3].all()
    wide = HuberRegressor(epsilon=1e6, alpha=0).fit(X, Y)  # nothing is an outlier: least squares
    np.testing.assert_allclose(wide.coef_, peers.LinearRegression().fit(X, Y).coef_, atol=1e-6)


def test_huber_on_sparse_rows_a_perfect_line_and_warm_starts() -> None:
    dense = HuberRegressor().fit(X, Y, W)
    thin = HuberRegressor().fit(csr_matrix(X), Y, W)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-8)
    line = HuberRegressor(alpha=0).fit(X, X @ np.ones(5) + 1)
    np.testing.assert_allclose(line.coef_, 1.0, atol=1e-6)
    again = dense.set_params(warm_start=True).fit(X, Y, W)
    assert again.n_iter_ <= 2
    with pytest.warns(NotConverged, match="max_iter"):
        HuberRegressor(max_iter=1).fit(X, Y)


# --- QuantileRegressor ---------------------------------------------------------------------


def pinball(model: Any, q: float, alpha: float, w: Any) -> float:
    r = Y - X @ model.coef_ - model.intercept_
    return float(w @ np.maximum(q * r, (q - 1) * r) / w.sum() + alpha * np.abs(model.coef_).sum())


@pytest.mark.parametrize("q", [0.1, 0.5, 0.77])
@pytest.mark.parametrize("alpha", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_quantile_equals_scikit_learn(q: float, alpha: float, intercept: bool) -> None:
    given = {"quantile": q, "alpha": alpha, "fit_intercept": intercept}
    ours = QuantileRegressor(**given).fit(X, Y, W)
    peer = peers.QuantileRegressor(**given).fit(X, Y, W)
    low, high = (pinball(m, q, alpha, W) for m in (ours, peer))
    assert low == pytest.approx(high, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-6)


def test_quantile_is_an_optimal_vertex() -> None:
    q, alpha = 0.3, 0.05
    model = QuantileRegressor(quantile=q, alpha=alpha).fit(X, Y)
    r = Y - model.predict(X)
    met = np.abs(r) < 1e-9
    used = np.abs(model.coef_) > 1e-12
    assert met.sum() == used.sum() + 1  # a line through as many points as it has free unknowns
    # the subgradients: of rows off the line q or q − 1, of those on it something between
    fixed = np.where(r > 0, q, q - 1.0) * ~met
    right = 120 * alpha * np.sign(model.coef_[used])
    system = np.vstack([X[met][:, used].T, np.ones(met.sum())])
    target = np.append(right - X[:, used].T @ fixed, -fixed.sum())
    u = np.linalg.solve(system, target)
    assert ((u >= q - 1 - 1e-9) & (u <= q + 1e-9)).all()
    whole = fixed.copy()
    whole[met] = u
    assert (np.abs(X.T @ whole)[~used] <= 120 * alpha + 1e-9).all()
    assert np.mean(r < -1e-9) <= q <= np.mean(r <= 1e-9)  # the share below it


def test_quantile_on_sparse_rows_and_with_other_methods() -> None:
    dense = QuantileRegressor(alpha=0.01).fit(X, Y)
    for rows, solver in ((csr_matrix(X), "highs"), (X, "highs-ds"), (X, "highs-ipm")):
        other = QuantileRegressor(alpha=0.01, solver=solver).fit(rows, Y)
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)
    with pytest.warns(NotConverged, match="not solved"):
        QuantileRegressor(alpha=0.01, solver_options={"time_limit": 1e-9}).fit(X, Y)
    assert dense.energy(X[:3], Y[:3]).shape == (3,)


# --- LinearSVR -----------------------------------------------------------------------------


def tube(model: Any, C: float, eps: float, power: int, w: Any) -> float:
    r = np.abs(Y - X @ model.coef_ - model.intercept_)
    size = (model.coef_**2).sum() + float(np.sum(np.square(model.intercept_)))
    return float(C * (w @ np.maximum(r - eps, 0) ** power) + 0.5 * size)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize(("C", "eps"), [(1.0, 0.0), (0.1, 0.5), (10.0, 0.1)])
@pytest.mark.filterwarnings("ignore:Liblinear failed")
def test_linear_svr_is_never_above_scikit_learn(loss: str, C: float, eps: float) -> None:
    power = 2 if loss.startswith("squared") else 1
    ours = LinearSVR(C=C, epsilon=eps, loss=loss).fit(X, Y, W)
    peer = PeerLinearSVR(
        C=C, epsilon=eps, loss=loss, max_iter=200_000, tol=1e-8, random_state=0
    ).fit(X, Y, W)
    low, high = tube(ours, C, eps, power, W), tube(peer, C, eps, power, W)
    assert low <= high * (1 + 1e-7)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=5e-3)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_tube_has_no_duality_gap_and_its_solvers_agree(intercept: bool) -> None:
    data = {"x": torch.from_numpy(X), "y": torch.from_numpy(Y)[:, None]}
    found = []
    for solver in (TubeInterior(), TubeDual(20_000, 1e-7)):
        energy = LinearLossEnergy(5, EpsilonInsensitive(0.2), intercept).double()
        history = fit(energy, data, Naive(), solver, penalty=L2(2.0, intercept=True))
        assert history.converged
        found.append(energy.W.detach().numpy()[0])
        assert bool((energy.loss.value(energy.predict(data["x"]), data["y"]) == 0).any())
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    assert LinearSVR(epsilon=0.2).fit(X, Y).history_.extra["dual_gap"][0] < 1e-7


def test_linear_svr_options() -> None:
    dense = LinearSVR(epsilon=0.3).fit(X, Y)
    np.testing.assert_allclose(
        LinearSVR(epsilon=0.3).fit(csr_matrix(X), Y).coef_, dense.coef_, atol=1e-6
    )
    dual = LinearSVR(epsilon=0.3, dual=True, max_iter=20_000, random_state=0).fit(X, Y)
    np.testing.assert_allclose(dual.coef_, dense.coef_, atol=1e-3)
    free = LinearSVR(intercept_scaling=1e4).fit(X, Y + 100)  # hardly any penalty on b
    assert abs(float(free.intercept_[0]) - 103) < 1
    assert LinearSVR(fit_intercept=False).fit(X, Y).intercept_ == 0.0
    with pytest.raises(ValueError, match="dual=False: use dual='auto'"):
        LinearSVR(dual=False).fit(X, Y)
    with pytest.warns(NotConverged, match="raise max_iter"):
        LinearSVR(dual=True, max_iter=1, random_state=0).fit(X, Y)


# --- their energy --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["squared_error", "absolute_error", "quantile", "huber", "epsilon_insensitive",
             "squared_epsilon_insensitive"],
)  # fmt: skip
@pytest.mark.parametrize("T", [1.0, 0.3])
@torch.no_grad()
def test_noise_of_a_loss_is_normalised_and_drawn(name: str, T: float) -> None:
    loss = loss_of(name, **({"q": 0.3} if name == "quantile" else {}))
    energy = LinearLossEnergy(1, loss).double()  # type: ignore[arg-type]
    energy.scale.fill_(1.7)
    x = torch.zeros(1, 1).double()
    law = energy.distribution(x, T)
    grid = torch.linspace(-120, 120, 400_001, dtype=torch.float64)[:, None]
    density = law.log_prob(grid).exp()
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1.0, abs=1e-4)
    joint = -energy(x=x.expand(len(grid), 1), y=grid) / T - energy.constant(x, T)
    torch.testing.assert_close(joint, law.log_prob(grid))
    torch.manual_seed(0)
    draws = law.sample((40_000,))[:, 0, 0]
    below = torch.cumulative_trapezoid(density, grid[:, 0])
    for q in (0.05, 0.3, 0.6, 0.95):
        at = grid[int(torch.searchsorted(below, torch.tensor(q, dtype=torch.float64))), 0]
        assert float((draws <= at).double().mean()) == pytest.approx(q, abs=0.01)


@pytest.mark.parametrize("d", [25, 31, 40, 60])
def test_huber_with_about_as_many_columns_as_rows_finds_the_line(d: int) -> None:
    """σ shrinks to nothing there, and did so before the line was found."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, d))
    y = X[:, :5].sum(1) + 0.5 * rng.normal(size=30)

    def objective(model: Any) -> float:
        u = np.abs(y - model.predict(X)) / model.scale_
        loss = np.where(u < 1.35, u**2, 2 * 1.35 * u - 1.35**2)
        return float((model.scale_ * (1 + loss)).sum() + 1e-4 * model.coef_ @ model.coef_)

    theirs = peers.HuberRegressor(max_iter=10_000).fit(X, y)
    assert objective(HuberRegressor().fit(X, y)) <= objective(theirs) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("columns", "target"), [(1e-12, 1.0), (1e9, 1.0), (1.0, 1e-10), (1.0, 1e9), (1e-9, 1e9)]
)
@pytest.mark.parametrize("sparse", [False, True])
def test_quantile_in_any_unit(columns: float, target: float, sparse: bool) -> None:
    plain = QuantileRegressor(quantile=0.3, alpha=0).fit(X, Y)
    rows = csr_matrix(X * columns) if sparse else X * columns
    found = QuantileRegressor(quantile=0.3, alpha=0).fit(rows, Y * target)
    np.testing.assert_allclose(found.predict(rows) / target, plain.predict(X), atol=1e-6)


def test_quantile_penalty_has_the_unit_of_its_columns() -> None:
    plain = QuantileRegressor(alpha=0.1).fit(X, Y)
    found = QuantileRegressor(alpha=0.1).fit(X, Y * 1e-10)
    np.testing.assert_allclose(found.coef_ * 1e10, plain.coef_, atol=1e-6)
    assert (plain.coef_ == 0).any()
