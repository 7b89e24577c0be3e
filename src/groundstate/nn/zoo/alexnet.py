r"""AlexNet: five convolutions, three dense layers, ReLU, dropout."""

from __future__ import annotations

from torch import Tensor, nn

from groundstate.nn.architectures import architecture, rows
from groundstate.nn.zoo.base import ImageNetwork

#: (channels, kernel, stride, padding, pooled), side before the dense layers, dropout first
VARIANTS = {
    "torchvision": (
        ((64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False), (256, 3, 1, 1, False),
         (256, 3, 1, 1, True)), 6, True),
    "d2l": (
        ((96, 11, 4, 1, True), (256, 5, 1, 2, True), (384, 3, 1, 1, False), (384, 3, 1, 1, False),
         (256, 3, 1, 1, True)), 5, False),
}  # fmt: skip


@architecture(
    "alexnet", kind="image", shape=(3, 224, 224), inputs=rows(1, 63, 63),
    small={"in_channels": 1, "num_classes": 2, "hidden": 8},
)  # fmt: skip
class AlexNet(ImageNetwork):
    r"""Convolutions 11², 5², 3², 3², 3² with overlapping max pooling (3, 2), then two dense layers
    with dropout ½.

    ``variant="torchvision"`` has the names and sizes of torchvision's (61,100,840 parameters),
    ``variant="d2l"`` those of *Dive into Deep Learning*: 96, 256, 384, 384, 256 channels, sides
    54, 26, 26, 12, 12, 12, 12, 5 for 224², 46,764,746 parameters with one channel and ten classes.
    Adaptive mean pooling before the dense layers takes images of any size.

    Parameters
    ----------
    variant : "torchvision" or "d2l"
    dropout : probability, before (torchvision) or behind (d2l) the dense layers
    hidden : width of the dense layers
    in_channels, num_classes : of the images and the logits

    Examples
    --------
    >>> import torch
    >>> with torch.device("meta"):
    ...     net = AlexNet("d2l", in_channels=1, num_classes=10)
    >>> sum(p.numel() for p in net.parameters())
    46764746
    """

    def __init__(
        self,
        variant: str = "torchvision",
        *,
        dropout: float = 0.5,
        hidden: int = 4096,
        in_channels: int = 3,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        self._keep(locals())
        if variant not in VARIANTS:
            raise ValueError(f"variant is one of {', '.join(VARIANTS)}, got {variant!r}")
        stages, side, first = VARIANTS[variant]
        layers: list[nn.Module] = []
        before = in_channels
        for channels, kernel, stride, padding, pooled in stages:
            layers += [nn.Conv2d(before, channels, kernel, stride, padding), nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(3, 2)] if pooled else []
            before = channels
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(side)
        dense = [nn.Linear(before * side * side, hidden), nn.Linear(hidden, hidden)]
        head: list[nn.Module] = []
        for layer in dense:
            drop = nn.Dropout(dropout)
            head += [drop, layer, nn.ReLU(inplace=True)] if first else [layer, nn.ReLU(), drop]
        self.classifier = nn.Sequential(*head, nn.Linear(hidden, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.avgpool(self.features(self.checked(x))).flatten(1))
        return logits
