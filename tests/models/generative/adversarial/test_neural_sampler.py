"""A network that samples an energy: the balance of its two terms, and what it draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from groundstate.energy import LinearEnergy, NetEnergy
from groundstate.errors import Unsupported
from groundstate.learn import ReverseKL, Stochastic, fit
from groundstate.learn.rules.adversarial.sampler import auto_weight, bandwidth, whitened_mmd, wider
from groundstate.learn.rules.negatives.generators import Affine, PushForward
from groundstate.models.generative.adversarial import NeuralSampler

F64 = torch.float64


def bowl(x: Tensor) -> Tensor:
    return 0.5 * x.square().sum(1)


def double_well(x: Tensor) -> Tensor:
    return 2 * (x[:, 0].square() - 1).square() + 2 * x[:, 1].square()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_bandwidth_and_weight() -> None:
    assert bandwidth(2) == pytest.approx(4 * math.log(2)) == pytest.approx(2.7726, abs=1e-4)
    assert auto_weight(2, 1.5) == pytest.approx(27.5, abs=0.05)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_without_its_factor_the_weight_matches_the_entropys_pull(d: int) -> None:
    """d/dc of λ MMD² of a cloud of spread c = 1 is -d, as that of -H = -d log c."""
    w = torch.randn(1500, d, dtype=F64, generator=seeded())
    w = (w - w.mean(0)) @ torch.linalg.inv(
        torch.linalg.cholesky(torch.atleast_2d(torch.cov(w.T, correction=0)))
    ).T
    s = wider(torch.empty(1500, d, dtype=F64), 1.5, seeded(1))
    c = torch.ones((), dtype=F64, requires_grad=True)
    held = w.mean(0)
    loss = whitened_mmd(c * (w - held), s)  # white rows: whitening is the identity
    (slope,) = torch.autograd.grad(loss, c)
    assert float(slope) * auto_weight(d, 1.5) / 1.6 == pytest.approx(-d, rel=0.15)


def test_the_target_is_held_fixed_and_units_do_not_matter() -> None:
    x = torch.randn(50, 2, dtype=F64, generator=seeded()).requires_grad_(True)
    s = wider(x.detach(), 1.5, seeded(1))
    loose = s.clone().requires_grad_(True)
    for target in (s, loose):
        loss = whitened_mmd(x, target)
        (one,) = torch.autograd.grad(loss, x)
        again = torch.autograd.grad(whitened_mmd(x, s), x)[0]
        assert torch.equal(one, again)
    a = torch.tensor([[2.0, 0.3], [0.0, 0.01]], dtype=F64)
    assert float(whitened_mmd(x @ a, s).detach()) == pytest.approx(
        float(whitened_mmd(x, s).detach()), abs=0.05
    )
    rule = ReverseKL(PushForward(Affine(2).double(), 2), weight=3.0)
    drawn = rule.sampler.draw(50, generator=seeded(2))
    before = 3.0 * whitened_mmd(drawn, wider(drawn, 1.5, seeded(3)))
    assert torch.equal(rule.spread(drawn, seeded(3)), before)


def test_without_the_entropy_everything_falls_into_the_minimum() -> None:
    model = NeuralSampler(bowl, lam=0.0, n_features=2, max_iter=600, random_state=0).fit()
    assert model.sample(2000, random_state=0).var(0).max() < 1e-3 and model.lam_ == 0


@pytest.mark.slow
def test_a_normal_distribution() -> None:
    model = NeuralSampler(bowl, n_features=2, random_state=0).fit()
    variance = model.sample(20_000, random_state=1).var(0)
    assert (variance > 0.9).all() and (variance < 1.1).all()
    assert model.lam_ == pytest.approx(27.5, abs=0.05)


@pytest.mark.slow
def test_a_double_well() -> None:
    x = (
        NeuralSampler(double_well, n_features=2, random_state=0)
        .fit()
        .sample(20_000, random_state=1)
    )
    grid = np.linspace(-4, 4, 4001)
    p = np.exp(-2 * (grid**2 - 1) ** 2)
    assert (grid**2 * p).sum() / p.sum() == pytest.approx(0.852, abs=5e-4)
    np.testing.assert_allclose(x.var(0), [0.87, 0.27], rtol=0.06)
    assert 0.45 <= (x[:, 0] > 0).mean() <= 0.55


def test_energies_stay_as_they_are() -> None:
    energy = NetEnergy(2, net=(8,), confine=1.0)
    before = [p.detach().clone() for p in energy.parameters()]
    model = NeuralSampler(energy, max_iter=20, random_state=0).fit()
    assert all(torch.equal(a, b) for a, b in zip(before, energy.parameters(), strict=True))
    assert all(p.requires_grad for p in energy.parameters()), "a copy is held, not the given one"
    one, two = (model.sample(5, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    again = NeuralSampler(energy, max_iter=20, random_state=0).fit().sample(5, random_state=3)
    np.testing.assert_array_equal(one, again)


def test_what_it_cannot_sample_is_named() -> None:
    with pytest.raises(ValueError, match="n_features"):
        NeuralSampler(bowl).fit()
    with pytest.raises(ValueError, match="one real vector x"):
        NeuralSampler(LinearEnergy(2, 3)).fit()
    with pytest.raises(ValueError, match="above 1"):
        NeuralSampler(bowl, n_features=2, inflation=1.0).fit()
    rule = ReverseKL(PushForward(Affine(2), 2))
    with pytest.raises(Unsupported, match="requires_grad_"):
        fit(NetEnergy(2, net=(4,)), {"x": torch.zeros(4, 2)}, rule, Stochastic(max_epochs=1))
