"""Margins and likelihood on sequences: dynamic programmes against enumeration."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from groundstate.energy import BilinearEnergy, ChainEnergy, ChainRuleEnergy
from groundstate.errors import Unsupported
from groundstate.learn import NLL, Margin, Perceptron, SoftMin, margin_loss
from groundstate.learn.rules.margins.structured import hamming, nbest

F64 = torch.float64
UNARY = torch.tensor([[[0.0, 1.0], [0.5, 0.2], [1.0, 0.0]]], dtype=F64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def worked() -> ChainEnergy:
    energy = ChainEnergy(2, 2, 3).double()
    with torch.no_grad():
        energy.W.copy_(-torch.eye(2))
        energy.A.copy_(torch.tensor([[0.0, 0.7], [0.3, 0.0]], dtype=F64))
    return energy


def random_chain(k: int = 3, length: int = 4) -> tuple[ChainEnergy, dict[str, Tensor]]:
    energy = ChainEnergy(2, k, length).double()
    with torch.no_grad():
        for p in energy.parameters():
            p.copy_(torch.randn(p.shape, generator=generator(p.numel()), dtype=F64))
    x = torch.randn(5, length, 2, generator=generator(), dtype=F64)
    y = torch.randint(k, (5, length), generator=generator(1))
    return energy, {"x": x, "y": y}


def all_energies(energy: ChainEnergy, x: Tensor) -> tuple[Tensor, Tensor]:
    values = energy.spaces["y"].enumerate()
    rows = [energy(x=xi.expand(len(values), *xi.shape), y=values) for xi in x]
    return torch.stack(rows), values


def test_worked_example() -> None:
    batch = {"x": UNARY, "y": torch.tensor([[1, 1, 1]])}
    hard = Margin(cost="hamming")(worked(), batch)
    assert math.isclose(float(hard.loss.detach()), 2.7, abs_tol=1e-12)
    zero_one = Margin()(worked(), batch)
    assert math.isclose(float(zero_one.loss.detach()), 1.3, abs_tol=1e-12)
    assert hard.exact and zero_one.exact


@pytest.mark.parametrize("T", [0.0, 0.7])
@pytest.mark.parametrize("cost", [None, "hamming"])
def test_margin_equals_enumeration(cost: str | None, T: float) -> None:
    energy, batch = random_chain()
    e, values = all_energies(energy, batch["x"])
    target = (values[None] == batch["y"][:, None]).all(-1).long().argmax(1)
    table = hamming(batch["y"], values, F64) if cost else None
    for m in (0.5, 2.0):
        expected = margin_loss(e, target, m, table, T, "none")
        found = Margin(m, cost, T)(energy, batch)
        assert torch.allclose(found.loss, expected, atol=1e-9)
        ours = torch.autograd.grad(found.loss.sum(), energy.A, retain_graph=True)[0]
        theirs = torch.autograd.grad(expected.sum(), energy.A, retain_graph=True)[0]
        assert torch.allclose(ours, theirs, atol=1e-8)
        assert torch.allclose(found.positive - found.contrast, found.loss)


def test_other_rules_equal_enumeration() -> None:
    energy, batch = random_chain()
    e, values = all_energies(energy, batch["x"])
    target = (values[None] == batch["y"][:, None]).all(-1).long().argmax(1)
    own = e.gather(1, target[:, None])[:, 0]
    assert torch.allclose(Perceptron()(energy, batch).loss, own - e.min(1).values, atol=1e-10)
    assert torch.allclose(NLL()(energy, batch).loss, own + torch.logsumexp(-e, 1), atol=1e-10)
    warm = SoftMin(2.0)(energy, batch).loss
    assert torch.allclose(warm, own + 2 * torch.logsumexp(-e / 2, 1), atol=1e-10)


@pytest.mark.parametrize("rule", [Margin(), Margin(cost="hamming"), Margin(T=1.0), NLL()], ids=repr)
def test_padding_counts_nothing(rule: object) -> None:
    energy, batch = random_chain()
    lengths = torch.tensor([2, 2, 2, 2, 2])
    padded = rule(energy, {**batch, "lengths": lengths}).loss
    other = {**batch, "y": batch["y"].clone(), "lengths": lengths}
    other["y"][:, 2:] = 0
    assert torch.allclose(padded, rule(energy, other).loss, atol=1e-12)
    short = ChainEnergy(2, 3, 2).double()
    short.load_state_dict(energy.state_dict())
    alone = rule(short, {"x": batch["x"][:, :2], "y": batch["y"][:, :2]}).loss
    assert torch.allclose(padded, alone, atol=1e-9)


def test_wide_beam_is_exact() -> None:
    energy = ChainRuleEnergy(3, 4, 4, generator=generator()).double()
    values = energy.spaces["x"].enumerate()
    e = energy(x=values).detach()
    best = nbest(energy, "x", {}, 2, width=81)  # (81, 2, 4)
    assert best.shape == (81, 2, 4)
    found = energy(x=best[:, 1]).detach()
    assert torch.allclose(found, e.sort().values, atol=1e-12)


@pytest.mark.parametrize("T", [0.0, 1.0])
@pytest.mark.parametrize("cost", [None, "hamming"])
def test_n_best_margin_approaches_the_exact_one(cost: str | None, T: float) -> None:
    from groundstate.learn.rules.margins.structured import nbest_margin

    energy = ChainRuleEnergy(3, 4, 4, generator=generator()).double()
    y = torch.randint(3, (6, 4), generator=generator(1))
    values = energy.spaces["x"].enumerate()
    e = energy(x=values).expand(6, -1)
    target = (values[None] == y[:, None]).all(-1).long().argmax(1)
    table = hamming(y, values, F64) if cost else None
    expected = margin_loss(e, target, 1.0, table, T, "none")
    plan = Margin().plan(energy, {"x": y})
    positive, loss = nbest_margin(plan, {"x": y}, 1.0, cost, T, 81)
    assert torch.allclose(loss, expected, atol=1e-10)
    _, narrow = nbest_margin(plan, {"x": y}, 1.0, cost, T, 4)
    assert bool((narrow <= loss + 1e-10).all())
    assert torch.allclose(positive, e.gather(1, target[:, None])[:, 0])


def test_margin_on_bits() -> None:
    energy = BilinearEnergy(3, 2, generator=generator()).double()
    x = torch.tensor([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]], dtype=F64)
    values = energy.spaces["x"].enumerate(dtype=F64)
    e = energy.marginal("z")(x=values).expand(2, -1)
    expected = margin_loss(e, torch.tensor([3, 7]), 1.0, hamming(x, values, F64), 0.0, "none")
    assert torch.allclose(Margin(cost="hamming")(energy, {"x": x}).loss, expected, atol=1e-12)


def test_refusals() -> None:
    energy, batch = random_chain()
    with pytest.raises(Unsupported, match="its cost is 'hamming' or None"):
        Margin(cost=torch.zeros(2, 2))(energy, batch)
    with pytest.raises(ValueError, match="costs must be non-negative"):
        Margin(cost=-torch.ones(2, 2))
    with pytest.raises(ValueError, match="cost must be a tensor, a function, 'hamming' or None"):
        Margin(cost="edit")
    wide = BilinearEnergy(40, 2)
    with pytest.raises(Unsupported, match="too many values to list"):
        Margin()(wide, {"x": torch.zeros(1, 40)})
