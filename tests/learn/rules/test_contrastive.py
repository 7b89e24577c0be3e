"""Contrastive divergence: where k steps from the data lead, and chains that never stop."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from groundstate.energy import BilinearEnergy, LinearEnergy, NetEnergy
from groundstate.infer import Gibbs, Langevin, Metropolis, kernel_matrix
from groundstate.learn import NLL, ContrastiveDivergence, PersistentCD, phases
from groundstate.learn.rules.negatives.chains import default_kernel

F64 = torch.float64
EXPECTED = {1: (0.571875, 0.779480), 2: (0.554655, 0.766454), 5: (0.554310, 0.765031)}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def bilinear() -> BilinearEnergy:
    energy = BilinearEnergy(2, 2).double()
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]], dtype=F64))
        energy.b.copy_(torch.tensor([0.1, -0.2], dtype=F64))
        energy.c.copy_(torch.tensor([0.3, -0.4], dtype=F64))
    return energy


@pytest.mark.parametrize("k", [1, 2, 5])
def test_mean_negative_of_the_default_kernel(k: int) -> None:
    """The exact expectation of x⁻ from (1, 1), by the transition matrix of the kernel."""
    energy = bilinear()
    kernel = default_kernel(energy, ("x",), ("z",)).kernel(energy)
    P = kernel_matrix(kernel, on="x")  # (new, old)
    start = torch.zeros(4, dtype=F64)
    start[3] = 1.0  # x = 11
    distribution = torch.linalg.matrix_power(P, k) @ start
    mean = distribution @ energy.spaces["x"].enumerate(dtype=F64)
    assert torch.allclose(mean, torch.tensor(EXPECTED[k], dtype=F64), atol=5e-7)
    model = torch.softmax(-energy.marginal("z")(x=energy.spaces["x"].enumerate(dtype=F64)), 0)
    limit = model @ energy.spaces["x"].enumerate(dtype=F64)
    assert torch.allclose(limit, torch.tensor((0.554315, 0.765024), dtype=F64), atol=5e-7)


def test_gradient_of_many_chains() -> None:
    """CD-5's gradient is that of maximum likelihood up to the noise of its chains."""
    energy = bilinear()
    batch = {"x": torch.ones(1, 2, dtype=F64)}
    rule = ContrastiveDivergence(k=5, n_chains=20000)
    terms = rule(energy, batch, generator=generator())
    assert not terms.is_objective and not rule.is_objective and not terms.exact
    found = torch.autograd.grad(terms.loss.sum(), energy.W)[0]
    exact = phases(energy, batch).gradient["W"]
    assert torch.allclose(found, exact, atol=0.02)
    short = torch.autograd.grad(
        ContrastiveDivergence(1, n_chains=20000)(energy, batch, generator=generator()).loss.sum(),
        energy.b,
    )[0]
    expected = torch.tensor(EXPECTED[1], dtype=F64) - 1  # −x + E[x⁻]
    assert torch.allclose(short, expected, atol=0.015)


def test_kernel_by_type() -> None:
    assert isinstance(default_kernel(BilinearEnergy(2, 2), ("x",), ("z",)), Gibbs)
    assert isinstance(default_kernel(NetEnergy(2), ("x",), ()), Langevin)
    rule = ContrastiveDivergence(kernel=Metropolis(), k=3)
    batch = {"x": torch.zeros(4, 2)}
    assert torch.isfinite(rule(NetEnergy(2), batch, generator=generator()).loss).all()


def test_same_seed_same_negatives() -> None:
    energy, batch = bilinear(), {"x": torch.ones(5, 2, dtype=F64)}
    a = ContrastiveDivergence()(energy, batch, generator=generator(3)).loss
    b = ContrastiveDivergence()(energy, batch, generator=generator(3)).loss
    assert torch.equal(a, b)


def test_persistent_chains_go_on_and_are_saved() -> None:
    energy, batch = bilinear(), {"x": torch.ones(3, 2, dtype=F64)}
    rule = PersistentCD(n_chains=7)
    rule(energy, batch, generator=generator())
    first = rule.source.chains["x"].clone()
    state = rule.state_dict()
    assert set(rule.source.chains) == {"x", "z"} and first.shape == (7, 2)
    again = PersistentCD(n_chains=7)
    again.load_state_dict(state)
    assert torch.equal(again.source.chains["x"], first)
    one = rule(energy, batch, generator=generator(1)).loss
    other = again(energy, batch, generator=generator(1)).loss
    assert torch.equal(one, other)
    assert not torch.equal(rule.source.chains["x"], first)


def test_persistent_chains_reach_the_model() -> None:
    energy, batch = bilinear(), {"x": torch.ones(1, 2, dtype=F64)}
    rule = PersistentCD(n_chains=20000, k=10)
    found = torch.autograd.grad(rule(energy, batch, generator=generator()).loss.sum(), energy.b)[0]
    expected = torch.tensor((0.554315, 0.765024), dtype=F64) - 1
    assert torch.allclose(found, expected, atol=0.015)


def test_persistent_chains_of_conditional_energies_and_restarts() -> None:
    energy = LinearEnergy(2, 3).double()
    batch = {"x": torch.zeros(5, 2, dtype=F64), "y": torch.arange(5) % 3}
    rule = PersistentCD(n_chains=3, reset_prob=0.5)
    for seed in range(3):
        loss = rule(energy, batch, generator=generator(seed)).loss
        assert loss.shape == (5,)
    assert rule.source.chains["y"].shape == (3,)


def bars_and_stripes() -> Tensor:
    """The 14 pictures of 3×3 pixels with whole rows or whole columns."""
    bits = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 3)
    rows = bits[:, :, None].expand(-1, 3, 3).reshape(-1, 9)
    columns = bits[:, None, :].expand(-1, 3, 3).reshape(-1, 9)
    return torch.unique(torch.cat([rows, columns]), dim=0)


def test_persistent_is_no_worse_than_one_step() -> None:
    x = bars_and_stripes()
    assert x.shape == (14, 9)
    final = {}
    for name, rule in {
        "cd": ContrastiveDivergence(1, n_chains=8),
        "pcd": PersistentCD(112),
    }.items():
        energy = BilinearEnergy(9, 8, scale=0.1, generator=generator())
        noise = generator(1)
        steps = 1200
        for step in range(steps):
            loss = rule(energy, {"x": x}, generator=noise).loss.mean()
            energy.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in energy.parameters():
                    p -= 0.2 * (1 - step / steps) * p.grad
        final[name] = -float(NLL()(energy, {"x": x}).loss.mean().detach())
    assert final["pcd"] >= final["cd"] - 0.05
    assert final["pcd"] > -9 * math.log(2)  # better than fair coins


def test_errors_teach() -> None:
    with pytest.raises(ValueError, match="k and n_chains must be at least 1, got k=0"):
        ContrastiveDivergence(k=0)
    with pytest.raises(ValueError, match=r"reset_prob must be in \[0, 1\], got 2"):
        PersistentCD(reset_prob=2)
