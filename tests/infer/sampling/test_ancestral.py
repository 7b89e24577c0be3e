"""Ancestral: exact independent draws of directed energies."""

from __future__ import annotations

import pytest
import torch
from tests.infer.samplers import Normal, chi_square_p, seeded, state_counts

from groundstate.energy import ChainRuleEnergy, LinearGaussianEnergy
from groundstate.errors import Unsupported
from groundstate.infer import Ancestral, sample

JOINT = torch.softmax(torch.randn(27, generator=seeded(4), dtype=torch.float64), 0).reshape(3, 3, 3)


@pytest.mark.parametrize("order", [None, (2, 0, 1)])
def test_chain_rule(order: tuple[int, ...] | None) -> None:
    energy = ChainRuleEnergy.from_joint(JOINT, order)
    draws = sample(energy, "x", n=6000, method=Ancestral(), generator=seeded())
    assert draws.kind == "exact" and draws["x"].shape == (6000, 1, 3)
    counts, p = state_counts(energy, "x", draws["x"][:, 0])
    torch.testing.assert_close(p, JOINT.flatten())
    assert chi_square_p(counts, p) > 0.01
    torch.testing.assert_close(draws.energy[:, 0], energy(x=draws["x"][:, 0]).detach())


def test_lengths() -> None:
    energy = ChainRuleEnergy(3, 4).double()
    lengths = torch.tensor([4, 2])
    draws = sample(energy, "x", {"lengths": lengths}, n=5, method=Ancestral(), generator=seeded())
    assert draws["x"].shape == (5, 2, 4) and not draws["x"][:, 1, 2:].any()


def test_other_temperatures_are_flagged() -> None:
    energy = ChainRuleEnergy.from_joint(JOINT)
    draws = sample(energy, "x", n=3000, T=0.5, method=Ancestral(), generator=seeded())
    assert draws.kind == "asymptotic"
    counts, p = state_counts(energy, "x", draws["x"][:, 0])
    assert chi_square_p(counts, p**2 / (p**2).sum()) > 0.01


def test_directed_joint() -> None:
    energy = LinearGaussianEnergy(2, 1, s=2.0).double()
    draws = sample(energy, ("x", "z"), n=8000, method=Ancestral(), generator=seeded())
    assert draws.kind == "exact"
    W = energy.W.detach()
    exact = torch.eye(2).double() + 4 * W @ W.T
    torch.testing.assert_close(torch.cov(draws["x"][:, 0].T), exact, rtol=0.06, atol=0.25)


def test_refusals() -> None:
    energy = LinearGaussianEnergy(2, 1)
    with pytest.raises(Unsupported, match="everything must be free"):
        sample(energy, "z", {"x": torch.zeros(1, 2)}, method=Ancestral())
    with pytest.raises(Unsupported, match="not directed"):
        sample(Normal(), "x", method=Ancestral())
