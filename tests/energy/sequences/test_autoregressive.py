"""Models by the chain rule: log_prob, sample, conditional; symbols and numbers; any order."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
from scipy.stats import chisquare
from torch import nn

from groundstate.energy import (
    Autoregressive,
    ChainRuleEnergy,
    RealChainRuleEnergy,
    SequenceEnergy,
    gradcheck,
)
from groundstate.errors import ShapeError
from groundstate.infer import decode
from groundstate.learn import NextToken


def nets() -> dict[str, Autoregressive]:
    embed = nn.Sequential(nn.Embedding(4, 6), nn.Linear(6, 3))
    return {
        "gru": ChainRuleEnergy(3, 4, order=[2, 0, 3, 1]).double(),
        "table": ChainRuleEnergy(3, 4, "table").double(),
        "module": SequenceEnergy(embed, 3, 4).double(),
    }


@pytest.mark.parametrize("name", ["gru", "table", "module"])
def test_all_strings_have_probability_one_together(name: str) -> None:
    energy = nets()[name]
    strings = energy.spaces[energy.variable].enumerate()
    assert len(strings) == 3**4
    assert energy.log_prob(strings).exp().sum().item() == pytest.approx(1.0, abs=1e-6)


def test_uniform_factors_have_d_log_c() -> None:
    energy = ChainRuleEnergy(3, 4, "table")
    assert energy.log_prob(torch.zeros(1, 4).long()).item() == pytest.approx(-4 * math.log(3))
    assert NextToken()(_uniform(), {"y": torch.zeros(1, 4).long()}).loss.item() == pytest.approx(
        4 * math.log(3)
    )


def _uniform() -> SequenceEnergy:
    net = nn.Sequential(nn.Embedding(4, 3))
    nn.init.zeros_(net[0].weight)
    return SequenceEnergy(net, 3, 4)


def test_a_shared_net_needs_no_table() -> None:
    """C = 2, d = 10: a joint table has 1024 entries; ten softmax conditionals give 20 numbers."""
    energy = ChainRuleEnergy(2, 10)
    x = torch.zeros(1, 10).long()
    conditionals = [energy.conditional(x[:, :i]).probs for i in range(10)]
    assert 2**10 == 1024 and sum(p.numel() for p in conditionals) == 20
    logs = [p[0, 0].log() for p in conditionals]
    assert energy.log_prob(x).item() == pytest.approx(torch.stack(logs).sum().item(), abs=1e-5)
    size = [sum(p.numel() for p in ChainRuleEnergy(2, d).parameters()) for d in (5, 10, 100)]
    real = [sum(p.numel() for p in RealChainRuleEnergy(d).parameters()) for d in (5, 100)]
    assert len(set(size)) == len(set(real)) == 1


def test_all_orders_of_an_exact_table_agree() -> None:
    joint = torch.rand(2, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    strings = ChainRuleEnergy(2, 3).spaces["x"].enumerate()
    expected = (joint / joint.sum()).flatten().log()
    for order in permutations(range(3)):
        energy = ChainRuleEnergy.from_joint(joint, order)
        torch.testing.assert_close(energy.log_prob(strings), expected)


def test_frequencies_are_those_of_the_distribution() -> None:
    energy = ChainRuleEnergy(2, 3, order=[1, 2, 0])
    p = energy.log_prob(energy.spaces["x"].enumerate()).exp().detach().double()
    drawn = energy.sample(4000, generator=torch.Generator().manual_seed(1))
    found = torch.bincount((drawn * torch.tensor([4, 2, 1])).sum(1), minlength=8)
    assert chisquare(found.numpy(), (4000 * p / p.sum()).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("name", ["gru", "table", "module"])
def test_conditionals_multiply_to_the_whole(name: str) -> None:
    energy = nets()[name]
    x = energy.sample(5)
    ordered = x[:, energy.order]
    with torch.no_grad():
        parts = [energy.conditional(ordered[:, :i]).log_prob(ordered[:, i]) for i in range(4)]
        torch.testing.assert_close(torch.stack(parts).sum(0), energy.log_prob(x))


# --- numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("components", [1, 3])
def test_densities_of_numbers_integrate_to_one(components: int) -> None:
    energy = RealChainRuleEnergy(2, components, order=[1, 0]).double()
    grid = torch.linspace(-12, 12, 241, dtype=torch.float64)
    x = torch.cartesian_prod(grid, grid)
    with torch.no_grad():
        total = energy.log_prob(x).exp().sum() * (grid[1] - grid[0]) ** 2
    assert total.item() == pytest.approx(1.0, abs=1e-6)


def test_draws_of_numbers_follow_the_conditionals() -> None:
    energy = RealChainRuleEnergy(3, 2, order=[2, 0, 1])
    x = energy.sample(4000, generator=torch.Generator().manual_seed(0))
    first = energy.conditional(torch.zeros(1, 0))
    assert x[:, 2].mean().item() == pytest.approx(first.mean.item(), abs=0.06)
    later = energy.conditional(x[:, [2, 0]])
    z = (x[:, 1] - later.mean) / later.variance.sqrt()
    assert abs(z.mean().item()) < 0.06 and z.var().item() == pytest.approx(1.0, abs=0.08)


def test_conditionals_of_numbers_multiply_to_the_whole() -> None:
    energy = RealChainRuleEnergy(3, 2, order=[2, 0, 1]).double()
    x = energy.sample(4)
    ordered = x[:, energy.order]
    with torch.no_grad():
        parts = [energy.conditional(ordered[:, :i]).log_prob(ordered[:, i]) for i in range(3)]
        torch.testing.assert_close(torch.stack(parts).sum(0), energy.log_prob(x))
    gradcheck(energy, {"x": x})


# --- loss ----------------------------------------------------------------------------------


def test_mean_over_tokens_and_over_sequences() -> None:
    energy = ChainRuleEnergy(3, 4)
    x, lengths = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 0]]), torch.tensor([4, 2])
    e = energy(x=x, lengths=lengths)
    torch.testing.assert_close(energy.loss(x, lengths=lengths), e.sum() / 6)
    torch.testing.assert_close(energy.loss(x, lengths=lengths, reduction="sequence"), e.mean())
    twice = energy.loss(x, lengths=lengths, weight=torch.tensor([2.0, 1.0]))
    rows = torch.tensor([0, 0, 1])
    torch.testing.assert_close(twice, energy.loss(x[rows], lengths=lengths[rows]))
    with pytest.raises(ValueError, match="reduction must be one of token, sequence"):
        energy.loss(x, reduction="mean")


def test_padding_counts_nothing_and_smoothing_is_torchs() -> None:
    net = nn.Sequential(nn.Embedding(4, 3))
    energy = SequenceEnergy(net, 3, 4, ignore=-100)
    y = torch.tensor([[0, 1, 2, 1], [2, 0, -100, -100]])
    rule = NextToken(energy.items(y).double().mean().item(), 0.1)
    logits = energy.logits(y)
    expected = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), label_smoothing=0.1)
    torch.testing.assert_close(rule(energy, {"y": y}).loss.mean(), expected)
    longer = torch.nn.functional.pad(y, (0, 3), value=-100)
    torch.testing.assert_close(energy(y=longer), energy(y=y))
    assert energy.items(y).tolist() == [4, 2]


def test_nothing_follows_the_end() -> None:
    embed = nn.Sequential(nn.Embedding(4, 6), nn.Linear(6, 3))
    energy = SequenceEnergy(embed, 3, 4, end=2).double()
    strings = energy.spaces["y"].enumerate()
    p = energy.log_prob(strings).exp()
    assert p.sum().item() == pytest.approx(1.0, abs=1e-12)
    assert int((p > 0).sum()) == 2**4 + 2**3 + 2**2 + 2 + 1  # ends at 4 places or nowhere
    best = decode(energy, "exhaustive")
    assert best.log_prob[0, 0].item() == pytest.approx(p.max().log().item())
    drawn = energy.sample(50)
    assert torch.isfinite(energy.log_prob(drawn)).all()
    open_ended = SequenceEnergy(embed, 3, 4, ignore=-100).double()
    y = torch.tensor([[0, 2, 2, 2]])
    short = torch.tensor([[0, 2, -100, -100]])
    torch.testing.assert_close(energy(y=y), open_ended(y=short))


def test_errors_say_what_is_needed() -> None:
    with pytest.raises(ShapeError, match="fewer than the 4 items"):
        ChainRuleEnergy(3, 4).conditional(torch.zeros(1, 4).long())
    with pytest.raises(ValueError, match="permutation of 0..3"):
        RealChainRuleEnergy(4, order=[0, 1, 1, 2])
    with pytest.raises(ValueError, match=r"label_smoothing must lie in \[0, 1\)"):
        NextToken(label_smoothing=1.0)
