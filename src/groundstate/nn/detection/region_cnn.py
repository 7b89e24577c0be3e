r"""R-CNN: every proposed region warped to one size and sent through a network by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Objects
from groundstate.nn.detection import boxes as box
from groundstate.nn.detection.backbone import Backbone, ConvBody
from groundstate.nn.detection.fast_rcnn import Proposals
from groundstate.nn.detection.heads import BoxPredictor
from groundstate.nn.detection.parts import Detected, Padded, Parts, suppressed
from groundstate.nn.detection.rcnn import Detector
from groundstate.nn.detection.roi import crop_resize
from groundstate.nn.detection.roi_heads import RoIHeads
from groundstate.nn.detection.sampling import uniforms


class WarpedRegions(nn.Module):
    """Crops of the pictures themselves, warped to a square."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, maps: Sequence[Tensor], regions: Tensor, image: tuple[int, int]) -> Tensor:
        """Crops ``(R, C, size, size)`` of regions ``(R, 5)`` of the pictures ``maps[0]``."""
        found: Tensor = crop_resize(maps[0], regions, self.size)
        return found


class RegionNetwork(nn.Module):
    """Features of a crop: a convolutional body, and a dense layer with ReLU on its last map."""

    def __init__(self, body: str | nn.Module, size: int, hidden: int, in_channels: int) -> None:
        super().__init__()
        small = isinstance(body, str) and body == "small"
        made = ConvBody((16, 32, 64), in_channels) if small else body
        self.backbone = Backbone(made, None, 1, in_channels=in_channels)
        with torch.no_grad():
            self.backbone.eval()
            cells = self.backbone(torch.zeros(1, in_channels, size, size))[0].numel()
            self.backbone.train()
        self.dense = nn.Linear(cells, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.dense(self.backbone(x)[0].flatten(1)))


class RCNN(Detector):
    r"""R-CNN: one pass of a network for every region of selective search.

    The network learns with a softmax over classes and background on warped crops. On its features h
    then stand a linear support vector machine for each class, :math:`m_c = w_c^\top h + b_c`, and a
    ridge regression of the box offsets; they answer where they were given by :meth:`judge`.

    Parameters
    ----------
    num_classes : with the background, which is class 0
    backbone : "small" (three stages), the name of a residual network, or a module with ``stages``
    crop : side of the warped regions in pixels
    hidden : features of a region
    proposals, scale, sigma, min_size : of selective search
    regions_sampled : regions of a picture in a loss, a quarter of them objects
    lowest, most : score, the sigmoid of the margin, and number of reported objects
    in_channels : of the pictures

    Examples
    --------
    >>> net = RCNN(3, crop=16, hidden=8).eval()
    >>> len(net(torch.zeros(2, 3, 48, 48)))
    2
    """

    weight: Tensor
    bias: Tensor
    offset_weight: Tensor
    offset_bias: Tensor
    judged: Tensor

    def __init__(
        self,
        num_classes: int = 21,
        backbone: str | nn.Module = "small",
        *,
        crop: int = 227,
        hidden: int = 4096,
        proposals: int = 2000,
        scale: float = 100.0,
        sigma: float = 0.8,
        min_size: int = 20,
        regions_sampled: int = 128,
        lowest: float = 0.05,
        most: int = 100,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        self._keep(locals())
        if num_classes < 2:
            raise ValueError(
                f"num_classes counts the background, so it is at least 2, got {num_classes}"
            )
        self.proposals = Proposals(proposals, scale, sigma, min_size)
        self.heads = RoIHeads(
            WarpedRegions(crop),  # type: ignore[arg-type]
            RegionNetwork(backbone, crop, hidden, in_channels),
            BoxPredictor(hidden, num_classes),
            sample=regions_sampled, lowest=lowest, nms=0.3, most=most,
        )  # fmt: skip
        K = num_classes - 1
        self.register_buffer("weight", torch.zeros(K, hidden))
        self.register_buffer("bias", torch.zeros(K))
        self.register_buffer("offset_weight", torch.zeros(K, 4, hidden))
        self.register_buffer("offset_bias", torch.zeros(K, 4))
        self.register_buffer("judged", torch.zeros(1))

    def features(self, x: Tensor, regions: Tensor) -> Tensor:
        """Features ``(R, hidden)`` of regions ``(R, 5)``, one pass for each."""
        image = (int(x.shape[2]), int(x.shape[3]))
        parts = [
            self.heads.box_head(self.heads.features([x], part, image))
            for part in regions.split(256)
        ]
        found: Tensor = torch.cat(parts)
        return found

    def judge(
        self, weight: Tensor, bias: Tensor, offset_weight: Tensor, offset_bias: Tensor
    ) -> None:
        """Take support vector machines ``(K, hidden)``, ``(K,)`` and regressions ``(K, 4, hidden)``,
        ``(K, 4)`` of the offsets.
        """
        given = (weight, bias, offset_weight, offset_bias)
        own = (self.weight, self.bias, self.offset_weight, self.offset_bias)
        for mine, value in zip(own, given, strict=True):
            mine.copy_(value)
        self.judged.fill_(1.0)

    def parts(self, x: Tensor, targets: Objects, words: Tensor | None = None) -> Parts:
        image = (int(self.checked(x).shape[2]), int(x.shape[3]))
        regions = self.proposals(x).join(Padded.of(targets.boxes))
        u = None if words is None else uniforms(words, regions.boxes.shape[1])
        return self.heads.parts([x], self.heads.choose(regions, targets, u), targets, image)

    @torch.no_grad()
    def detect(self, x: Tensor) -> list[Detected]:
        image = (int(self.checked(x).shape[2]), int(x.shape[3]))
        proposals = self.proposals(x)
        if not bool(self.judged):
            return self.heads.detect([x], proposals, image)
        row, at = proposals.real.nonzero(as_tuple=True)
        regions = torch.cat([row[:, None].to(x.dtype), proposals.boxes[row, at].to(x.dtype)], 1)
        h = self.features(x, regions)
        scores = (h @ self.weight.T + self.bias).sigmoid()  # (R, K)
        offsets = torch.einsum("rf,kcf->rkc", h, self.offset_weight) + self.offset_bias
        moved = box.clip(box.decode(offsets, regions[:, None, 1:]), image)
        good = (scores > self.heads.lowest) & ((moved[..., 2:] - moved[..., :2]) >= 1e-2).all(-1)
        region, label = good.nonzero(as_tuple=True)
        boxes, score = moved[region, label], scores[region, label]
        stay, begin = suppressed(
            boxes, score, row[region], label, self.heads.nms, self.heads.most, len(x)
        )
        return [
            Detected(boxes[stay[i:j]], label[stay[i:j]] + 1, score[stay[i:j]])
            for i, j in pairwise(begin.tolist())
        ]
