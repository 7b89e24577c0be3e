"""Generalised linear models: the notes' numbers, optimality, parity, and their distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import sklearn.linear_model as peers
import torch

from groundstate import GLM, GammaRegressor, PoissonRegressor, TweedieRegressor, load
from groundstate.energy.linear.glm import GLMEnergy
from groundstate.errors import NotConverged, Unsupported
from groundstate.learn import L2, NLL, fit
from groundstate.learn.solvers.glm.irls import IRLS
from groundstate.learn.solvers.glm.irls_rows import DenseRows, DeviceRows, SparseRows
from groundstate.learn.solvers.glm.irls_system import Target
from groundstate.math.distributions import (
    Family,
    Gamma,
    NegativeBinomial,
    Poisson,
    Tweedie,
    family_of,
)
from groundstate.math.distributions.links import InversePower, Link, Log, link_of
from groundstate.math.losses.deviance import Deviance

X4 = np.arange(4.0)[:, None]
COUNTS = np.array([1.0, 2.0, 3.0, 6.0])
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
MU = np.exp(0.3 + X @ [0.4, -0.2, 0.3, 0.0])
TARGETS: dict[str, Any] = {
    "gaussian": MU + rng.normal(size=150),
    "poisson": rng.poisson(MU).astype(float),
    "gamma": rng.gamma(3.0, MU / 3),
    "inverse_gaussian": rng.wald(MU, 5.0),
    "bernoulli": (rng.uniform(size=150) < MU / (1 + MU)).astype(float),
    "tweedie": rng.poisson(MU) * rng.gamma(2.0, 0.5, 150),
    "negative_binomial": rng.negative_binomial(2, 2 / (2 + MU)).astype(float),
}
PAIRS = [
    ("gaussian", "identity"), ("gaussian", "log"), ("poisson", "log"), ("poisson", "identity"),
    ("gamma", "log"), ("gamma", "inverse"), ("inverse_gaussian", "log"), ("bernoulli", "logit"),
    ("bernoulli", "probit"), ("bernoulli", "cloglog"), ("tweedie", "log"),
    ("negative_binomial", "log"), ("inverse_gaussian", "inverse_power"),
]  # fmt: skip


def half_deviance(model: Any, rows: Any, y: Any, weight: Any = None) -> float:
    """The objective, written out with the family's own deviance."""
    family = model.energy_.family
    d = family.unit_deviance(torch.tensor(y), torch.tensor(model.predict(rows))).numpy()
    return float(np.average(d, weights=weight)) / 2 + model.alpha / 2 * float(
        model.coef_ @ model.coef_
    )


def test_poisson_toy() -> None:
    model = GLM("poisson").fit(X4, COUNTS)
    np.testing.assert_allclose([model.intercept_, *model.coef_], [0.020954, 0.583070], atol=1e-6)
    assert np.isclose(model.deviance_, 0.042840, atol=1e-6) and model.dispersion_ == 1
    assert np.isclose(model.predict(X4).sum(), COUNTS.sum())


def test_gamma_toy() -> None:
    model = GLM("gamma", "log").fit(X4, COUNTS)
    np.testing.assert_allclose([model.intercept_, *model.coef_], [0.030865, 0.578055], atol=1e-6)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_the_gradient_vanishes(family: str, link: str) -> None:
    y = TARGETS[family]
    rows = np.abs(X) / 4 if link in ("identity", "inverse", "inverse_power") else X
    model = GLM(family, link, tol=1e-9).fit(rows, y)
    distribution, g = family_of(family), link_of(link)
    eta = torch.tensor(rows @ model.coef_ + model.intercept_)
    mu = g.inverse(eta)
    pull = ((torch.tensor(y) - mu) * g.derivative(eta) / distribution.variance(mu)).numpy()
    score = np.column_stack([np.ones(150), rows]).T @ pull / 150
    np.testing.assert_allclose(score, 0, atol=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli"])
def test_canonical_residuals_are_orthogonal_to_the_columns(family: str) -> None:
    model = GLM(family, tol=1e-9).fit(X, TARGETS[family])
    np.testing.assert_allclose(X.T @ (TARGETS[family] - model.predict(X)), 0, atol=1e-6)


PARITY = [
    (PoissonRegressor, peers.PoissonRegressor, "poisson", {}),
    (GammaRegressor, peers.GammaRegressor, "gamma", {}),
    (TweedieRegressor, peers.TweedieRegressor, "tweedie", {"power": 1.5}),
    (TweedieRegressor, peers.TweedieRegressor, "gaussian", {}),
    (TweedieRegressor, peers.TweedieRegressor, "gamma", {"power": 2.5}),
    (TweedieRegressor, peers.TweedieRegressor, "inverse_gaussian", {"power": 3}),
    (TweedieRegressor, peers.TweedieRegressor, "gamma", {"power": 0, "link": "log"}),
]


@pytest.mark.parametrize(("ours", "theirs", "family", "extra"), PARITY)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_parity_with_scikit_learn(
    ours: Any, theirs: Any, family: str, extra: dict[str, Any], alpha: float, intercept: bool
) -> None:
    y, w = TARGETS[family], np.linspace(0.2, 2, 150)
    given = {"alpha": alpha, "fit_intercept": intercept, **extra}
    a = ours(tol=1e-8, **given).fit(X, y, sample_weight=w)
    b = theirs(solver="lbfgs", tol=1e-10, max_iter=10_000, **given).fit(X, y, w)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=2e-6)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=2e-6)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-5)
    assert np.isclose(a.score(X, y, w), b.score(X, y, w))


def test_defaults_are_scikit_learns_but_for_the_solver() -> None:
    for ours, theirs in ((PoissonRegressor, peers.PoissonRegressor),
                         (GammaRegressor, peers.GammaRegressor),
                         (TweedieRegressor, peers.TweedieRegressor)):  # fmt: skip
        mine, other = ours().get_params(), theirs().get_params()
        assert {k: v for k, v in other.items() if k != "solver"}.items() <= mine.items()
        assert ours(solver=other["solver"]).fit(X4, COUNTS).coef_.shape == (1,)


@pytest.mark.parametrize("solver", ["newton-cholesky", "lbfgs"])
def test_sparse_rows_give_the_same(solver: str) -> None:
    sparse = scipy.sparse.random(120, 12, 0.3, format="csr", random_state=0)
    y = rng.poisson(np.exp(sparse @ rng.normal(size=12))).astype(float)
    given = {"alpha": 0.01, "solver": solver, "tol": 1e-7, "max_iter": 1000}
    a, b = (
        PoissonRegressor(**given).fit(sparse, y),
        PoissonRegressor(**given).fit(sparse.toarray(), y),
    )
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)
    np.testing.assert_allclose(a.predict(sparse), b.predict(sparse.toarray()), rtol=1e-4)
    np.testing.assert_allclose(a.energy(sparse, y), b.energy(sparse.toarray(), y), rtol=1e-3)


def test_outputs_are_separate_problems_with_their_own_dispersion() -> None:
    both = np.column_stack([TARGETS["gamma"], TARGETS["gamma"][::-1]])
    model = GLM("gamma", "log", alpha=0.1).fit(X, both)
    assert model.coef_.shape == (2, 4) and model.dispersion_.shape == (2,)
    for j in range(2):
        one = GLM("gamma", "log", alpha=0.1).fit(X, both[:, j])
        np.testing.assert_allclose(model.coef_[j], one.coef_, atol=1e-12)
        assert np.isclose(model.dispersion_[j], one.dispersion_)
    assert model.predict_interval(X[:3]).shape == (3, 2, 2)
    assert model.sample_y(X[:3], 5, random_state=0).shape == (3, 2, 5)


def test_an_offset_is_an_exposure() -> None:
    exposure = rng.uniform(0.5, 4.0, 150)
    y = rng.poisson(exposure * MU).astype(float)
    counts = GLM("poisson", tol=1e-9).fit(X, y, offset=np.log(exposure))
    rates = GLM("poisson", tol=1e-9).fit(X, y / exposure, sample_weight=exposure)
    np.testing.assert_allclose(counts.coef_, rates.coef_, atol=1e-8)
    np.testing.assert_allclose(
        counts.predict(X, offset=np.log(exposure)), exposure * rates.predict(X), rtol=1e-7
    )
    with pytest.raises(ValueError, match="offset must have one entry"):
        GLM("poisson").fit(X, y, offset=np.zeros(3))


def test_dispersion_is_pearsons() -> None:
    model = GLM("gamma", "log").fit(X, TARGETS["gamma"])
    mu = model.predict(X)
    pearson = (((TARGETS["gamma"] - mu) / mu) ** 2).sum() / (150 - 5)
    assert np.isclose(model.dispersion_, pearson)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(pearson) * mean)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "negative_binomial"])
def test_intervals_hold_what_they_say(family: str) -> None:
    model = GLM(NegativeBinomial(0.5) if family == "negative_binomial" else family,
                "canonical" if family == "gaussian" else "log").fit(X, TARGETS[family])  # fmt: skip
    draws = model.sample_y(X[:4], 4000, random_state=0)
    low, high = model.predict_interval(X[:4], level=0.8).T
    share = ((draws >= low[:, None]) & (draws <= high[:, None])).mean(1)
    assert (share > 0.78).all()
    if family in ("gaussian", "gamma"):
        assert (share < 0.82).all()
    with pytest.raises(ValueError, match="level"):
        model.predict_interval(X, level=1.5)


def test_the_energy_is_minus_log_probability() -> None:
    model = GLM("poisson").fit(X, TARGETS["poisson"])
    expected = -scipy.stats.poisson.logpmf(TARGETS["poisson"], model.predict(X))
    np.testing.assert_allclose(model.energy(X, TARGETS["poisson"]), expected)
    np.testing.assert_allclose(model.infer({"x": X[:9]}, "y"), np.floor(model.predict(X[:9])))


def test_values_outside_the_support_name_the_family() -> None:
    with pytest.raises(ValueError, match="family 'poisson'.*at least 0"):
        PoissonRegressor().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="family 'gamma'.*above 0"):
        GammaRegressor().fit(X4, [1, 0, 2, 3])
    with pytest.raises(Unsupported, match="LogisticRegression"):
        GLM("categorical").fit(X4, COUNTS)
    with pytest.raises(ValueError, match="use link='log'"):
        GLM("gamma", "inverse", fit_intercept=False).fit(X4 - 1.5, COUNTS)


def test_huge_scales_far_means_and_dead_columns() -> None:
    y = TARGETS["poisson"]
    plain = PoissonRegressor(alpha=0, tol=1e-9).fit(X, y)
    scale = np.array([1e-12, 1.0, 1e6, 1e12])
    moved = PoissonRegressor(alpha=0, tol=1e-15, max_iter=50).fit(X * scale, y)
    np.testing.assert_allclose(moved.coef_ * scale, plain.coef_, rtol=1e-5, atol=1e-7)
    far = PoissonRegressor(alpha=0, tol=1e-9).fit(X + np.array([0, 1e7, 0, 0]), y)
    np.testing.assert_allclose(far.coef_, plain.coef_, rtol=1e-5, atol=1e-7)
    wide = np.column_stack([X, X[:, 0], np.ones(150)])
    np.testing.assert_allclose(
        GLM("poisson").fit(wide, y).predict(wide), plain.predict(X), rtol=1e-5
    )


def test_separable_coins_stop_with_one_sentence() -> None:
    with pytest.warns(NotConverged, match="strengthen the penalty"):
        model = GLM("bernoulli", tol=1e-30, max_iter=15).fit(
            [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
        )
    assert np.isfinite(model.coef_).all()
    assert model.score([[0.0], [3.0]], [0, 1]) > 0.99


def test_constant_counts_and_all_zeros() -> None:
    assert np.allclose(PoissonRegressor().fit(X4, np.full(4, 3.0)).predict(X4), 3)
    assert (PoissonRegressor().fit(X4, np.zeros(4)).predict(X4) < 1e-3).all()


def test_warm_start_goes_on() -> None:
    model = PoissonRegressor(warm_start=True, tol=1e-8).fit(X, TARGETS["poisson"])
    first = model.n_iter_
    assert model.fit(X, TARGETS["poisson"]).n_iter_ <= 2 < first


def test_stored_with_its_family(tmp_path: Any) -> None:
    model = GLM(NegativeBinomial(0.3), InversePower(1.0)).fit(
        np.abs(X), TARGETS["negative_binomial"] + 1
    )
    again = load(model.save(tmp_path / "glm.gs"))
    assert again.family == NegativeBinomial(0.3) and again.link == InversePower(1.0)
    np.testing.assert_array_equal(again.predict(np.abs(X)), model.predict(np.abs(X)))


class Quasi(Family):
    """A family of the user's own, which no compiled pass knows: Poisson in disguise."""

    name, low, says = "quasi", 0.0, "numbers of at least 0"
    canonical = property(lambda self: Log())  # type: ignore[assignment]
    _own = Poisson()
    variance = staticmethod(_own.variance)  # type: ignore[assignment]
    cumulant = staticmethod(_own.cumulant)  # type: ignore[assignment]
    natural = staticmethod(_own.natural)  # type: ignore[assignment]
    unit_deviance = staticmethod(_own.unit_deviance)  # type: ignore[assignment]
    distribution = staticmethod(_own.distribution)  # type: ignore[assignment]
    quantile = staticmethod(_own.quantile)  # type: ignore[assignment]


def test_a_family_of_ones_own() -> None:
    a, b = (GLM(f, tol=1e-9).fit(X, TARGETS["poisson"]) for f in (Quasi(), Poisson()))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)


@pytest.mark.parametrize(
    ("family", "link"),
    [(family_of(f), link_of(k)) for f, k in PAIRS] + [(Tweedie(1.7), Log()), (Gamma(), Log())],
    ids=repr,
)
def test_the_compiled_pass_is_the_families_own(family: Family, link: Link) -> None:
    y = np.array([0.3, 0.6, 1.0])
    eta = np.array([0.2, 0.5, 0.4])
    w = np.array([1.0, 2.0, 0.5])
    target = Target(Deviance(family, link), y, w, None)
    assert target.loss.compiled is not None
    found = [(np.empty(3), np.empty(3), move) for move in (0.0, 1e-3)]
    fast = [target.evaluate(eta + m, g, h) for g, h, m in found]
    slow = [(np.empty(3), np.empty(3)) for _ in found]
    outcome = torch.from_numpy(y)
    plain = [
        target._plain(torch.from_numpy(eta + m), outcome, *s)
        for s, (_, _, m) in zip(slow, found, strict=True)
    ]
    np.testing.assert_allclose(found[0][0], slow[0][0], rtol=1e-10)
    assert np.isclose(fast[1] - fast[0], plain[1] - plain[0])  # up to a constant of y
    assert (found[0][1] >= 0).all()
    np.testing.assert_allclose(found[0][1], slow[0][1], rtol=1e-10)


def test_all_kinds_of_rows_sum_alike() -> None:
    g, h = rng.normal(size=150), rng.uniform(size=150)
    theta = rng.normal(size=5)
    dense = DenseRows(X, True)
    single = DenseRows(X, True)
    single.exact = False
    others = [
        SparseRows(scipy.sparse.csr_matrix(X), True), DeviceRows(torch.from_numpy(X), True), single,
        DenseRows(X.astype(np.float32), True),
    ]  # fmt: skip
    for rows in others:
        np.testing.assert_allclose(rows.score(theta), dense.score(theta), rtol=1e-4, atol=1e-5)
        for a, b in zip(rows.sums(g, h), dense.sums(g, h), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_lbfgs_and_newton_agree_on_the_energy_itself() -> None:
    data = {"x": torch.from_numpy(X), "y": torch.from_numpy(TARGETS["poisson"][:, None])}
    found = []
    for solver in (IRLS(tol=1e-9), IRLS(tol=1e-9, method="lbfgs", max_iter=500)):
        energy = GLMEnergy(4).double()
        history = fit(energy, data, NLL(), solver, penalty=L2(3.0))
        assert history.converged
        found.append(energy.W.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


@pytest.mark.parametrize("solver", ["newton-cholesky", "lbfgs"])
@pytest.mark.parametrize("power", [2.5, 3.0])
def test_means_far_below_the_target_do_not_leap_over_the_minimum(power: float, solver: str) -> None:
    rng = np.random.default_rng(0)
    X = np.eye(5)[rng.integers(5, size=40)]
    y = rng.gamma(4.0, np.exp(9.0) / 4.0, 40)
    model = TweedieRegressor(power=power, link="log", alpha=0, fit_intercept=False, solver=solver)
    model.set_params(tol=1e-13, max_iter=1000).fit(X, y)
    means = [y[X[:, j] == 1].mean() for j in range(5)]
    np.testing.assert_allclose(np.exp(model.coef_), means, rtol=1e-4)


@pytest.mark.parametrize("intercept", [True, False])
def test_lbfgs_sees_columns_in_their_own_units(intercept: bool) -> None:
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(80, 4)) + 5.0
    X = Z * 10.0 ** np.array([-6.0, 0.0, 3.0, 5.0])
    y = rng.poisson(np.exp(0.2 * Z @ [1.0, -1.0, 1.0, 0.5])).astype(float)
    both = [
        PoissonRegressor(alpha=0, solver=solver, tol=1e-7, max_iter=2000, fit_intercept=intercept)
        .fit(X, y)
        .predict(X)
        for solver in ("lbfgs", "newton-cholesky")
    ]
    np.testing.assert_allclose(*both, rtol=1e-4)


def test_a_step_that_cannot_be_found_is_told() -> None:
    def nowhere(self: Any, gradient: Any) -> bool:
        self.promised = 1.0
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("groundstate.learn.solvers.glm.irls_system.System.step", nowhere)
        with pytest.warns(NotConverged, match="no further descent after 1 steps"):
            model = PoissonRegressor().fit(np.arange(4.0)[:, None], [1, 2, 3, 6])
    assert model.history_.stop == "no descent"


def test_a_constant_target_leaves_nothing_to_explain() -> None:
    X = np.arange(4.0)[:, None]
    model = PoissonRegressor(alpha=0).fit(X, np.full(4, 3.0))
    assert model.score(X, np.full(4, 3.0)) == 1.0
    assert model.score(X, np.full(4, 5.0)) == 0.0
    assert model.score(X[:1], [5.0]) == 0.0


def test_scores_know_offsets_and_judge_their_input() -> None:
    X, y, o = np.arange(5.0)[:, None], np.array([1.0, 2.0, 2.0, 5.0, 9.0]), np.linspace(0, 1, 5)
    model = GLM("poisson").fit(X, y, offset=o)
    mean = model.predict(X, offset=o)
    expected = peers.PoissonRegressor(alpha=0).fit(X, y).score  # of the same form
    assert model.score(X, y, offset=o) == pytest.approx(
        1
        - Poisson().unit_deviance(torch.tensor(y), torch.tensor(mean)).sum().item()
        / Poisson().unit_deviance(torch.tensor(y), torch.tensor(np.full(5, y.mean()))).sum().item()
    )
    assert GLM("poisson").fit(X, y).score(X, y) == pytest.approx(expected(X, y), abs=1e-6)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[5, 3\]"):
        model.score(X, y[:3])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        model.score(X, np.full(5, np.nan))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        model.score(X, y, -np.ones(5))
