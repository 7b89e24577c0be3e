"""Boxes on a GPU: suppression and RoIAlign, the same answers as on the CPU, beside torchvision's.

Usage: python bench/scripts/detection_gpu.py   (writes detection-gpu.csv under $OUT if set)
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from groundstate.nn.detection.boxes import batched_nms, nms, soft_nms
from groundstate.nn.detection.roi import roi_align, roi_pool

ours = SimpleNamespace(nms=nms, batched_nms=batched_nms, roi_align=roi_align, roi_pool=roi_pool)

try:
    import torchvision.ops as peer

    peer.nms(torch.zeros(1, 4).cuda(), torch.zeros(1).cuda(), 0.5)
except Exception as error:  # no torchvision, or one without its operators
    print("torchvision's operators are not here:", type(error).__name__, error)
    peer = None


def timed(f: Callable[[], Any], n: int = 10) -> float:
    f()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n):
        f()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / n


def crowded(n: int) -> tuple[Any, Any, Any]:
    g = torch.Generator().manual_seed(0)
    corner = 1000 * torch.rand(n, 2, generator=g)
    objects = 1000 * torch.rand(100, 2, generator=g)
    corner[: n // 2] = objects[torch.arange(n // 2) % 100] + 5 * torch.randn(n // 2, 2, generator=g)
    boxes = torch.cat([corner, corner + 1 + 59 * torch.rand(n, 2, generator=g)], 1)
    return boxes, torch.rand(n, generator=g), torch.randint(0, 80, (n,), generator=g)


def on_cpu(f: Callable[[], Any], n: int = 5) -> float:
    f()
    start = time.perf_counter()
    for _ in range(n):
        f()
    return 1e3 * (time.perf_counter() - start) / n


def main() -> None:
    print(torch.cuda.get_device_name(), torch.__version__)
    torch.set_num_threads(2)
    rows: list[tuple[str, float, float, float, float]] = []

    def report(name: str, calls: Callable[[Any, Any], Any], *data: Any) -> None:
        """Ours and torchvision's on the GPU, then on the CPU; ``calls`` takes the functions."""
        near = [each.cuda() for each in data]
        if len(near) > 1 and near[0].requires_grad:
            near[0] = near[0].detach().requires_grad_()
        nan = float("nan")
        row = (
            name,
            timed(lambda: calls(ours, near)),
            timed(lambda: calls(peer, near)) if peer is not None else nan,
            on_cpu(lambda: calls(ours, data)),
            on_cpu(lambda: calls(peer, data)) if peer is not None else nan,
        )
        rows.append(row)
        print(("{:<28}" + " {:9.3f}" * 4).format(*row), flush=True)

    print("ms: ours, torchvision on the GPU; ours, torchvision on two threads of the CPU")
    for n in (1_000, 5_000, 20_000):
        boxes, scores, labels = crowded(n)
        there = boxes.cuda(), scores.cuda(), labels.cuda()
        assert torch.equal(nms(*there[:2], 0.5).cpu(), nms(boxes, scores, 0.5))
        assert torch.equal(batched_nms(*there, 0.5).cpu(), batched_nms(boxes, scores, labels, 0.5))
        report(f"nms {n}", lambda m, d: m.nms(*d, 0.5), boxes, scores)
        report(f"batched_nms {n}", lambda m, d: m.batched_nms(*d, 0.5), boxes, scores, labels)
    kept, lowered = soft_nms(*crowded(300)[:2])
    again, also = soft_nms(*(t.cuda() for t in crowded(300)[:2]))
    print(
        "soft_nms agrees:",
        torch.equal(kept, again.cpu()),
        (lowered - also.cpu()).abs().max().item(),
    )

    for channels, side, count in ((256, 50, 1_000), (256, 200, 1_000)):
        g = torch.Generator().manual_seed(0)
        maps = torch.randn(2, channels, side, side, generator=g)
        corner = 8 * side * torch.rand(count, 2, generator=g)
        ends = corner + (16 * side - corner) * torch.rand(count, 2, generator=g)
        boxes = torch.cat([torch.randint(0, 2, (count, 1), generator=g).float(), corner, ends], 1)
        name = f"{channels}x{side}² {count}"
        check(name, maps, boxes)
        with torch.no_grad():
            report(f"roi_align {name}", align, maps, boxes)
            report(f"roi_pool {name}", lambda m, d: m.roi_pool(*d, 7, 1 / 16), maps, boxes)
        maps.requires_grad_()
        report(f"roi_align+grad {name}", lambda m, d: align(m, d).sum().backward(), maps, boxes)
        report(f"roi_pool+grad {name}", lambda m, d: m.roi_pool(*d, 7, 1 / 16).sum().backward(),
               maps, boxes)  # fmt: skip
    if "OUT" in os.environ:
        with (Path(os.environ["OUT"]) / "detection-gpu.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["what", "groundstate ms", "torchvision ms", "cpu ms", "torchvision cpu ms"]
            )
            writer.writerows(
                (name, *(f"{value:.4f}" for value in values)) for name, *values in rows
            )


def align(module: Any, data: Any) -> Any:
    return module.roi_align(*data, 7, 1 / 16, 2, True)


def check(name: str, maps: Any, boxes: Any) -> None:
    """Values and gradients on the GPU: those of the CPU, of torchvision, and the same bits twice."""
    for what, call in (("roi_align", align), ("roi_pool", lambda m, d: m.roi_pool(*d, 7, 1 / 16))):
        for kind in (torch.float32, torch.float64, torch.bfloat16):
            found = []
            for m, device in ((ours, "cpu"), (ours, "cuda"), (ours, "cuda"), (peer, "cuda")):
                if m is None or (m is peer and kind == torch.bfloat16):
                    continue
                source = maps.detach().to(device, kind, copy=True).requires_grad_()
                out = call(m, (source, boxes.to(device, kind if m is peer else None)))
                weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
                (out * weight).sum().backward()
                found.append((out.detach().cpu(), source.grad.cpu()))
            gaps = [
                max((a - b).abs().max().item() for a, b in zip(found[0], other))
                for other in found[1:]
            ]
            twice = all(torch.equal(a, b) for a, b in zip(found[1], found[2]))
            print(f"{what} {name} {kind}: same bits twice {twice}; largest differences to the CPU: "
                  + ", ".join(f"{gap:.1e}" for gap in gaps), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
