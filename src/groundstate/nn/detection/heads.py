"""Heads on regions of interest: their features, classes, boxes and masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from groundstate.nn.detection.roi import roi_align


class RegionFeatures(nn.Module):
    r"""RoIAlign on the map of a pyramid that fits the size of each region.

    A region of area A takes the map
    :math:`k = \lfloor k_0 + \log_2(\sqrt A/s_0)\rfloor`, with :math:`k_0` the map on which an object
    of ``canonical`` = :math:`s_0` pixels is seen at stride 16, cut at the finest and coarsest map.

    Parameters
    ----------
    size : cells of a side
    sampling_ratio : points along the side of a cell
    canonical : side of an object, in pixels, that belongs to the map of stride 16
    aligned : as in ``roi_align``; torchvision's detectors were trained without
    """

    def __init__(
        self, size: int, sampling_ratio: int = 2, canonical: float = 224.0, aligned: bool = False
    ) -> None:
        super().__init__()
        self.size, self.sampling_ratio = size, sampling_ratio
        self.canonical, self.aligned = canonical, aligned

    def forward(self, maps: Sequence[Tensor], regions: Tensor, image: tuple[int, int]) -> Tensor:
        """Features ``(R, C, size, size)`` of regions ``(R, 5)``: the picture's number, and corners."""
        strides = [2.0 ** round(math.log2(image[0] / m.shape[2])) for m in maps]
        if len(maps) == 1:
            return self._align(maps[0], regions, strides[0])
        level = self.level(regions[:, 1:], strides)
        places = [(level == i).nonzero().squeeze(1) for i in range(len(maps))]
        found = [
            self._align(m, regions[at], stride)
            for m, at, stride in zip(maps, places, strides, strict=True)
            if len(at)
        ]
        if len(found) < 2:  # most often all regions are on one map
            return found[0] if found else self._align(maps[0], regions, strides[0])
        return torch.cat(found)[torch.cat(places).argsort()]

    def level(self, boxes: Tensor, strides: Sequence[float]) -> Tensor:
        """The map of each box, ``(R,)``."""
        finest, coarsest = math.log2(strides[0]), math.log2(strides[-1])
        side = (boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(1).sqrt()
        k = torch.floor(4 + torch.log2(side / self.canonical + 1e-12) + 1e-6)
        return (k.clamp(finest, coarsest) - finest).long()

    def _align(self, m: Tensor, regions: Tensor, stride: float) -> Tensor:
        found: Tensor = roi_align(
            m, regions, self.size, 1 / stride, self.sampling_ratio, self.aligned
        )
        return found


class BoxHead(nn.Module):
    """Two dense layers with ReLU on the features of a region."""

    def __init__(self, in_features: int, hidden: int = 1024) -> None:
        super().__init__()
        self.fc6, self.fc7 = nn.Linear(in_features, hidden), nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.fc7(torch.relu(self.fc6(x.flatten(1)))))


class BoxPredictor(nn.Module):
    """Logits ``(R, K + 1)``, background first, and offsets ``(R, 4 (K + 1))``, four of each class."""

    def __init__(self, in_features: int, num_classes: int) -> None:
        super().__init__()
        self.cls_score = nn.Linear(in_features, num_classes)
        self.bbox_pred = nn.Linear(in_features, 4 * num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.cls_score(x), self.bbox_pred(x)


class MaskHead(nn.Sequential):
    """3×3 convolutions with ReLU on the features of a region."""

    def __init__(self, in_channels: int, hidden: int = 256, layers: int = 4) -> None:
        sizes = [in_channels, *[hidden] * layers]
        super().__init__(
            *(nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU()) for a, b in pairwise(sizes))
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]


class MaskPredictor(nn.Module):
    """A transposed convolution to twice the side, ReLU, and a logit of each class at each cell."""

    def __init__(self, in_channels: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.conv5_mask = nn.ConvTranspose2d(in_channels, hidden, 2, 2)
        self.mask_fcn_logits = nn.Conv2d(hidden, num_classes, 1)
        for layer in (self.conv5_mask, self.mask_fcn_logits):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.mask_fcn_logits(torch.relu(self.conv5_mask(x)))
        return logits
