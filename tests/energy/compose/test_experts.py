"""Products and mixtures of experts."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal, Uniform

from groundstate.energy import BilinearEnergy, MixtureOfExperts, ProductOfExperts, TableEnergy
from groundstate.errors import Unsupported
from groundstate.infer import posterior

ONE = torch.ones(1, dtype=torch.float64)
GAUSSIANS = [Normal(0 * ONE, ONE), Normal(ONE, ONE)]


def test_a_product_of_gaussians_is_sharper_than_each() -> None:
    p = ProductOfExperts(GAUSSIANS).distribution()
    assert float(p.mean) == pytest.approx(0.5) and float(p.variance) == pytest.approx(0.5)
    assert float(p.entropy()) == pytest.approx(1.072365, abs=1e-6)
    assert float(GAUSSIANS[0].entropy()) == pytest.approx(1.418939, abs=1e-6)
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    gap = p.log_prob(x).reshape(-1) - ProductOfExperts(GAUSSIANS).log_prob(x)
    torch.testing.assert_close(gap, gap[:1].expand(9))


def test_a_mixture_is_as_uncertain_as_its_experts() -> None:
    flat = TableEnergy(torch.zeros(4, dtype=torch.float64))
    point = TableEnergy(torch.tensor([0.0, math.inf, math.inf, math.inf], dtype=torch.float64))
    p = posterior(MixtureOfExperts([flat, point]), "x").probs.detach().reshape(-1)
    entropy = float(torch.special.entr(p).sum())
    assert entropy == pytest.approx(1.073543, abs=1e-6)
    assert entropy >= 0.5 * math.log(4)
    grid = torch.linspace(-12, 13, 20001, dtype=torch.float64)[:, None]
    with torch.no_grad():
        density = MixtureOfExperts(GAUSSIANS, [0.3, 0.7]).log_prob(grid).exp()
    assert float(density.sum() * (grid[1] - grid[0])) == pytest.approx(1.0, abs=1e-9)


def test_an_expert_vetoes_in_a_product_and_not_in_a_mixture() -> None:
    normal = TableEnergy(torch.tensor([0.5, 0.1, 2.0], dtype=torch.float64))
    box = TableEnergy(torch.tensor([0.0, 0.0, math.inf], dtype=torch.float64))
    at = torch.tensor([2])
    assert float(ProductOfExperts([normal, box]).log_prob(at).detach()) == -math.inf
    assert float(MixtureOfExperts([normal, box]).log_prob(at).detach()) > -5


def test_the_experts_of_a_machine() -> None:
    energy = BilinearEnergy(4, 5, scale=1.0).double()
    x = energy.spaces["x"].enumerate(dtype=torch.float64)
    with torch.no_grad():
        logs = energy.log_experts(x)
        z = energy.spaces["z"].enumerate(dtype=torch.float64)
        listed = torch.stack([torch.logsumexp(-energy(x=r.expand(32, 4), z=z), 0) for r in x])
    assert (logs[:, 1:] >= 0).all()
    torch.testing.assert_close(logs.sum(1), listed, atol=1e-10, rtol=0)


def test_refusals() -> None:
    with pytest.raises(TypeError, match="an expert is an energy"):
        ProductOfExperts([3])
    with pytest.raises(ValueError, match="at least one"):
        ProductOfExperts([])
    with pytest.raises(Unsupported, match="no closed form"):
        ProductOfExperts([Uniform(0 * ONE, ONE), Uniform(0 * ONE, ONE)]).distribution()
