"""Regression with learned noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from groundstate import GaussianRegressor, LinearRegression
from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy
from groundstate.errors import NotConverged, ShapeError
from groundstate.learn import LBFGS, NLL, fit

X4, Y4 = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, 3.0, 0.0, 6.0])
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
Y = 1 + X @ [1.0, 2.0, 0.0] + np.exp(0.5 * (X[:, 0] - 1)) * rng.normal(size=300)


def test_four_rows() -> None:
    model = GaussianRegressor().fit(X4, Y4)
    np.testing.assert_allclose([model.intercept_, *model.coef_], [2, 1], atol=1e-6)
    found = [model.noise_intercept_, *model.noise_coef_]
    np.testing.assert_allclose(found, [0, np.log(9)], atol=1e-5)
    assert np.isclose(model.energy(X4, Y4).sum(), 7.872979, atol=1e-6)
    constant = GaussianRegressor(noise="constant").fit(X4, Y4)
    assert np.isclose(constant.energy(X4, Y4).sum(), 8.894630, atol=1e-6)
    square = GaussianRegressor(link="square").fit(X4, Y4)
    np.testing.assert_allclose(
        square.predict([[0.0], [1.0]], return_std=True)[1], [1, 3], rtol=1e-4
    )


def test_the_energy_is_torchs_loss() -> None:
    model = GaussianRegressor().fit(X, Y)
    mean, std = (torch.tensor(v) for v in model.predict(X, return_std=True))
    loss = nn.GaussianNLLLoss(reduction="none")(mean, torch.tensor(Y), std**2)
    np.testing.assert_allclose(model.energy(X, Y), loss + 0.5 * np.log(2 * np.pi), rtol=1e-10)


@pytest.mark.parametrize("link", ["log", "square"])
def test_the_gradient_vanishes(link: str) -> None:
    model = GaussianRegressor(link=link, tol=1e-15, max_iter=2000).fit(X, Y)
    energy = model.energy_
    loss = energy(x=torch.tensor(X), y=torch.tensor(Y)[:, None]).mean()
    loss.backward()
    for p in energy.parameters():
        assert float(p.grad.abs().max()) < 1e-5


def test_constant_noise_is_least_squares() -> None:
    model, line = GaussianRegressor(noise="constant").fit(X, Y), LinearRegression().fit(X, Y)
    np.testing.assert_allclose(model.coef_, line.coef_, rtol=1e-8)
    sse = ((Y - line.predict(X)) ** 2).mean()
    np.testing.assert_allclose(model.predict(X[:2], return_std=True)[1] ** 2, sse)


def test_noisy_rows_count_less_and_intervals_hold() -> None:
    model, line = GaussianRegressor().fit(X, Y), LinearRegression().fit(X, Y)
    truth = np.array([1.0, 2.0, 0.0])
    assert np.abs(model.coef_ - truth).sum() < np.abs(line.coef_ - truth).sum()
    low, high = model.predict_interval(X, level=0.8).T
    assert 0.74 < ((low < Y) & (high > Y)).mean() < 0.86
    draws = model.sample_y(X[:5], 4000, random_state=0)
    np.testing.assert_allclose(draws.std(1), model.predict(X[:5], return_std=True)[1], rtol=0.06)
    with pytest.raises(ValueError, match="level"):
        model.predict_interval(X, level=0)


def test_outputs_are_separate_and_weights_are_rows() -> None:
    both = np.column_stack([Y, X[:, 2] + rng.normal(size=300)])
    w = rng.integers(0, 3, 300)
    model = GaussianRegressor(tol=1e-14).fit(X, both, sample_weight=w)
    index = np.repeat(np.arange(300), w)
    for j in range(2):
        one = GaussianRegressor(tol=1e-14).fit(X[index], both[index, j])
        np.testing.assert_allclose(model.noise_coef_[j], one.noise_coef_, atol=1e-5)
        np.testing.assert_allclose(model.coef_[j], one.coef_, atol=1e-5)


def test_no_noise_stays_above_the_floor() -> None:
    x = np.arange(10.0)[:, None]
    model = GaussianRegressor().fit(x, 2 * x[:, 0])
    std = model.predict(x, return_std=True)[1]
    assert np.isclose(std.min() ** 2, 1e-6 * np.var(2 * x), rtol=0.01)
    assert np.isfinite(GaussianRegressor().fit(x, np.ones(10)).energy(x, np.ones(10))).all()


def test_it_says_when_it_did_not_settle() -> None:
    with pytest.warns(NotConverged, match="raise max_iter"):
        GaussianRegressor(max_iter=1, tol=0.0).fit(X, Y)


def test_any_module_can_give_mean_and_noise() -> None:
    """Two lines as a module, learned by gradients, are the two lines of the estimator."""
    net = nn.Linear(3, 2).double()
    nn.init.zeros_(net.weight), nn.init.zeros_(net.bias)
    energy = GaussianNoiseEnergy(3, net=net).double()
    data = {"x": torch.tensor(X), "y": torch.tensor(Y)[:, None]}
    fit(energy, data, NLL(), LBFGS(max_iter=1000, tol=1e-6))
    model = GaussianRegressor(tol=1e-14).fit(X, Y)
    np.testing.assert_allclose(net.weight[0].detach(), model.coef_, atol=1e-4)
    np.testing.assert_allclose(net.weight[1].detach(), model.noise_coef_, atol=1e-4)
    with pytest.raises(ShapeError, match="2 numbers per row"):
        GaussianNoiseEnergy(1, net=nn.Linear(1, 3))(x=torch.ones(1, 1), y=torch.ones(1, 1))
    with pytest.raises(ValueError, match="link one of"):
        GaussianNoiseEnergy(1, link="exp")
