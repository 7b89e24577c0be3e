"""The best discriminator between two distributions, and the value of the game at it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.spatial.distance import jensenshannon
from scipy.stats import norm
from torch.distributions import Normal

from groundstate.energy import ClassEnergy
from groundstate.learn import LBFGS, SoftMin, fit
from groundstate.math.divergences import optimal_discriminator, optimal_value


def test_between_two_normals_it_is_logistic() -> None:
    x = np.linspace(-3, 5, 41)
    d = optimal_discriminator(norm.logpdf(x), norm.logpdf(x, 2))
    np.testing.assert_allclose(d, 1 / (1 + np.exp(-(2 - 2 * x))), atol=1e-12)


@pytest.mark.parametrize(
    ("mu", "expected"), [(0.0, -1.386294), (1.0, -1.163451), (2.0, -0.712633), (4.0, -0.120854)]
)
def test_value_at_the_best_discriminator(mu: float, expected: float) -> None:
    p = Normal(torch.tensor(0.0, dtype=torch.float64), 1.0)
    q = Normal(torch.tensor(mu, dtype=torch.float64), 1.0)
    assert float(optimal_value(p, q)) == pytest.approx(expected, abs=1e-6)

    def inside(x: float) -> float:
        d = float(optimal_discriminator(norm.logpdf(x), norm.logpdf(x, mu)))
        return norm.pdf(x) * np.log(max(d, 1e-300)) + norm.pdf(x, mu) * np.log(max(1 - d, 1e-300))

    assert quad(inside, -12, 16, limit=200)[0] == pytest.approx(expected, abs=1e-6)


def test_of_tables_it_is_the_square_of_scipys_root() -> None:
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.3])
    assert optimal_value(p, q) == pytest.approx(2 * jensenshannon(p, q) ** 2 - 2 * np.log(2))


def test_a_logistic_discriminator_learns_the_density_ratio() -> None:
    rng = np.random.default_rng(0)
    n = 100_000
    x = np.r_[rng.normal(0, 1, n), rng.normal(2, 1, n)][:, None]
    y = np.r_[np.ones(n), np.zeros(n)].astype(int)
    net = torch.nn.Linear(1, 1).double()
    energy = ClassEnergy(torch.nn.Sequential(net, _Padded()), 1, 2)
    fit(energy, {"x": torch.from_numpy(x), "y": torch.from_numpy(y)}, SoftMin(), LBFGS())
    weight, bias = float(net.weight.detach()), float(net.bias.detach())
    assert weight == pytest.approx(-2, abs=0.05) and bias == pytest.approx(2, abs=0.05)


class _Padded(torch.nn.Module):
    def forward(self, s: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(s, (1, 0))


def test_zeros_of_one_density_and_bad_values() -> None:
    assert optimal_discriminator(-np.inf, 0.0) == 0 and optimal_discriminator(0.0, -np.inf) == 1
    with pytest.raises(ValueError, match="both p and q"):
        optimal_discriminator([-np.inf], [-np.inf])
    with pytest.raises(ValueError, match="logp"):
        optimal_discriminator([np.nan], [0.0])
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(optimal_discriminator, (x, torch.zeros_like(x)))
