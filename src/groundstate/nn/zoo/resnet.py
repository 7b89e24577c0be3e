r"""Residual networks: stages of blocks :math:`h + f(h)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.architectures import architecture, rows
from groundstate.nn.zoo.base import ImageNetwork


def conv3x3(before: int, after: int, stride: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, 3, stride, dilation, dilation, bias=False)


class PadShortcut(nn.Module):
    """Option A: every ``stride``-th pixel, new channels are 0; no parameters.

    >>> PadShortcut(2, 4, 2)(torch.ones(1, 2, 4, 4)).shape
    torch.Size([1, 4, 2, 2])
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.before, self.after, self.stride = before, after, stride

    def forward(self, x: Tensor) -> Tensor:
        more = self.after - self.before
        x = x[:, :, :: self.stride, :: self.stride]
        return nn.functional.pad(x, (0, 0, 0, 0, more // 2, more - more // 2))


class _Block(nn.Module):
    """Convolutions with a skip; norm and ReLU behind them, or before (``pre``)."""

    expansion = 1
    downsample: nn.Module | None

    def _convs(self) -> list[tuple[nn.Module, nn.Module]]:
        names = sorted(n for n, _ in self.named_children() if n.startswith("conv"))
        return [(getattr(self, n), getattr(self, n.replace("conv", "bn"))) for n in names]

    def forward(self, x: Tensor) -> Tensor:
        skip: Tensor = x if self.downsample is None else self.downsample(x)
        h = x
        layers = self._convs()
        for i, (conv, norm) in enumerate(layers):
            if self.pre:
                h = conv(torch.relu(norm(h)))
            else:
                h = norm(conv(h))
                h = torch.relu(h) if i + 1 < len(layers) else h
        return skip + h if self.pre else torch.relu(skip + h)

    pre: bool = False


class BasicBlock(_Block):
    """Two 3×3 convolutions and a skip."""

    def __init__(
        self, before: int, width: int, stride: int, dilation: int, down: nn.Module | None, pre: bool
    ) -> None:
        super().__init__()
        self.pre = pre
        self.conv1 = conv3x3(before, width, stride, dilation)
        self.bn1 = nn.BatchNorm2d(before if pre else width)
        self.conv2 = conv3x3(width, width, 1, dilation)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = down


class Bottleneck(_Block):
    """1×1, 3×3 (with the stride) and 1×1 convolutions with four times the channels, and a skip."""

    expansion = 4

    def __init__(
        self, before: int, width: int, stride: int, dilation: int, down: nn.Module | None, pre: bool
    ) -> None:
        super().__init__()
        self.pre = pre
        out = width * self.expansion
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(before if pre else width)
        self.conv2 = conv3x3(width, width, stride, dilation)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width if pre else out)
        self.downsample = down


BLOCKS: dict[str, type[BasicBlock] | type[Bottleneck]] = {
    "basic": BasicBlock,
    "bottleneck": Bottleneck,
}


class ResNet(ImageNetwork):
    r"""Stages of residual blocks, each with half the side and twice the channels of the one before;
    then a mean over places and a linear layer.

    Post-activation with the stride in the 3×3 convolution ("v1.5") and torchvision's parameter names
    by default. ``preactivation=True`` is norm → ReLU → convolution in every branch, a stem that is
    linear, and one norm → ReLU before the head.

    Parameters
    ----------
    layers : blocks of each stage
    block : "basic" (3×3, 3×3) or "bottleneck" (1×1, 3×3, 1×1 with four times the channels)
    preactivation : the order of a branch
    stem : "imagenet" (7×7 with stride 2 and max pooling) or "cifar" (3×3)
    shortcut : where shapes change: "B" a 1×1 convolution, "A" subsampling with channels of zeros
    width : channels of the first stage
    output_stride : 32, 16 or 8: later stages keep their side and dilate instead
    zero_init : start every branch at 0
    in_channels, num_classes : of the images and the logits

    Examples
    --------
    >>> net = ResNet((1, 1), stem="cifar", width=4, in_channels=1, num_classes=3)
    >>> net(torch.zeros(2, 1, 9, 9)).shape, [tuple(m.shape) for m in net.stages(torch.zeros(1, 1, 8, 8))]
    (torch.Size([2, 3]), [(1, 4, 8, 8), (1, 8, 4, 4)])
    """

    def __init__(
        self,
        layers: Sequence[int] = (2, 2, 2, 2),
        block: str = "basic",
        preactivation: bool = False,
        stem: str = "imagenet",
        shortcut: str = "B",
        *,
        width: int = 64,
        output_stride: int = 32,
        zero_init: bool = False,
        in_channels: int = 3,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        layers = tuple(layers)
        self._keep(locals())
        if block not in BLOCKS:
            raise ValueError(f"block is one of {', '.join(BLOCKS)}, got {block!r}")
        if stem not in ("imagenet", "cifar"):
            raise ValueError(f"stem is 'imagenet' or 'cifar', got {stem!r}")
        if shortcut not in ("A", "B"):
            raise ValueError(f"shortcut is 'A' or 'B', got {shortcut!r}")
        if output_stride not in (8, 16, 32):
            raise ValueError(f"output_stride is 8, 16 or 32, got {output_stride}")
        self.preactivation, self.depth = preactivation, len(layers)
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(in_channels, width, 7, 2, 3, bias=False)
            self.maxpool: nn.Module = nn.MaxPool2d(3, 2, 1)
        else:
            self.conv1 = conv3x3(in_channels, width)
            self.maxpool = nn.Identity()
        self.bn1: nn.Module = nn.Identity() if preactivation else nn.BatchNorm2d(width)
        kind = BLOCKS[block]
        before, dilation = width, 1
        for i, n in enumerate(layers):
            channels, stride, first = width * 2**i, 1 if i == 0 else 2, dilation
            if stride == 2 and 4 * 2**i > output_stride:
                stride, dilation = 1, dilation * 2
            blocks: list[nn.Module] = []
            for j in range(n):
                step, spread = (stride, first) if j == 0 else (1, dilation)
                out = channels * kind.expansion
                down = self._shortcut(before, out, step, shortcut)
                blocks.append(kind(before, channels, step, spread, down, preactivation))
                before = out
            self.add_module(f"layer{i + 1}", nn.Sequential(*blocks))
        if preactivation:
            self.bn_last = nn.BatchNorm2d(before)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc: nn.Module = nn.Linear(before, num_classes)
        self._initialise(zero_init)

    def _shortcut(self, before: int, after: int, stride: int, kind: str) -> nn.Module | None:
        if stride == 1 and before == after:
            return None
        if kind == "A":
            return PadShortcut(before, after, stride)
        conv = nn.Conv2d(before, after, 1, stride, bias=False)
        return conv if self.preactivation else nn.Sequential(conv, nn.BatchNorm2d(after))

    def _initialise(self, zero: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        for module in self.modules():
            if zero and isinstance(module, _Block):
                conv, norm = module._convs()[-1]
                nn.init.zeros_((conv if self.preactivation else norm).weight)  # type: ignore[arg-type]

    def stages(self, x: Tensor) -> list[Tensor]:
        """Maps after every stage, from the finest to the coarsest."""
        h = self.bn1(self.conv1(self.checked(x)))
        h = self.maxpool(h if self.preactivation else torch.relu(h))
        found = []
        for i in range(self.depth):
            h = self.get_submodule(f"layer{i + 1}")(h)
            found.append(h)
        if self.preactivation:
            found[-1] = torch.relu(self.bn_last(h))
        return found

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.avgpool(self.stages(x)[-1]).flatten(1))
        return logits


_SMALL = {"in_channels": 1, "num_classes": 2, "width": 4}
_IMAGE: dict[str, Any] = {"kind": "image", "shape": (3, 224, 224), "inputs": rows(1, 32, 32)}
_CIFAR: dict[str, Any] = {"kind": "image", "shape": (3, 32, 32), "inputs": rows(1, 8, 8)}


@architecture("resnet18", **_IMAGE, small=_SMALL)
def resnet18(**settings: Any) -> ResNet:
    """ResNet of 18 layers; 11,689,512 parameters."""
    return ResNet((2, 2, 2, 2), **settings)


@architecture("resnet34", **_IMAGE, small=_SMALL)
def resnet34(**settings: Any) -> ResNet:
    """ResNet of 34 layers; 21,797,672 parameters."""
    return ResNet((3, 4, 6, 3), **settings)


@architecture("resnet50", **_IMAGE, small=_SMALL)
def resnet50(**settings: Any) -> ResNet:
    """ResNet of 50 layers in bottlenecks; 25,557,032 parameters."""
    return ResNet((3, 4, 6, 3), "bottleneck", **settings)


@architecture("resnet101", **_IMAGE, small=_SMALL)
def resnet101(**settings: Any) -> ResNet:
    """ResNet of 101 layers in bottlenecks; 44,549,160 parameters."""
    return ResNet((3, 4, 23, 3), "bottleneck", **settings)


def _cifar(layers: Sequence[int], settings: dict[str, Any]) -> ResNet:
    given = {"stem": "cifar", "shortcut": "A", "width": 16, "num_classes": 10, **settings}
    return ResNet(layers, **given)


@architecture("resnet20", **_CIFAR, small=_SMALL)
def resnet20(**settings: Any) -> ResNet:
    """ResNet of 20 layers for images of 32²; 269,722 parameters."""
    return _cifar((3, 3, 3), settings)


@architecture("resnet56", **_CIFAR, small=_SMALL)
def resnet56(**settings: Any) -> ResNet:
    """ResNet of 56 layers for images of 32²; 853,018 parameters."""
    return _cifar((9, 9, 9), settings)
