"""The one table of losses: every entry against differences, hand values, peers and its twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn._loss import loss as peers
from torch import Tensor

from groundstate.errors import DataError, Unsupported
from groundstate.math.distributions import Bernoulli, Gamma, Gaussian, NegativeBinomial, Poisson
from groundstate.math.distributions.links import CLogLog, Identity, InversePower, Log, Logit, Probit
from groundstate.math.losses import TABLE, CrossEntropy, Huber, PointLoss, Quantile, loss_of
from groundstate.math.losses.base import weighted_quantile
from groundstate.math.losses.deviance import Deviance, tweedie
from groundstate.math.losses.pointwise_numba import pointwise

F64 = torch.float64
RNG = np.random.default_rng(0)
ENTRIES: dict[str, PointLoss] = {
    **{name: loss_of(name) for name in TABLE if name != "cross_entropy"},
    "quantile 0.9": Quantile(0.9),
    "huber 0.3": Huber(0.3),
    "tweedie 1.9": tweedie(1.9),
    "tweedie 2.5": tweedie(2.5),
    "normal log": Deviance(Gaussian(), Log()),
    "gamma inverse square": Deviance(Gamma(), InversePower(2.0)),
    "probit": Deviance(Bernoulli(), Probit()),
    "cloglog": Deviance(Bernoulli(), CLogLog()),
    "negative binomial": Deviance(NegativeBinomial(0.7), Log()),
    "logit": Deviance(Bernoulli(), Logit()),
}
EVERY = pytest.mark.parametrize("name", ENTRIES)
# the curvature is an expectation there, not the second derivative
EXPECTED = {"normal log", "gamma inverse square", "probit", "cloglog", "tweedie 2.5"}


def rows(loss: PointLoss, n: int = 41) -> tuple[Tensor, Tensor]:
    """Scores and outcomes in the domain, away from kinks."""
    rng = np.random.default_rng(1)
    eta = torch.from_numpy(rng.normal(size=n) * 1.3)
    if isinstance(loss.link, InversePower):
        eta = eta.abs() + 0.3
    family = getattr(loss, "family", None)
    domain = loss.domain
    if family is not None:
        domain = "unit" if family.high == 1 else "positive" if family.low == 0 else "real"
    if domain == "unit":
        return eta, torch.from_numpy(rng.integers(0, 2, n).astype(float))
    y = rng.normal(size=n) * 1.5
    return eta, torch.from_numpy(np.exp(0.5 * y) if domain == "positive" else y)


@EVERY
def test_gradient_and_curvature_are_derivatives(name: str) -> None:
    loss, h = ENTRIES[name], 1e-6
    eta, y = rows(loss)
    up, down = loss.value(eta + h, y), loss.value(eta - h, y)
    torch.testing.assert_close(loss.gradient(eta, y), (up - down) / (2 * h), atol=2e-8, rtol=1e-6)
    leaf = eta.clone().requires_grad_()
    (auto,) = torch.autograd.grad(loss.value(leaf, y).sum(), leaf)
    torch.testing.assert_close(loss.gradient(eta, y), auto, atol=1e-12, rtol=1e-10)
    curvature = loss.curvature(eta, y)
    assert bool((curvature >= 0).all())
    if name not in EXPECTED:
        up, down = loss.gradient(eta + h, y), loss.gradient(eta - h, y)
        torch.testing.assert_close(curvature, (up - down) / (2 * h), atol=1e-7, rtol=1e-6)
    g, k = loss.derivatives(eta, y)
    torch.testing.assert_close(g, loss.gradient(eta, y))
    torch.testing.assert_close(k, curvature)


@EVERY
def test_compiled_passes_agree_and_weights_multiply(name: str) -> None:
    loss = ENTRIES[name]
    eta, y = rows(loss)
    numbers = loss.compiled
    assert numbers is not None
    w = RNG.uniform(0.5, 3.0, len(y))
    w[3] = 0.0
    found = [np.empty(len(y)) for _ in range(4)]
    one = pointwise(*numbers, eta.numpy(), y.numpy(), np.empty(0), *found[:2])
    some = pointwise(*numbers, eta.numpy(), y.numpy(), w, *found[2:])
    np.testing.assert_allclose(found[0], loss.gradient(eta, y), atol=1e-12, rtol=1e-10)
    np.testing.assert_allclose(found[1], loss.curvature(eta, y), atol=1e-12, rtol=1e-10)
    np.testing.assert_allclose(found[2], w * found[0], atol=1e-12)
    np.testing.assert_allclose(found[3], w * found[1], atol=1e-12)
    # deviances are summed up to a constant of y: differences agree
    other = eta + 0.1
    more = pointwise(*numbers, other.numpy(), y.numpy(), np.empty(0), *found[:2])
    wanted = (loss.value(other, y) - loss.value(eta, y)).sum()
    assert more - one == pytest.approx(float(wanted), rel=1e-9, abs=1e-10)
    assert math.isfinite(some)


@EVERY
def test_the_constant_is_the_minimiser(name: str) -> None:
    loss = ENTRIES[name]
    _, y = rows(loss)
    w = torch.from_numpy(RNG.integers(1, 4, len(y)).astype(float))
    best = loss.constant(y, w)

    def total(c: float) -> float:
        return float(torch.dot(w, loss.value(torch.full_like(y, c), y)))

    for step in (1e-3, 0.1, 1.0):
        for side in (-step, step):
            other = best + side
            if isinstance(loss.link, InversePower) and other <= 0:
                continue
            assert total(best) <= total(other) + 1e-12 * abs(total(other))
    repeated = y.repeat_interleave(w.long())
    assert loss.constant(repeated) == pytest.approx(best, rel=1e-6, abs=1e-6)


@EVERY
def test_link_round_trip_and_predictions(name: str) -> None:
    loss = ENTRIES[name]
    eta, _ = rows(loss)
    torch.testing.assert_close(loss.link.link(loss.link.inverse(eta)), eta, rtol=1e-9, atol=1e-9)
    if name not in ("exponential", "modified_huber"):
        torch.testing.assert_close(loss.mean(eta), loss.link.inverse(eta))


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("squared_error", peers.HalfSquaredError()),
        ("absolute_error", peers.AbsoluteError()),
        ("quantile 0.9", peers.PinballLoss(quantile=0.9)),
        ("huber 0.3", peers.HuberLoss(delta=0.3)),
        ("poisson", peers.HalfPoissonLoss()),
        ("gamma", peers.HalfGammaLoss()),
        ("tweedie 1.9", peers.HalfTweedieLoss(power=1.9)),
        ("log_loss", peers.HalfBinomialLoss()),
        ("exponential", peers.ExponentialLoss()),
    ],
)
def test_as_scikit_learn(name: str, peer: peers.BaseLoss) -> None:
    loss = ENTRIES[name]
    eta, y = rows(loss)
    g, h = peer.gradient_hessian(y.numpy(), eta.numpy())
    np.testing.assert_allclose(loss.gradient(eta, y), g, atol=1e-13, rtol=1e-11)
    if not loss.flat and name != "huber 0.3":  # there scikit-learn takes 1 for the curvature
        np.testing.assert_allclose(loss.curvature(eta, y), h, atol=1e-13, rtol=1e-11)
    if name != "huber 0.3":  # whose minimiser is a mixture there
        assert loss.constant(y) == pytest.approx(
            float(peer.fit_intercept_only(y.numpy())), rel=1e-9
        )


def test_hand_values() -> None:
    def at(name: str, eta: float, y: float, **options: float) -> float:
        one = torch.tensor([eta], dtype=F64), torch.tensor([y], dtype=F64)
        return float(loss_of(name, **options).value(*one))

    assert at("squared_error", 1.0, 3.0) == 2.0
    assert at("absolute_error", 1.0, 3.0) == 2.0
    assert at("quantile", 0.0, 1.0, q=0.9) == pytest.approx(0.9)
    assert at("quantile", 0.0, -1.0, q=0.9) == pytest.approx(0.1)
    assert at("huber", 0.0, 0.5) == 0.125
    assert at("huber", 0.0, 3.0) == 2.5
    assert at("epsilon_insensitive", 0.0, 0.05) == 0.0
    assert at("epsilon_insensitive", 0.0, 1.0) == pytest.approx(0.9)
    assert at("squared_epsilon_insensitive", 0.0, 1.0) == pytest.approx(0.81)
    assert at("log_loss", 0.0, 1.0) == pytest.approx(math.log(2))
    assert at("log_loss", 40.0, 1.0) == pytest.approx(math.exp(-40), rel=1e-9)  # the far tail
    assert at("exponential", 1.0, 0.0) == pytest.approx(math.e)
    assert at("hinge", -1.0, 1.0) == 2.0 and at("perceptron", -1.0, 1.0) == 1.0
    assert at("squared_hinge", -1.0, 1.0) == 4.0
    assert at("modified_huber", -2.0, 1.0) == 8.0 and at("modified_huber", 0.0, 1.0) == 1.0
    assert at("poisson", 0.0, 0.0) == 1.0
    assert at("gamma", 0.0, 1.0) == 0.0


def test_constants_are_the_right_functionals() -> None:
    y = torch.tensor([1.0, 2.0, 3.0, 4.0, 100.0], dtype=F64)
    assert loss_of("squared_error").constant(y) == 22.0
    assert loss_of("absolute_error").constant(y) == 3.0
    assert loss_of("quantile", q=0.7).constant(y) == 4.0
    assert loss_of("poisson").constant(y) == pytest.approx(math.log(22))
    assert 3.0 < loss_of("huber", delta=3.0).constant(y) < 22.0
    coins = torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=F64)
    assert loss_of("log_loss").constant(coins) == pytest.approx(math.log(3))
    assert loss_of("exponential").constant(coins) == pytest.approx(0.5 * math.log(3))
    assert loss_of("hinge").constant(coins) == pytest.approx(1.0)
    assert loss_of("squared_hinge").constant(coins) == pytest.approx(0.5)
    values = np.array([3.0, 1.0, 2.0, 4.0])
    assert weighted_quantile(values, None, 0.5) == 2.5
    assert weighted_quantile(values, None, 0.5, between=False) == 2.0
    assert weighted_quantile(values[:2], np.array([2.0, 1.0]), 0.5) == 3.0


def test_several_classes() -> None:
    loss = CrossEntropy()
    eta = torch.from_numpy(RNG.normal(size=(30, 4)))
    y = torch.from_numpy(RNG.integers(0, 4, 30))
    peer = peers.HalfMultinomialLoss(n_classes=4)
    g, h = peer.gradient_hessian(y.double().numpy(), eta.numpy())
    np.testing.assert_allclose(loss.gradient(eta, y), g, atol=1e-13)
    np.testing.assert_allclose(loss.curvature(eta, y), h, atol=1e-13)
    w = torch.from_numpy(RNG.integers(1, 4, 30).astype(float))
    best = loss.constants(y, 4, w)
    p = torch.softmax(best, 0)
    shares = torch.zeros(4, dtype=F64).index_add(0, y, w) / w.sum()
    torch.testing.assert_close(p, shares)
    assert abs(float(best.sum())) < 1e-12
    two = torch.stack([-0.5 * eta[:, 0], 0.5 * eta[:, 0]], 1)  # two scores of two classes are one
    torch.testing.assert_close(
        loss.value(two, y.clamp_max(1)), loss_of("log_loss").value(eta[:, 0], y.clamp_max(1))
    )


def test_bad_input() -> None:
    with pytest.raises(DataError, match="numbers from 0 to 1 as y, got 2"):
        loss_of("log_loss").check(torch.tensor([0.0, 2.0]))
    with pytest.raises(DataError, match="numbers of at least 0, got -1"):
        Deviance(Poisson(), Log()).check(torch.tensor([-1.0]))
    with pytest.raises(DataError, match="finite numbers"):
        loss_of("huber").check(torch.tensor([math.nan]))
    with pytest.raises(ValueError, match="q must lie in"):
        loss_of("quantile", q=1.0)
    with pytest.raises(ValueError, match="delta must be positive"):
        loss_of("huber", delta=0.0)
    with pytest.raises(Unsupported, match="did you mean 'huber'"):
        loss_of("hubert")
    assert loss_of(Huber(2.0)) == Huber(2.0)
    assert Identity() == loss_of("huber").link
