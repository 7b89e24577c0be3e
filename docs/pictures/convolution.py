"""Pictures of convolution arithmetic and of architectures."""

from __future__ import annotations

from typing import Any

import torch
from common import COLOURS, figure
from matplotlib.figure import Figure
from torch import nn
from torch.nn import functional as F

from groundstate.nn import MinPool2d, Subsample, overlap_count, receptive_field, summary
from groundstate.nn.functional import conv_matrix
from groundstate.nn.zoo.alexnet import AlexNet
from groundstate.nn.zoo.lenet import LeNet
from groundstate.nn.zoo.vgg import vgg11


def _cells(ax: Any, values: torch.Tensor, title: str) -> None:
    ax.imshow(values.numpy(), cmap="Blues", vmin=0, vmax=24)
    for r, row in enumerate(values.tolist()):
        for c, v in enumerate(row):
            ax.text(c, r, f"{v:g}", ha="center", va="center", fontsize=8)
    ax.set(title=title, xticks=[], yticks=[])


def convolution_pooling() -> Figure:
    """One map of 4 × 4 and what four kinds of pooling leave of it."""
    x = torch.arange(1.0, 17.0).view(1, 1, 4, 4)
    fig, axes = figure(5, height=2.2)
    kinds = {
        "max": nn.MaxPool2d(2),
        "mean": nn.AvgPool2d(2),
        "min": MinPool2d(2),
        "every second": Subsample(2),
    }
    _cells(axes[0], x[0, 0], "map")
    for ax, (name, pool) in zip(axes[1:], kinds.items()):
        _cells(ax, pool(x)[0, 0], name)
    return fig


def convolution_matrix() -> Figure:
    """A convolution of a line and of a picture as banded matrices."""
    fig, axes = figure(2)
    for ax, layer, shape in (
        (axes[0], nn.Conv1d(1, 1, 3, padding=1, bias=False), (1, 12)),
        (axes[1], nn.Conv2d(1, 1, 3, padding=1, bias=False), (1, 6, 6)),
    ):
        nn.init.normal_(layer.weight, std=0.3, generator=torch.Generator().manual_seed(0))
        W, _ = conv_matrix(layer, shape)
        ax.imshow(W.numpy(), cmap="coolwarm", vmin=-0.6, vmax=0.6, rasterized=True)
        ax.set(title=f"{len(shape) - 1}-D: {W.shape[0]} × {W.shape[1]}", xlabel="inputs")
    axes[0].set(ylabel="outputs")
    return fig


def convolution_receptive() -> Figure:
    """The window of the input that the middle unit of each layer sees."""
    net = nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=1) for _ in range(3)))
    fig, axes = figure(3, height=2.6)
    for i, ax in enumerate(axes):
        size, _, start = receptive_field(net, str(i), (1, 15, 15))
        seen = torch.zeros(15, 15)
        low = 7 + start
        seen[low : low + size, low : low + size] = 1
        ax.imshow(seen.numpy(), cmap="Blues", vmax=1.6)
        ax.set(title=f"layer {i + 1} sees {size} × {size}", xticks=[], yticks=[])
    return fig


def convolution_overlap() -> Figure:
    """How many kernels of a transposed convolution meet at each pixel."""
    fig, axes = figure(2, height=2.4)
    for ax, (k, s) in zip(axes, ((3, 2), (4, 2))):
        counts = overlap_count(6, k, s)
        ax.bar(range(len(counts)), counts.numpy(), color=COLOURS[0])
        ax.set(title=f"kernel {k}, stride {s}", xlabel="output", yticks=[0, 1, 2])
    axes[0].set(ylabel="inputs that reach it")
    return fig


def convolution_evolution() -> Figure:
    """Channels and sides of the maps of LeNet, AlexNet and VGG-11, layer by layer."""
    with torch.device("meta"):
        nets = {
            "LeNet": (LeNet(), (1, 28, 28)),
            "AlexNet": (AlexNet(), (3, 224, 224)),
            "VGG-11": (vgg11(), (3, 224, 224)),
        }
    fig, (left, right) = figure(2)
    for (name, (net, shape)), colour in zip(nets.items(), COLOURS):
        kinds = ("Conv2d", "MaxPool2d", "AvgPool2d")
        rows = [r for r in summary(net, shape).rows if r.kind in kinds]
        left.semilogy([r.output_shape[1] for r in rows], "o-", color=colour, label=name)
        right.semilogy([r.output_shape[0] for r in rows], "o-", color=colour, label=name)
    left.set(title="side of the maps", xlabel="layer")
    right.set(title="number of maps", xlabel="layer")
    left.legend(frameon=False)
    return fig


def convolution_upsampling() -> Figure:
    """Nearest, bilinear, and a transposed convolution of ones."""
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    fig, axes = figure(3, height=2.6)
    _cells(axes[0], F.interpolate(x, scale_factor=2)[0, 0], "nearest")
    wide = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)[0, 0]
    _cells(axes[1], wide, "bilinear")
    pasted = F.conv_transpose2d(x, torch.ones(1, 1, 3, 3), stride=2)[0, 0]
    _cells(axes[2], pasted, "transposed, kernel 3, stride 2")
    return fig


PICTURES = {
    "convolution_pooling": convolution_pooling,
    "convolution_matrix": convolution_matrix,
    "convolution_receptive": convolution_receptive,
    "convolution_overlap": convolution_overlap,
    "convolution_evolution": convolution_evolution,
    "convolution_upsampling": convolution_upsampling,
}
