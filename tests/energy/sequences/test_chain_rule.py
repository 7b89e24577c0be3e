"""Locally normalised energies and the step ability."""

from __future__ import annotations

import itertools

import pytest
import torch

from groundstate.energy import ChainRuleEnergy, StepState, exact_free_energy, gradcheck
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import sample

F64 = torch.float64


def joint(k: int = 2, length: int = 3) -> torch.Tensor:
    p = torch.rand(*(k,) * length, generator=torch.Generator().manual_seed(0), dtype=F64)
    return p / p.sum()


@pytest.mark.parametrize("net", [8, "table"])
def test_all_strings_sum_to_one(net: int | str) -> None:
    e = ChainRuleEnergy(3, 4, net).double()
    strings = e.spaces["x"].enumerate()
    assert (-e(x=strings)).exp().sum().item() == pytest.approx(1.0, abs=1e-12)


def test_every_order_gives_the_same_joint() -> None:
    p = joint()
    energies = [ChainRuleEnergy.from_joint(p, order) for order in itertools.permutations(range(3))]
    strings = energies[0].spaces["x"].enumerate()
    for e in energies:
        assert torch.allclose((-e(x=strings)).exp(), p.flatten(), atol=1e-12)
        gradcheck(e, {"x": strings})


def test_orders_of_a_net_are_all_normalised() -> None:
    for order in itertools.permutations(range(3)):
        e = ChainRuleEnergy(2, 3, 4, order).double()
        assert (-e(x=e.spaces["x"].enumerate())).exp().sum().item() == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(ValueError, match="permutation"):
        ChainRuleEnergy(2, 3, order=(0, 0, 1))


def test_ancestral_draws_follow_the_joint() -> None:
    p = joint()
    e = ChainRuleEnergy.from_joint(p, (2, 0, 1))
    x = e.ancestral(40000, generator=torch.Generator().manual_seed(0))["x"]
    index = x @ torch.tensor([4, 2, 1])
    counts = index.bincount(minlength=8).double()
    chi2 = ((counts - 40000 * p.flatten()) ** 2 / (40000 * p.flatten())).sum()
    assert chi2 < 18.5  # 99 % of chi-squared with 7 degrees of freedom
    with pytest.raises(Unsupported, match="T=1 only"):
        e.ancestral(3, T=2.0)


def test_sampling_through_inference_is_exact() -> None:
    e = ChainRuleEnergy(3, 4).double()
    draws = sample(e, "x", n=5, generator=torch.Generator().manual_seed(0))
    assert draws.kind == "exact"
    assert draws["x"].shape == (5, 1, 4)


def test_lengths_ignore_what_is_behind() -> None:
    e = ChainRuleEnergy(3, 4).double()
    x = torch.tensor([[0, 1, 2, 1], [0, 1, 0, 0]])
    lengths = torch.tensor([2, 2])
    short = e(x=x, lengths=lengths)
    assert torch.equal(short[0], short[1])
    gradcheck(e, {"x": x, "lengths": lengths})
    pairs = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    padded = torch.cat((pairs, torch.zeros(9, 2, dtype=torch.int64)), 1)
    total = (-e(x=padded, lengths=torch.full((9,), 2))).exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-12)


def test_other_temperatures_list_the_strings() -> None:
    e = ChainRuleEnergy(2, 3).double()
    strings = e.spaces["x"].enumerate()
    F = exact_free_energy(e, ("x",), T=2.0)
    assert F is not None
    assert F.item() == pytest.approx(-2 * torch.logsumexp(-e(x=strings) / 2, 0).item())
    assert exact_free_energy(e, ("x",)) == 0
    with pytest.raises(Unsupported, match=r"2\^40 strings"):
        ChainRuleEnergy(2, 40).total(T=2.0)
    with pytest.raises(Unsupported, match="too large"):
        ChainRuleEnergy(2, 40, "table")


def test_bad_arguments() -> None:
    with pytest.raises(ShapeError, match="same K symbols"):
        ChainRuleEnergy.from_joint(torch.ones(2, 3))
    with pytest.raises(ValueError, match="hidden size"):
        ChainRuleEnergy(2, 3, "net")


def test_step_state() -> None:
    state = StepState.start(2, 3, order=(2, 0, 1))
    assert state.last is None and not state.done
    state = state.append(torch.tensor([1, 2]))
    assert state.value.tolist() == [[0, 0, 1], [0, 0, 2]]
    assert state.last is not None and state.last.tolist() == [1, 2]
    picked = state.remember(h=torch.tensor([5.0, 6.0])).pick(torch.tensor([1, 1, 0]))
    assert picked.rows == 3
    assert picked.memory["h"].tolist() == [6.0, 6.0, 5.0]
