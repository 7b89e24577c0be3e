r"""Dense networks: every layer sees the maps of all layers before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from groundstate.nn.architectures import architecture, rows
from groundstate.nn.zoo.base import ImageNetwork


class DenseLayer(nn.Module):
    """norm · ReLU · conv 1×1 (bn_size·k) · norm · ReLU · conv 3×3 (k), of all maps so far.

    ``bn_size=0`` is the plain layer norm · ReLU · conv 3×3.
    """

    def __init__(self, before: int, growth: int, bn_size: int, dropout: float, save: bool) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(before)
        self.relu1 = nn.ReLU(inplace=True)
        self.bottleneck = bn_size > 0
        if self.bottleneck:
            self.conv1 = nn.Conv2d(before, bn_size * growth, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(bn_size * growth)
            self.relu2 = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(bn_size * growth, growth, 3, padding=1, bias=False)
        else:
            self.conv1 = nn.Conv2d(before, growth, 3, padding=1, bias=False)
        self.dropout, self.save = dropout, save

    def _first(self, *maps: Tensor) -> Tensor:
        found: Tensor = self.conv1(self.relu1(self.norm1(torch.cat(maps, 1))))
        return found

    def forward(self, maps: list[Tensor]) -> Tensor:
        if self.save and torch.is_grad_enabled() and any(m.requires_grad for m in maps):
            h: Tensor = checkpoint(self._first, *maps, use_reentrant=False)
        else:
            h = self._first(*maps)
        if self.bottleneck:
            h = self.conv2(self.relu2(self.norm2(h)))
        return nn.functional.dropout(h, self.dropout, self.training)


class DenseBlock(nn.ModuleDict):
    """Layers whose maps are joined: k₀ + Lk channels."""

    def forward(self, x: Tensor) -> Tensor:
        maps = [x]
        for layer in self.values():
            maps.append(layer(maps))
        return torch.cat(maps, 1)


@architecture(
    "densenet", kind="image", shape=(3, 224, 224), inputs=rows(1, 32, 32),
    small={"growth": 4, "blocks": (2, 2), "init": 4, "in_channels": 1, "num_classes": 2},
)  # fmt: skip
class DenseNet(ImageNetwork):
    r"""Blocks of L layers on the joined maps of all earlier layers, :math:`k_0 + Lk` channels, with
    transitions (norm · ReLU · 1×1 · mean pooling 2) between them that keep a fraction.

    Names and sizes are torchvision's.

    Parameters
    ----------
    growth : k, the maps that every layer adds
    blocks : layers of each block
    init : k₀, channels of the stem
    bn_size : the 1×1 convolution of a layer has bn_size·k maps; 0 is a plain 3×3 layer
    compression : fraction of the channels that a transition keeps
    dropout : in every layer
    memory_efficient : compute joined maps again in the backward pass instead of keeping them
    in_channels, num_classes : of the images and the logits

    Examples
    --------
    >>> net = DenseNet(growth=32, blocks=(4,), init=64, in_channels=1, num_classes=10)
    >>> net.features.norm5.num_features  # 64 + 4·32
    192
    """

    def __init__(
        self,
        growth: int = 32,
        blocks: Sequence[int] = (6, 12, 24, 16),
        init: int = 64,
        bn_size: int = 4,
        compression: float = 0.5,
        *,
        dropout: float = 0.0,
        memory_efficient: bool = False,
        in_channels: int = 3,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        blocks = tuple(blocks)
        self._keep(locals())
        if not 0 < compression <= 1:
            raise ValueError(f"compression is a fraction in (0, 1], got {compression}")
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(in_channels, init, 7, 2, 3, bias=False),
            norm0=nn.BatchNorm2d(init),
            relu0=nn.ReLU(inplace=True),
            pool0=nn.MaxPool2d(3, 2, 1),
        )
        channels = init
        for i, n in enumerate(blocks):
            layers[f"denseblock{i + 1}"] = DenseBlock({
                f"denselayer{j + 1}": DenseLayer(
                    channels + j * growth, growth, bn_size, dropout, memory_efficient
                )
                for j in range(n)
            })  # fmt: skip
            channels += n * growth
            if i + 1 < len(blocks):
                kept = int(channels * compression)
                layers[f"transition{i + 1}"] = nn.Sequential(OrderedDict(
                    norm=nn.BatchNorm2d(channels), relu=nn.ReLU(inplace=True),
                    conv=nn.Conv2d(channels, kept, 1, bias=False), pool=nn.AvgPool2d(2),
                ))  # fmt: skip
                channels = kept
        layers["norm5"] = nn.BatchNorm2d(channels)
        self.features = nn.Sequential(layers)
        self.classifier = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
            elif isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.features(self.checked(x)))
        pooled = nn.functional.adaptive_avg_pool2d(h, 1).flatten(1)
        logits: Tensor = self.classifier(pooled)
        return logits


@architecture(
    "densenet121", kind="image", shape=(3, 224, 224), inputs=rows(1, 32, 32),
    small={"growth": 4, "init": 4, "in_channels": 1, "num_classes": 2},
)  # fmt: skip
def densenet121(**settings: Any) -> DenseNet:
    """DenseNet of 121 layers; 7,978,856 parameters."""
    return DenseNet(**settings)
