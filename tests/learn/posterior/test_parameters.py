"""Parameters as a variable: conjugate posteriors, samplers, snapshots, predictions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal

from groundstate.energy import Energy, LinearEnergy, NetClassEnergy, Real, offers
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import HMC, Langevin, Metropolis, minimise, sample
from groundstate.learn import (
    L2,
    LBFGS,
    ContrastiveDivergence,
    GaussianPrior,
    Naive,
    ParameterEnergy,
    Snapshots,
    SoftMin,
    Stochastic,
    ThetaDraws,
    fit,
    posterior_predictive,
    sgd,
)

F64 = torch.float64
D = torch.tensor([[1.0], [2.0], [6.0]], dtype=F64)


class Mean(Energy):
    r"""½‖x − θ‖², so that x given θ is normal with unit variance."""

    def __init__(self, d: int = 1) -> None:
        super().__init__(x=Real(d))
        self.mean = nn.Parameter(torch.zeros(d, dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x - self.mean).square().sum(-1)

    @offers.conditional("x")
    def distribution(self, T: float = 1.0):
        loc = self.mean[None]
        return torch.distributions.Independent(Normal(loc, torch.full_like(loc, T**0.5)), 1)

    @offers.log_partition("x")
    def volume(self, T: float = 1.0) -> Tensor:
        return torch.full((1,), 0.918938533 * self.mean.numel(), dtype=F64)


def posterior_of(penalty=None, data_T: float = 1.0) -> ParameterEnergy:
    return ParameterEnergy(Mean(), Naive(), {"x": D}, penalty, data_T)


CASES = [
    (None, 1.0, 1.0, 3.0, 1 / 3),
    (None, 1.0, 2.0, 3.0, 2 / 3),
    (GaussianPrior(1.0), 1.0, 1.0, 2.25, 0.25),
    (GaussianPrior(1.0), 2.0, 1.0, 1.8, 0.4),
]


@pytest.mark.parametrize("penalty, data_T, T, mean, variance", CASES)
def test_conjugate_posterior(penalty, data_T, T, mean, variance):
    energy = posterior_of(penalty, data_T)
    theta = torch.linspace(-1, 5, 13, dtype=F64)[:, None]
    expected = (theta[:, 0] - mean).square() / (2 * variance) * T
    found = energy(theta=theta).detach()
    torch.testing.assert_close(found - found.min(), expected - expected.min(), atol=1e-10, rtol=0)
    best = minimise(energy, "theta", init={"theta": energy.theta})
    assert float(best["theta"]) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(
    "method",
    [HMC(n_steps=40), Langevin(step_size=0.1, n_steps=150), Metropolis(n_steps=300)],
    ids=["hmc", "mala", "metropolis"],
)
def test_posterior_by_markov_chains(method):
    energy = posterior_of(GaussianPrior(1.0))
    g = torch.Generator().manual_seed(0)
    n = 4000
    theta = sample(energy, "theta", n=n, method=method, generator=g)["theta"].flatten()
    assert float(theta.mean()) == pytest.approx(2.25, abs=4 * (0.25 / n) ** 0.5)
    assert float(theta.var()) == pytest.approx(0.25, abs=4 * 0.25 * (2 / n) ** 0.5)


def test_one_pass_over_the_data_per_proposal():
    energy = posterior_of()
    g = torch.Generator().manual_seed(0)
    sample(energy, "theta", n=50, method=Metropolis(n_steps=20, adapt=False), generator=g)
    assert 20 <= energy.passes <= 25  # all 50 chains share a pass


def test_many_parameters_at_once_equal_one_by_one():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(30, 3, generator=g)
    data = {"x": x, "y": torch.randint(2, (30,), generator=g)}
    for inner in (LinearEnergy(3, 2), NetClassEnergy(3, 2)):
        energy = ParameterEnergy(inner, SoftMin(), data, L2(1.0))
        kept = [p.clone() for p in inner.parameters()]
        theta = torch.randn(5, energy.theta.shape[1], generator=g)
        together = energy(theta=theta)
        apart = torch.cat([energy(theta=row[None]) for row in theta])
        torch.testing.assert_close(together, apart, rtol=1e-5, atol=1e-4)
        assert energy._vmapped
        for p, before in zip(inner.parameters(), kept, strict=True):
            assert torch.equal(p, before)  # the energy itself is left alone


def test_equals_the_objective_of_fit():
    g = torch.Generator().manual_seed(0)
    data = {
        "x": torch.randn(30, 3, generator=g, dtype=F64),
        "y": torch.randint(2, (30,), generator=g),
    }
    weight = torch.rand(30, generator=g, dtype=F64)
    inner = LinearEnergy(3, 2).double()
    energy = ParameterEnergy(inner, SoftMin(), data, L2(1.0), sample_weight=weight)
    best = minimise(energy, "theta", init={"theta": energy.theta})
    history = fit(inner, data, SoftMin(), LBFGS(tol=1e-10), sample_weight=weight, penalty=L2(1.0))
    assert float(best.energy) / float(weight.sum()) == pytest.approx(
        history.objective[-1], abs=1e-8
    )
    energy.assign(best["theta"][0])
    torch.testing.assert_close(energy.theta, best["theta"])


def test_rules_that_search_fall_back_to_one_by_one():
    class Looking(Naive):
        def forward(self, energy, batch, *, generator=None):
            terms = super().forward(energy, batch)
            assert float(terms.loss.detach().sum()) >= 0
            return terms

    energy = ParameterEnergy(Mean(), Looking(), {"x": D})
    theta = torch.tensor([[0.0], [3.0]], dtype=F64)
    assert energy(theta=theta).tolist() == pytest.approx([20.5, 7.0])
    assert energy._vmapped is False


def test_predictive_distribution_is_normal_with_both_variances():
    energy = posterior_of(GaussianPrior(1.0))
    g = torch.Generator().manual_seed(0)
    theta = 2.25 + 0.5 * torch.randn(4000, 1, generator=g, dtype=F64)
    predictive = posterior_predictive(energy.draws(theta))
    assert float(predictive.mean) == pytest.approx(2.25, abs=0.03)
    assert float(predictive.distribution.variance) == pytest.approx(1.25, rel=0.03)
    x = torch.tensor([[0.0]], dtype=F64)
    expected = -Normal(2.25, 1.25**0.5).log_prob(torch.tensor(0.0)).item()
    assert float(predictive.energy(x)) == pytest.approx(expected, rel=0.02)
    drawn = predictive.distribution.draw(4000, g)
    assert drawn.shape == (4000, 1, 1)
    assert float(drawn.mean()) == pytest.approx(2.25, abs=0.08)


def test_the_average_is_no_worse_than_its_members():
    g = torch.Generator().manual_seed(0)
    data = {"x": torch.randn(200, 2, generator=g), "y": torch.randint(3, (200,), generator=g)}
    snapshots = Snapshots(every=5, keep=10)
    solver = Stochastic(sgd, lr=0.5, batch_size=20, max_epochs=10, tol=None)
    fit(LinearEnergy(2, 3), data, SoftMin(), solver, callbacks=[snapshots], random_state=0)
    predictive = posterior_predictive(snapshots.draws, data["x"])
    ensemble = predictive.energy(data["y"])
    members = predictive.member_energies(data["y"])
    assert members.shape == (10, 200)
    assert bool((ensemble <= members.mean(0) + 1e-6).all())
    torch.testing.assert_close(predictive.mean.sum(1), torch.ones(200))


class _Independent:
    """Batches of one row with independent entries drawn from {1, 2, 6}."""

    def __init__(self, steps: int, d: int) -> None:
        self.steps, self.d = steps, d
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self):
        for _ in range(self.steps):
            pick = torch.randint(3, (1, self.d), generator=self.generator)
            yield {"x": D[pick, 0]}


def test_constant_rate_sgd_wanders_with_the_known_variance():
    energy = Mean(20_000)  # as many chains
    snapshots = Snapshots(every=20, start=100)
    solver = Stochastic(sgd, lr=0.1, max_epochs=1, tol=None)
    fit(energy, _Independent(220, 20_000), Naive(), solver, callbacks=[snapshots])
    theta = snapshots.draws.theta
    assert theta.shape == (6, 20_000)
    assert float(theta.mean()) == pytest.approx(3.0, abs=0.01)
    assert float(theta.var()) == pytest.approx(0.245614, rel=0.02)


def test_snapshots_keep_the_latest():
    snapshots = Snapshots(every=3, keep=2, start=4)
    solver = Stochastic(sgd, lr=0.1, batch_size=1, max_epochs=5, tol=None)
    fit(Mean(), {"x": D}, Naive(), solver, callbacks=[snapshots], random_state=0)
    assert len(snapshots.draws) == 2  # steps 7, 10, 13 of 15


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: posterior_of(data_T=0.0), ValueError, "data_T is a temperature"),
        (
            lambda: ParameterEnergy(
                LinearEnergy(1, 2), ContrastiveDivergence(),
                {"x": torch.ones(2, 1), "y": torch.zeros(2, dtype=torch.int64)},
            ),
            Unsupported,
            "no loss",
        ),
        (lambda: posterior_of().named(torch.ones(2)), ShapeError, "one θ has shape"),
        (lambda: Snapshots(0), ValueError, "every must be at least 1"),
        (lambda: Snapshots().draws, ValueError, "no snapshot was taken"),
        (
            lambda: posterior_predictive(
                ThetaDraws(LinearEnergy(1, 2), torch.zeros(1, 4), ("W", "b"))
            ),
            Unsupported,
            "one variable is predicted",
        ),
    ],
)  # fmt: skip
def test_errors_teach(call, error, message):
    with pytest.raises(error, match=message):
        call()
