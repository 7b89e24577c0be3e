"""Distributions of codes: closed divergences, draws with gradients, densities."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.distributions import kl_divergence

from groundstate.energy import Real
from groundstate.energy.latent.deep.priors import (
    ChoicePrior,
    ContextPrior,
    FullMixturePrior,
    MixturePrior,
    NormalPrior,
    Prior,
    SpherePrior,
    VampPrior,
)
from groundstate.infer.variational.codes import Choices, DiagonalNormal, Directions, FixedNormal
from groundstate.math.distributions.von_mises_fisher import VonMisesFisher

F64 = torch.float64


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("kappa", "value"), [(1.0, 0.151596), (5.0, 1.303085), (1e-9, 0.0)])
def test_divergence_on_the_sphere(kappa: float, value: float) -> None:
    family = Directions()
    raw = math.log(math.expm1(kappa))
    q = family.parts(torch.tensor([[0.0, 3.0, 4.0, raw]], dtype=F64))
    kl = family.kl(q, SpherePrior(3))
    assert kl is not None and kl.item() == pytest.approx(value, abs=1e-6)
    assert torch.allclose(family.centre(q), torch.tensor([[0.0, 0.6, 0.8]], dtype=F64))


@pytest.mark.parametrize("d", [2, 3, 6])
def test_draws_on_the_sphere_carry_the_gradient_of_their_mean(d: int) -> None:
    kappa = torch.tensor([2.0, 30.0], dtype=F64, requires_grad=True)
    loc = nn.functional.normalize(torch.arange(1.0, d + 1, dtype=F64).expand(2, d), dim=1)
    q = VonMisesFisher(loc, kappa)
    z = q.placed(40_000, seeded())
    assert torch.allclose(z.detach().norm(dim=-1), torch.ones((), dtype=F64))
    (found,) = torch.autograd.grad((z * loc).sum(-1).mean(0).sum(), kappa)
    (exact,) = torch.autograd.grad(q.resultant().sum(), kappa)
    assert torch.allclose(found, exact, rtol=0.03)


def test_fixed_spread_equal_to_the_prior_leaves_the_mean() -> None:
    mean = torch.tensor([[1.0, -2.0]], dtype=F64)
    family = FixedNormal(scale=1.7)
    kl = family.kl(family.parts(mean), NormalPrior(2, 1.7).double())
    assert kl is not None and kl.sum().item() == pytest.approx(5 / (2 * 1.7**2))


def test_divergence_from_a_prior_given_y_is_torch_s() -> None:
    torch.manual_seed(0)
    prior = ContextPrior(nn.Linear(3, 4), 2).double()
    y, params = torch.randn(5, 3, dtype=F64), torch.randn(5, 4, dtype=F64)
    family = DiagonalNormal()
    q = family.parts(params)
    mean, logvar = prior.moments(y)
    expected = kl_divergence(
        family.distribution(Real(2), params),
        torch.distributions.Independent(torch.distributions.Normal(mean, (0.5 * logvar).exp()), 1),
    )
    kl = family.kl(q, prior, y)
    assert kl is not None and torch.allclose(kl.sum(1), expected)


def test_choices_are_drawn_as_their_probabilities() -> None:
    family = Choices()
    logits = torch.tensor([[0.5, 0.3, 0.2]], dtype=F64).log().requires_grad_()
    z = family.draws(logits, 40_000, seeded()).z
    assert set(z.unique().tolist()) == {0.0, 1.0}
    assert torch.allclose(z.mean((0, 1)).detach(), logits[0].exp().detach(), atol=0.01)
    kl = family.kl(logits, ChoicePrior(3))
    assert kl is not None
    entropy = -(logits.exp() * logits).sum()
    assert kl.item() == pytest.approx(math.log(3) - entropy.item())
    assert torch.equal(z, family.draws(logits, 40_000, seeded()).z)


def _priors() -> dict[str, Prior]:
    torch.manual_seed(0)
    factors = torch.linalg.cholesky(torch.tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0], [0, 0.3]]]))
    return {
        "normal": NormalPrior(2, 2.0),
        "mixture": MixturePrior(2, 3),
        "vamp": VampPrior(nn.Linear(5, 4), torch.randn(3, 5), 2),
        "full": FullMixturePrior(
            torch.tensor([0.4, 0.6]), torch.tensor([[1.0, 0.0], [-2.0, 1.0]]), factors
        ),
    }


@pytest.mark.parametrize("name", _priors())
def test_priors_integrate_to_one_and_draw_their_mean(name: str) -> None:
    prior = _priors()[name].double()
    at = torch.linspace(-12, 12, 241, dtype=F64)
    grid = torch.cartesian_prod(at, at)
    p = prior.log_prob(grid).exp().detach() * 0.1**2
    assert p.sum().item() == pytest.approx(1.0, abs=1e-6)
    z = prior.draw(40_000, generator=seeded()).detach()
    assert torch.allclose(z.mean(0), (p[:, None] * grid).sum(0), atol=0.06)
    cool = prior.draw(40_000, T=1e-6, generator=seeded()).detach()
    assert (cool.var(0) <= z.var(0) + 1e-9).all()
