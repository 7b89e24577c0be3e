"""R-CNN: a pass for every region, support vector machines and ridge regressions on its features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.nn.detection.test_fast_rcnn import scenes
from tests.nn.detection.test_rcnn import loss, seeded

from groundstate import LinearSVC, Ridge
from groundstate.compute.rows import Objects
from groundstate.models.vision.detection.machines import ALPHA, C, fit_machines
from groundstate.nn import RCNN, draw_rcnn
from groundstate.nn.detection.boxes import decode, encode, iou

SMALL: dict[str, Any] = {"crop": 16, "hidden": 12, "proposals": 40, "regions_sampled": 16}


def test_every_region_is_one_pass_of_the_network() -> None:
    x, _ = scenes()
    net = seeded(RCNN, 4, **SMALL).eval()
    regions = int(net.proposals(x).real.sum())
    passes: list[int] = []
    net.heads.box_head.backbone.register_forward_hook(
        lambda _, given, __: passes.append(len(given[0]))
    )
    net(x)
    assert sum(passes) == regions
    assert net.features(x, torch.tensor([[0.0, 0, 0, 9, 9]] * 600)).shape == (600, 12)


def test_machines_are_linear_svc_and_ridge_on_the_same_features() -> None:
    x, y = scenes(6)
    net = seeded(RCNN, 4, **SMALL).eval()
    fit_machines(net, [x[:4], x[4:]], y)
    assert bool(net.judged)
    sizes = y.boxes.lengths.tolist()
    truths, labels = y.boxes.values.double().split(sizes), y.labels.values.split(sizes)
    found = net.proposals(x)
    checked = 0
    for k in (1, 2, 3):
        rows: list[Any] = []
        for i in range(6):
            own = torch.cat([truths[i].float(), found.boxes[i][found.real[i]]])
            h = (
                net.features(x, torch.cat([torch.full((len(own), 1), float(i)), own], 1))
                .detach()
                .double()
            )
            same = truths[i][labels[i] == k]
            for j, region in enumerate(own.double()):
                best = float(iou(region[None], same).max()) if len(same) else 0.0
                true = j < len(labels[i]) and int(labels[i][j]) == k
                goal = (
                    encode(same[iou(region[None], same)[0].argmax()], region)
                    if best >= 0.6
                    else None
                )
                rows.append((h[j].numpy(), 1 if true else -1 if best < 0.3 else 0, goal))
        used = [(h, s) for h, s, _ in rows if s]
        machine = LinearSVC(C=C, max_iter=10_000).fit(
            np.array([h for h, _ in used]), [s for _, s in used]
        )
        np.testing.assert_allclose(net.weight[k - 1], machine.coef_[0], atol=1e-4)
        near = [(h, t.numpy()) for h, _, t in rows if t is not None]
        moved = Ridge(alpha=ALPHA).fit(
            np.array([h for h, _ in near]), np.array([t for _, t in near])
        )
        np.testing.assert_allclose(net.offset_weight[k - 1], moved.coef_, atol=1e-4)
        checked += len(near)
    assert checked > 6


def test_answers_are_margins_and_moved_boxes() -> None:
    x, y = scenes(3)
    net = seeded(RCNN, 4, **SMALL, lowest=0.0).eval()
    before = net(x)
    fit_machines(net, [x], y)
    after = net(x)
    assert len(before) == len(after) == 3
    proposals = net.proposals(x)
    own = proposals.boxes[0][proposals.real[0]]
    h = net.features(x, torch.cat([torch.zeros(len(own), 1), own], 1))
    scores = (h @ net.weight.T + net.bias).sigmoid()
    best = after[0]
    region = int(scores[:, int(best.labels[0]) - 1].argmax())
    torch.testing.assert_close(best.scores[0], scores.max())
    k = int(best.labels[0]) - 1
    offset = net.offset_weight[k] @ h[region] + net.offset_bias[k]
    torch.testing.assert_close(best.boxes[0], decode(offset, own[region]).clamp(0, 48))


def test_weight_two_is_the_picture_twice() -> None:
    x, y = scenes(3)
    nets = [seeded(RCNN, 4, **SMALL).eval() for _ in range(2)]
    fit_machines(nets[0], [x], y, np.array([1, 2, 1]))
    twice = torch.tensor([0, 1, 1, 2])
    sizes = y.boxes.lengths.tolist()
    boxes, labels = y.boxes.values.split(sizes), y.labels.values.split(sizes)
    fit_machines(nets[1], [x[twice]], Objects.of([(boxes[i], labels[i]) for i in twice.tolist()]))
    np.testing.assert_allclose(nets[0].weight, nets[1].weight, atol=1e-4)
    np.testing.assert_allclose(nets[0].offset_weight, nets[1].offset_weight, atol=1e-4)


def test_every_parameter_learns_also_without_objects() -> None:
    x, y = scenes()
    for truth in (y, Objects.of([([], [])] * 3)):
        net = seeded(RCNN, 4, **SMALL)
        loss(net.parts(x, truth, torch.arange(3))).backward()
        assert all(p.grad is not None for p in net.parameters())


def test_machines_without_objects_find_nothing_to_say() -> None:
    x, _ = scenes()
    net = seeded(RCNN, 4, **SMALL).eval()
    fit_machines(net, [x], Objects.of([([], [])] * 3))
    assert float(net.weight.abs().sum()) == 0


def test_drawing_has_the_sizes_of_the_network() -> None:
    text = str(draw_rcnn(seeded(RCNN, 4, **SMALL), (48, 48)).svg)
    assert "16 × 16 a region" in text and "3 linear SVMs" in text


def test_classes_count_the_background() -> None:
    with pytest.raises(ValueError, match="at least 2, got 1"):
        RCNN(1)
