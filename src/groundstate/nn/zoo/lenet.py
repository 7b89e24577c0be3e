r"""LeNet-5: two convolutions with pooling, three dense layers."""

from __future__ import annotations

from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, rows
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.zoo.base import ImageNetwork

SIDE = 28


@architecture("lenet", kind="image", shape=(1, SIDE, SIDE), inputs=rows(1, SIDE, SIDE))
class LeNet(ImageNetwork):
    r"""Conv(6, 5×5, padding 2) · act · pool 2 · Conv(16, 5×5) · act · pool 2 · 400 → 120 → 84 → K.

    28² pixels become 6×28², 6×14², 16×10², 16×5². With the defaults (sigmoid, mean pooling, one
    channel, ten classes) there are 61,706 parameters.

    Parameters
    ----------
    activation : after every layer but the last
    pool : "avg" or "max"
    in_channels, num_classes : of the images and the logits

    Examples
    --------
    >>> sum(p.numel() for p in LeNet().parameters())
    61706
    """

    def __init__(
        self,
        activation: str = "sigmoid",
        pool: str = "avg",
        *,
        in_channels: int = 1,
        num_classes: int = 10,
    ) -> None:
        super().__init__()
        self._keep(locals())
        if pool not in ("avg", "max"):
            raise ValueError(f"pool is 'avg' or 'max', got {pool!r}")
        pooling = nn.AvgPool2d if pool == "avg" else nn.MaxPool2d
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, 6, 5, padding=2), make_activation(activation), pooling(2),
            nn.Conv2d(6, 16, 5), make_activation(activation), pooling(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(400, 120), make_activation(activation),
            nn.Linear(120, 84), make_activation(activation),
            nn.Linear(84, num_classes),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        if self.checked(x).shape[2:] != (SIDE, SIDE):
            raise ShapeError(
                f"LeNet takes images of {SIDE}×{SIDE} pixels, got {tuple(x.shape)}; resize them, or "
                "use architectures.create('cnn'), which takes any size"
            )
        logits: Tensor = self.classifier(self.features(x))
        return logits
