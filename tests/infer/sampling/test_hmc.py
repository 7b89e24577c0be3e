"""Hamiltonian Monte Carlo: the integrator's symmetries, moments, adaptation, efficiency."""

from __future__ import annotations

import math

import pytest
import torch
from tests.infer.samplers import Normal, Shifted, Spins, seeded
from torch import Tensor

from groundstate.errors import Unsupported
from groundstate.infer import HMC, Langevin, run_chains, sample
from groundstate.infer.sampling.hmc import leapfrog
from groundstate.infer.sampling.transitions import Target
from groundstate.math.chains.diagnostics import ess

CORRELATED = torch.tensor([[2.0, 1.0], [1.0, 2.0]]).double()


def flow(x: Tensor, p: Tensor, n: int = 20, step: float = 0.15) -> tuple[Tensor, Tensor]:
    target = Target(Normal(torch.linalg.inv(CORRELATED)))

    def slope(values: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        return target.slope(values, ("x",))

    _, g = slope({"x": x})
    new, momentum, _, _ = leapfrog(slope, {"x": x}, {"x": p}, g, step, n)
    return new["x"], momentum["x"]


def test_leapfrog_is_reversible() -> None:
    x, p = torch.randn(2, 50, 2, generator=seeded(), dtype=torch.float64)
    new, momentum = flow(x, p)
    back, minus = flow(new, -momentum)
    assert float((back - x).abs().max()) < 1e-10
    assert float((minus + p).abs().max()) < 1e-10


def test_leapfrog_preserves_volume() -> None:
    at = torch.randn(4, generator=seeded(1), dtype=torch.float64)
    rows = []
    h = 1e-5
    for i in range(4):
        plus, minus = at.clone(), at.clone()
        plus[i] += h
        minus[i] -= h
        ends = [torch.cat(flow(v[None, :2], v[None, 2:]), 1)[0] for v in (plus, minus)]
        rows.append((ends[0] - ends[1]) / (2 * h))
    assert float(torch.linalg.det(torch.stack(rows))) == pytest.approx(1.0, abs=1e-8)


def test_moments_of_a_correlated_normal() -> None:
    energy = Normal(torch.linalg.inv(CORRELATED))
    draws = sample(energy, "x", n=6000, method=HMC(n_steps=30), generator=seeded())
    torch.testing.assert_close(torch.cov(draws["x"][:, 0].T), CORRELATED, atol=0.12, rtol=0)
    assert float(draws["x"].mean().abs()) < 0.06
    assert draws.accept is not None
    assert 0.65 < float(draws.accept) < 0.97


def test_adaptation_finds_very_different_scales() -> None:
    energy = Normal(torch.diag(torch.tensor([1e-4, 1.0, 1e4])))
    draws = sample(energy, "x", n=800, method=HMC(n_steps=120, n_leapfrog=5), generator=seeded())
    sd = draws["x"][:, 0].std(0)
    assert sd.tolist() == pytest.approx([100.0, 1.0, 0.01], rel=0.12)


def test_temperature_rows_and_masks() -> None:
    energy = Shifted().double()
    c = torch.tensor([[-2.0], [3.0]]).double()
    draws = sample(energy, "x", {"c": c}, n=3000, T=4.0, method=HMC(n_steps=20), generator=seeded())
    torch.testing.assert_close(draws["x"].mean(0), c, atol=0.13, rtol=0)
    assert draws["x"].var(0).flatten().tolist() == pytest.approx([4.0, 4.0], rel=0.1)

    A = torch.linalg.inv(CORRELATED)
    given = {"x": torch.tensor([[1.0, 0.0]]).double()}
    mask = {"x": torch.tensor([[False, True]])}
    draws = sample(Normal(A), mask, given, n=3000, method=HMC(n_steps=20), generator=seeded())
    assert bool((draws["x"][..., 0] == 1).all())
    assert float(draws["x"][..., 1].mean()) == pytest.approx(0.5, abs=0.07)
    assert float(draws["x"][..., 1].var()) == pytest.approx(1.5, rel=0.08)


def test_box() -> None:
    draws = sample(Normal(low=0.0), "x", n=3000, method=HMC(n_steps=30), generator=seeded())
    assert bool((draws["x"] >= 0).all())
    assert float(draws["x"].mean()) == pytest.approx(math.sqrt(2 / math.pi), abs=0.04)


def test_more_effective_draws_per_gradient_than_langevin() -> None:
    sigma = torch.diag(torch.tensor([1.0, 25.0]).double())
    energy = Normal(torch.linalg.inv(sigma))
    start = {"x": torch.randn(8, 2, generator=seeded(), dtype=torch.float64) @ sigma.sqrt()}
    far = run_chains(
        HMC(step_size=0.6, n_leapfrog=10).kernel(energy), start, 400, generator=seeded(1)
    )
    near = run_chains(Langevin(step_size=0.7).kernel(energy), start, 4000, generator=seeded(1))
    by_hmc = float(ess(far.values["x"])[1]) / 4000
    by_mala = float(ess(near.values["x"])[1]) / 4000
    assert by_hmc >= by_mala


def test_divergence_is_a_rejection() -> None:
    kernel = HMC(step_size=1e3, n_leapfrog=40).kernel(Normal())
    start = {"x": torch.ones(5, 1).double()}
    done = run_chains(kernel, start, 3, generator=seeded())
    assert bool((done.values["x"] == 1).all()) and float(done.accept.max()) == 0.0


def test_refusals() -> None:
    with pytest.raises(Unsupported, match="gradient steps need a Real space"):
        sample(Spins(), "x", method=HMC())
    with pytest.raises(ValueError, match="step_size > 0 and n_leapfrog >= 1"):
        HMC(n_leapfrog=0)
