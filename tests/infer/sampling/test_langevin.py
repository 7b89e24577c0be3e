"""Langevin: the known bias, exact acceptance rates, boxes, masks, schedules."""

from __future__ import annotations

import math

import pytest
import torch
from tests.infer.samplers import Normal, Shifted, Spins, mala_acceptance, seeded
from torch import Tensor

from groundstate.energy import Energy, Real
from groundstate.errors import Unsupported
from groundstate.infer import Langevin, run_chains, sample


def stationary_start(n: int, variance: float = 1.0) -> dict[str, Tensor]:
    x = torch.randn(n, 1, generator=seeded(9), dtype=torch.float64)
    return {"x": x * math.sqrt(variance)}


def test_unadjusted_variance() -> None:
    eta = 0.1
    exact = 1 / (1 - eta / 2)
    assert exact == pytest.approx(1.052632, abs=1e-6)
    kernel = Langevin(step_size=eta, adjusted=False).kernel(Normal())
    done = run_chains(kernel, stationary_start(20_000, exact), 60, thin=20, generator=seeded())
    assert float(done.values["x"].var()) == pytest.approx(exact, abs=0.015)
    # one step keeps the biased variance exactly: v = (1 - eta)^2 v + 2 eta
    assert (1 - eta) ** 2 * exact + 2 * eta == pytest.approx(exact)


@pytest.mark.parametrize(("eta", "rate"), [(0.1, 0.99288), (0.5, 0.92083), (1.0, 0.78365)])
def test_adjusted_acceptance(eta: float, rate: float) -> None:
    assert mala_acceptance(eta) == pytest.approx(rate, abs=2e-5)
    kernel = Langevin(step_size=eta).kernel(Normal())
    done = run_chains(kernel, stationary_start(5000), 60, generator=seeded(), thin=20)
    assert float(done.accept.mean()) == pytest.approx(rate, abs=0.003)
    assert float(done.values["x"].var()) == pytest.approx(1.0, abs=0.035)


def test_temperature_and_rows() -> None:
    energy = Shifted().double()
    c = torch.tensor([[-2.0], [3.0]]).double()
    method = Langevin(step_size=0.5, n_steps=60)
    draws = sample(energy, "x", {"c": c}, n=4000, T=4.0, method=method, generator=seeded())
    torch.testing.assert_close(draws["x"].mean(0), c, atol=0.12, rtol=0)
    assert draws["x"].var(0).flatten().tolist() == pytest.approx([4.0, 4.0], rel=0.08)
    assert draws.accept is not None and draws.accept.shape == (2,)


def test_box_is_a_wall_or_a_rejection() -> None:
    exact = Langevin(step_size=0.3, n_steps=80)
    draws = sample(Normal(low=0.0), "x", n=4000, method=exact, generator=seeded())
    assert bool((draws["x"] >= 0).all())
    assert float(draws["x"].mean()) == pytest.approx(math.sqrt(2 / math.pi), abs=0.03)
    rough = Langevin(step_size=0.3, n_steps=20, adjusted=False, clamp=(-0.5, 0.5))
    x = sample(Normal(), "x", n=100, method=rough, generator=seeded())["x"]
    assert float(x.abs().max()) <= 0.5


def test_known_coordinates_rest() -> None:
    A = torch.tensor([[2.0, -1.0], [-1.0, 2.0]]) / 3
    given = {"x": torch.tensor([[1.0, 9.0]]).double()}
    mask = {"x": torch.tensor([[False, True]])}
    for adjusted in (True, False):
        method = Langevin(step_size=0.2, n_steps=80, adjusted=adjusted)
        draws = sample(Normal(A), mask, given, n=4000, method=method, generator=seeded())
        assert bool((draws["x"][..., 0] == 1).all())
        assert float(draws["x"][..., 1].mean()) == pytest.approx(0.5, abs=0.07)


class Wells(Energy):
    """Two deep wells at -3 and 3, the right one deeper."""

    def __init__(self) -> None:
        super().__init__(x=Real(1))

    def forward(self, x: Tensor) -> Tensor:
        left, right = 8 * (x + 3).square().sum(-1), 8 * (x - 3).square().sum(-1) - 1.0
        return -torch.logsumexp(torch.stack([-left, -right]), 0)


def test_annealing_crosses_barriers() -> None:
    start = {"x": torch.full((1, 1), -3.0).double()}
    energy = Wells().double()
    plain = Langevin(step_size=0.02, n_steps=200)
    stuck = sample(energy, "x", n=500, method=plain, init=start, generator=seeded())
    assert float((stuck["x"] > 0).double().mean()) < 0.02
    stages = ((60.0, 2.0, 100), (8.0, 0.5, 100), (2.0, 0.1, 100), (1.0, 0.02, 100))
    annealed = Langevin(schedule=stages)
    free = sample(energy, "x", n=500, method=annealed, init=start, generator=seeded())
    assert 0.4 < float((free["x"] > 0).double().mean()) < 0.95


class Levels(Energy):
    """N(0, sigma^2) with sigma as context."""

    context = ("sigma",)

    def __init__(self) -> None:
        super().__init__(x=Real(1))

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        return 0.5 * (x / sigma[:, None]).square().sum(-1)


def test_schedule_of_noise_levels() -> None:
    method = Langevin(schedule=((2.0, 1.0, 50), (0.5, 0.1, 50)))
    draws = sample(Levels().double(), "x", n=3000, method=method, generator=seeded())
    assert float(draws["x"].std()) == pytest.approx(0.5, rel=0.06)


def test_runaway_is_reported() -> None:
    class Steep(Energy):
        def __init__(self) -> None:
            super().__init__(x=Real(1))

        def forward(self, x: Tensor) -> Tensor:
            return x.pow(4).sum(-1) - x.pow(8).sum(-1)

    method = Langevin(step_size=1.0, n_steps=40, adjusted=False)
    with pytest.raises(FloatingPointError, match=r"Steep is -?(nan|inf) in step \d+ of chain \d+"):
        sample(Steep(), "x", n=3, method=method, generator=seeded())


def test_refusals() -> None:
    with pytest.raises(Unsupported, match="gradient steps need a Real space"):
        sample(Spins(), "x", method=Langevin())
    with pytest.raises(ValueError, match="adjusted Langevin needs noise_scale=1"):
        Langevin(noise_scale=0.5)
    with pytest.raises(ValueError, match="step_size must be positive"):
        Langevin(step_size=0.0)
