"""Receptive fields: by the formula, and as the support of a gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import (
    PreActBlock,
    architectures,
    draw_receptive_field,
    empirical_receptive_field,
    receptive_field,
    summary,
)


def test_a_stack_of_three() -> None:
    net = nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=1) for _ in range(3)))
    assert [receptive_field(net, str(i), (1, 16, 16)).size for i in range(3)] == [3, 5, 7]


def test_dilations() -> None:
    net = nn.Sequential(*(nn.Conv1d(1, 1, 3, dilation=d) for d in (1, 2, 4, 8)))
    assert receptive_field(net, "3", (1, 64)).size == 31


def test_known_networks() -> None:
    with torch.device("meta"):
        lenet = architectures.architectures["lenet"].obj()
        vgg = architectures.architectures["vgg16"].obj()
        resnet = architectures.architectures["resnet50"].obj()
    assert receptive_field(lenet, "features.5", (1, 28, 28)).size == 16
    assert receptive_field(vgg, "features.28", (3, 224, 224)).size == 196
    assert receptive_field(resnet, "layer4", (3, 224, 224)).size == 427
    assert receptive_field(resnet, "fc", (3, 224, 224)).size is None  # everything


@pytest.mark.parametrize(
    "net",
    [
        nn.Sequential(nn.Conv2d(1, 2, 3, stride=2, padding=1), nn.Conv2d(2, 2, 3, padding=1)),
        nn.Sequential(nn.Conv2d(1, 2, (3, 5)), nn.AvgPool2d(2), nn.Conv2d(2, 2, 3, dilation=2)),
        nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), nn.AvgPool2d(3, 2)),
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.Softplus(), nn.MaxPool2d(2), nn.Conv2d(2, 2, 3)),
        nn.Sequential(nn.Conv2d(1, 4, 1), PreActBlock(4), PreActBlock(4, 6, stride=2)),
    ],
)
def test_the_formula_is_the_support_of_the_gradient(net: nn.Sequential) -> None:
    last = str(len(net) - 1)
    size, jump, start = receptive_field(net, last, (1, 41, 41))
    net = net.double()
    for unit in (4, 5, 6):
        spans = empirical_receptive_field(net, last, (1, 41, 41), (unit, unit), n=64)
        for axis, (low, high) in enumerate(spans):
            s, j, t = (v if isinstance(v, int) else v[axis] for v in (size, jump, start))
            assert (low, high) == (t + unit * j, t + unit * j + s - 1)


def test_transposed_convolution_and_upsampling_divide_the_jump() -> None:
    down = nn.Conv1d(1, 1, 2, 2)
    net = nn.Sequential(down, nn.ConvTranspose1d(1, 1, 2, 2))
    assert tuple(receptive_field(net, "1", (1, 16))) == (4, 1, -2)
    net = nn.Sequential(down, nn.Upsample(scale_factor=2))
    assert receptive_field(net, "1", (1, 16)).jump == 1


def test_summary_shows_them() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(338, 3))
    table = summary(net, (1, 28, 28))
    assert [row.receptive_field for row in table.rows] == [3, 4, None, None]
    assert "sees" in str(table).splitlines()[0] and str(table).splitlines()[4].endswith("all")
    assert summary(nn.Linear(3, 2), (3,)).rows[0].receptive_field is None


def test_the_picture_of_a_growing_window() -> None:
    net = nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=1) for _ in range(3)))
    picture = draw_receptive_field(net, ["0", "1", "2"], (1, 9, 9))
    assert picture.nodes == 6
    assert all(f"{i}: {size} pixels" in picture.svg for i, size in enumerate((3, 5, 7)))
    line = nn.Sequential(nn.Conv1d(1, 1, 3), nn.AdaptiveAvgPool1d(1))
    assert "1: 12 pixels" in draw_receptive_field(line, ["0", "1"], (1, 12), unit=0).svg


def test_errors() -> None:
    net = nn.Sequential(nn.Conv2d(1, 1, 3), nn.ReLU())
    with pytest.raises(ShapeError, match=r"\(C, \*spatial\)"):
        receptive_field(net, "0", (5,))
    with pytest.raises(Unsupported, match="not reached"):
        receptive_field(net, nn.Conv2d(1, 1, 3), (1, 8, 8))
