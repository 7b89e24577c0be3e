"""Gibbs posteriors in closed form and by chains, and exact weights of finite sets of models."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from groundstate.energy import (
    Energy,
    LinearEnergy,
    Real,
    SquaredEnergy,
    TableEnergy,
    offers,
)
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import HMC, Metropolis
from groundstate.learn import (
    L2,
    SGLD,
    GaussianPrior,
    GibbsPosterior,
    ModelAverage,
    Naive,
    SoftMin,
    fit,
)

F64 = torch.float64
D = {"x": torch.tensor([[1.0], [2.0], [6.0]], dtype=F64)}


class Mean(Energy):
    """½(x − θ)²."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__(x=Real(1))
        self.mean = nn.Parameter(torch.full((1,), start, dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x - self.mean).square().sum(-1)

    @offers.conditional("x")
    def distribution(self, T: float = 1.0) -> Distribution:
        loc = self.mean[None]
        return Independent(Normal(loc, torch.full_like(loc, T**0.5)), 1)

    @offers.log_partition("x")
    def volume(self, T: float = 1.0) -> Tensor:
        return torch.full((1,), 0.5 * math.log(2 * math.pi * T), dtype=F64)


def gibbs(prior: object = None, beta: float = 1.0) -> GibbsPosterior:
    return GibbsPosterior(Mean(), prior, beta).fit(D)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prior", "beta", "mean", "variance"),
    [(False, 1.0, 3.0, 1 / 3), (False, 0.5, 3.0, 2 / 3), (True, 1.0, 2.25, 0.25), (True, 0.5, 1.8, 0.4)],
)  # fmt: skip
def test_closed_form(prior: bool, beta: float, mean: float, variance: float) -> None:
    """L = ½(x − θ)² and D = {1, 2, 6}, with a flat or a standard normal prior."""
    q = gibbs(GaussianPrior(1.0) if prior else None, beta)
    assert q.distribution.mean.item() == pytest.approx(mean, abs=1e-9)
    assert q.distribution.variance.item() == pytest.approx(variance, abs=1e-9)
    assert q.mode().item() == pytest.approx(mean, abs=1e-5)


def test_predictive() -> None:
    distribution = gibbs(GaussianPrior(1.0)).predictive()
    assert isinstance(distribution, Distribution)
    assert distribution.mean.item() == pytest.approx(
        2.25
    ) and distribution.variance.item() == pytest.approx(1.25)


@pytest.mark.parametrize("method", [HMC(n_steps=20), Metropolis(n_steps=150)], ids=["hmc", "mh"])
def test_chains_find_the_closed_form(method: object) -> None:
    q = gibbs(GaussianPrior(1.0), beta=0.5)
    draws = q.sample(2000, method, torch.Generator().manual_seed(0))
    assert float(draws.theta.mean()) == pytest.approx(1.8, abs=4 * (0.4 / 2000) ** 0.5)
    assert float(draws.theta.var()) == pytest.approx(0.4, rel=0.15)
    mixed = q.predictive(draws=draws)
    assert float(mixed.mean) == pytest.approx(1.8, abs=0.06)


@pytest.mark.parametrize(("beta", "mean", "variance"), [(1.0, 2.25, 0.252525), (0.5, 1.8, 0.4)])
def test_langevin_keeps_beta_on_the_data(beta: float, mean: float, variance: float) -> None:
    class Means(Mean):  # many chains at once; the mean over them is one loss
        def __init__(self) -> None:
            super().__init__()
            self.mean = nn.Parameter(torch.full((2000,), mean, dtype=F64))

        @offers.conditional("x")
        def distribution(self, T: float = 1.0) -> Distribution:
            return Independent(Normal(self.mean[None, :1], torch.ones(1, 1, dtype=F64)), 1)

    q = GibbsPosterior(Means(), GaussianPrior(1.0), beta).fit(D)
    solver = SGLD(0.01, batch_size=None, max_epochs=600)
    theta = q.sample(300, solver, torch.Generator().manual_seed(0), burn_in=300).theta[::50]
    assert float(theta.mean()) == pytest.approx(mean, abs=0.02)
    assert float(theta.var()) == pytest.approx(variance, rel=0.05)
    assert torch.equal(q.energy.mean, torch.full((2000,), mean, dtype=F64))


def test_mode_is_regularised_learning() -> None:
    """β = α/N: the most probable θ minimises the mean loss plus the prior over α."""
    g = torch.Generator().manual_seed(0)
    data = {"x": torch.randn(40, 2, generator=g, dtype=F64)}
    data["y"] = (data["x"][:, 0] > 0).long()
    alpha = 8.0
    q = GibbsPosterior(LinearEnergy(2, 2).double(), L2(1.0), alpha / 40, SoftMin()).fit(data)
    direct = LinearEnergy(2, 2).double()
    fit(direct, data, SoftMin(), penalty=L2(40 / alpha))
    found = q.theta.named(q.mode())["W"]
    torch.testing.assert_close(found, direct.W.detach(), atol=1e-4, rtol=1e-3)
    with pytest.raises(Unsupported, match="not Gaussian"):
        _ = q.distribution


def test_linear_regression_has_a_gaussian_posterior() -> None:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(30, 2, generator=g, dtype=F64)
    y = x @ torch.tensor([[1.0], [-2.0]], dtype=F64) + torch.randn(30, 1, generator=g, dtype=F64)
    prior = GaussianPrior(1.0)
    q = GibbsPosterior(SquaredEnergy(2, bias=False).double(), prior, 1.0, Naive())
    distribution = q.fit({"x": x, "y": y}).distribution
    precision = x.T @ x + torch.eye(2, dtype=F64)
    torch.testing.assert_close(distribution.precision_matrix, precision)
    torch.testing.assert_close(distribution.mean, torch.linalg.solve(precision, (x.T @ y)[:, 0]))
    told = q.predictive(x[:3])
    spread = 1 + (x[:3] @ torch.linalg.inv(precision) * x[:3]).sum(1)
    torch.testing.assert_close(told.variance[:, 0], spread)  # type: ignore[union-attr]
    flat = GibbsPosterior(SquaredEnergy(2).double()).fit({"x": x[:1], "y": y[:1]})
    with pytest.raises(Unsupported, match="give a prior"):
        _ = flat.distribution


def coins(*shares: float) -> list[Energy]:
    return [TableEnergy(-torch.tensor([1 - p, p], dtype=F64).log(), "y") for p in shares]


def test_weights_of_finite_models() -> None:
    y = {"y": torch.tensor([1, 1, 0, 1])}
    q = ModelAverage(coins(0.5, 0.75), beta=1.0, prior=[3.0, 1.0]).fit(y)
    joint = torch.tensor([0.75 * 0.5**4, 0.25 * 0.75**3 * 0.25], dtype=F64)
    torch.testing.assert_close(q.weights, joint / joint.sum())
    assert q.log_evidence == pytest.approx(float(joint.sum().log()))
    told = q.log_prob({"y": torch.tensor([1])}).exp()
    torch.testing.assert_close(told, (q.weights * torch.tensor([0.5, 0.75]).double()).sum()[None])


def test_beta_sharpens_and_large_losses_keep_their_order() -> None:
    y = {"y": torch.ones(5000, dtype=torch.int64)}
    for beta, sure in ((0.0, 0.5), (1.0, 1.0)):
        q = ModelAverage(coins(0.5, 0.9), beta).fit(y)
        assert float(q.weights[1]) == pytest.approx(sure)
    with pytest.raises(ShapeError, match="prior must be 2 weights"):
        ModelAverage(coins(0.5, 0.9), prior=[1.0])


def test_average_of_classifiers_is_no_worse_than_the_mean_member() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(80, 2, generator=g)
    data = {"x": x, "y": (x[:, 0] + 0.3 * torch.randn(80, generator=g) > 0).long()}
    members = []
    for strength in (0.1, 10.0, 100.0):
        energy = LinearEnergy(2, 2)
        fit(energy, data, SoftMin(), penalty=L2(strength))
        members.append(energy)
    q = ModelAverage(members, beta=0.1).fit(data)
    committee = q.committee()
    with torch.no_grad():
        loss = SoftMin()(committee, data).loss.mean()
        each = torch.stack([SoftMin()(m, data).loss.mean() for m in members])
    assert float(loss) <= float(torch.dot(q.weights.float(), each)) + 1e-6
    torch.testing.assert_close(-committee(**data).detach(), q.log_prob(data), atol=1e-5, rtol=1e-4)
