r"""Faster R-CNN and Mask R-CNN: shared maps, proposals from anchors, heads on the proposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Objects
from groundstate.nn.detection.anchors import AnchorGenerator, AnchorMatcher
from groundstate.nn.detection.backbone import Backbone
from groundstate.nn.detection.parts import Detected, Padded, Parts
from groundstate.nn.detection.roi_heads import RoIHeads
from groundstate.nn.detection.rpn import RPN, RegionProposals
from groundstate.nn.detection.sampling import uniforms
from groundstate.nn.zoo.base import ImageNetwork


class Detector(ImageNetwork):
    """Base of networks that find objects: what an energy of boxes and an estimator ask of them."""

    masks: bool = False  # whether it gives masks and learns from them

    def parts(self, x: Tensor, targets: Objects, words: Tensor | None = None) -> Parts:
        """The terms of the energy of sets of objects.

        Parameters
        ----------
        x : Tensor, ``(B, C, H, W)``
        targets : what is in the pictures
        words : Tensor of int64, ``(B,)``, that choose the boxes of a balanced sample; None takes
            all boxes
        """
        raise TypeError(f"{type(self).__name__} must define parts(x, targets, words)")

    def detect(self, x: Tensor) -> list[Detected]:
        """The objects in each picture."""
        raise TypeError(f"{type(self).__name__} must define detect(x)")

    def forward(self, x: Tensor) -> list[Detected]:
        return self.detect(x)


class FasterRCNN(Detector):
    r"""Faster R-CNN: one pass of a backbone, proposals from its maps, class and box of each.

    The energy of a set of objects y in a picture x adds, at the matched assignment, the class
    energies and box misfits of all anchors and of all regions; see ``RegionProposals`` and
    ``RoIHeads``. Parameter names are torchvision's, so that its ``fasterrcnn_resnet50_fpn`` loads into
    ``FasterRCNN(91, "resnet50", frozen=True)``.

    Parameters
    ----------
    num_classes : with the background, which is class 0
    backbone : "small", the name of a residual network, or a module with ``stages``
    fpn : channels of a feature pyramid, or None for the last map alone
    levels : stages of the backbone that the pyramid stands on
    sizes, ratios : of the anchors: one tuple of sizes for each map, or one size for each map of a
        pyramid, or sizes for the single map
    hidden : units of the dense layers of the head
    frozen : whether batch norms of the backbone keep their vectors
    more : whether the pyramid has one more, coarser map for proposals
    proposals : kept after suppression, in training and otherwise; as many of each map go in
    anchors_sampled, regions_sampled : boxes of a picture in a loss
    aligned : whether RoIAlign shifts by half a pixel; torchvision's detectors do not
    lowest, most : score and number of reported objects
    mask : channels of a mask branch, or None
    in_channels : of the pictures

    Examples
    --------
    >>> net = FasterRCNN(3, fpn=16, sizes=(8, 16, 32), levels=2, hidden=32).eval()
    >>> len(net(torch.zeros(2, 3, 48, 48)))
    2
    """

    def __init__(
        self,
        num_classes: int = 91,
        backbone: str | nn.Module = "small",
        *,
        fpn: int | None = 256,
        levels: int = 4,
        sizes: Sequence[Any] = (32, 64, 128, 256, 512),
        ratios: Sequence[float] = (0.5, 1.0, 2.0),
        hidden: int = 1024,
        frozen: bool = False,
        more: bool = True,
        proposals: tuple[int, int] = (2000, 1000),
        anchors_sampled: int = 256,
        regions_sampled: int = 512,
        aligned: bool = False,
        lowest: float = 0.05,
        most: int = 100,
        mask: int | None = None,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        sizes, ratios = tuple(sizes), tuple(ratios)
        self._keep(locals())
        if num_classes < 2:
            raise ValueError(
                f"num_classes counts the background, so it is at least 2, got {num_classes}"
            )
        self.masks = mask is not None
        self.backbone = Backbone(
            backbone, fpn, levels, frozen=frozen, more=more, in_channels=in_channels
        )
        maps = self.backbone.maps
        if maps > 1 and not isinstance(sizes[0], Sequence):
            sizes = tuple((s,) for s in sizes)
        anchors = AnchorGenerator(sizes, ratios)
        if len(anchors.k) != maps or len(set(anchors.k)) > 1:
            raise ValueError(
                f"the backbone gives {maps} maps, which need as many sizes of anchors (of equal "
                f"number), got sizes={sizes}"
            )
        kept = (proposals[0], proposals[1])
        self.rpn = RegionProposals(
            RPN(self.backbone.out_channels, anchors.k[0]), anchors, AnchorMatcher(),
            sample=anchors_sampled, before=kept, after=kept,
        )  # fmt: skip
        self.roi_heads = RoIHeads.of(
            self.backbone.out_channels, num_classes, hidden=hidden, mask=mask, aligned=aligned,
            sample=regions_sampled, lowest=lowest, most=most,
        )  # fmt: skip

    def maps(self, x: Tensor) -> list[Tensor]:
        """Feature maps of pictures, from the finest to the coarsest."""
        found: list[Tensor] = self.backbone(self.checked(x))
        return found

    def _for_regions(self, maps: list[Tensor]) -> list[Tensor]:
        """Without the extra coarse map, which serves proposals alone."""
        return maps[: self.backbone.levels] if len(maps) > 1 else maps

    def parts(self, x: Tensor, targets: Objects, words: Tensor | None = None) -> Parts:
        image = (int(x.shape[2]), int(x.shape[3]))
        maps = self.maps(x)
        found = self.rpn(maps, image)
        truths = Padded.of(targets.boxes)
        anchors = len(found.anchors)
        u = None if words is None else uniforms(words, anchors)
        parts = self.rpn.parts(found, truths, u)
        # the truths are regions too, so that there is something to learn from the first step on
        regions = self.rpn.proposals(found)[0].join(truths)
        size = regions.boxes.shape[1]
        u = None if words is None else uniforms(words, size, stream=1)
        chosen = self.roi_heads.choose(regions, targets, u)
        return {**parts, **self.roi_heads.parts(self._for_regions(maps), chosen, targets, image)}

    @torch.no_grad()
    def detect(self, x: Tensor) -> list[Detected]:
        image = (int(x.shape[2]), int(x.shape[3]))
        maps = self.maps(x)
        proposals = self.rpn.proposals(self.rpn(maps, image))[0]
        return self.roi_heads.detect(self._for_regions(maps), proposals, image)


class MaskRCNN(FasterRCNN):
    """Faster R-CNN with a mask branch: RoIAlign to 14², four convolutions, a transposed one to 28²,
    one map of logits for each class.

    Takes the parameters of ``FasterRCNN``, with ``mask`` channels of the branch. Parameter names are
    torchvision's: ``maskrcnn_resnet50_fpn`` loads into ``MaskRCNN(91, "resnet50", frozen=True)``.

    Examples
    --------
    >>> net = MaskRCNN(3, fpn=16, sizes=(8, 16, 32), levels=2, hidden=32, mask=8).eval()
    >>> net.masks, len(net(torch.zeros(1, 3, 48, 48)))
    (True, 1)
    """

    def __init__(self, num_classes: int = 91, backbone: str | nn.Module = "small", *,
                 mask: int | None = 256, **settings: Any) -> None:  # fmt: skip
        super().__init__(num_classes, backbone, mask=mask, **settings)
