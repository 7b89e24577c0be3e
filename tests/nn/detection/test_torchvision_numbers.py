"""Numbers of torchvision 0.27 for the same weights, written by ``bench/scripts/detection_parity.py``.

That script also compares the networks on resnet50 (strict state dicts, losses and boxes).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from groundstate.compute.rows import Objects
from groundstate.energy.spaces.containers import box_masks
from groundstate.nn.detection.rcnn import MaskRCNN

LOSSES = {
    "box": 0.08614,
    "class": 1.240007,
    "mask": 0.721689,
    "objectness": 0.686058,
    "rpn_box": 0.003245,
}
FIRST = [
    ([68.49197387695312, 48.707679748535156, 76.19271850585938, 64.0], 0.377715),
    ([68.49199676513672, 48.70771408081055, 76.19274139404297, 64.0], 0.377715),
]


def waves(net: nn.Module) -> None:
    """Weights that need no random generator."""
    with torch.no_grad():
        for i, (name, p) in enumerate(net.named_parameters()):
            wave = torch.sin(torch.arange(p.numel(), dtype=torch.float64) * 1.7 + i).view(p.shape)
            size = 0.5 / max(1, p[0].numel()) ** 0.5 if p.ndim > 1 else 0.05
            p.copy_(wave * (size if "predictor" not in name else 4 * size))


@pytest.fixture
def net() -> MaskRCNN:
    with torch.random.fork_rng(devices=[]):
        made = MaskRCNN(
            3, mask=4, fpn=8, levels=2, sizes=(12, 24, 48), hidden=16, proposals=(60, 40),
            anchors_sampled=10**6, regions_sampled=10**6,
        )  # fmt: skip
    waves(made)
    return made


def pictures() -> torch.Tensor:
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(80.0), indexing="ij")
    return torch.stack(
        [torch.stack([((x * (c + 1) + y * (i + 1)) / 9).sin() for c in range(3)]) for i in range(2)]
    )


def test_losses(net: MaskRCNN) -> None:
    boxes = [torch.tensor([[8.0, 8, 30, 36], [40, 12, 74, 50]]), torch.tensor([[20.0, 24, 52, 60]])]
    labels = [torch.tensor([1, 2]), torch.tensor([2])]
    rows: list[Any] = [(b, c, box_masks(b, 64, 80)) for b, c in zip(boxes, labels, strict=True)]
    parts = net.train().parts(pictures(), Objects.of(rows), torch.arange(2))
    found = {k: (v.total.sum() / v.count.sum()).item() for k, v in parts.items()}
    assert found == pytest.approx(LOSSES, abs=1e-4)


def test_boxes(net: MaskRCNN) -> None:
    for found, (box, score) in zip(net.eval()(pictures()), FIRST, strict=True):
        assert len(found) == 77
        assert found.boxes[0].tolist() == pytest.approx(box, abs=1e-4)
        assert found.scores[0].item() == pytest.approx(score, abs=1e-5)
