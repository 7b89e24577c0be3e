"""Region proposals, heads on regions, Faster and Mask R-CNN."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch.nn import functional

from groundstate.compute.rows import Objects
from groundstate.energy.spaces import ObjectSpace
from groundstate.nn.detection.anchors import AnchorGenerator
from groundstate.nn.detection.backbone import Backbone, FrozenNorm, freeze_norms
from groundstate.nn.detection.parts import Padded, Parts
from groundstate.nn.detection.rcnn import FasterRCNN, MaskRCNN
from groundstate.nn.detection.roi_heads import paste_masks
from groundstate.nn.detection.rpn import RPN, RegionProposals
from groundstate.nn.inspect.detectors import draw_detector, draw_rpn
from groundstate.store import dumps, loads

SMALL: dict[str, Any] = {
    "fpn": 16, "levels": 2, "sizes": (12, 24, 48), "hidden": 32, "proposals": (60, 40),
    "regions_sampled": 32, "anchors_sampled": 64,
}  # fmt: skip


def seeded(make: Any, *args: Any, **settings: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return make(*args, **settings)


def scenes(n: int = 3, masks: bool = True) -> tuple[torch.Tensor, Objects]:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(n, 3, 48, 64, generator=generator)
    return x, ObjectSpace(2, 48, 64, masks).draw(n, generator=generator)


def loss(parts: Parts) -> torch.Tensor:
    return torch.stack([p.total.sum() / p.count.sum().clamp(min=1) for p in parts.values()]).sum()


def test_shapes_of_the_head() -> None:
    objectness, offsets = RPN(8, 3)(torch.zeros(2, 8, 5, 6))
    assert objectness.shape == (2, 3, 5, 6) and offsets.shape == (2, 12, 5, 6)


def test_two_scores_and_softmax_are_one_logit() -> None:
    head = seeded(RPN, 8, 3, softmax=True).double()
    x = torch.rand(2, 8, 4, 4, dtype=torch.float64)
    both = head.scores(x)
    assert both.shape == (2, 6, 4, 4)
    p = torch.stack([both[:, :3], both[:, 3:]]).softmax(0)[1]
    assert torch.allclose(head(x)[0].sigmoid(), p, atol=1e-12)


def proposer() -> tuple[RegionProposals, list[torch.Tensor]]:
    net = seeded(RegionProposals, seeded(RPN, 4, 1), AnchorGenerator((16,), (1.0,)), sample=8)
    return net, [torch.rand(2, 4, 4, 4, generator=torch.Generator().manual_seed(0))]


def test_loss_of_anchors_by_hand() -> None:
    net, maps = proposer()
    found = net(maps, (64, 64))
    truth = Objects.of([([[8, 8, 24, 24]], [1]), ([], [])])  # the anchor of cell (1, 1)
    parts = net.parts(found, Padded.of(truth.boxes))
    logit, at = found.objectness, 5
    label = torch.zeros(2, 16)
    label[0, at] = 1.0
    fit = functional.binary_cross_entropy_with_logits(logit, label, reduction="none")
    assert torch.allclose(parts["objectness"].total, fit.sum(1))
    t = found.offsets[0, at].abs()
    each = torch.where(t < 1 / 9, 0.5 * t**2 * 9, t - 0.5 / 9)
    assert torch.allclose(parts["rpn_box"].total, torch.stack([each.sum(), torch.tensor(0.0)]))
    assert parts["objectness"].count.tolist() == [16, 16]


def test_proposals_are_inside_and_thinned_out() -> None:
    from groundstate.nn.detection.boxes import iou

    net, maps = proposer()
    boxes, chance = net.eval().proposals(net(maps, (64, 64)))
    for b, real, p in zip(boxes.boxes, boxes.real, chance.padded(-1.0), strict=True):
        own = b[real]
        assert bool((own >= 0).all()) and bool((own <= 64).all()) and len(own)
        assert float((iou(own, own) - torch.eye(len(own))).max()) <= 0.7
        assert bool((p[real].diff() <= 0).all())


def test_as_many_proposals_as_asked_for() -> None:
    net, maps = proposer()
    net.before, net.after = (16, 5), (16, 3)
    counts = net.proposals(net(maps, (64, 64)))[0].real.sum(1)
    assert bool((counts > 3).all())
    assert net.eval().proposals(net(maps, (64, 64)))[0].real.sum(1).tolist() == [3, 3]


@pytest.mark.parametrize("kind", [FasterRCNN, MaskRCNN])
def test_every_parameter_learns(kind: type[FasterRCNN]) -> None:
    more = {"mask": 8} if kind is MaskRCNN else {}
    net = seeded(kind, 3, **SMALL, **more)
    x, y = scenes()
    loss(net.parts(x, y, torch.arange(3))).backward()
    # offsets of the background and maps of classes that nothing is of have no reason to move
    assert all(p.grad is not None for p in net.parameters())


def test_pictures_do_not_see_each_other() -> None:
    net = seeded(MaskRCNN, 3, **SMALL, mask=8).double().eval()
    x, y = scenes()
    x, y = x.double(), y.floating(torch.float64)
    words = torch.tensor([5, 6, 7])
    together = net.parts(x, y, words)
    for i in range(3):
        alone = net.parts(x[i : i + 1], y[i : i + 1], words[i : i + 1])
        for name, part in alone.items():
            assert torch.allclose(part.total[0], together[name].total[i], atol=1e-10), name
            assert part.count[0] == together[name].count[i]
    for i, found in enumerate(net(x)):
        (alone,) = net(x[i : i + 1])
        assert torch.allclose(alone.boxes, found.boxes) and torch.equal(alone.labels, found.labels)


def test_a_word_chooses_the_sample() -> None:
    net = seeded(FasterRCNN, 3, **{**SMALL, "anchors_sampled": 16, "regions_sampled": 8})
    x, y = scenes(masks=False)
    one, same, other = (net.parts(x, y, torch.full((3,), w)) for w in (1, 1, 2))
    assert all(torch.equal(one[k].total, same[k].total) for k in one)
    assert any(not torch.equal(one[k].total, other[k].total) for k in one)
    assert one["objectness"].count.tolist() == [16] * 3 and one["class"].count.tolist() == [8] * 3


def test_mask_loss_looks_at_the_true_class_alone() -> None:
    net = seeded(MaskRCNN, 4, **SMALL, mask=8)
    x = torch.rand(1, 3, 48, 64, generator=torch.Generator().manual_seed(2))
    mask = torch.zeros(1, 48, 64)
    mask[0, 8:30, 8:40] = 1
    y = Objects.of([([[8, 8, 40, 30]], [2], mask)])
    net.parts(x, y, torch.arange(1))["mask"].total.sum().backward()
    grad = net.roi_heads.mask_predictor.mask_fcn_logits.weight.grad.flatten(1).abs().sum(1)
    assert grad[2] > 0 and grad[[0, 1, 3]].tolist() == [0.0, 0.0, 0.0]


def test_pictures_without_objects() -> None:
    net = seeded(MaskRCNN, 3, **SMALL, mask=8)
    x, _ = scenes()
    empty = Objects.of([([], [], torch.zeros(0, 48, 64))] * 3)
    parts = net.parts(x, empty, torch.arange(3))
    for name in ("rpn_box", "box", "mask"):
        assert parts[name].total.tolist() == [0.0] * 3
    loss(parts).backward()


def test_nothing_found_is_an_answer() -> None:
    net = seeded(MaskRCNN, 3, **SMALL, mask=8, lowest=0.999).eval()
    found = net(torch.zeros(2, 3, 48, 64))
    assert [len(f) for f in found] == [0, 0]
    assert found[0].masks is not None and found[0].masks.shape == (0, 48, 64)


def test_the_backbone_is_asked_once_and_no_proposal_comes_from_the_picture() -> None:
    net = seeded(FasterRCNN, 3, **SMALL).eval()
    calls: list[int] = []
    net.backbone.register_forward_hook(lambda *_: calls.append(1))
    net(torch.zeros(2, 3, 48, 64))
    assert len(calls) == 1


@pytest.mark.parametrize("size", [(48, 48), (64, 80), (50, 70)])
def test_any_size_of_picture(size: tuple[int, int]) -> None:
    net = seeded(FasterRCNN, 3, **SMALL).eval()
    for found in net(torch.rand(2, 3, *size)):
        assert bool((found.boxes[:, 2] <= size[1]).all() & (found.boxes[:, 3] <= size[0]).all())


def test_one_map_without_a_pyramid() -> None:
    net = seeded(FasterRCNN, 3, fpn=None, sizes=(12, 24), hidden=16)
    x, y = scenes(masks=False)
    loss(net.parts(x, y, torch.arange(3))).backward()
    assert net.rpn.anchors.k == [6] and len(net.eval()(x)) == 3


def test_names_are_those_of_torchvision() -> None:
    """Names of ``torchvision.models.detection.maskrcnn_resnet50_fpn(weights_backbone=None)``."""
    with torch.device("meta"):
        names = set(MaskRCNN(91, Stub(), frozen=True).state_dict())
    want = {
        "backbone.fpn.inner_blocks.0.0.weight", "backbone.fpn.layer_blocks.1.0.bias",
        "rpn.head.conv.0.0.weight", "rpn.head.cls_logits.bias", "rpn.head.bbox_pred.weight",
        "roi_heads.box_head.fc6.weight", "roi_heads.box_head.fc7.bias",
        "roi_heads.box_predictor.cls_score.weight", "roi_heads.box_predictor.bbox_pred.bias",
        "roi_heads.mask_head.0.0.weight", "roi_heads.mask_head.3.0.bias",
        "roi_heads.mask_predictor.conv5_mask.weight", "roi_heads.mask_predictor.mask_fcn_logits.bias",
    }  # fmt: skip
    assert want <= names and not [
        n for n in names if n.split(".")[0] not in ("backbone", "rpn", "roi_heads")
    ]


class Stub(torch.nn.Module):
    def stages(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x.new_zeros(1, 8 * 2**i, 16 // 2**i, 16 // 2**i) for i in range(4)]


def test_settings_are_kept_in_a_file() -> None:
    net = seeded(MaskRCNN, 3, **SMALL, mask=8).eval()
    back = loads(dumps(net))
    x, _ = scenes(2)
    assert isinstance(back, MaskRCNN)
    for a, b in zip(net(x), back.eval()(x), strict=True):
        assert torch.equal(a.boxes, b.boxes)


def test_a_frozen_norm_is_a_batch_norm_that_stays() -> None:
    norm = torch.nn.BatchNorm2d(3)
    with torch.no_grad():
        for v in (norm.weight, norm.bias, norm.running_mean):
            v.normal_(generator=torch.Generator().manual_seed(0))
    holder = torch.nn.Sequential(norm.eval())
    x = torch.rand(2, 3, 4, 4)
    before = holder(x)
    frozen = freeze_norms(holder)
    assert isinstance(frozen.get_submodule("0"), FrozenNorm) and not list(frozen.parameters())
    assert torch.allclose(frozen.train()(x), before, atol=1e-6)


def test_wrong_settings() -> None:
    with pytest.raises(ValueError, match="counts the background"):
        FasterRCNN(1, **SMALL)
    with pytest.raises(ValueError, match="as many sizes of anchors"):
        FasterRCNN(3, **{**SMALL, "sizes": (8, 16)})
    with pytest.raises(ValueError, match="method stages"):
        Backbone(torch.nn.Conv2d(3, 3, 1))
    with pytest.raises(ValueError, match="cannot stand on 5"):
        Backbone("small", levels=5)
    with pytest.raises(ValueError, match=r"takes \(N, 3, height, width\)"):
        FasterRCNN(3, **SMALL)(torch.zeros(1, 1, 48, 48))


def test_masks_are_pasted_where_their_box_is() -> None:
    ramp = torch.linspace(0, 1, 28).expand(1, 28, 28)
    found = paste_masks(ramp, torch.tensor([[4.0, 2.0, 12.0, 10.0]]), (12, 16))[0]
    assert found.shape == (12, 16)
    assert float(found[:2].sum() + found[10:].sum() + found[:, :4].sum() + found[:, 12:].sum()) == 0
    inside = found[2:10, 4:12]
    assert torch.allclose(inside, inside[:1].expand(8, 8)) and bool((inside[0].diff() > 0).all())
    whole = paste_masks(torch.ones(1, 28, 28), torch.tensor([[0.0, 0.0, 16.0, 12.0]]), (12, 16))
    assert torch.equal(whole, torch.ones(1, 12, 16))


def test_drawings_have_the_sizes_of_the_network() -> None:
    net = seeded(MaskRCNN, 4, **SMALL, mask=8)
    picture = draw_detector(net, (48, 64))
    ElementTree.fromstring(picture.svg)
    assert (picture.nodes, picture.edges) == (12, 12)
    for said in ("3 × 48 × 64", "3 maps, 16 channels", "4 logits, softmax", "4 × 28 × 28, sigmoid"):
        assert said in picture.svg
    proposals = draw_rpn(RPN(256, 9, softmax=True), AnchorGenerator())
    ElementTree.fromstring(proposals.svg)
    assert "18 scores, softmax" in proposals.svg and "36 offsets" in proposals.svg
    assert "3 sizes × 3 ratios a cell" in proposals.svg


def test_a_batch_without_rows() -> None:
    net = seeded(MaskRCNN, 3, **SMALL, mask=8)
    x, y = scenes()
    parts = net.parts(x[:0], y[torch.zeros(0).long()], torch.zeros(0).long())
    assert all(part.total.shape == (0,) for part in parts.values())
    assert net.eval()(x[:0]) == []


def test_products_in_bf16_leave_boxes_in_full() -> None:
    net = seeded(MaskRCNN, 3, **SMALL, mask=8)
    x, y = scenes()
    exact = net.parts(x, y, torch.arange(3))
    with torch.autocast("cpu", torch.bfloat16):
        found = net.rpn(net.maps(x), (48, 64))
        half = net.parts(x, y, torch.arange(3))
    assert found.objectness.dtype == torch.bfloat16 and found.anchors.dtype == torch.float32
    for name, part in half.items():
        assert part.total.dtype == torch.float32
        assert torch.allclose(part.total, exact[name].total, rtol=0.2, atol=1.0), name
    loss(half).backward()
