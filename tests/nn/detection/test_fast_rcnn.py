"""Fast R-CNN: proposals on the picture, one pass of the backbone, pooled regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.nn.detection.test_rcnn import loss, seeded
from torch.nn import functional

from groundstate.compute.rows import Objects
from groundstate.data import make_shapes
from groundstate.nn import FastRCNN, draw_fast_rcnn
from groundstate.nn.detection.boxes import encode, iou
from groundstate.nn.detection.fast_rcnn import Proposals
from groundstate.nn.detection.parts import Padded
from groundstate.nn.detection.regions import selective_search

SMALL: dict[str, Any] = {"hidden": 32, "proposals": 60, "regions_sampled": 16}


def scenes(n: int = 3) -> tuple[torch.Tensor, Objects]:
    found = make_shapes(n, size=48, n_objects=(1, 3), random_state=0)
    x = torch.from_numpy(np.asarray(found.images)).float()
    return x, Objects.of([(b, c) for b, c in zip(found.boxes, found.labels, strict=True)])


def test_the_backbone_is_asked_once_whatever_the_number_of_regions() -> None:
    x, _ = scenes()
    for most in (1, 60):
        net = seeded(FastRCNN, 4, **{**SMALL, "proposals": most}).eval()
        calls: list[int] = []
        net.backbone.register_forward_hook(lambda *_: calls.append(1))  # noqa: B023
        net(x)
        assert len(calls) == 1


def test_proposals_are_those_of_selective_search_on_the_picture_once(monkeypatch: Any) -> None:
    x, y = scenes()
    propose = Proposals(60)
    found = propose(2 * x - 1)  # a standardised picture has the same regions
    shown = x[0].numpy()
    alone = selective_search((shown - shown.min()) / np.ptp(shown)).boxes
    np.testing.assert_allclose(found.boxes[0][found.real[0]], alone[-60:])
    inside = iou(Padded.of(y.boxes).boxes.float(), found.boxes).amax(2)
    assert bool((inside >= 0.5)[Padded.of(y.boxes).real].all())
    monkeypatch.setattr("groundstate.nn.detection.fast_rcnn.selective_search", None)
    assert torch.equal(propose(2 * x - 1).boxes, found.boxes)


def test_shapes_of_the_head_and_loss_by_hand() -> None:
    x, y = scenes(1)
    net = seeded(FastRCNN, 4, **SMALL).eval()
    regions = net.proposals(x).join(Padded.of(y.boxes))
    chosen = net.roi_heads.choose(regions, y)
    logits, offsets = net.roi_heads(net.maps(x), chosen.regions, (48, 48))
    R = int(regions.real.sum())
    assert logits.shape == (R, 4) and offsets.shape == (R, 4, 4)  # with the background
    truth = y.boxes.values.float()
    overlap = iou(chosen.regions[:, 1:], truth)
    label = torch.where(overlap.amax(1) >= 0.5, y.labels.values[overlap.argmax(1)], 0)
    assert torch.equal(label, chosen.labels)
    goal = encode(truth[overlap.argmax(1)], chosen.regions[:, 1:], (10, 10, 5, 5))
    own = offsets[torch.arange(R), label]
    misfit = functional.smooth_l1_loss(own, goal, beta=1 / 9, reduction="none").sum(1)
    parts = net.parts(x, y)
    fit = functional.cross_entropy(logits, label, reduction="sum")
    torch.testing.assert_close(parts["class"].total[0], fit)
    torch.testing.assert_close(parts["box"].total[0], misfit[label > 0].sum())


def test_a_quarter_of_the_sample_are_objects() -> None:
    _, y = scenes(1)
    net = seeded(FastRCNN, 4, **SMALL)
    near = y.boxes.values.float()[:1].repeat(40, 1) + 0.1
    far = torch.tensor([[0.0, 0, 2, 2]]).repeat(40, 1)
    regions = Padded(torch.cat([near, far])[None], torch.ones(1, 80, dtype=torch.bool))
    u = torch.rand(1, 80, generator=torch.Generator().manual_seed(0))
    labels = net.roi_heads.choose(regions, y, u).labels
    assert len(labels) == 16 and int((labels > 0).sum()) == 4
    assert FastRCNN(4, hidden=8).roi_heads.sample == 512


def test_pictures_do_not_see_each_other() -> None:
    net = seeded(FastRCNN, 4, **SMALL).double().eval()
    x, y = scenes()
    x, y = x.double(), y.floating(torch.float64)
    words = torch.tensor([5, 6, 7])
    together = net.parts(x, y, words)
    for i in range(3):
        alone = net.parts(x[i : i + 1], y[i : i + 1], words[i : i + 1])
        for name, part in alone.items():
            assert torch.allclose(part.total[0], together[name].total[i], atol=1e-10), name
            assert part.count[0] == together[name].count[i]


def test_every_parameter_learns_also_without_objects() -> None:
    x, y = scenes()
    for truth in (y, Objects.of([([], [])] * 3)):
        net = seeded(FastRCNN, 4, **SMALL)
        loss(net.parts(x, truth, torch.arange(3))).backward()
        assert all(p.grad is not None for p in net.parameters())


def test_drawing_has_the_sizes_of_the_network() -> None:
    text = str(draw_fast_rcnn(seeded(FastRCNN, 4, **SMALL), (48, 48)).svg)
    assert "at most 60" in text and "64 × 7 × 7" in text and "4 logits" in text


def test_classes_count_the_background() -> None:
    with pytest.raises(ValueError, match="at least 2, got 1"):
        FastRCNN(1)
