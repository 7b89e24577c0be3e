"""Counts of parameters, buffers and multiply-adds."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from groundstate.nn import MLP, PoolHead, summary


def alexnet() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(),
        nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "shape", "trainable", "buffers"),
    [
        (nn.Conv2d(3, 64, 3), (3, 8, 8), 1792, 0),
        (nn.Linear(784, 128), (784,), 100480, 0),
        (nn.BatchNorm2d(64), (64, 4, 4), 128, 128),
        (nn.LayerNorm(10), (10,), 20, 0),
        (nn.PReLU(), (10,), 1, 0),
        (nn.ReLU(), (10,), 0, 0),
        (nn.MaxPool2d(2), (3, 8, 8), 0, 0),
        (nn.Dropout(), (10,), 0, 0),
    ],
)
def test_layers(layer: nn.Module, shape: tuple[int, ...], trainable: int, buffers: int) -> None:
    found = summary(layer, shape)
    assert (found.trainable, found.buffers, found.frozen) == (trainable, buffers, 0)


def test_alexnet_without_its_memory() -> None:
    with torch.device("meta"):
        net = alexnet()
    found = summary(net, (3, 224, 224))
    assert found.parameters == 61_100_840
    assert round(found.parameters / 1.2e6) in (50, 51)
    assert found.rows[0].output_shape == (64, 55, 55)
    assert found.rows[0].multiply_adds == 55 * 55 * 64 * 3 * 11 * 11
    assert found.multiply_adds == sum(row.multiply_adds for row in found.rows) == 714_188_480


@pytest.mark.parametrize("sizes", [(3, 5, 2), (3, 4, 2, 3, 2), (10, 10, 10, 10, 10)])
def test_multiply_adds_of_an_mlp(sizes: tuple[int, ...]) -> None:
    found = summary(MLP(sizes[0], sizes[1:-1], sizes[-1]), (sizes[0],))
    assert found.multiply_adds == sum(a * b for a, b in itertools.pairwise(sizes))


def test_cost_is_linear_in_depth_and_quadratic_in_width() -> None:
    def cost(width: int, depth: int) -> int:
        return summary(MLP(width, (width,) * depth, width), (width,)).multiply_adds

    assert cost(8, 5) - cost(8, 4) == cost(8, 4) - cost(8, 3) == 64
    assert cost(16, 3) == 4 * cost(8, 3)


def test_convolutions_with_groups_positions_and_transposes() -> None:
    assert summary(nn.Conv1d(4, 6, 3, groups=2), (4, 10)).multiply_adds == 8 * 6 * 2 * 3
    assert summary(nn.ConvTranspose1d(4, 6, 3), (4, 10)).multiply_adds == 40 * 6 * 3
    assert summary(nn.Linear(4, 6), (7, 4)).multiply_adds == 7 * 24
    assert summary(PoolHead(8, 3), (8, 5, 5)).multiply_adds == 24


def test_shared_frozen_and_own_parameters() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))
            self.layer = nn.Linear(3, 3, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.scale * self.layer(self.layer(x))

    net = Tied()
    found = summary(net, (3,))
    assert found.trainable == 10 and found.multiply_adds == 18  # used twice, held once
    net.layer.requires_grad_(False)
    found = summary(net, torch.zeros(5, 3))
    assert (found.trainable, found.frozen, found.multiply_adds) == (1, 9, 18)


def test_the_network_is_left_as_it_was() -> None:
    net = MLP(3, (4,), 1, norm="batch").train()
    before = {n: t.clone() for n, t in net.state_dict().items()}
    text = str(summary(net, (3,)))
    assert net.training and all(torch.equal(before[n], t) for n, t in net.state_dict().items())
    assert text.splitlines()[-1].split() == ["total", "25", "8", "16"]
    assert not any(m._forward_hooks for m in net.modules())
