"""Suppression, RoIAlign and average precision beside torchvision's code, pycocotools and torchmetrics.

The torchvision of the benchmark machine has no compiled operators, so its loop of ``nms`` stands here
as a transcription that numba compiles, and its RoIAlign is the version in torch that it ships.
"""

from __future__ import annotations

import contextlib
import io
from functools import cache
from typing import Any

from groundstate.bench import Benchmark, Peer


def crowded(size: int, seed: int) -> dict[str, Any]:
    """Boxes of 1 to 60 pixels anywhere in 1000 × 1000, half of them around 100 objects."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    corner = 1000 * torch.rand(size, 2, generator=generator)
    objects = 1000 * torch.rand(100, 2, generator=generator)
    half = size // 2
    corner[:half] = objects[torch.arange(half) % 100] + 5 * torch.randn(
        half, 2, generator=generator
    )
    boxes = torch.cat([corner, corner + 1 + 59 * torch.rand(size, 2, generator=generator)], 1)
    return {"boxes": boxes, "scores": torch.rand(size, generator=generator)}


def nms(data: dict[str, Any]) -> Any:
    from groundstate import vision

    return vision.boxes.nms(data["boxes"], data["scores"], 0.5)


@cache
def _loop() -> Any:
    """torchvision/csrc/ops/cpu/nms_kernel.cpp, line by line."""
    import numba
    import numpy as np

    @numba.njit
    def loop(dets: Any, order: Any, threshold: Any) -> Any:
        n = len(order)
        areas = (dets[:, 2] - dets[:, 0]) * (dets[:, 3] - dets[:, 1])
        suppressed, keep, count = np.zeros(n, np.uint8), np.zeros(n, np.int64), 0
        for _i in range(n):
            i = order[_i]
            if suppressed[i] == 1:
                continue
            keep[count] = i
            count += 1
            ix1, iy1, ix2, iy2, iarea = dets[i, 0], dets[i, 1], dets[i, 2], dets[i, 3], areas[i]
            for _j in range(_i + 1, n):
                j = order[_j]
                if suppressed[j] == 1:
                    continue
                w = max(np.float32(0), min(ix2, dets[j, 2]) - max(ix1, dets[j, 0]))
                h = max(np.float32(0), min(iy2, dets[j, 3]) - max(iy1, dets[j, 1]))
                inter = w * h
                if inter / (iarea + areas[j] - inter) > threshold:
                    suppressed[j] = 1
        return keep[:count]

    return loop


def transcribed(data: dict[str, Any]) -> Any:
    import numpy as np

    order = data["scores"].argsort(descending=True, stable=True).numpy()
    return _loop()(data["boxes"].numpy(), order, np.float32(0.5))


NMS = Benchmark(
    name="nms",
    title="Non-maximum suppression at IoU 0.5",
    sizes={"1000": 1_000, "5000": 5_000, "20000": 20_000},
    data=crowded,
    ours=nms,
    peers={"torchvision's loop in numba": transcribed},
    score=lambda data, kept: float(len(kept)),
    score_name="kept",
    target=1.0,
)


def regions(size: tuple[int, int, int], seed: int) -> dict[str, Any]:
    import torch

    channels, side, count = size
    generator = torch.Generator().manual_seed(seed)
    maps = torch.randn(2, channels, side, side, generator=generator)
    corner = 8 * side * torch.rand(count, 2, generator=generator)
    ends = corner + (16 * side - corner) * torch.rand(count, 2, generator=generator)
    image = torch.randint(0, 2, (count, 1), generator=generator).float()
    return {"maps": maps, "boxes": torch.cat([image, corner, ends], 1)}


def align(data: dict[str, Any]) -> Any:
    from groundstate import vision

    return vision.roi_align(data["maps"], data["boxes"], 7, 1 / 16, 2, True)


def align_torchvision(data: dict[str, Any]) -> Any:
    from torchvision.ops.roi_align import _roi_align

    eager = getattr(_roi_align, "__wrapped__", _roi_align)
    return eager(data["maps"], data["boxes"], 1 / 16, 7, 7, 2, True)


ALIGN = Benchmark(
    name="roi-align",
    title="RoIAlign to 7 × 7, two samples each way",
    sizes={
        "64x25x100": (64, 25, 100),
        "256x50x200": (256, 50, 200),
        "256x50x500": (256, 50, 500),
    },
    data=regions,
    ours=align,
    peers={"torchvision in torch": Peer(align_torchvision, "torchvision")},
    score=lambda data, found: float(found.double().square().mean()),
    score_name="mean square",
    target=1.0,
)


def scenes(size: int, seed: int) -> dict[str, Any]:
    """Images with about 7 objects of 20 classes, two detections near each and some anywhere."""
    import numpy as np

    rng = np.random.default_rng(seed)
    truths, found = [], []
    for _ in range(size):
        m, k = rng.integers(0, 15), rng.integers(0, 30)
        corner, side = rng.uniform(0, 400, (m, 2)), 10 ** rng.uniform(0.7, 2.3, (m, 2))
        boxes, labels = np.concatenate([corner, corner + side], 1), rng.integers(1, 21, m)
        near = np.repeat(boxes, 2, 0) + rng.normal(0, 3, (2 * m, 4))
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
        far = rng.uniform(0, 400, (k, 2))
        far = np.concatenate([far, far + rng.uniform(1, 100, (k, 2))], 1)
        truths.append({"boxes": boxes, "labels": labels})
        found.append({
            "boxes": np.concatenate([near, far]),
            "labels": np.concatenate([np.repeat(labels, 2), rng.integers(1, 21, k)]),
            "scores": rng.uniform(size=2 * m + k),
        })  # fmt: skip
    return {"truths": truths, "found": found, "coco": _coco(truths, found)}


def _coco(truths: Any, found: Any) -> Any:
    """The same as annotations of COCO."""
    marks, results = [], []
    for i, (truth, answer) in enumerate(zip(truths, found), 1):
        for box, label in zip(truth["boxes"], truth["labels"]):
            sides = box[2:] - box[:2]
            marks.append({"id": len(marks) + 1, "image_id": i, "category_id": int(label), "iscrowd": 0,
                          "bbox": [*box[:2], *sides], "area": float(sides.prod())})  # fmt: skip
        for box, label, score in zip(answer["boxes"], answer["labels"], answer["scores"]):
            results.append({"image_id": i, "category_id": int(label), "score": float(score),
                            "bbox": [*box[:2], *(box[2:] - box[:2])]})  # fmt: skip
    images = [{"id": i + 1} for i in range(len(truths))]
    kinds = [{"id": k} for k in range(1, 21)]
    return {"images": images, "categories": kinds, "annotations": marks}, results


def precision(data: dict[str, Any]) -> Any:
    from groundstate.evaluate.metrics import average_precision_detection

    return average_precision_detection(data["truths"], data["found"]).ap


def pycocotools(data: dict[str, Any]) -> Any:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = data["coco"][0]
        truth.createIndex()
        judged = COCOeval(truth, truth.loadRes(data["coco"][1]), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return float(judged.stats[0])


AVERAGE_PRECISION = Benchmark(
    name="average-precision",
    title="COCO average precision of boxes, 20 classes",
    sizes={"100 images": 100, "1000 images": 1_000, "5000 images": 5_000},
    data=scenes,
    ours=precision,
    peers={"pycocotools": Peer(pycocotools, "pycocotools")},
    score=lambda data, found: found,
    score_name="AP",
    better="high",
    target=1.0,
)
