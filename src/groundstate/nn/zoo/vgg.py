r"""VGG: blocks of 3×3 convolutions that halve the side and double the channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from groundstate.nn.architectures import architecture, rows
from groundstate.nn.zoo.base import ImageNetwork

ARCHS: dict[str, tuple[tuple[int, int], ...]] = {
    "vgg11": ((1, 64), (1, 128), (2, 256), (2, 512), (2, 512)),
    "vgg13": ((2, 64), (2, 128), (2, 256), (2, 512), (2, 512)),
    "vgg16": ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)),
    "vgg19": ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)),
}
SIDE = 7  # of the maps before the dense layers


def vgg_block(
    n: int, in_channels: int, out_channels: int, batch_norm: bool = False
) -> nn.Sequential:
    """n × [conv 3×3, padding 1 → ReLU], then max pooling 2: the side is halved.

    >>> import torch
    >>> vgg_block(2, 3, 8)(torch.zeros(1, 3, 16, 16)).shape
    torch.Size([1, 8, 8, 8])
    """
    layers: list[nn.Module] = []
    for i in range(n):
        before = in_channels if i == 0 else out_channels
        layers.append(nn.Conv2d(before, out_channels, 3, padding=1))
        layers += [nn.BatchNorm2d(out_channels)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers, nn.MaxPool2d(2, 2))


class VGG(ImageNetwork):
    r"""Blocks of 3×3 convolutions and max pooling, then :math:`49C \to 4096 \to 4096 \to K` with
    dropout ½.

    Two 3×3 convolutions see 5×5 pixels and three see 7×7, with fewer weights than one wide kernel.
    224² pixels become 112, 56, 28, 14, 7. Parameter names are torchvision's.

    Parameters
    ----------
    conv_arch : (number of convolutions, channels) of each block; any tuple is legal
    batch_norm : after every convolution
    dropout : probability
    hidden : width of the dense layers
    in_channels, num_classes : of the images and the logits

    Examples
    --------
    >>> import torch
    >>> net = VGG(((1, 4), (2, 8)), hidden=16, in_channels=1, num_classes=3)
    >>> net(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        conv_arch: Sequence[Sequence[int]] = ARCHS["vgg11"],
        batch_norm: bool = False,
        *,
        dropout: float = 0.5,
        hidden: int = 4096,
        in_channels: int = 3,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        conv_arch = tuple((int(n), int(c)) for n, c in conv_arch)
        self._keep(locals())
        layers: list[nn.Module] = []
        before = in_channels
        for n, channels in conv_arch:
            layers += vgg_block(n, before, channels, batch_norm)
            before = channels
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(SIDE)
        self.classifier = nn.Sequential(
            nn.Linear(before * SIDE * SIDE, hidden), nn.ReLU(inplace=True), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Dropout(dropout),
            nn.Linear(hidden, num_classes),
        )  # fmt: skip
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                assert module.bias is not None
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)

    def stages(self, x: Tensor) -> list[Tensor]:
        """Maps after every pooling."""
        found = []
        for layer in self.features:
            x = layer(x)
            if isinstance(layer, nn.MaxPool2d):
                found.append(x)
        return found

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.avgpool(self.features(self.checked(x))).flatten(1))
        return logits


_SMALL = {"in_channels": 1, "num_classes": 2, "hidden": 8}


@architecture("vgg11", kind="image", shape=(3, 224, 224), inputs=rows(1, 32, 32), small=_SMALL)
def vgg11(**settings: Any) -> VGG:
    """VGG with 8 convolutions; 132,863,336 parameters."""
    return VGG(ARCHS["vgg11"], **settings)


@architecture("vgg13", kind="image", shape=(3, 224, 224), inputs=rows(1, 32, 32), small=_SMALL)
def vgg13(**settings: Any) -> VGG:
    """VGG with 10 convolutions."""
    return VGG(ARCHS["vgg13"], **settings)


@architecture("vgg16", kind="image", shape=(3, 224, 224), inputs=rows(1, 32, 32), small=_SMALL)
def vgg16(**settings: Any) -> VGG:
    """VGG with 13 convolutions; 138,357,544 parameters."""
    return VGG(ARCHS["vgg16"], **settings)


@architecture("vgg19", kind="image", shape=(3, 224, 224), inputs=rows(1, 32, 32), small=_SMALL)
def vgg19(**settings: Any) -> VGG:
    """VGG with 16 convolutions."""
    return VGG(ARCHS["vgg19"], **settings)
