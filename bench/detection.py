"""Suppression, regions and average precision beside torchvision's code, pycocotools and torchmetrics.

The torchvision of the benchmark machine has no compiled operators, so its loops of ``nms``, RoIAlign and
RoIPool stand here as transcriptions that numba compiles.
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


def pool(data: dict[str, Any]) -> Any:
    from groundstate import vision

    return vision.roi_pool(data["maps"], data["boxes"], 7, 1 / 16)


def passes(forward: Any) -> Any:
    """The gradient of the maps, of a gradient of ones."""

    def both(data: dict[str, Any]) -> Any:
        maps = data["maps"].detach().requires_grad_()
        forward({**data, "maps": maps}).sum().backward()
        return maps.grad

    return both


@cache
def _align_loops() -> Any:
    """torchvision/csrc/ops/cpu/roi_align_kernel.cpp, its three loops."""
    import numba
    import numpy as np

    f = np.float32

    @numba.njit(fastmath={"contract"})
    def sizes(roi: Any, scale: Any, P: int, Q: int) -> Any:
        x, y = roi[1] * scale - f(0.5), roi[2] * scale - f(0.5)
        w, h = roi[3] * scale - f(0.5) - x, roi[4] * scale - f(0.5) - y
        return x, y, w / f(Q), h / f(P)

    @numba.njit(fastmath={"contract"})
    def corners(y: Any, x: Any, H: int, W: int) -> Any:
        if y < -1.0 or y > H or x < -1.0 or x > W:
            return 0, 0, 0, 0, f(0), f(0), f(0), f(0), False
        y, x = max(y, f(0)), max(x, f(0))
        low, left = int(y), int(x)
        if low >= H - 1:
            low = H - 1
            high, y = low, f(low)
        else:
            high = low + 1
        if left >= W - 1:
            left = W - 1
            right, x = left, f(left)
        else:
            right = left + 1
        ly, lx = y - f(low), x - f(left)
        hy, hx = f(1) - ly, f(1) - lx
        return (low * W + left, low * W + right, high * W + left, high * W + right,
                hy * hx, hy * lx, ly * hx, ly * lx, True)  # fmt: skip

    @numba.njit(fastmath={"contract"})
    def forward(maps: Any, rois: Any, scale: Any, s: int, out: Any) -> None:
        R, C, P, Q = out.shape
        H, W = maps.shape[2:]
        at, weight = np.zeros((P * Q * s * s, 4), np.int64), np.zeros((P * Q * s * s, 4), f)
        for n in range(R):
            x0, y0, bw, bh = sizes(rois[n], scale, P, Q)
            k = 0
            for ph in range(P):
                for pw in range(Q):
                    for iy in range(s):
                        y = y0 + f(ph) * bh + (f(iy) + f(0.5)) * bh / f(s)
                        for ix in range(s):
                            x = x0 + f(pw) * bw + (f(ix) + f(0.5)) * bw / f(s)
                            c = corners(y, x, H, W)
                            at[k, 0], at[k, 1], at[k, 2], at[k, 3] = c[0], c[1], c[2], c[3]
                            weight[k, 0], weight[k, 1] = c[4], c[5]
                            weight[k, 2], weight[k, 3] = c[6], c[7]
                            k += 1
            for c in range(C):
                flat = maps[int(rois[n, 0]), c].reshape(-1)
                k = 0
                for ph in range(P):
                    for pw in range(Q):
                        value = f(0)
                        for _ in range(s * s):
                            w, i = weight[k], at[k]
                            value += w[0] * flat[i[0]] + w[1] * flat[i[1]]
                            value += w[2] * flat[i[2]] + w[3] * flat[i[3]]
                            k += 1
                        out[n, c, ph, pw] = value / f(s * s)

    @numba.njit(fastmath={"contract"})
    def backward(grad: Any, rois: Any, scale: Any, s: int, out: Any) -> None:
        R, C, P, Q = grad.shape
        H, W = out.shape[2:]
        for n in range(R):
            for c in range(C):
                for ph in range(P):
                    for pw in range(Q):
                        x0, y0, bw, bh = sizes(rois[n], scale, P, Q)
                        flat = out[int(rois[n, 0]), c].reshape(-1)
                        g = grad[n, c, ph, pw]
                        for iy in range(s):
                            y = y0 + f(ph) * bh + (f(iy) + f(0.5)) * bh / f(s)
                            for ix in range(s):
                                x = x0 + f(pw) * bw + (f(ix) + f(0.5)) * bw / f(s)
                                a, b, d, e, wa, wb, wd, we, inside = corners(y, x, H, W)
                                if inside:
                                    flat[a] += g * wa / f(s * s)
                                    flat[b] += g * wb / f(s * s)
                                    flat[d] += g * wd / f(s * s)
                                    flat[e] += g * we / f(s * s)

    return forward, backward


@cache
def _pool_loops() -> Any:
    """torchvision/csrc/ops/cpu/roi_pool_kernel.cpp, its two loops."""
    import numba
    import numpy as np

    f = np.float32

    @numba.njit
    def forward(maps: Any, rois: Any, scale: Any, out: Any, most: Any) -> None:
        R, C, P, Q = out.shape
        H, W = maps.shape[2:]
        for n in range(R):
            left, top = round(rois[n, 1] * scale), round(rois[n, 2] * scale)
            right, below = round(rois[n, 3] * scale), round(rois[n, 4] * scale)
            bh, bw = f(max(below - top + 1, 1)) / f(P), f(max(right - left + 1, 1)) / f(Q)
            for ph in range(P):
                for pw in range(Q):
                    y0, x0 = int(np.floor(f(ph) * bh)) + top, int(np.floor(f(pw) * bw)) + left
                    y1 = int(np.ceil(f(ph + 1) * bh)) + top
                    x1 = int(np.ceil(f(pw + 1) * bw)) + left
                    y0, y1 = min(max(y0, 0), H), min(max(y1, 0), H)
                    x0, x1 = min(max(x0, 0), W), min(max(x1, 0), W)
                    empty = y1 <= y0 or x1 <= x0
                    for c in range(C):
                        flat = maps[int(rois[n, 0]), c].reshape(-1)
                        value, where = f(0) if empty else f(-3.4e38), -1
                        for y in range(y0, y1):
                            for x in range(x0, x1):
                                if flat[y * W + x] > value:
                                    value, where = flat[y * W + x], y * W + x
                        out[n, c, ph, pw], most[n, c, ph, pw] = value, where

    @numba.njit
    def backward(grad: Any, most: Any, rois: Any, out: Any) -> None:
        R, C, P, Q = grad.shape
        for n in range(R):
            for c in range(C):
                flat = out[int(rois[n, 0]), c].reshape(-1)
                for ph in range(P):
                    for pw in range(Q):
                        if most[n, c, ph, pw] != -1:
                            flat[most[n, c, ph, pw]] += grad[n, c, ph, pw]

    return forward, backward


@cache
def _peers() -> Any:
    import numpy as np
    import torch

    class Align(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, maps: Any, boxes: Any) -> Any:
            ctx.shape, ctx.boxes = maps.shape, boxes
            out = maps.new_zeros(len(boxes), maps.shape[1], 7, 7)
            given = maps.detach().numpy(), boxes.numpy(), np.float32(1 / 16), 2, out.numpy()
            _align_loops()[0](*given)
            return out

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            out, grad = torch.zeros(ctx.shape), grads[0].contiguous()
            _align_loops()[1](grad.numpy(), ctx.boxes.numpy(), np.float32(1 / 16), 2, out.numpy())
            return out, None

    class Pool(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, maps: Any, boxes: Any) -> Any:
            out = maps.new_zeros(len(boxes), maps.shape[1], 7, 7)
            ctx.most = np.zeros(out.shape, np.int32)
            ctx.shape, ctx.boxes = maps.shape, boxes
            given = maps.detach().numpy(), boxes.numpy(), np.float32(1 / 16), out.numpy(), ctx.most
            _pool_loops()[0](*given)
            return out

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            out, grad = torch.zeros(ctx.shape), grads[0].contiguous()
            _pool_loops()[1](grad.numpy(), ctx.most, ctx.boxes.numpy(), out.numpy())
            return out, None

    return Align, Pool


def align_peer(data: dict[str, Any]) -> Any:
    return _peers()[0].apply(data["maps"], data["boxes"])


def pool_peer(data: dict[str, Any]) -> Any:
    return _peers()[1].apply(data["maps"], data["boxes"])


SIZES = {
    "64x25x100": (64, 25, 100),
    "256x50x200": (256, 50, 200),
    "256x50x500": (256, 50, 500),
}
REGIONS = {
    f"{name}{suffix}": Benchmark(
        name=f"{name}{suffix}",
        title=f"{title} to 7 × 7{how}",
        sizes=SIZES,
        data=regions,
        ours=wrap(ours),
        peers={"torchvision's loop in numba": wrap(peer)},
        score=lambda data, found: round(float(found.double().square().mean()), 5),
        score_name="mean square",
        target=1.0,
    )
    for name, title, ours, peer in (
        ("roi-align", "RoIAlign, two samples each way,", align, align_peer),
        ("roi-pool", "RoIPool", pool, pool_peer),
    )
    for suffix, how, wrap in (("", "", lambda f: f), ("-gradient", " and its gradient", passes))
}
ROI_ALIGN, ROI_ALIGN_GRADIENT, ROI_POOL, ROI_POOL_GRADIENT = REGIONS.values()


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
