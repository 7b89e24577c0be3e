r"""What happens to proposals: which truth each takes, its class and box, and the mask in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.compute.rows import Objects
from groundstate.nn.detection import boxes as box
from groundstate.nn.detection.anchors import AnchorMatcher
from groundstate.nn.detection.heads import (
    BoxHead,
    BoxPredictor,
    MaskHead,
    MaskPredictor,
    RegionFeatures,
)
from groundstate.nn.detection.parts import (
    Detected,
    Padded,
    Part,
    Parts,
    full,
    padded_labels,
    per_row,
    suppressed,
)
from groundstate.nn.detection.roi import roi_align
from groundstate.nn.detection.rpn import BETA
from groundstate.nn.detection.sampling import balanced_sample

WEIGHTS = (10.0, 10.0, 5.0, 5.0)  # of offsets in the head: they are smaller than those of anchors


@dataclass(frozen=True)
class Chosen:
    """Regions that take part in a loss, and what they should say.

    Attributes
    ----------
    regions : Tensor, ``(R, 5)``: the picture's number, in order, and corners
    truth : Tensor of int64, ``(R,)``, the truth in its picture; any number where the label is 0
    labels : Tensor of int64, ``(R,)``, 0 for background
    """

    regions: Tensor
    truth: Tensor
    labels: Tensor


class RoIHeads(nn.Module):
    r"""Class and box of each region, and its mask where there is a mask branch.

    .. math:: e = \sum_r -\log p(c_r) + \sum_{r: c_r > 0} \ell_{1/9}(t_{r,c_r} - t^*_r)
              + \sum_{r: c_r > 0} \operatorname{mean}_p -\log p(m_{rp}\mid c_r),

    with the class of the truth that a region overlaps by at least ``overlap``, background otherwise.
    The mask term looks at the map of the true class alone; the maps of other classes get no gradient.

    Parameters
    ----------
    features, box_head, box_predictor : from regions to classes and offsets
    mask_features, mask_head, mask_predictor : from regions to masks, or None
    overlap : IoU from which a region is an object
    sample, fraction : regions of a picture in a loss, and how many of them may be objects
    lowest : score below which nothing is reported
    nms : overlap above which, of two boxes of one class, the lower score goes
    most : objects of a picture at most
    """

    def __init__(
        self,
        features: RegionFeatures,
        box_head: nn.Module,
        box_predictor: nn.Module,
        *,
        overlap: float = 0.5,
        sample: int = 512,
        fraction: float = 0.25,
        lowest: float = 0.05,
        nms: float = 0.5,
        most: int = 100,
    ) -> None:
        super().__init__()
        self.features, self.box_head, self.box_predictor = features, box_head, box_predictor
        self.mask_features: RegionFeatures | None = None
        self.mask_head: nn.Module | None = None
        self.mask_predictor: nn.Module | None = None
        self.matcher = AnchorMatcher(overlap, overlap, best=False)
        self.sample, self.fraction = sample, fraction
        self.lowest, self.nms, self.most = lowest, nms, most

    @classmethod
    def of(
        cls, channels: int, num_classes: int, *, hidden: int = 1024, mask: int | None = None,
        size: int = 7, canonical: float = 224.0, aligned: bool = False, **settings: float,
    ) -> RoIHeads:  # fmt: skip
        """The heads of Faster R-CNN; with ``mask`` channels those of Mask R-CNN."""
        heads = cls(
            RegionFeatures(size, 2, canonical, aligned),
            BoxHead(channels * size**2, hidden),
            BoxPredictor(hidden, num_classes),
            **settings,  # type: ignore[arg-type]
        )
        if mask is not None:
            heads.mask_features = RegionFeatures(14, 2, canonical, aligned)
            heads.mask_head = MaskHead(channels, mask)
            heads.mask_predictor = MaskPredictor(mask, mask, num_classes)
        return heads

    def forward(
        self, maps: Sequence[Tensor], regions: Tensor, image: tuple[int, int]
    ) -> tuple[Tensor, Tensor]:
        """Logits ``(R, K + 1)`` and offsets ``(R, K + 1, 4)`` of regions ``(R, 5)``."""
        h = self.box_head(self.features(maps, regions, image))
        logits, offsets = self.box_predictor(h)
        return full(logits), full(offsets).unflatten(1, (-1, 4))

    def masks(self, maps: Sequence[Tensor], regions: Tensor, image: tuple[int, int]) -> Tensor:
        """Logits of each class at the cells of regions, ``(R, K + 1, 28, 28)``."""
        assert self.mask_features and self.mask_head and self.mask_predictor
        found: Tensor = self.mask_predictor(
            self.mask_head(self.mask_features(maps, regions, image))
        )
        return full(found)

    # --- energies ------------------------------------------------------------------------

    @torch.no_grad()
    def choose(self, proposals: Padded, targets: Objects, u: Tensor | None = None) -> Chosen:
        """Which regions count, and for what: all real ones, or a balanced sample by u ``(B, P)``."""
        truths = Padded.of(targets.boxes)
        iou = box.iou(full(truths.boxes), proposals.boxes)  # (B, G, P)
        own = self.matcher(iou.masked_fill(~truths.real[..., None], -1.0))
        size = truths.boxes.shape[1]
        known = functional.pad(padded_labels(targets, size), (0, 1))  # a last truth: background
        label = known.gather(1, torch.where(own < 0, size, own))
        chosen = proposals.real
        if u is not None:
            sign = torch.where(proposals.real, (label > 0).long(), -1)
            chosen = balanced_sample(sign, self.sample, self.fraction, u=u)
        row, at = chosen.nonzero(as_tuple=True)
        regions = torch.cat([row[:, None].to(proposals.boxes.dtype), proposals.boxes[row, at]], 1)
        return Chosen(regions, own[row, at], label[row, at])

    def parts(
        self, maps: Sequence[Tensor], chosen: Chosen, targets: Objects, image: tuple[int, int]
    ) -> Parts:
        """Energies of the truths at the chosen regions."""
        logits, offsets = self(maps, chosen.regions, image)
        b, row = len(targets), chosen.regions[:, 0].long()
        fit = functional.cross_entropy(logits, chosen.labels, reduction="none")
        inside = (chosen.labels > 0).nonzero().squeeze(1)
        label, near = chosen.labels[inside], row[inside]
        truth = targets.boxes.offsets[near] + chosen.truth[inside]  # in the list of all truths
        goal = box.encode(
            full(targets.boxes.values)[truth], chosen.regions[inside, 1:].to(logits.dtype), WEIGHTS
        )
        moved = functional.smooth_l1_loss(
            offsets[inside, label], goal.to(logits.dtype), beta=BETA, reduction="none"
        ).sum(1)
        count = torch.bincount(row, minlength=b)
        parts = {
            "class": Part(per_row(fit, row, b), count),
            "box": Part(per_row(moved, near, b), count),
        }
        if self.mask_head is not None:
            each = self._mask_misfit(maps, chosen.regions[inside], label, truth, targets, image)
            parts["mask"] = Part(per_row(each, near, b), torch.bincount(near, minlength=b))
        return parts

    def _mask_misfit(
        self, maps: Sequence[Tensor], regions: Tensor, label: Tensor, truth: Tensor,
        targets: Objects, image: tuple[int, int],
    ) -> Tensor:  # fmt: skip
        """Mean cross-entropy of the pixels of each region's true class, ``(R,)``."""
        assert targets.masks is not None
        logits = self.masks(maps, regions, image)
        own = logits[torch.arange(len(label), device=label.device), label]  # (R, 28, 28)
        at = torch.cat([truth[:, None].to(regions.dtype), regions[:, 1:]], 1)
        goal = roi_align(
            targets.masks.values[:, None].to(own.dtype), at, own.shape[-1], 1.0, 0, False
        )
        each = functional.binary_cross_entropy_with_logits(own, goal[:, 0], reduction="none")
        return each.mean((1, 2))

    # --- answers -------------------------------------------------------------------------

    @torch.no_grad()
    def detect(
        self, maps: Sequence[Tensor], proposals: Padded, image: tuple[int, int]
    ) -> list[Detected]:
        """What is in each picture: one box per class and region, thinned out per class."""
        rows = len(proposals.boxes)
        row, at = proposals.real.nonzero(as_tuple=True)
        regions = torch.cat([row[:, None].to(proposals.boxes.dtype), proposals.boxes[row, at]], 1)
        logits, offsets = self(maps, regions, image)
        scores = logits.softmax(-1)
        moved = box.clip(
            box.decode(offsets, regions[:, None, 1:].to(offsets.dtype), WEIGHTS), image
        )
        good = (scores > self.lowest) & ((moved[..., 2:] - moved[..., :2]) >= 1e-2).all(-1)
        good[:, 0] = False  # background
        region, label = good.nonzero(as_tuple=True)
        boxes, score = moved[region, label], scores[region, label]
        stay, begin = suppressed(boxes, score, row[region], label, self.nms, self.most, rows)
        boxes, score, label = boxes[stay], score[stay], label[stay]
        masks = None
        if self.mask_head is not None:
            here = torch.cat([row[region[stay]][:, None].to(boxes.dtype), boxes], 1)
            own = self.masks(maps, here, image)[torch.arange(len(here)).to(label.device), label]
            masks = paste_masks(own.sigmoid(), boxes, image)
        ends = begin.tolist()
        return [
            Detected(boxes[i:j], label[i:j], score[i:j], None if masks is None else masks[i:j])
            for i, j in pairwise(ends)
        ]


def paste_masks(masks: Tensor, boxes: Tensor, image: tuple[int, int]) -> Tensor:
    r"""Masks of boxes as masks of the picture, by bilinear interpolation at the pixels' centres.

    Parameters
    ----------
    masks : Tensor, ``(n, M, M)``
        Values at the centres of the cells of each box.
    boxes : Tensor, ``(n, 4)``
    image : height and width

    Returns
    -------
    Tensor, ``(n, height, width)``, 0 outside the boxes

    Examples
    --------
    >>> paste_masks(torch.ones(1, 2, 2), torch.tensor([[1.0, 0.0, 3.0, 2.0]]), (3, 4))[0].tolist()
    [[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    height, width = image
    y = (torch.arange(height, device=masks.device) + 0.5 - boxes[:, 1:2]) / _side(boxes, 1)
    x = (torch.arange(width, device=masks.device) + 0.5 - boxes[:, :1]) / _side(boxes, 0)
    inside = ((y > 0) & (y < 1))[:, :, None] & ((x > 0) & (x < 1))[:, None]
    shape = (len(boxes), height, width)
    grid = torch.stack(
        [(2 * x - 1)[:, None].expand(shape), (2 * y - 1)[:, :, None].expand(shape)], -1
    )
    found = functional.grid_sample(
        masks[:, None], grid.to(masks.dtype), padding_mode="border", align_corners=False
    )
    return found[:, 0] * inside


def _side(boxes: Tensor, axis: int) -> Tensor:
    return (boxes[:, 2 + axis] - boxes[:, axis])[:, None].clamp(min=1e-6)
