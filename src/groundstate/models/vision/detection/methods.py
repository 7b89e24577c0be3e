"""The methods of ``ObjectDetector``: what network each makes, and how it learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from groundstate.models.vision.detection.machines import fit_machines
from groundstate.nn.detection.fast_rcnn import FastRCNN
from groundstate.nn.detection.rcnn import Detector, FasterRCNN, MaskRCNN
from groundstate.nn.detection.region_cnn import RCNN


@dataclass(frozen=True)
class DetectionMethod:
    """One method.

    Attributes
    ----------
    network : class or function of a ``Detector``; it gets ``num_classes``, ``in_channels``,
        ``backbone``, ``fpn`` and the sizes of anchors as far as it has parameters of these names
    masks : whether it learns and answers masks
    small : further settings beside the small backbone
    searched : whether regions are searched on the picture, once; pictures that change have others
    finish : what is fitted on the learned network: ``finish(net, pictures, objects, weight)``
    """

    network: Callable[..., Detector]
    masks: bool = False
    small: Mapping[str, Any] = field(default_factory=dict)
    searched: bool = False
    finish: Callable[..., None] | None = None


# the heads of networks for hundreds of small pictures; a residual network has those of torchvision
_SMALL: dict[str, Any] = {
    "hidden": 256, "levels": 3, "proposals": (200, 100), "anchors_sampled": 128,
    "regions_sampled": 32, "aligned": True,
}  # fmt: skip

_FAST: dict[str, Any] = {"hidden": 256, "proposals": 500, "regions_sampled": 64}

_REGIONS: dict[str, Any] = {"crop": 32, "hidden": 256, "proposals": 500, "regions_sampled": 32}

METHODS: dict[str, DetectionMethod] = {
    "rcnn": DetectionMethod(RCNN, small=_REGIONS, searched=True, finish=fit_machines),
    "fast": DetectionMethod(FastRCNN, small=_FAST, searched=True),
    "faster": DetectionMethod(FasterRCNN, small=_SMALL),
    "mask": DetectionMethod(MaskRCNN, masks=True, small={**_SMALL, "mask": 32}),
}
