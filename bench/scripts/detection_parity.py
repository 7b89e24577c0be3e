"""Losses and boxes of Faster and Mask R-CNN beside torchvision's, with the same weights.

Where torchvision's compiled operations are missing, its suppression and RoIAlign are those of
groundstate, which have parity tests of their own.

Usage: python bench/scripts/detection_parity.py
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torchvision.models import detection
from torchvision.models.detection import roi_heads, rpn
from torchvision.ops import poolers

from groundstate.compute.rows import Objects
from groundstate.energy.spaces.containers import box_masks
from groundstate.nn.detection.backbone import FrozenNorm
from groundstate.nn.detection.nms import batched_nms, nms
from groundstate.nn.detection.rcnn import FasterRCNN, MaskRCNN
from groundstate.nn.detection.roi import roi_align


def _align(
    input: Any, boxes: Any, output_size: Any, spatial_scale: float = 1.0, sampling_ratio: int = -1,
    aligned: bool = False,
) -> Any:  # fmt: skip
    size = output_size if isinstance(output_size, int) else tuple(output_size)
    return roi_align(input, boxes, size, spatial_scale, max(sampling_ratio, 0), aligned)


def fill_in() -> None:
    """Operations that torchvision was built without."""
    try:
        torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
    except (RuntimeError, NotImplementedError):
        for place in (torchvision.ops.boxes, rpn.box_ops, roi_heads.box_ops):
            place.nms, place.batched_nms = nms, batched_nms
        poolers.roi_align = roi_heads.roi_align = _align
        print("torchvision without compiled operations: ours are put in their place")


def waves(net: nn.Module) -> None:
    """Weights that need no random generator."""
    with torch.no_grad():
        for i, (name, p) in enumerate(net.named_parameters()):
            wave = torch.sin(torch.arange(p.numel(), dtype=torch.float64) * 1.7 + i).view(p.shape)
            size = 0.5 / max(1, p[0].numel()) ** 0.5 if p.ndim > 1 else 0.05
            p.copy_(wave * (size if "predictor" not in name else 4 * size))


class Maps(nn.Module):
    """A backbone of groundstate as torchvision takes it."""

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.own, self.out_channels = backbone, backbone.out_channels

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        found = self.own(x)
        names = [str(i) for i in range(len(found) - 1)] + ["pool"]
        return OrderedDict(zip(names, found, strict=True))


def scenes() -> tuple[Tensor, list[Any]]:
    """Two pictures and their objects, without a random generator."""
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(80.0), indexing="ij")
    pictures = torch.stack(
        [torch.stack([((x * (c + 1) + y * (i + 1)) / 9).sin() for c in range(3)]) for i in range(2)]
    )
    boxes = [torch.tensor([[8.0, 8, 30, 36], [40, 12, 74, 50]]), torch.tensor([[20.0, 24, 52, 60]])]
    labels = [torch.tensor([1, 2]), torch.tensor([2])]
    return pictures, [(b, c, box_masks(b, 64, 80)) for b, c in zip(boxes, labels, strict=True)]


def compare(peer: Any, net: Any, x: Tensor, y: list[Any]) -> None:
    named = [{"boxes": b, "labels": c, "masks": m} for b, c, m in y]
    theirs = {k: v.item() for k, v in peer.train()(list(x), named).items()}
    parts = net.train().parts(x, Objects.of(y), torch.arange(len(y)))
    ours = {k: (v.total.sum() / v.count.sum()).item() for k, v in parts.items()}
    print("losses of torchvision:", {k: round(v, 6) for k, v in sorted(theirs.items())})
    print("losses of groundstate:", {k: round(v, 6) for k, v in sorted(ours.items())})
    with torch.no_grad():
        a, b = peer.eval()(list(x)), net.eval()(x)
    for one, two in zip(a, b, strict=True):
        off = (one["boxes"] - two.boxes).abs().max().item() if len(two) else 0.0
        print(f"{len(one['boxes'])} and {len(two)} boxes, off by {off:.1e}, scores by "
              f"{(one['scores'] - two.scores).abs().max().item():.1e}, first {two.boxes[0].tolist()} "
              f"{two.scores[0].item():.6f}")  # fmt: skip


def tiny(mask: bool) -> None:
    settings: Any = {"fpn": 8, "levels": 2, "sizes": (12, 24, 48), "hidden": 16, "proposals": (60, 40),
                     "anchors_sampled": 10**6, "regions_sampled": 10**6}  # fmt: skip
    net = MaskRCNN(3, mask=4, **settings) if mask else FasterRCNN(3, **settings)
    waves(net)
    more: Any = {}
    if mask:
        from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor

        more = {
            "mask_roi_pool": poolers.MultiScaleRoIAlign(["0", "1"], 14, 2),
            "mask_head": MaskRCNNHeads(8, (4, 4, 4, 4), 1),
            "mask_predictor": MaskRCNNPredictor(4, 4, 3),
        }
    peer = (detection.MaskRCNN if mask else detection.FasterRCNN)(
        Maps(net.backbone), None, min_size=64, max_size=80, image_mean=[0.0] * 3, image_std=[1.0] * 3,
        rpn_anchor_generator=rpn.AnchorGenerator(((12,), (24,), (48,)), ((0.5, 1.0, 2.0),) * 3),
        rpn_pre_nms_top_n_train=60, rpn_pre_nms_top_n_test=40, rpn_post_nms_top_n_train=60,
        rpn_post_nms_top_n_test=40, rpn_batch_size_per_image=10**6, box_batch_size_per_image=10**6,
        box_roi_pool=poolers.MultiScaleRoIAlign(["0", "1"], 7, 2),
        box_head=detection.faster_rcnn.TwoMLPHead(8 * 49, 16),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(16, 3), **more,
    )  # fmt: skip
    state = {k.replace("backbone.", "backbone.own."): v for k, v in net.state_dict().items()}
    print("tiny, mask" if mask else "tiny, faster", peer.load_state_dict(state))
    peer.transform.size_divisible = 1  # no padding: pictures are of one size
    compare(peer, net, *scenes())


def full(kind: str) -> None:
    make = getattr(detection, f"{kind}rcnn_resnet50_fpn")
    torch.manual_seed(0)
    peer = make(weights=None, weights_backbone=None, num_classes=4, min_size=128, max_size=160,
                rpn_batch_size_per_image=10**6, box_batch_size_per_image=10**6)  # fmt: skip
    frozen(peer)
    with torch.no_grad():
        peer.rpn.head.cls_logits.weight.normal_(0, 0.05)
        peer.rpn.head.bbox_pred.weight.normal_(0, 0.02)
    peer.transform.image_mean, peer.transform.image_std = [0.0] * 3, [1.0] * 3
    net = (FasterRCNN if kind == "faster" else MaskRCNN)(
        4, "resnet50", frozen=True, anchors_sampled=10**6, regions_sampled=10**6
    )
    print(kind, "resnet50", net.load_state_dict(peer.state_dict(), strict=True))
    x, y = scenes()
    wide = nn.functional.interpolate(x, scale_factor=2)
    compare(peer, net, wide, [(b * 2, c, box_masks(b * 2, 128, 160)) for b, c, _ in y])


def frozen(module: nn.Module) -> None:
    """Batch norms as torchvision has them with the weights of COCO."""
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d):
            setattr(module, name, FrozenNorm(child.num_features, child.eps))
        else:
            frozen(child)


if __name__ == "__main__":
    fill_in()
    tiny(False)
    tiny(True)
    full("faster")
    full("mask")
