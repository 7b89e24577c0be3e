"""Priors on θ: values, gradients, proximal maps, selection, and the scale of the summed loss."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, LinearEnergy, NetClassEnergy, Real
from groundstate.errors import Unsupported
from groundstate.learn import (
    L1,
    L2,
    ElasticNet,
    GaussianPrior,
    LaplacePrior,
    Lp,
    SumPenalty,
)
from groundstate.learn.penalties.norms import SeparablePenalty, penalised

F64 = torch.float64


def vector(seed: int = 0) -> Tensor:
    return torch.randn(20, generator=torch.Generator().manual_seed(seed), dtype=F64)


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (L2(2.0), 5.0),
        (L1(2.0), 6.0),
        (ElasticNet(2.0, 0.25), 0.25 * 6 + 0.75 * 5),
        (GaussianPrior(0.5), 5.0),
        (LaplacePrior(0.5), 6.0),
    ],
    ids=lambda p: type(p).__name__,
)
def test_values(penalty: SeparablePenalty, expected: float) -> None:
    assert math.isclose(float(penalty.value_of(torch.tensor([1.0, -2.0]))), expected)


def test_log_density_of_the_priors() -> None:
    """Ω is −log p up to a constant."""
    a, b = vector(), vector(1)
    normal = torch.distributions.Normal(0.0, math.sqrt(1.7))
    laplace = torch.distributions.Laplace(0.0, 0.6)
    for penalty, distribution in ((GaussianPrior(1.7), normal), (LaplacePrior(0.6), laplace)):
        gap = penalty.value_of(a) - penalty.value_of(b)
        assert torch.allclose(gap, distribution.log_prob(b).sum() - distribution.log_prob(a).sum())


def test_smoothness_is_declared() -> None:
    assert L2().smooth and GaussianPrior().smooth
    assert not L1().smooth and not ElasticNet().smooth and not LaplacePrior().smooth
    assert not SumPenalty(L2(), L1()).smooth


def test_intercepts_are_left_out() -> None:
    energy = LinearEnergy(3, 2)
    with torch.no_grad():
        energy.W.fill_(1.0)
        energy.b.fill_(100.0)
    assert float(L2(2.0)(energy).detach()) == 6.0
    assert float(L2(2.0, intercept=True)(energy).detach()) == 6.0 + 2 * 100.0**2
    assert float(L2(2.0, select="b")(energy).detach()) == 2 * 100.0**2
    assert [n for n, _, _ in penalised(energy)] == ["W"]
    net = NetClassEnergy(3, 2)
    names = [n for n, _, _ in penalised(net)]
    assert names and not any(n.endswith("bias") for n in names)


def test_selection() -> None:
    net = nn.ModuleDict({"a": nn.Linear(2, 2), "c": nn.Linear(2, 2)})
    assert [n for n, _, _ in penalised(net, "a.*")] == ["a.weight", "a.bias"]
    assert [n for n, _, _ in penalised(net, ("c.weight",))] == ["c.weight"]
    chosen = penalised(net, lambda name, p: p.ndim == 1)
    assert [n for n, _, _ in chosen] == ["a.bias", "c.bias"]
    with pytest.raises(ValueError, match="select=.*'d'.* matches no parameter of ModuleDict"):
        penalised(net, "d")


def test_declared_exceptions_are_left_out() -> None:
    class Two(Energy):
        unpenalised = ("offset",)

        def __init__(self) -> None:
            super().__init__(x=Real(1))
            self.slope = nn.Parameter(torch.ones(1))
            self.offset = nn.Parameter(torch.ones(1))

        def forward(self, x: Tensor) -> Tensor:
            return (self.slope * x + self.offset)[:, 0]

    assert [n for n, _, _ in penalised(Two())] == ["slope"]


def test_frozen_parameters_and_functional_calls() -> None:
    energy = LinearEnergy(2, 2)
    penalty = L2(1.0)
    penalty(energy)
    swapped = {"W": torch.full((2, 2), 3.0), "b": torch.zeros(2)}

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = energy

        def forward(self) -> Tensor:
            return penalty(self.energy)

    found = torch.func.functional_call(Whole(), {f"energy.{n}": v for n, v in swapped.items()}, ())
    assert float(found) == 18.0  # the parameters of the call, not those remembered


def test_prox_in_place() -> None:
    energy = LinearEnergy(2, 2).double()
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[3.0, -0.5], [0.2, -2.0]]))
        energy.b.fill_(5.0)
    L1(1.0).prox(energy, 1.0)
    assert energy.W.tolist() == [[2.0, 0.0], [0.0, -1.0]] and energy.b.tolist() == [5.0, 5.0]


def test_proximal_descent_meets_the_optimality_condition() -> None:
    class Bowl(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(20))
            self.theta = nn.Parameter(torch.zeros(20, dtype=F64))

        def forward(self, x: Tensor) -> Tensor:
            return 0.5 * (x - self.theta).square().sum(-1)

    energy, penalty = Bowl(), L1(0.5)
    x = vector()[None]
    for _ in range(60):
        energy.zero_grad()
        energy(x=x).sum().backward()
        with torch.no_grad():
            energy.theta -= 0.5 * energy.theta.grad
        penalty.prox(energy, 0.5)
    energy.zero_grad()
    energy(x=x).sum().backward()
    assert float(penalty.distance(energy)) < 1e-9
    assert int((energy.theta == 0).sum()) == int((x.abs() <= 0.5).sum())


def test_sums() -> None:
    energy = LinearEnergy(2, 2).double()
    with torch.no_grad():
        energy.W.fill_(2.0)
        energy.b.fill_(1.0)
    both = L1(1.0, select="W") + L2(4.0, select="b")
    assert float(both(energy).detach()) == 8.0 + 4.0
    both.prox(energy, 1.0)
    assert energy.W.unique().tolist() == [1.0] and energy.b.unique().tolist() == [0.2]
    with pytest.raises(Unsupported, match="W is penalised twice; use ElasticNet"):
        (L1() + L2()).prox(energy, 1.0)
    assert float((both + L2(2.0))(energy).detach()) > float(both(energy).detach())


class Point(Energy):
    r""":math:`\tfrac12(x - \theta)^2`."""

    def __init__(self) -> None:
        super().__init__(x=Real(1))
        self.theta = nn.Parameter(torch.zeros(1, dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x - self.theta).square().sum(-1)


def test_map_of_three_points() -> None:
    """D = {1, 2, 6} and a N(0, 1) prior: θ = 2.25, whatever the batches."""
    x = torch.tensor([[1.0], [2.0], [6.0]], dtype=F64)
    energy = Point()
    prior = GaussianPrior(1.0)
    for _ in range(200):
        energy.zero_grad()
        ((energy(x=x).sum() + prior(energy)) / 3).backward()
        with torch.no_grad():
            energy.theta -= 0.5 * energy.theta.grad
    assert math.isclose(float(energy.theta.detach()), 2.25, abs_tol=1e-9)


def test_errors_teach() -> None:
    with pytest.raises(ValueError, match="strength must be non-negative, got -1"):
        L2(-1.0)
    with pytest.raises(ValueError, match=r"l1_ratio must be in \[0, 1\], got 2"):
        ElasticNet(1.0, 2.0)
    with pytest.raises(ValueError, match="variance must be positive, got 0"):
        GaussianPrior(0.0)
    with pytest.raises(ValueError, match="b must be positive, got -1"):
        LaplacePrior(-1.0)


@pytest.mark.parametrize("p", [0.5, 2 / 3, 1.0, 1.5, 2.0, 3.0])
def test_powers_against_a_grid(p: float) -> None:
    penalty = Lp(0.7, p)
    assert penalty.convex == (p >= 1)
    theta = torch.tensor([-3.0, -0.9, -0.2, 0.0, 0.4, 1.1, 2.5], dtype=torch.float64)
    grid = torch.linspace(-4, 4, 1_600_001, dtype=torch.float64)
    for t, u in zip(theta, penalty.prox_of(theta, 1.3), strict=True):
        cost = 0.5 * (grid - t).square() + 1.3 * 0.7 * grid.abs().pow(p)
        assert abs(float(grid[cost.argmin()] - u)) < 1e-5


def test_priors_are_the_distributions_of_the_notes() -> None:
    distributions = [L1(s).prior() for s in (0.5, 1.0, 2.0, 3.0)]
    assert [round(float(distribution.variance), 4) for distribution in distributions] == [
        8.0,
        2.0,
        0.5,
        0.2222,
    ]
    peaks = [
        float(distribution.log_prob(torch.tensor(0.0)).exp()) for distribution in distributions
    ]
    assert peaks == pytest.approx([0.25, 0.5, 1.0, 1.5])
    assert float(L2(2 * 3.0).prior().variance) == pytest.approx(1 / (2 * 3.0))
    assert float(Lp(3.0, 2.0).prior().variance) == pytest.approx(1 / (2 * 3.0))
    assert float(Lp(2.0, 1.0).prior().variance) == pytest.approx(0.5)
    with pytest.raises(Unsupported, match="p=1 and p=2 have one"):
        Lp(1.0, 0.5).prior()


def test_least_strength_that_leaves_nothing() -> None:
    gradient = torch.tensor([0.3, -1.2])
    assert L1().alpha_max(gradient) == Lp(p=1.0).alpha_max(gradient) == pytest.approx(1.2)
    assert ElasticNet(l1_ratio=0.5).alpha_max(gradient) == pytest.approx(2.4)
    for penalty in (L2(), Lp(p=2.0), ElasticNet(l1_ratio=0.0)):
        with pytest.raises(Unsupported):
            penalty.alpha_max(gradient)


def test_a_penalty_prints_its_numbers() -> None:
    assert repr(L1(20.0)) == "L1(strength=20)"
    assert repr(ElasticNet(2.0, 0.25, select="W")) == "ElasticNet(strength=2, l1_ratio=0.25)"
    assert "strength=3" in repr(L2(3.0) + L1(0.5)) and "L1" in repr(L2(3.0) + L1(0.5))
