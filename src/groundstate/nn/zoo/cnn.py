r"""A plain convolutional network: [conv 3×3 → ReLU → max pooling] × k, then a head."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, rows
from groundstate.nn.zoo.base import ImageNetwork

HEADS = ("gap", "gmp", "flatten")


@architecture(
    "cnn", kind="image", shape=(3, 32, 32), inputs=rows(1, 8, 8),
    small={"channels": (2, 3), "in_channels": 1, "num_classes": 2},
)  # fmt: skip
class CNN(ImageNetwork):
    r"""Convolution 3×3, ReLU and max pooling 2, k times; then a mean over places (or all of them)
    and dense layers.

    Parameters
    ----------
    channels : maps after each of the k blocks
    head : "gap" (global average pooling) and "gmp" (global maximum) take any image size; "flatten"
        fixes it and has :math:`(CHW+1)K` parameters when ``hidden`` is empty
    hidden : sizes of dense hidden layers of the head
    image_size : side or (height, width) of the input, for "flatten"
    in_channels, num_classes : of the images and the logits

    Examples
    --------
    >>> import torch
    >>> net = CNN((4, 8), in_channels=1, num_classes=10)
    >>> net(torch.zeros(2, 1, 8, 8)).shape, net(torch.zeros(2, 1, 17, 12)).shape
    (torch.Size([2, 10]), torch.Size([2, 10]))
    """

    def __init__(
        self,
        channels: Sequence[int] = (16, 32, 64),
        head: str = "gap",
        *,
        hidden: Sequence[int] = (),
        image_size: int | tuple[int, int] | None = None,
        in_channels: int = 3,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        channels, hidden = tuple(channels), tuple(hidden)
        image_size = tuple(image_size) if isinstance(image_size, list) else image_size
        self._keep(locals())
        if head not in HEADS:
            raise ValueError(f"head is one of {', '.join(HEADS)}, got {head!r}")
        if not channels:
            raise ValueError("channels needs at least one number of maps, got none")
        layers: list[nn.Module] = []
        for before, after in pairwise((in_channels, *channels)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers)
        self.size: tuple[int, int] | None = None
        places = 1
        if head == "flatten":
            if image_size is None:
                raise ValueError("head='flatten' fixes the size of the input: give image_size")
            self.size = (image_size, image_size) if isinstance(image_size, int) else image_size
            sides = [side // 2 ** len(channels) for side in self.size]
            if min(sides) < 1:
                raise ValueError(f"{len(channels)} poolings leave nothing of {self.size} pixels")
            places = sides[0] * sides[1]
        self.pool: nn.Module = {
            "gap": nn.AdaptiveAvgPool2d(1), "gmp": nn.AdaptiveMaxPool2d(1), "flatten": nn.Identity()
        }[head]  # fmt: skip
        dense: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise((channels[-1] * places, *hidden)):
            dense += [nn.Linear(before, after), nn.ReLU()]
        last = hidden[-1] if hidden else channels[-1] * places
        self.classifier = nn.Sequential(*dense, nn.Linear(last, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.checked(x)
        if self.size is not None and tuple(x.shape[2:]) != self.size:
            raise ShapeError(
                f"this CNN has a flatten head for images of {self.size}, got {tuple(x.shape[2:])}; "
                "use head='gap' for images of any size"
            )
        logits: Tensor = self.classifier(self.pool(self.features(x)))
        return logits
