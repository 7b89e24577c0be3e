"""Gaussian process regression: worked examples, scikit-learn, and what must not matter."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

import groundstate
from groundstate import GaussianProcessRegressor
from groundstate.learn.solvers.gp import evidence as process
from groundstate.math.kernels import RBF, Constant, Linear, Matern, Periodic, White

R = np.random.default_rng(0)
X = R.uniform(-3, 3, (60, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * R.normal(size=60)
Z = R.uniform(-3, 3, (9, 2))
TWO = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
AT = np.array([[0.0], [0.5], [1.0], [5.0]])
UNIT = partial(GaussianProcessRegressor, RBF(1.0, "fixed"))


def test_two_points_without_noise() -> None:
    mean, std = UNIT(alpha=0.0).fit(*TWO).predict(AT, return_std=True)
    np.testing.assert_allclose(mean, [0, 0.549318, 1, 0.000527], atol=1e-6)
    np.testing.assert_allclose(std**2, [0, 0.030456, 0, 1.0], atol=1e-6)


def test_two_points_with_noise() -> None:
    model = UNIT(alpha=0.1).fit(*TWO)
    np.testing.assert_allclose(
        model.predict(AT), [0.072024, 0.517129, 0.869377, 0.000436], atol=1e-6
    )
    assert model.log_marginal_likelihood_value_ == pytest.approx(-2.405074, abs=1e-6)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        1.0 * sk.RBF([1.0, 1.0]) + sk.WhiteKernel(0.1),
        sk.Matern(1.0, nu=2.5) + sk.WhiteKernel(0.1, "fixed"),
        sk.RationalQuadratic() * sk.ConstantKernel(2.0) + sk.DotProduct() + sk.WhiteKernel(0.1),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the peer's
def test_agrees_with_scikit_learn(kernel: Any, normalize: bool) -> None:
    ours = GaussianProcessRegressor(kernel, normalize_y=normalize).fit(X, Y)
    peer = Peer(kernel, normalize_y=normalize).fit(X, Y)
    gain = ours.log_marginal_likelihood_value_ - peer.log_marginal_likelihood_value_
    assert gain > -1e-4
    fixed = {"optimizer": None, "normalize_y": normalize}
    a = GaussianProcessRegressor(peer.kernel_, **fixed).fit(X, Y)
    b = Peer(peer.kernel_, **fixed).fit(X, Y)
    for p, q in zip(a.predict(Z, return_std=True), b.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-8)
    np.testing.assert_allclose(
        a.predict(Z, return_cov=True)[1], b.predict(Z, return_cov=True)[1], atol=1e-8
    )
    theta = peer.kernel_.theta + 0.1
    p, q = (m.log_marginal_likelihood(theta, eval_gradient=True) for m in (a, b))
    assert p[0] == pytest.approx(q[0], abs=1e-6)
    np.testing.assert_allclose(p[1], q[1], atol=1e-6)
    np.testing.assert_allclose(a.alpha_, b.alpha_, atol=1e-6)
    np.testing.assert_allclose(np.tril(a.L_), b.L_, atol=1e-9)


def test_several_targets_share_the_kernel() -> None:
    both = np.column_stack([Y, 2 * Y + 1])
    model = GaussianProcessRegressor(RBF(1.0) + White(0.1), normalize_y=True).fit(X, both)
    mean, std = model.predict(Z, return_std=True)
    assert mean.shape == std.shape == (9, 2)
    np.testing.assert_allclose(mean[:, 1], 2 * mean[:, 0] + 1, atol=1e-8)
    np.testing.assert_allclose(std[:, 1], 2 * std[:, 0], atol=1e-8)
    assert model.sample_y(Z, 4).shape == (9, 2, 4)


def test_mean_is_kernel_ridge() -> None:
    ours = GaussianProcessRegressor(RBF(1.3), alpha=0.2, optimizer=None).fit(X, Y)
    ridge = KernelRidge(alpha=0.2, kernel="rbf", gamma=0.5 / 1.3**2).fit(X, Y)
    np.testing.assert_allclose(ours.predict(Z), ridge.predict(Z), atol=1e-10)


def test_weights_are_repetitions_also_in_the_likelihood() -> None:
    weight = R.integers(0, 4, 60)
    index = R.permutation(np.repeat(np.arange(60), weight))
    kernel = 1.0 * RBF(1.0) + White(0.1)
    weighted = GaussianProcessRegressor(kernel).fit(X, Y, sample_weight=weight)
    repeated = GaussianProcessRegressor(kernel).fit(X[index], Y[index])
    peer = Peer(1.0 * sk.RBF(1.0) + sk.WhiteKernel(0.1)).fit(X[index], Y[index])
    np.testing.assert_array_equal(weighted.predict(Z), repeated.predict(Z))
    value = weighted.log_marginal_likelihood_value_
    assert value == repeated.log_marginal_likelihood_value_
    assert value == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-5)
    np.testing.assert_allclose(weighted.predict(Z), peer.predict(Z), atol=1e-4)
    theta = weighted.kernel_.theta + 0.2
    p, slope = weighted.log_marginal_likelihood(theta, eval_gradient=True)
    q, expected = peer.log_marginal_likelihood(theta, eval_gradient=True)
    assert p == pytest.approx(q, abs=1e-6)
    np.testing.assert_allclose(slope, expected, atol=1e-5)


def test_the_default_kernel_is_learned() -> None:
    ours = GaussianProcessRegressor(alpha=0.01, copy_X_train=False).fit(X, Y)
    peer = Peer(alpha=0.01, copy_X_train=False).fit(X, Y)
    np.testing.assert_allclose(ours.kernel_.theta, peer.kernel_.theta, atol=1e-3)
    np.testing.assert_allclose(ours.predict(Z), peer.predict(Z), atol=1e-3)


def test_a_column_of_targets_has_answers_without_its_axis() -> None:
    ours, peer = (model(alpha=0.1).fit(X, Y[:, None]) for model in (GaussianProcessRegressor, Peer))
    for asked in ({}, {"return_std": True}, {"return_cov": True}):
        answers = (np.shape(model.predict(Z, **asked)[-1]) for model in (ours, peer))
        assert len(set(answers)) == 1
    assert ours.predict(Z).shape == peer.predict(Z).shape == (9,)
    assert ours.sample_y(Z, 3).shape == peer.sample_y(Z, 3).shape == (9, 3)


def test_noise_of_each_row() -> None:
    alpha = R.uniform(0.01, 1.0, 60)
    ours = GaussianProcessRegressor(RBF(1.0), alpha=alpha).fit(X, Y)
    peer = Peer(sk.RBF(1.0), alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(ours.predict(Z), peer.predict(Z), atol=1e-4)
    with pytest.raises(ValueError, match="one entry for each of the 60 rows"):
        GaussianProcessRegressor(alpha=np.ones(3)).fit(X, Y)


def test_before_fit_it_is_the_prior() -> None:
    model = GaussianProcessRegressor(RBF(1.0))
    mean, std = model.predict(AT, return_std=True)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_array_equal(std, 1.0)
    assert model.sample_y(AT, 3).shape == (4, 3)


def test_posterior_as_pictured() -> None:
    x = np.array([[0.0], [0.7], [2.0]])
    model = GaussianProcessRegressor(RBF(0.5, "fixed")).fit(x, [1.0, -1.0, 0.5])
    std = model.predict(np.vstack([x, [[6.0]]]), return_std=True)[1]
    assert (std[:3] < 1e-4).all() and std[3] == pytest.approx(1.0)
    cov = model.predict(np.vstack([x, AT]), return_cov=True)[1]
    np.testing.assert_allclose(cov[:3], 0.0, atol=1e-8)


def test_draws_have_the_posterior_distribution() -> None:
    model = GaussianProcessRegressor(RBF(1.0) + White(0.05), optimizer=None).fit(X[:20], Y[:20])
    mean, cov = model.predict(Z, return_cov=True)
    found = model.sample_y(Z, 20_000, random_state=1)
    np.testing.assert_allclose(found.mean(1), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(found), cov, atol=0.05)
    prior = model.sample_prior(Z, 20_000, random_state=1)
    np.testing.assert_allclose(np.cov(prior), (RBF(1.0) + White(0.05))(Z), atol=0.05)


def test_shorter_lengths_and_rougher_kernels_wiggle_more() -> None:
    at = np.linspace(0, 10, 200)[:, None]

    def crossings(kernel: Any) -> float:
        f = GaussianProcessRegressor(kernel).sample_y(at, 50)
        return float((np.diff(np.sign(f), axis=0) != 0).sum())

    assert crossings(RBF(0.3)) > 2 * crossings(RBF(1.5))
    assert crossings(Matern(1.0, nu=0.5)) > 2 * crossings(RBF(1.0))
    draw = GaussianProcessRegressor(Periodic(1.0, 2.0)).sample_y(np.array([[0.1], [2.1]]), 5)
    np.testing.assert_allclose(draw[0], draw[1], atol=1e-3)


def test_restarts_find_the_better_optimum() -> None:
    x = np.linspace(0, 10, 25)[:, None]
    y = np.sin(3 * x[:, 0])
    kernel = Periodic(1.0, 0.9, (0.1, 10.0), (0.5, 5.0)) + White(0.1, (1e-6, 10.0))
    once = GaussianProcessRegressor(kernel).fit(x, y)
    often = GaussianProcessRegressor(kernel, n_restarts_optimizer=10, random_state=0).fit(x, y)
    gain = often.log_marginal_likelihood_value_ - once.log_marginal_likelihood_value_
    assert gain > 5


def test_long_tables_are_learned_on_a_part_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = R.uniform(-3, 3, (400, 2))
    target = np.sin(rows).sum(1) + 0.1 * R.normal(size=400)
    kernel = 1.0 * RBF(1.0) + White(0.1)
    plain = GaussianProcessRegressor(kernel).fit(rows, target)
    monkeypatch.setattr(process, "LONG", 300)
    monkeypatch.setattr(process, "SKETCH", 100)
    quick = GaussianProcessRegressor(kernel).fit(rows, target)
    assert quick.n_iter_ < plain.n_iter_
    np.testing.assert_allclose(quick.kernel_.theta, plain.kernel_.theta, atol=2e-3)


def test_own_optimizer_and_linear_kernel() -> None:
    calls = []

    def keep(objective: Any, theta: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
        calls.append(bounds.shape)
        return theta, objective(theta)[0]

    model = GaussianProcessRegressor(RBF(1.0), optimizer=keep).fit(X, Y)
    assert calls == [(1, 2)] and model.kernel_ == RBF(1.0)
    line = GaussianProcessRegressor(Linear(), alpha=0.01).fit(X, X @ [1.0, 2.0])
    np.testing.assert_allclose(line.predict(Z), Z @ [1.0, 2.0], atol=1e-3)


def test_saved_with_its_distribution(tmp_path: Path) -> None:
    model = GaussianProcessRegressor(1.0 * RBF(1.0) + White(0.1)).fit(X, Y)
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    assert loaded.kernel_ == model.kernel_
    for p, q in zip(loaded.predict(Z, return_std=True), model.predict(Z, return_std=True)):
        np.testing.assert_allclose(p, q, rtol=1e-12)
    theta = model.kernel_.theta
    value = loaded.log_marginal_likelihood(theta)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-8)


def test_energy_is_minus_log_density() -> None:
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, Y)
    mean, std = model.predict(Z, return_std=True)
    v = std**2 + 0.1
    y = mean + 0.3
    np.testing.assert_allclose(
        model.energy(Z, y), 0.5 * 0.09 / v + 0.5 * np.log(2 * np.pi * v), rtol=1e-9
    )


class _Ornstein(sk.StationaryKernelMixin, sk.NormalizedKernelMixin, sk.Kernel):
    """exp(−Σ|x − z|/s), as a user of scikit-learn writes it."""

    def __init__(self, s: float = 1.0, s_bounds: tuple[float, float] = (1e-3, 1e3)) -> None:
        self.s, self.s_bounds = s, s_bounds

    @property
    def hyperparameter_s(self) -> sk.Hyperparameter:
        return sk.Hyperparameter("s", "numeric", self.s_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        d = np.abs(X[:, None] - (X if Y is None else Y)[None]).sum(-1)
        K = np.exp(-d / self.s)
        return (K, (K * d / self.s)[..., None]) if eval_gradient else K


@pytest.mark.parametrize(
    "kernel",
    [
        _Ornstein(),
        2.0 * _Ornstein() + sk.WhiteKernel(0.1),
        sk.PairwiseKernel(gamma=0.5, metric="rbf"),
    ],
    ids=str,
)
def test_kernels_that_users_wrote_for_scikit_learn(kernel: Any) -> None:
    ours = GaussianProcessRegressor(kernel, alpha=1e-3).fit(X, Y)
    peer = Peer(kernel, alpha=1e-3).fit(X, Y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_)
    for mine, theirs in zip(
        ours.predict(Z, return_std=True), peer.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, atol=1e-3)
    at = ours.kernel_.theta + 0.1
    value, slope = ours.log_marginal_likelihood(at, eval_gradient=True)
    expected = peer.log_marginal_likelihood(at, eval_gradient=True)
    assert value == pytest.approx(expected[0])
    np.testing.assert_allclose(slope, expected[1], rtol=1e-4, atol=1e-4)
    weight = np.arange(60) % 3 + 1
    fixed = {"kernel": kernel, "alpha": 0.05, "optimizer": None}
    weighted = GaussianProcessRegressor(**fixed).fit(X, Y, weight)
    repeated = Peer(**fixed).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(weighted.predict(Z), repeated.predict(Z), atol=1e-8)


def test_parameters_of_the_kernel_are_parameters_of_the_model() -> None:
    model = GaussianProcessRegressor(2.0 * RBF(1.0) + White(0.1), optimizer=None)
    assert model.get_params()["kernel__k1__k2__length_scale"] == 1.0
    model.set_params(kernel__k1__k2__length_scale=0.5, kernel__k2__noise_level=0.2)
    assert model.kernel == 2.0 * RBF(0.5) + White(0.2)
    with pytest.raises(ValueError, match=r"Invalid parameter 'width' for kernel RBF"):
        GaussianProcessRegressor(RBF(1.0)).set_params(kernel__width=1.0)
    grid = {"kernel__length_scale": [0.01, 1.0, 100.0]}
    for machine in (GaussianProcessRegressor(RBF(9.0), alpha=0.1, optimizer=None),
                    groundstate.KernelRidge(0.1, kernel=RBF(9.0))):  # fmt: skip
        search = GridSearchCV(machine, grid, cv=3).fit(X, Y)
        assert search.best_estimator_.kernel == RBF(1.0) and machine.kernel == RBF(9.0)


def test_relevance_learns_a_length_scale_for_each_column() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.05 * rng.normal(size=80)
    start = Constant() * RBF(2.0) + White(0.1)
    found = GaussianProcessRegressor(start, relevance=True).fit(X, y)
    by_hand = GaussianProcessRegressor(Constant() * RBF([2.0] * 3) + White(0.1)).fit(X, y)
    assert np.array_equal(found.kernel_.theta, by_hand.kernel_.theta)
    shared = GaussianProcessRegressor(start).fit(X, y)
    assert found.log_marginal_likelihood_value_ > shared.log_marginal_likelihood_value_ + 2
    scales = found.kernel_.k1.k2.length_scale
    assert scales[2] > 5 * max(scales[:2])  # the column that does not matter
    assert found.kernel == start
    one = GaussianProcessRegressor(start, relevance=True).fit(X[:, :1], y)
    plain = GaussianProcessRegressor(start).fit(X[:, :1], y)
    assert np.array_equal(one.predict(X[:, :1]), plain.predict(X[:, :1]))


def test_iterations_for_the_kernel_can_be_few() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 4))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=60)
    start = Constant() * RBF(2.0) + White(0.1)
    found = [GaussianProcessRegressor(start, relevance=True, max_iter=k).fit(X, y)
             for k in (1, 5, None)]  # fmt: skip
    values = [model.log_marginal_likelihood_value_ for model in found]
    assert values[0] < values[1] < values[2]
    assert found[0].n_iter_ < found[1].n_iter_ < found[2].n_iter_
    with pytest.raises(ValueError, match="max_iter"):
        GaussianProcessRegressor(max_iter=0).fit(X, y)
