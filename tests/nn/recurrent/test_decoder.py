"""Patterns of input and output: likelihoods that sum to 1, feedback, a toy task for each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from groundstate.energy import Real, SequenceEnergy
from groundstate.errors import ShapeError, Unsupported
from groundstate.learn import learn
from groundstate.nn.recurrent.decoder import ENTERS, RecurrentDecoder
from groundstate.store import dumps, loads


def given(enter: str, n: int, length: int = 4) -> Tensor:
    g = torch.Generator().manual_seed(0)
    shape = (n, length, 2) if enter == "aligned" else (n, 2)
    return torch.randn(shape, generator=g, dtype=torch.float64)


def energy(enter: str, feedback: bool, cell: str = "gru", **options: Any) -> SequenceEnergy:
    net = RecurrentDecoder(3, 2, 8, cell, enter, feedback, **options).double()
    return SequenceEnergy(net, 3, 4, Real(4, 2) if enter == "aligned" else 2)


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("enter", ENTERS)
def test_probabilities_of_all_strings_sum_to_one(enter: str, feedback: bool) -> None:
    e = energy(enter, feedback)
    every = e.spaces["y"].enumerate()
    x = given(enter, 1).expand(len(every), *given(enter, 1).shape[1:])
    assert (-e(x=x, y=every)).exp().sum().item() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("enter", ENTERS)
def test_without_dependence_the_chain_rule_is_the_independent_likelihood(enter: str) -> None:
    chain = energy(enter, True)
    with torch.no_grad():
        chain.net.core.core.weight_ih_l0[:, : chain.net.k + 1] = 0.0  # symbols before are not read
    x, y = given(enter, 5), torch.randint(3, (5, 4), generator=torch.Generator().manual_seed(1))
    logits = chain.logits(y, x)
    other = chain.logits(torch.zeros_like(y), x)
    torch.testing.assert_close(logits, other)
    alone = torch.distributions.Categorical(logits=logits).log_prob(y).sum(1)
    torch.testing.assert_close(-chain(x=x, y=y), alone)
    free = energy(enter, False)
    torch.testing.assert_close(free.logits(y, x), free.logits(torch.zeros_like(y), x))


def test_aligned_symbols_do_not_see_what_comes_later() -> None:
    e, x = energy("aligned", True), given("aligned", 1)
    y = torch.tensor([[0, 1, 2, 0]])
    later = x.clone()
    later[:, 2:] += 10
    torch.testing.assert_close(e.logits(y, later)[:, :2], e.logits(y, x)[:, :2])
    assert not torch.allclose(e.logits(y, later)[:, 2:], e.logits(y, x)[:, 2:])


def fitted(enter: str, feedback: bool, x: Tensor, y: Tensor) -> float:
    """Mean energy of a sequence after learning."""
    net = RecurrentDecoder(2, x.shape[-1], 16, "gru", enter, feedback)
    e = SequenceEnergy(
        net, 2, y.shape[1], Real(*x.shape[1:]) if enter == "aligned" else x.shape[-1]
    )
    learn(e, {"x": x, "y": y}, optimizer="adam", lr=0.02, epochs=40, batch_size=64, seed=0)
    return float(e(x=x, y=y).mean().detach())


def test_one_to_many_needs_feedback_where_symbols_depend() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(256, 1, generator=g)
    y = torch.randint(2, (256, 1), generator=g).expand(-1, 5).contiguous()  # all equal, by chance
    fed, free = fitted("start", True, x, y), fitted("every", False, x, y)
    assert fed < 1.0 < 3.0 < free  # log 2 against 5 log 2


def test_aligned_without_dependence_needs_no_feedback() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(256, 5, 1, generator=g)
    y = (x.cumsum(1)[..., 0] > 0).long()  # of what was seen so far
    assert fitted("aligned", False, x, y) < 0.8


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_draws_follow_the_energy_and_networks_are_stored(cell: str) -> None:
    e = energy("start", True, cell)
    drawn = e.ancestral(5, x=given("start", 5), generator=torch.Generator().manual_seed(0))["y"]
    assert drawn.shape == (5, 4)
    again = loads(dumps(e.net))
    tokens = torch.full((5, 1), 3)
    torch.testing.assert_close(again(tokens, given("start", 5)), e.net(tokens, given("start", 5)))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(Unsupported, match="start, every, aligned"):
        RecurrentDecoder(3, 2, enter="never")
    with pytest.raises(Unsupported, match="rnn, lstm, gru"):
        RecurrentDecoder(3, 2, cell="elman")
    with pytest.raises(ShapeError, match=r"\(B, T, 2\), got \(5, 2\)"):
        RecurrentDecoder(3, 2, enter="aligned")(torch.zeros(5, 4).long(), torch.zeros(5, 2))
