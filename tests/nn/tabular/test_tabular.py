"""Columns scaled and embedded, and members around one matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from groundstate.errors import DataError, ShapeError
from groundstate.nn.tabular import (
    MemberLinear,
    PeriodicEmbedding,
    RobustScale,
    SharedLinear,
    TabularNet,
)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_median_and_quartiles() -> None:
    x = torch.randn(101, 3, generator=generator(), dtype=torch.float64)
    layer = RobustScale(3, math.inf).double().fit(x)
    low, middle, high = np.quantile(x.numpy(), [0.25, 0.5, 0.75], axis=0)
    assert np.allclose(layer.centre, middle)
    assert np.allclose(1 / layer.factor, high - low, rtol=0.05)  # of shared quartiles the middle
    u = (x - layer.centre) * layer.factor
    assert torch.allclose(layer(x), u)
    clipped = RobustScale(3).double().fit(x)(x)
    assert torch.allclose(clipped, u / (1 + (u / 3) ** 2).sqrt())
    far = RobustScale(3).double().fit(x)(torch.full((1, 3), 1e300, dtype=torch.float64))
    assert torch.allclose(far, torch.full_like(far, 3.0))


def test_weight_two_is_the_row_twice() -> None:
    x = torch.randn(30, 2, generator=generator(), dtype=torch.float64).round(decimals=1)
    weight = torch.arange(30) % 4
    twice = x.repeat_interleave(weight, 0)[torch.randperm(int(weight.sum()), generator=generator())]
    one, two = RobustScale(2).double().fit(x, weight.double()), RobustScale(2).double().fit(twice)
    assert torch.equal(one.centre, two.centre) and torch.equal(one.factor, two.factor)


def test_columns_of_two_values_and_of_one() -> None:
    x = torch.tensor([[0.0, 5.0, 1.0], [0.0, 5.0, 2.0], [0.0, 7.0, 2.0], [0.0, 7.0, 2.0]])
    layer = RobustScale(3, math.inf).fit(x)
    assert layer.numbers.tolist() == [False, False, False]
    assert layer(x).tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_quartiles_that_are_equal_leave_half_the_range() -> None:
    x = torch.tensor([[0.0]] * 8 + [[-1.0], [3.0]])
    assert float(RobustScale(1).fit(x).factor) == 0.5


def test_bad_input_is_named() -> None:
    with pytest.raises(ShapeError, match="2 features"):
        RobustScale(2)(torch.zeros(1, 3))
    with pytest.raises(DataError, match="positive sum"):
        RobustScale(1).fit(torch.zeros(2, 1), torch.zeros(2))
    with pytest.raises(ShapeError, match=r"\(B, 4, 3\)"):
        SharedLinear(3, 2, 4)(torch.zeros(5, 3, 3))
    with pytest.raises(ValueError, match="frequency"):
        PeriodicEmbedding(2, 0)


def test_members_are_dense_layers_with_one_matrix() -> None:
    layer = SharedLinear(3, 2, 4, signs=True, generator=generator()).double()
    nn.init.normal_(layer.s, generator=generator())
    nn.init.normal_(layer.bias, generator=generator())
    x = torch.randn(5, 4, 3, generator=generator(), dtype=torch.float64)
    found = layer(x)
    for m in range(4):
        own = layer.weight * torch.outer(layer.s[m], layer.r[m]) / math.sqrt(3)
        assert torch.allclose(found[:, m], x[:, m] @ own.T + layer.bias[m])
    assert set(layer.r.detach().flatten().tolist()) == {-1.0, 1.0}
    heads = MemberLinear(3, 2, 4, generator=generator()).double()
    assert torch.allclose(heads(x)[:, 1], x[:, 1] @ heads.weight[1] / math.sqrt(3))


def test_an_embedding_has_one_sign() -> None:
    layer = SharedLinear(6, 2, 3, signs=True, chunks=[4, 1, 1], generator=generator())
    assert bool((layer.r[:, :4] == layer.r[:, :1]).all())


def test_embedding_is_the_number_beside_its_waves() -> None:
    layer = PeriodicEmbedding(2, 8, 4, generator=generator()).double()
    x = torch.randn(5, 2, generator=generator(), dtype=torch.float64)
    found = layer(x).view(5, 2, 4)
    assert torch.equal(found[..., 0], x)
    waves = torch.cos(2 * math.pi * layer.omega[1] * x[:, 1:] + layer.phase[1])
    assert torch.allclose(found[:, 1, 1:], waves @ layer.weight[1] + layer.bias[1])


def test_the_mean_of_probabilities_is_normalised() -> None:
    net = TabularNet(4, (8,), 3, members=5, numbers=(1, 3), mean="probabilities").double()
    x = torch.randn(6, 4, generator=generator(), dtype=torch.float64)
    each = net.each(x).softmax(-1)
    assert torch.allclose(net(x).exp(), each.mean(1))
    plain = TabularNet(4, (8,), 3, members=5, frequencies=0).double()
    plain.shift, plain.gain = torch.arange(3.0).double(), torch.full((3,), 2.0).double()
    assert torch.allclose(plain(x), plain.shift + 2 * plain.each(x).mean(1))
    assert plain.embed is None and len(net.undecayed()) > 0
