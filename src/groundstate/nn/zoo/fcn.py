r"""Fully convolutional networks: a classifier whose head is a convolution, up-sampled to the input."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import interpolate

from groundstate.nn.architectures import architecture, architectures, rows
from groundstate.nn.zoo.base import ImageNetwork
from groundstate.nn.zoo.resnet import ResNet


def fcn_head(before: int, num_classes: int, dropout: float = 0.1) -> nn.Sequential:
    """conv 3×3 to a quarter of the channels, norm, ReLU, dropout, conv 1×1 to the classes."""
    inner = max(1, before // 4)
    return nn.Sequential(
        nn.Conv2d(before, inner, 3, padding=1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
        nn.Dropout(dropout), nn.Conv2d(inner, num_classes, 1),
    )  # fmt: skip


@architecture(
    "fcn", kind="image", shape=(3, 224, 224), inputs=rows(1, 33, 40),
    small={"backbone": "resnet18", "num_classes": 2, "in_channels": 1, "width": 4},
)  # fmt: skip
class FCN(ImageNetwork):
    r"""Scores of every pixel: the stages of a residual network, a convolutional head, bilinear
    up-sampling to the size of the input.

    ``FCN("resnet50", stride=8)`` has torchvision's names and sizes of ``fcn_resnet50``: later stages
    dilate instead of halving, so that the head sees 1/8 of the resolution. With ``skips`` the stages
    keep their halvings and the scores of earlier stages (1×1 convolutions) are added on the way up to
    1/``stride``, as in FCN-16s and FCN-8s.

    Parameters
    ----------
    backbone : "resnet18" to "resnet101"
    num_classes : scores per pixel
    stride : 8, 16 or 32: how much coarser than the input the scores are before up-sampling
    skips : reach that stride by skips instead of dilation
    aux : a second head on the last stage but one, for training; ``forward_all`` gives both
    dropout : in the head
    in_channels : of the images
    settings : further ones of the backbone, such as ``width``

    Examples
    --------
    >>> import torch
    >>> net = FCN("resnet18", 5, width=4)
    >>> net(torch.zeros(1, 3, 40, 52)).shape
    torch.Size([1, 5, 40, 52])
    """

    def __init__(
        self,
        backbone: str = "resnet50",
        num_classes: int = 21,
        stride: int = 8,
        *,
        skips: bool = False,
        aux: bool = False,
        dropout: float = 0.1,
        in_channels: int = 3,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._keep({"backbone": backbone, "num_classes": num_classes, "stride": stride,
                    "skips": skips, "aux": aux, "dropout": dropout, "in_channels": in_channels,
                    **settings})  # fmt: skip
        if stride not in (8, 16, 32):
            raise ValueError(f"stride is 8, 16 or 32, got {stride}")
        made = _residual(backbone, in_channels, 32 if skips else stride, settings)
        widths = [_out_channels(made, i) for i in range(made.depth)]
        made.fc = nn.Identity()  # pixels are classified here
        self.backbone = made
        self.classifier = fcn_head(widths[-1], num_classes, dropout)
        self.aux_classifier = fcn_head(widths[-2], num_classes, dropout) if aux else None
        steps = {32: 0, 16: 1, 8: 2}[stride] if skips else 0
        self.scores = nn.ModuleList(nn.Conv2d(widths[-2 - i], num_classes, 1) for i in range(steps))

    def forward_all(self, x: Tensor) -> dict[str, Tensor]:
        """``out`` and, with ``aux``, ``aux``: scores at the size of the input."""
        maps = self.backbone.stages(self.checked(x))
        score = self.classifier(maps[-1])
        for i, layer in enumerate(self.scores):
            finer = layer(maps[-2 - i])
            score = finer + interpolate(
                score, size=finer.shape[2:], mode="bilinear", align_corners=False
            )
        found = {"out": score}
        if self.aux_classifier is not None:
            found["aux"] = self.aux_classifier(maps[-2])
        return {
            name: interpolate(s, size=x.shape[2:], mode="bilinear", align_corners=False)
            for name, s in found.items()
        }

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_all(x)["out"]


def _residual(name: str, in_channels: int, output_stride: int, settings: dict[str, Any]) -> ResNet:
    """A residual network with four stages, by name."""
    if not name.startswith("resnet") or name in ("resnet20", "resnet56"):
        raise ValueError(
            f"FCN needs a residual network with four stages as backbone, got {name!r}; use resnet18, "
            "resnet34, resnet50 or resnet101"
        )
    made: ResNet = architectures[name].obj(
        in_channels=in_channels, output_stride=output_stride, **settings
    )
    return made


def _out_channels(net: ResNet, stage: int) -> int:
    last = list(net.get_submodule(f"layer{stage + 1}").children())[-1]
    convs = [m for m in last.children() if isinstance(m, nn.Conv2d)]
    return convs[-1].out_channels
