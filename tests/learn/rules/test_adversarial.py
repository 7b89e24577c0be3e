"""The energy and its sampler: two players, bounded losses, entropy against collapse."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, LinearEnergy, NetEnergy, Real
from groundstate.errors import Unsupported
from groundstate.learn import Adversarial, Affine, PushForward
from groundstate.learn.rules.negatives.generators import (
    gaussian_entropy_bound,
    mmd_squared,
    wider_gaussian,
)

F64 = torch.float64


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Quadratic(Energy):
    """½ (x − m)ᵀ Λ (x − m)."""

    def __init__(self, m: Tensor, precision: Tensor) -> None:
        super().__init__(x=Real(len(m)))
        self.m = nn.Parameter(m.clone())
        self.register_buffer("precision", precision)

    def forward(self, x: Tensor) -> Tensor:
        d = x - self.m
        return 0.5 * ((d @ self.precision) * d).sum(-1)


def quadratic() -> Quadratic:
    precision = torch.tensor([[2.0, 0.6], [0.6, 1.0]], dtype=F64)
    return Quadratic(torch.tensor([1.0, -0.5], dtype=F64), precision)


def trained(rule: Adversarial, energy: Energy, steps: int, rows: int = 512) -> Affine:
    optimiser = torch.optim.Adam(rule.parameters(), lr=0.05)
    noise = generator(1)
    batch = {"x": torch.zeros(rows, 2, dtype=F64)}
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 0.05 * (1 - step / steps)
        loss = rule.inner(energy, batch, noise)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    net = rule.g.net
    assert isinstance(net, Affine)
    return net


def test_affine_generator_reaches_the_model() -> None:
    """With the exact entropy the reverse KL optimum is mean m and covariance Λ⁻¹."""
    energy = quadratic()
    rule = Adversarial(PushForward(Affine(2), 2), entropy="exact", m=1.0).double()
    g = trained(rule, energy, 400)
    assert torch.allclose(g.b, energy.m, atol=0.03)
    assert torch.allclose(g.A @ g.A.T, torch.linalg.inv(energy.precision), atol=0.06)
    assert energy.m.grad is None and energy.m.requires_grad  # θ was held


def test_without_entropy_the_generator_collapses() -> None:
    energy = quadratic()
    bare = trained(Adversarial(PushForward(Affine(2), 2), None, m=1.0).double(), energy, 200, 128)
    kept = Adversarial(PushForward(Affine(2), 2), "mmd", weight=10.0, m=1.0).double()
    wide = trained(kept, energy, 200, 128)
    exact = float(torch.trace(torch.linalg.inv(energy.precision)))
    assert float(torch.trace(bare.A @ bare.A.T).detach()) < 0.1 * exact
    assert 0.5 * exact < float(torch.trace(wide.A @ wide.A.T).detach()) < 2 * exact


def test_energy_step_is_that_of_the_phases_when_the_generator_is_the_model() -> None:
    energy = quadratic()
    root = torch.linalg.cholesky(torch.linalg.inv(energy.precision))
    g = Affine(2).double()
    with torch.no_grad():
        g.A.copy_(root)
        g.b.copy_(energy.m)
    rule = Adversarial(PushForward(g, 2), decay=1e-12, n=64)
    x = torch.randn(500, 2, generator=generator(), dtype=F64)
    terms = rule(energy, {"x": x}, generator=generator(1))
    found = torch.autograd.grad(terms.loss.mean(), energy.m)[0]
    # E_model ∂e/∂m = 0, so the gradient is that of the data alone
    expected = -(x - energy.m.detach()).mean(0) @ energy.precision
    assert torch.allclose(found, expected, atol=0.03)


def test_hinge_clip_and_decay_bound_the_loss() -> None:
    energy = quadratic()
    batch = {"x": torch.zeros(8, 2, dtype=F64)}
    far = Affine(2).double()
    nn.init.constant_(far.b, 1e3)
    hinge = Adversarial(PushForward(far, 2), m=1.0)(energy, batch, generator=generator())
    assert torch.allclose(hinge.loss, energy(**batch))  # generated energies are above m
    clipped = Adversarial(PushForward(far, 2), clip=5.0)(energy, batch, generator=generator())
    assert bool((clipped.loss >= -10).all())
    decayed = Adversarial(PushForward(far, 2), decay=2.0)(energy, batch, generator=generator())
    bare = Adversarial(PushForward(far, 2), decay=1e-9)(energy, batch, generator=generator())
    gap = decayed.loss - bare.loss
    assert torch.allclose(gap, energy.m.detach().square().sum().expand(8), atol=1e-5)


def test_conditional_generator_sees_what_is_given() -> None:
    from groundstate.energy import SquaredEnergy

    class Shift(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, eps: Tensor, x: Tensor) -> Tensor:
            return self.scale * eps + x[:, :1]

    rule = Adversarial(PushForward(Shift(), 1, conditional=True), m=1.0, n=3)
    batch = {"x": torch.arange(8.0).reshape(4, 2), "y": torch.zeros(4, 1)}
    assert rule(SquaredEnergy(2, 1), batch, generator=generator()).loss.shape == (4,)
    assert torch.isfinite(rule.inner(SquaredEnergy(2, 1), batch, generator()))


def test_players() -> None:
    energy = quadratic()
    rule = Adversarial(PushForward(Affine(2), 2), m=1.0)
    players = rule.players(energy)
    assert [p.shape for p in players["generator"]] == [(2, 2), (2,)]
    assert players["energy"][0] is energy.m


def test_entropy_surrogates() -> None:
    x = torch.randn(4000, 2, generator=generator(), dtype=F64)
    exact = math.log(2 * math.pi * math.e)
    assert math.isclose(float(gaussian_entropy_bound(x)), exact, abs_tol=0.05)
    wide = wider_gaussian(x, 2.0, generator(1))
    gain = float(gaussian_entropy_bound(wide) - gaussian_entropy_bound(x))
    assert math.isclose(gain, math.log(2.0), abs_tol=0.06)  # (d/2) ln α
    small, same = x[:300], torch.randn(300, 2, generator=generator(2), dtype=F64)
    assert abs(float(mmd_squared(small, same))) < 0.01 < float(mmd_squared(small, same + 1))


def test_refusals() -> None:
    g = PushForward(Affine(2), 2)
    batch = {"x": torch.zeros(1, 2)}
    with pytest.raises(Unsupported, match="can rise without end; bound them with m=, clip="):
        Adversarial(g)(NetEnergy(2), batch)
    with pytest.raises(Unsupported, match="needs a flow"):
        Adversarial(PushForward(nn.Linear(2, 2), 2), "exact", m=1.0)(NetEnergy(2), batch)
    with pytest.raises(Unsupported, match="which needs one real variable"):
        Adversarial(g, m=1.0)(LinearEnergy(2, 3), {**batch, "y": torch.zeros(1, dtype=torch.int64)})
    with pytest.raises(ValueError, match="alpha must be above 1"):
        Adversarial(g, alpha=1.0)
    with pytest.raises(ValueError, match="entropy must be"):
        Adversarial(g, entropy="magic")
