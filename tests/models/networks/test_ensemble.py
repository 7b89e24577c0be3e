"""Averages of networks, and networks that are carried over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import groundstate
from groundstate import MLPClassifier, MLPRegressor, NeuralClassifier, NeuralRegressor, Ridge
from groundstate.errors import ShapeError, Unsupported
from groundstate.models.ensembles.seeds.networks import Ensemble, monte_carlo_dropout
from groundstate.models.networks.adaptation import coral, importance_weights
from groundstate.models.networks.gradual import fit_gradually
from groundstate.nn.blocks.transfer import Transferred, transfer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=120)
INF = float("inf")
NET = MLPRegressor(
    hidden_layer_sizes=(8,),
    max_iter=20,
    n_iter_no_change=INF,
    learning_rate_init=0.01,
    batch_size=40,
)
QUICK = {"max_iter": 15, "n_iter_no_change": INF, "random_state": 0, "learning_rate_init": 0.01}


@pytest.mark.parametrize(
    "vary",
    [("init", "order", "bootstrap"), ("init", "order"), ("init",), ("order",), ("bootstrap",)],
)
def test_the_mean_errs_less_by_the_spread_exactly(vary: tuple[str, ...]) -> None:
    model = Ensemble(NET, 4, vary, random_state=0).fit(X, Y)
    members = model.predict_members(X)
    assert members.shape == (4, 120)
    np.testing.assert_allclose(
        (model.predict(X) - Y) ** 2,
        ((members - Y) ** 2).mean(0) - model.predict_spread(X),
        atol=1e-12,
    )
    assert model.predict_spread(X).mean() > 0


def test_init_and_order_vary_one_at_a_time() -> None:
    first = {
        what: [m.loss_curve_[0] for m in Ensemble(NET, 3, (what,), random_state=0).fit(X, Y)]
        for what in ("init", "order")
    }
    # the first epoch's loss differs far more between starts than between orders
    assert np.ptp(first["init"]) > 5 * np.ptp(first["order"]) > 0
    with pytest.raises(Unsupported, match="one seed for all its choices"):
        Ensemble(Ridge(), 3, ("init",)).fit(X, Y)
    with pytest.raises(ValueError, match="name some of init, order, bootstrap"):
        Ensemble(NET, 3, ("weather",)).fit(X, Y)


def test_correlated_members() -> None:
    rng, (M, rho, var) = np.random.default_rng(0), (5, 0.3, 2.0)
    cov = var * ((1 - rho) * np.eye(M) + rho)
    mean = rng.multivariate_normal(np.zeros(M), cov, 200_000).mean(1)
    assert mean.var() == pytest.approx(rho * var + (1 - rho) * var / M, rel=0.02)


def test_votes_and_probabilities() -> None:
    base = MLPClassifier((6,), max_iter=20, n_iter_no_change=INF, learning_rate_init=0.02)
    soft = Ensemble(base, 5, random_state=0).fit(X, Y > 0)
    hard = Ensemble(base, 5, average="vote", random_state=0).fit(X, Y > 0)
    np.testing.assert_allclose(soft.predict_proba(X), soft.predict_members(X).mean(0), rtol=1e-6)
    assert set(np.round(hard.predict_proba(X).ravel() * 5, 6)) <= set(range(6))
    with pytest.raises(ValueError, match="'vote' of a classifier"):
        Ensemble(NET, average="vote")


def test_monte_carlo_dropout() -> None:
    model = MLPRegressor(hidden_layer_sizes=(20,), dropout=0.3, **QUICK).fit(X, Y)
    before = model.predict(X)
    found = monte_carlo_dropout(model, X, 50, random_state=0)
    again = monte_carlo_dropout(model, X, 50, random_state=0)
    assert found.draws.shape == (50, 120) and (found.variance > 0).all()
    np.testing.assert_array_equal(found.draws, again.draws)
    np.testing.assert_array_equal(model.predict(X), before)  # dropout is off again
    classes = MLPClassifier((20,), dropout=0.3, **QUICK).fit(X, Y > 0)
    told = monte_carlo_dropout(classes, X, 20, random_state=0)
    np.testing.assert_allclose(told.mean.sum(1), 1.0, rtol=1e-6)
    with pytest.raises(Unsupported, match="no dropout to leave on"):
        monte_carlo_dropout(MLPRegressor(**QUICK).fit(X, Y), X)


def body() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1)
    )


def test_frozen_layers_keep_their_bits(tmp_path: Path) -> None:
    source = NeuralRegressor(body(), **QUICK).fit(X, Y).module_
    before = {k: v.clone() for k, v in source.state_dict().items()}
    model = NeuralClassifier(transfer(source, 3), batch_size=30, **QUICK)
    model.fit(X, np.digitize(Y, [-0.5, 0.5]))
    after = model.module_.net.state_dict()
    for name, value in before.items():
        if not name.startswith("5."):
            assert torch.equal(after[name].to(value), value), name  # running means too
    assert after["5.weight"].shape == (3, 6)
    assert isinstance(model.module_, Transferred)
    assert all(torch.equal(a, b) for a, b in zip(before.values(), source.state_dict().values()))
    loaded = groundstate.load(model.save(tmp_path / "moved.gs"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_same_task_without_freezing_is_continued_training() -> None:
    source = NeuralRegressor(body(), **QUICK).fit(X, Y).module_
    head = source[5]
    moved = NeuralRegressor(transfer(source, head, freeze="none"), **QUICK).fit(X, Y)
    direct = NeuralRegressor(source, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(moved.predict(X), direct.predict(X))


def test_first_layers_rates_and_gradual_unfreezing() -> None:
    net = transfer(body(), 1, freeze=2, lr_scale=0.1, decay=0.5)
    assert net.frozen == ["0", "1"]
    factors = [s for _, s in net.learning_rate_scales()]
    assert factors == [0.1, 0.1, 0.05, 0.05, 0.025, 0.025]
    slow = NeuralRegressor(transfer(body(), 1, freeze="none", lr_scale=1e-9), **QUICK).fit(X, Y)
    for a, b in zip(body()[0].parameters(), slow.module_.net[0].parameters()):
        torch.testing.assert_close(a.double(), b.double(), atol=1e-6, rtol=0)
    model = NeuralRegressor(transfer(body(), 1), **{**QUICK, "max_iter": 2})
    assert len(fit_gradually(model, X, Y).loss_curve_) == 8 and not model.module_.frozen
    with pytest.raises(Unsupported, match="module=transfer"):
        fit_gradually(NeuralRegressor(**QUICK), X, Y)


def test_other_inputs_are_refused_with_advice() -> None:
    with pytest.raises(ShapeError, match=r"inputs of shape \(5,\).*same columns"):
        transfer(body(), 2, example=torch.zeros(4, 5))
    with pytest.raises(ValueError, match="0 to 3 layers, got 9"):
        transfer(body(), 2, freeze=9)
    with pytest.raises(Unsupported, match="none to keep"):
        transfer(nn.Linear(3, 1), 2)


def test_shifted_rows_are_weighed_or_aligned() -> None:
    rng = np.random.default_rng(1)
    source, target = rng.normal(size=(4000, 1)), rng.normal(1.0, 1.0, size=(4000, 1))
    weight = importance_weights(source, target)
    truth = np.exp(source[:, 0] - 0.5)
    assert np.corrcoef(weight, np.minimum(truth, 20))[0, 1] > 0.98
    assert np.average(source[:, 0], weights=weight) == pytest.approx(1.0, abs=0.1)
    turned = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)) + 2
    np.testing.assert_allclose(np.cov(coral(X, turned).T), np.cov(turned.T), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(coral(X, turned).mean(0), turned.mean(0))
    with pytest.raises(ShapeError, match="same columns"):
        coral(X, turned[:, :2])
