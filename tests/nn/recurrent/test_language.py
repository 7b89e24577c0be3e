"""Recurrent language models: step by step is all at once, and the energy sums to one."""

from __future__ import annotations

import pytest
import torch

from groundstate.energy import SequenceEnergy
from groundstate.nn import RecurrentLM


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
@torch.no_grad()
def test_step_by_step_is_all_at_once(cell: str) -> None:
    net = RecurrentLM(5, cell, 4, 6, 2).eval()
    torch.nn.init.normal_(net.core.h0, generator=torch.Generator().manual_seed(1))  # type: ignore[arg-type]
    tokens = torch.tensor([[1, 4, 0, 2], [3, 3, 1, 0]])
    whole, cache = net(tokens), net.start(2)
    scores, cache = net.step(tokens[:, :2], cache)
    assert torch.allclose(scores, whole[:, 1], atol=1e-6)
    for t in (2, 3):
        scores, cache = net.step(tokens[:, t], cache)
        assert torch.allclose(scores, whole[:, t], atol=1e-6)


def test_strings_sum_to_one() -> None:
    energy = SequenceEnergy(RecurrentLM(3, "gru", 4, 6), 3, 4, bos=0)
    total = (-energy(y=energy.spaces["y"].enumerate())).exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-5)
