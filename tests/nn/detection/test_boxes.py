"""Boxes: overlap, offsets, forms; suppression as its definition says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.nn.detection.reference import share, suppress

import groundstate
from groundstate.errors import DataError, ShapeError
from groundstate.nn.detection import boxes as B
from groundstate.nn.detection.nms import _fixed_point, _soften


def some(n: int, seed: int = 0, side: float = 60.0) -> Any:
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 200, (n, 2))
    return np.concatenate([corner, corner + rng.uniform(1, side, (n, 2))], 1)


def test_the_numbers_of_the_specification() -> None:
    a, b, c = [0, 0, 10, 10], [5, 5, 15, 15], [1, 1, 11, 11]
    assert B.iou([a], [b]).item() == pytest.approx(1 / 7, abs=1e-12)
    assert B.giou([a], [b]).item() == pytest.approx(-0.079365, abs=1e-6)
    assert B.iou([a], [c]).item() == pytest.approx(0.680672, abs=1e-6)
    np.testing.assert_allclose(B.encode([0, 0, 20, 10], a), [0.5, 0, math.log(2), 0], atol=1e-12)
    three = [a, c, [80, 80, 90, 90]]
    assert B.nms(three, [0.9, 0.8, 0.5], 0.5).tolist() == [0, 2]
    assert B.nms(three, [0.9, 0.8, 0.5], 0.7).tolist() == [0, 1, 2]


def test_public_name() -> None:
    assert groundstate.vision.boxes is B
    assert groundstate.vision.roi_align.__name__ == "roi_align"


def test_overlap_of_all_pairs_and_of_matched_boxes() -> None:
    a, b = some(30), some(20, 1)
    pairs = B.iou(a, b)
    expected = np.array([[share(p, q) for q in b] for p in a])
    np.testing.assert_allclose(pairs, expected, atol=1e-12)
    np.testing.assert_allclose(B.iou(a[:20], b, paired=True), np.diag(expected[:20]), atol=1e-12)
    np.testing.assert_allclose(B.iou(a, b), B.iou(b, a).T)
    assert (B.giou(a, b) <= pairs + 1e-12).all() and (B.giou(a, b) >= -1).all()
    batch = B.iou(np.stack([a, a + 1]), np.stack([b, b + 1]))  # a shift changes nothing
    np.testing.assert_allclose(batch, np.stack([expected, expected]), atol=1e-12)


def test_boxes_without_area_have_no_overlap() -> None:
    point, box = [3, 3, 3, 3], [0, 0, 5, 5]
    assert B.area([point, [4, 4, 2, 9]]).tolist() == [0, 0]
    assert B.iou([point], [point]).item() == 0 and B.iou([point], [box]).item() == 0
    assert B.giou([point], [point]).item() == 0
    assert B.nms([point, point], [0.5, 0.9]).tolist() == [1, 0]


def test_decode_undoes_encode() -> None:
    boxes, anchors = some(50), some(50, 3)
    for weights in ((1, 1, 1, 1), (10, 10, 5, 5)):
        back = B.decode(B.encode(boxes, anchors, weights), anchors, weights)
        np.testing.assert_allclose(back, boxes, atol=1e-10)
    far = B.decode([0, 0, 50.0, 50.0], [0, 0, 16, 16])
    np.testing.assert_allclose(far[2:] - far[:2], 1000)  # log(1000/16) is the largest
    by_class = B.decode(np.zeros((50, 7, 4)), anchors[:, None])
    np.testing.assert_allclose(by_class, np.repeat(anchors[:, None], 7, 1))


def test_forms_convert_into_each_other() -> None:
    boxes = some(10)
    for source in ("xyxy", "xywh", "cxcywh"):
        there = B.convert(boxes, "xyxy", source)
        for target in ("xyxy", "xywh", "cxcywh"):
            np.testing.assert_allclose(
                B.convert(there, source, target), B.convert(boxes, "xyxy", target), atol=1e-12
            )
    with pytest.raises(ValueError, match="one of xyxy, xywh, cxcywh, got 'yolo'"):
        B.convert(boxes, "yolo")


def test_clip_stays_in_the_image_and_is_idempotent() -> None:
    boxes = some(40) - 50
    inside = B.clip(boxes, (60, 90))
    assert inside.min() >= 0 and inside[:, 2].max() <= 90 and inside[:, 3].max() <= 60
    np.testing.assert_array_equal(B.clip(inside, (60, 90)), inside)


def test_bad_boxes_are_named() -> None:
    with pytest.raises(DataError, match=r"boxes\[1\] = \(5, 5, 5, 9\) has no positive width"):
        B.encode([[0, 0, 1, 1], [5, 5, 5, 9]], [[0, 0, 1, 1]])
    with pytest.raises(ShapeError, match=r"boxes need shape \(\.\.\., 4\), got \(2, 3\)"):
        B.area(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="paired=True"):
        B.iou([0, 0, 1, 1], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="boxes holds NaN or infinity"):
        B.nms([[0, 0, math.nan, 1]], [1.0])
    with pytest.raises(ShapeError, match=r"scores need shape \(1,\)"):
        B.nms([[0, 0, 1, 1]], [1.0, 2.0])
    with pytest.raises(ValueError, match="from 0 to 1, got 2"):
        B.nms([[0, 0, 1, 1]], [1.0], 2)
    with pytest.raises(ShapeError, match="labels need shape"):
        B.batched_nms([[0, 0, 1, 1]], [1.0], [0.5])


def test_gradients_in_double_precision() -> None:
    a, b = (torch.tensor(some(4, s, 200.0), requires_grad=True) for s in (0, 1))
    for f in (B.iou, B.giou, lambda a, b: B.encode(a, b), lambda a, b: B.decode(a / 300, b)):
        assert torch.autograd.gradcheck(f, (a, b))


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_suppression_is_the_definition_on_1000_boxes(threshold: float) -> None:
    boxes = some(1000)
    scores = np.random.default_rng(1).uniform(size=1000).round(2)  # with ties
    expected = suppress(boxes, scores, threshold)
    assert B.nms(boxes, scores, threshold).tolist() == expected
    order = np.argsort(-scores, kind="stable")
    bits = _fixed_point(torch.tensor(boxes[order]), None, threshold).numpy()  # accelerators' way
    assert order[bits].tolist() == expected


@pytest.mark.parametrize("seed", range(8))
def test_suppression_of_clusters_lines_and_inverted_boxes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    middles, n = rng.uniform(-500, 500, (6, 2)), 400
    centre = middles[rng.integers(0, 6, n)] + rng.normal(0, 10 ** rng.uniform(-2, 2), (n, 2))
    sides = 10 ** rng.uniform(-1, 3, (n, 2)) if seed % 2 else np.full((n, 2), 30.0)
    sides[rng.uniform(size=n) < 0.1] *= rng.choice([-1.0, 0.0], 2)
    boxes = np.concatenate([centre - sides / 2, centre + sides / 2], 1)
    if seed == 7:
        boxes[:, 1::2] = 0, 1  # all on a line
    scores, threshold = rng.uniform(size=n), rng.uniform()
    assert B.nms(boxes, scores, threshold).tolist() == suppress(boxes, scores, threshold)


def test_suppression_by_label_is_suppression_of_each_label() -> None:
    boxes, rng = some(600), np.random.default_rng(2)
    scores, labels = rng.uniform(size=600).round(2), rng.integers(0, 5, 600)
    kept = B.batched_nms(boxes, scores, labels, 0.4)
    each = [np.flatnonzero(labels == k) for k in range(5)]
    expected = np.concatenate([i[suppress(boxes[i], scores[i], 0.4)] for i in each])
    assert kept.tolist() == sorted(expected.tolist(), key=lambda i: (-scores[i], i))
    order = np.argsort(-scores, kind="stable")
    bits = _fixed_point(torch.tensor(boxes[order]), torch.tensor(labels[order]), 0.4).numpy()
    assert order[bits].tolist() == kept.tolist()
    one = B.batched_nms(boxes, scores, np.zeros(600, int), 0.4)
    assert one.tolist() == B.nms(boxes, scores, 0.4).tolist()


def test_suppression_keeps_dtype_device_and_order() -> None:
    boxes, scores = some(300), np.random.default_rng(0).uniform(size=300)
    kept = B.nms(torch.tensor(boxes), torch.tensor(scores))
    assert isinstance(kept, torch.Tensor) and kept.dtype == torch.int64
    assert (np.diff(scores[kept]) <= 0).all()
    turn = np.random.default_rng(1).permutation(300)
    assert turn[B.nms(boxes[turn], scores[turn])].tolist() == kept.tolist()
    again = B.nms(boxes[kept], scores[kept])
    assert again.tolist() == list(range(len(kept)))
    assert B.nms(np.zeros((0, 4)), np.zeros(0)).shape == (0,)
    assert B.batched_nms(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int)).shape == (0,)
    half = B.nms(torch.tensor(boxes).to(torch.bfloat16), torch.tensor(scores))
    assert half.dtype == torch.int64


def test_an_overlap_at_the_threshold_stays() -> None:
    pair = torch.tensor([[0.0, 0, 10, 1], [0, 0, 1, 1]])  # IoU 1/10
    for dtype in (torch.float32, torch.float64):
        assert B.nms(pair.to(dtype), torch.tensor([0.9, 0.8]), 0.1).tolist() == [0, 1]


@pytest.mark.parametrize("method", ["gaussian", "linear"])
def test_soft_suppression_lowers_scores_as_written(method: Any) -> None:
    boxes = some(80)
    scores = np.random.default_rng(3).uniform(size=80)
    left, expected = {i: float(s) for i, s in enumerate(scores)}, []
    while left:
        best = max(left, key=lambda i: (left[i], -i))
        if left[best] < 0.001:
            break
        expected.append((best, left.pop(best)))
        for j in left:
            o = share(boxes[best], boxes[j])
            left[j] *= math.exp(-o * o / 0.5) if method == "gaussian" else 1 - o * (o > 0.3)
    keep, lowered = B.soft_nms(boxes, scores, method=method)
    assert keep.tolist() == [i for i, _ in expected]
    np.testing.assert_allclose(lowered, [s for _, s in expected], rtol=1e-12)
    width = 0.5 if method == "gaussian" else 0.0
    there, also = _soften(torch.tensor(boxes), torch.tensor(scores), width, 0.3, 0.001)
    assert there.tolist() == keep.tolist()
    np.testing.assert_allclose(also, lowered, rtol=1e-10)


def test_soft_suppression_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="'gaussian' or 'linear', got 'hard'"):
        B.soft_nms([[0, 0, 1, 1]], [1.0], method="hard")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sigma must be positive, got 0"):
        B.soft_nms([[0, 0, 1, 1]], [1.0], sigma=0)
