"""Densities of y given x from any energy."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from groundstate.energy import DensityEnergy, Energy, Finite, Real, SquaredEnergy, TableEnergy
from groundstate.energy.compose.conditional import ConditionalEnergy
from groundstate.errors import Unsupported
from groundstate.infer import HMC, Quadrature

GRID = torch.linspace(-9, 9, 361, dtype=torch.float64)


class Wells(Energy):
    """A double well in y that x tilts."""

    def __init__(self, d: int = 1) -> None:
        super().__init__(x=Real(1), y=Real(d))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return ((y.square() - 1).square() - x * y).sum(-1)


class Hidden(Energy):
    """A normal distribution of y for each z, with widths that differ."""

    def __init__(self, z: Finite | Real) -> None:
        super().__init__(x=Real(1), y=Real(1), z=z)

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        k = z.to(x.dtype).reshape(len(x), -1)[:, :1]
        return 0.5 * ((y - x - 2 * k) * (1 + k)).square().sum(-1)


def trapezoid(p: Tensor, grid: Tensor = GRID) -> Tensor:
    return torch.trapezoid(p, grid)


@pytest.mark.parametrize("d", [1, 2])
def test_a_squared_energy_is_a_normal_distribution(d: int) -> None:
    energy = SquaredEnergy(3, d).double()
    with torch.no_grad():
        energy.W.copy_(0.3 * torch.randn(d, 3, generator=torch.Generator().manual_seed(0)))
    grid = GRID if d == 1 else (GRID[::3], GRID[::3])
    distribution = ConditionalEnergy(energy, grid)
    g = torch.Generator().manual_seed(1)
    x, y = torch.randn(5, 3, generator=g).double(), torch.randn(5, d, generator=g).double()
    expected = Normal(x @ energy.W.T, 1.0).log_prob(y).sum(1)
    torch.testing.assert_close(-distribution(x=x, y=y), expected, atol=1e-7, rtol=0)


def test_it_integrates_to_one_in_one_and_two_dimensions() -> None:
    x = torch.tensor([[-1.0], [0.0], [2.0]]).double()
    p = ConditionalEnergy(Wells(), GRID).density(x)
    torch.testing.assert_close(trapezoid(p), torch.ones(3).double(), atol=1e-10, rtol=0)
    axis = torch.linspace(-3, 3, 121, dtype=torch.float64)
    p = ConditionalEnergy(Wells(2), (axis, axis)).density(x)
    assert p.shape == (3, 121, 121)
    torch.testing.assert_close(
        trapezoid(trapezoid(p, axis), axis), torch.ones(3).double(), atol=1e-10, rtol=0
    )
    assert float(p[1].max()) > 5 * float(p[1, 60, 60])  # four wells, and a hill between them


def test_an_uneven_grid_will_do() -> None:
    uneven = 9 * torch.linspace(-1, 1, 801, dtype=torch.float64) ** 3
    x, y = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    a, b = (ConditionalEnergy(Wells(), g)(x=x, y=y).item() for g in (GRID, uneven))
    assert a == pytest.approx(b, abs=1e-3)


def test_each_hidden_value_is_normalised_before_the_average() -> None:
    prior = TableEnergy(-torch.tensor([0.25, 0.75]).log(), "z")
    distribution = ConditionalEnergy(Hidden(Finite(2)), GRID, prior)
    x = torch.tensor([[0.0], [0.5]]).double()
    y = torch.tensor([[0.3], [2.0]]).double()
    narrow = Normal(x + 2, 0.5).log_prob(y).exp()
    expected = 0.25 * Normal(x, 1.0).log_prob(y).exp() + 0.75 * narrow
    torch.testing.assert_close((-distribution(x=x, y=y)).exp(), expected[:, 0], atol=1e-7, rtol=0)
    even = ConditionalEnergy(Hidden(Finite(2)), GRID)
    torch.testing.assert_close(
        trapezoid(even.density(x)), torch.ones(2).double(), atol=1e-8, rtol=0
    )
    crude = Hidden(Finite(2)).marginal("z")  # one Z for both: the wide distribution weighs twice
    pair = torch.tensor([[0.0], [2.0]]).double()
    ratio = (crude(x=torch.zeros(2, 1).double(), y=pair)).neg().exp()
    own = (-even(x=torch.zeros(2, 1).double(), y=pair)).exp()
    assert float(own[1] / own[0]) > 1.6 * float(ratio[1] / ratio[0])


def test_a_real_hidden_value_is_averaged_over_draws() -> None:
    class Shifted(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(1), y=Real(1), z=Real(1))

        def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return 0.5 * (y - x - z).square().sum(-1)

    prior = DensityEnergy(Normal(torch.zeros(1), torch.ones(1)), "z")
    g = torch.Generator().manual_seed(0)
    distribution = ConditionalEnergy(Shifted(), GRID, prior, draws=2000, generator=g)
    x = torch.zeros(3, 1).double()
    y = torch.tensor([[0.0], [1.0], [3.0]]).double()
    expected = Normal(x, math.sqrt(2)).log_prob(y).exp()[:, 0]
    torch.testing.assert_close((-distribution(x=x, y=y)).exp(), expected, atol=0.02, rtol=0)
    with pytest.raises(Unsupported, match="draws of its prior"):
        ConditionalEnergy(Shifted(), GRID)


def test_more_dimensions_by_estimator_and_by_chains() -> None:
    energy = SquaredEnergy(1, 3).double()
    with pytest.raises(Unsupported, match="there is no grid"):
        ConditionalEnergy(energy)
    distribution = ConditionalEnergy(energy, method=Quadrature(points=16), sampler=HMC())
    at = {"x": torch.zeros(2, 1).double(), "y": torch.zeros(2, 3).double()}
    torch.testing.assert_close(
        distribution(**at),
        torch.full((2,), 1.5 * math.log(2 * math.pi)).double(),
        atol=1e-6,
        rtol=0,
    )
    drawn = distribution.draw(torch.zeros(1, 1).double(), 400, torch.Generator().manual_seed(0))
    assert drawn.shape == (400, 1, 3)
    assert float(drawn.mean()) == pytest.approx(0.0, abs=0.2)
    assert float(drawn.std()) == pytest.approx(1.0, abs=0.15)
    with pytest.raises(Unsupported, match="pass sampler="):
        ConditionalEnergy(energy, method=Quadrature()).draw(torch.zeros(1, 1).double(), 2)


@pytest.mark.parametrize("d", [1, 2])
def test_draws_from_the_grid(d: int) -> None:
    axis = torch.linspace(-3, 3, 121, dtype=torch.float64)
    distribution = ConditionalEnergy(Wells(d), axis if d == 1 else (axis, axis))
    x = torch.tensor([[0.5], [-2.0]]).double()
    drawn = distribution.draw(x, 20_000, torch.Generator().manual_seed(0))
    p = distribution.density(x)
    p = p if d == 1 else trapezoid(p, axis)
    assert drawn.shape == (20_000, 2, d)
    torch.testing.assert_close(drawn[..., 0].mean(0), trapezoid(p * axis, axis), atol=0.03, rtol=0)


def test_mistakes_are_explained() -> None:
    with pytest.raises(ValueError, match="needs a real y"):
        ConditionalEnergy(TableEnergy(torch.zeros(2), "y"), GRID)
    with pytest.raises(ValueError, match="one axis for each"):
        ConditionalEnergy(Wells(2), GRID)
    with pytest.raises(ValueError, match="increasing points"):
        ConditionalEnergy(Wells(), GRID.flip(0))
