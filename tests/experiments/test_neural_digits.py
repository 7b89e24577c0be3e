"""What the experiments on digits share: rows that do not overlap, honest scores."""

from __future__ import annotations

import math

import pytest
import torch

from groundstate.compute.random import Key
from groundstate.energy import LinearEnergy
from groundstate.experiments.neural.digits import cross_entropy, digits, share_right


def test_rows_are_split_and_repeatable() -> None:
    train, test = digits(Key.of(0), 200)
    assert train["x"].shape == (200, 64) and test["x"].shape == (1597, 64)
    assert float(train["x"].min()) >= 0 and float(train["x"].max()) <= 1
    counts = train["y"].bincount(minlength=10) + test["y"].bincount(minlength=10)
    assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert torch.equal(train["x"], digits(Key.of(0), 200)[0]["x"])
    assert not torch.equal(train["x"], digits(Key.of(1), 200)[0]["x"])


def test_scores_of_a_net_that_knows_nothing_and_of_a_broken_one() -> None:
    _, test = digits(Key.of(0), 1700)
    energy = LinearEnergy(64, 10)
    assert cross_entropy(energy, test) == pytest.approx(math.log(10), rel=1e-6)
    assert energy.training, "the mode is put back"
    assert share_right(energy, test) == pytest.approx(float((test["y"] == 0).double().mean()))
    with torch.no_grad():
        energy.W.fill_(math.nan)
    assert share_right(energy, test) == 0.0
