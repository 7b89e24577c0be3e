"""The rule of autoencoders: clean targets, penalties with their numbers, state that is saved."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from groundstate.energy import AutoencoderEnergy, LinearEnergy
from groundstate.energy.latent.deep.priors import NormalPrior
from groundstate.errors import Unsupported
from groundstate.learn import Reconstruction
from groundstate.learn.rules.codes.penalties import ContractedCode, L1Code, RareCode
from groundstate.nn.blocks.corrupt import Corruption
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.heads.likelihoods import SquaredError

F64 = torch.float64


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def energy(k: int = 2, d: int = 3) -> AutoencoderEnergy:
    pair = MLP(d, (5,), k, "tanh"), MLP(k, (5,), d, "tanh")
    return AutoencoderEnergy(*pair, SquaredError(d), NormalPrior(k)).double()


def test_the_loss_is_the_squared_error_of_the_way_back() -> None:
    e, x = energy(), torch.randn(6, 3, dtype=F64, generator=seeded())
    terms = Reconstruction()(e, {"x": x})
    back = e.decode(e.encode(x))
    torch.testing.assert_close(terms.loss, (x - back).square().sum(1))
    assert terms.exact
    weight = torch.tensor([2.0, 1, 1, 1, 1, 1], dtype=F64)
    mean, _ = Reconstruction().mean(e, {"x": x}, weight, 7.0)
    twice, _ = Reconstruction().mean(e, {"x": torch.cat([x, x[:1]])})
    torch.testing.assert_close(mean, twice)


def test_the_target_stays_clean() -> None:
    e, x = energy(), torch.randn(6, 3, dtype=F64, generator=seeded())
    rule = Reconstruction(Corruption("gaussian", 0.5))
    terms = rule(e, {"x": x}, generator=seeded(1))
    worse = x + 0.5 * torch.randn(6, 3, dtype=F64, generator=seeded(1))
    torch.testing.assert_close(terms.loss, (x - e.decode(e.encode(worse))).square().sum(1))
    assert not terms.exact


@pytest.mark.parametrize("kind", ["mask", "saltpepper"])
def test_so_many_cells_are_changed(kind: str) -> None:
    x = torch.full((2000, 5), 0.5)
    worse = Corruption(kind, 0.3)(x, seeded())  # type: ignore[arg-type]
    assert float((worse != 0.5).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert set(worse.unique().tolist()) == ({0.0, 0.5} if kind == "mask" else {0.0, 0.5, 1.0})


def test_divergence_of_rare_codes() -> None:
    z = torch.full((4, 1), 0.2, dtype=F64)
    assert RareCode(1).double()(z, z, nn.Identity()).item() == pytest.approx(0.093943, abs=5e-7)
    same = torch.full((4, 3), 0.05, dtype=F64)
    assert RareCode(3).double()(same, same, nn.Identity()).item() == pytest.approx(0, abs=1e-12)


def test_running_means_tend_to_those_of_all_rows() -> None:
    penalty = RareCode(2, decay=0.9).double()
    rows = torch.rand(1000, 2, dtype=F64, generator=seeded())
    for epoch in range(5):
        for part in rows[torch.randperm(1000, generator=seeded(epoch))].split(100):
            part.requires_grad_()
            cost = penalty(part, part, nn.Identity())
    torch.testing.assert_close(penalty.running / penalty.seen, rows.mean(0), atol=0.03, rtol=0)
    (slope,) = torch.autograd.grad(cost, part)
    assert (slope > 0).all()  # means of ½ are above the target


def test_slopes_of_one_sigmoid_layer_and_by_random_signs() -> None:
    net = MLP(2, (), 1, out_activation="sigmoid").double()
    with torch.no_grad():
        net.layers[0].weight.copy_(torch.tensor([[1.0, 2.0]]))
        net.layers[0].bias.zero_()
    x = torch.zeros(1, 2, dtype=F64)
    assert ContractedCode(1.0)(net(x), x, net).item() == pytest.approx(0.3125)
    deep = MLP(3, (4,), 2, "tanh").double()
    x = torch.randn(1, 3, dtype=F64, generator=seeded()).repeat(20_000, 1).requires_grad_()
    each = ContractedCode(1.0)(deep(x), x, deep, generator=seeded(2))
    J = torch.func.jacrev(deep)(x[0].detach())
    assert float(each.detach().mean()) == pytest.approx(float(J.square().sum().detach()), rel=0.02)


def test_held_out_rows_are_scored_without_gradients() -> None:
    e, x = energy(), torch.randn(6, 3, dtype=F64, generator=seeded())
    rule = Reconstruction(penalty=ContractedCode(0.5))
    with torch.no_grad():
        value, _ = rule.mean(e, {"x": x}, generator=seeded())
    assert torch.isfinite(value)
    assert rule.needs_gradient and not Reconstruction(penalty=L1Code()).needs_gradient


def test_other_energies_and_bad_numbers_are_refused() -> None:
    with pytest.raises(Unsupported, match="it has no encoder"):
        Reconstruction()(LinearEnergy(2, 2), {"x": torch.zeros(1, 2), "y": torch.tensor([0])})
    with pytest.raises(ValueError, match="a probability, got 2"):
        Corruption("mask", 2.0)
    with pytest.raises(ValueError, match="one of gaussian, mask, saltpepper"):
        Corruption("blur")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be negative"):
        L1Code(-1.0)
