"""Average precision of detections: COCO's numbers, curves by hand, batches, masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.metrics import DetectionAccumulator, average_precision_detection

NAMES = (
    "ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar_1", "ar_10", "ar", "ar_small",
    "ar_medium", "ar_large",
)  # fmt: skip
TRUTH = {"boxes": [[0, 0, 10, 10], [20, 20, 30, 30]], "labels": [1, 1]}
FOUND = {
    "boxes": [[0, 0, 10, 10], [50, 50, 60, 60], [20, 20, 30, 30]],
    "labels": [1, 1, 1],
    "scores": [0.9, 0.8, 0.7],
}
COCO = {
    (30, 5, 3): [
        0.06516445,
        0.168472183,
        0.036904715,
        0.043987898,
        0.110142555,
        0.73276992,
        0.06957266,
        0.357988184,
        0.383181421,
        0.20826974,
        0.623156288,
        0.883333333,
    ],
    (50, 3, 0): [
        0.088108709,
        0.208624478,
        0.067983116,
        0.042906052,
        0.148388335,
        0.621121902,
        0.063600589,
        0.374480219,
        0.41225484,
        0.220746032,
        0.636679293,
        0.836904762,
    ],
}
NOTHING: dict[str, Any] = {"boxes": [], "labels": [], "scores": []}


def images(n: int, K: int, seed: int) -> Any:
    """Truths, some of them crowds, with two detections near each and some anywhere; tied scores."""
    rng = np.random.default_rng(seed)
    truths, predictions = [], []
    for _ in range(n):
        m = rng.integers(0, 15)
        side, corner = 10 ** rng.uniform(0.7, 2.3, (m, 2)), rng.uniform(0, 400, (m, 2))
        boxes, labels = (
            np.concatenate([corner, corner + side], 1).round(2),
            rng.integers(1, K + 1, m),
        )
        crowd = rng.uniform(size=m) < 0.1
        area = (side.prod(1) * rng.uniform(0.5, 1, m)).round(2)
        truths.append({"boxes": boxes, "labels": labels, "iscrowd": crowd, "area": area})
        k = rng.integers(0, 6)
        near = np.repeat(boxes, 2, 0) + rng.normal(0, 4, (2 * m, 4))
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
        far = rng.uniform(0, 400, (k * 5, 2))
        far = np.concatenate([far, far + rng.uniform(1, 100, (k * 5, 2))], 1)
        found = np.concatenate([np.repeat(labels, 2), rng.integers(1, K + 1, k * 5)])
        wrong = rng.uniform(size=len(found)) < 0.1
        found = np.where(wrong, rng.integers(1, K + 1, len(found)), found)
        predictions.append({"boxes": np.concatenate([near, far]).round(2), "labels": found,
                            "scores": rng.uniform(size=len(found)).round(2)})  # fmt: skip
    return truths, predictions


def numbers(scores: Any) -> list[float]:
    return [getattr(scores, name) for name in NAMES]


def test_the_numbers_of_the_specification() -> None:
    assert average_precision_detection([TRUTH], [FOUND]).ap == pytest.approx(0.834983, abs=1e-6)
    whole = average_precision_detection([TRUTH], [FOUND], interpolation="all")
    assert whole.ap == pytest.approx(0.833333, abs=1e-6)


def test_parity_with_pycocotools() -> None:
    """COCOeval(gt, dt, "bbox").stats of pycocotools 2.0 on the same images."""
    for (n, K, seed), expected in COCO.items():
        found = average_precision_detection(*images(n, K, seed))
        np.testing.assert_allclose(numbers(found), expected, atol=1e-6)


def test_batches_and_shards_are_the_whole() -> None:
    truths, predictions = images(20, 4, 1)
    whole = average_precision_detection(truths, predictions)
    one, two = DetectionAccumulator(), DetectionAccumulator()
    one.update(truths[:5], predictions[:5])
    one.update(truths[5:9], predictions[5:9])
    two.update(truths[9:], predictions[9:])
    np.testing.assert_array_equal(numbers((one + two).scores()), numbers(whole))
    with pytest.raises(ValueError, match="different settings"):
        one + DetectionAccumulator(0.5)


def test_tensors_words_and_order_of_images_do_not_matter() -> None:
    (truths, predictions), rng = images(15, 3, 2), np.random.default_rng(0)
    for each in predictions:  # no ties, which go by the order of images
        each["scores"] = each["scores"] + rng.uniform(size=len(each["scores"]))
    whole = numbers(average_precision_detection(truths, predictions))
    tensors = [
        [{k: torch.as_tensor(v) for k, v in row.items()} for row in rows]
        for rows in (truths, predictions)
    ]
    np.testing.assert_array_equal(numbers(average_precision_detection(*tensors)), whole)
    for row in (*truths, *predictions):
        row["labels"] = np.array(["ant", "bee", "cat"])[row["labels"] - 1]
    scores = average_precision_detection(truths[::-1], predictions[::-1])
    np.testing.assert_allclose(numbers(scores), whole, atol=1e-12)
    assert scores.classes == ["ant", "bee", "cat"] and scores.per_class.shape == (3,)
    assert np.nanmean(scores.per_class) == pytest.approx(scores.ap)


def test_perfect_empty_and_ignored() -> None:
    perfect = average_precision_detection(
        [TRUTH, NOTHING], [{**TRUTH, "scores": [0.5, 0.4]}, NOTHING]
    )
    assert perfect.ap == perfect.ar == perfect.ap_small == 1 and math.isnan(perfect.ap_large)
    assert perfect.ar_1 == 0.5
    assert average_precision_detection([TRUTH], [NOTHING]).ap == 0
    assert math.isnan(average_precision_detection([NOTHING], [NOTHING]).ap)
    assert math.isnan(average_precision_detection([NOTHING], [FOUND]).ap)
    ignored = {**TRUTH, "ignore": [False, True]}  # neither counts its detection nor misses it
    found = average_precision_detection([ignored], [FOUND])
    assert found.ap == 1 and found.ar == 1
    twice = {**FOUND, "boxes": [[0, 0, 10, 10]] * 3}  # one truth counts once
    assert average_precision_detection([TRUTH], [twice], interpolation="all").ap == 0.5
    crowd = {"boxes": [[0, 0, 100, 100], [200, 200, 210, 210]], "labels": [1, 1], "iscrowd": [1, 0]}
    inside = {"boxes": [[0, 0, 10, 10], [50, 50, 60, 60], [200, 200, 210, 210]],
              "labels": [1, 1, 1], "scores": [0.9, 0.8, 0.7]}  # fmt: skip
    assert average_precision_detection([crowd], [inside]).ap == 1


def test_limits_and_thresholds() -> None:
    one = average_precision_detection([TRUTH], [FOUND], max_detections=1)
    assert one.ar == 0.5
    shifted = {**FOUND, "boxes": [[0, 0, 10, 6], [50, 50, 60, 60], [20, 20, 30, 30]]}
    assert average_precision_detection([TRUTH], [shifted], thresholds=0.5).ar == 1
    assert average_precision_detection([TRUTH], [shifted], thresholds=0.61).ar == 0.5
    assert math.isnan(average_precision_detection([TRUTH], [shifted], thresholds=0.61).ap50)


def test_masks_of_boxes_are_boxes() -> None:
    rng = np.random.default_rng(0)

    def drawn(n: int, m: int) -> dict[str, Any]:
        corner = rng.integers(0, 30, (n, 2))
        boxes = np.concatenate([corner, corner + rng.integers(3, 18, (n, 2))], 1)
        masks = np.zeros((n, 48, 48), bool)
        for (x1, y1, x2, y2), mask in zip(boxes, masks):
            mask[y1:y2, x1:x2] = True
        return {"boxes": boxes, "labels": rng.integers(0, 2, n), "masks": masks,
                "scores": rng.uniform(size=n)}  # fmt: skip

    truths = [{**drawn(6, 48), "iscrowd": rng.uniform(size=6) < 0.2} for _ in range(8)]
    predictions = [drawn(25, 48) for _ in range(7)] + [drawn(0, 48)]
    for level in (0.1, 0.3, None):
        by_mask = average_precision_detection(truths, predictions, thresholds=level, masks=True)
        by_box = average_precision_detection(truths, predictions, thresholds=level)
        np.testing.assert_allclose(numbers(by_mask), numbers(by_box), atol=1e-12)
    assert by_box.ar > 0
    with pytest.raises(DataError, match=r"predictions\[0\] needs 'masks'"):
        average_precision_detection([truths[0]], [FOUND], masks=True)


def test_bad_input_is_named() -> None:
    with pytest.raises(ShapeError, match="one entry for each image, got 1 and 2"):
        average_precision_detection([TRUTH], [FOUND, FOUND])
    with pytest.raises(DataError, match=r"predictions\[0\] needs 'scores'"):
        average_precision_detection([TRUTH], [TRUTH])
    with pytest.raises(DataError, match=r"truths\[0\] needs 'boxes'"):
        average_precision_detection([{"labels": [1]}], [FOUND])
    with pytest.raises(ShapeError, match=r"boxes \(n, 4\) and labels \(n,\)"):
        average_precision_detection([{"boxes": [[0, 0, 1, 1]], "labels": [1, 2]}], [FOUND])
    with pytest.raises(ShapeError, match="3 boxes but scores of shape"):
        average_precision_detection([TRUTH], [{**FOUND, "scores": [0.5]}])
    with pytest.raises(DataError, match="NaN or infinity"):
        average_precision_detection([TRUTH], [{**FOUND, "scores": [0.5, math.nan, 1]}])
    with pytest.raises(DataError, match="words in one place and numbers in another"):
        average_precision_detection([TRUTH], [{**FOUND, "labels": ["a", "b", "c"]}])
    with pytest.raises(ValueError, match="'101' or 'all', got 'voc'"):
        average_precision_detection([TRUTH], [FOUND], interpolation="voc")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        average_precision_detection([TRUTH], [FOUND], thresholds=0)
    with pytest.raises(DataError, match="no images yet"):
        DetectionAccumulator().scores()
