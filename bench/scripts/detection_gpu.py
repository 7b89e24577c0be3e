"""Boxes on a GPU: suppression and RoIAlign, the same answers as on the CPU, beside torchvision's.

Usage: python bench/scripts/detection_gpu.py   (writes detection-gpu.csv under $OUT if set)
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from groundstate.nn.detection.boxes import batched_nms, nms, soft_nms
from groundstate.nn.detection.roi import roi_align, roi_pool

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


def main() -> None:
    print(torch.cuda.get_device_name(), torch.__version__)
    rows: list[tuple[str, float, float, float]] = []

    def report(name: str, ours: Callable[[], Any], theirs: Any, cpu: float) -> None:
        row = (name, timed(ours), timed(theirs) if peer is not None else float("nan"), cpu)
        rows.append(row)
        print("{:<24} ours {:9.3f} ms   torchvision {:9.3f} ms   CPU {:9.3f} ms".format(*row))

    def on_cpu(f: Callable[[], Any]) -> tuple[Any, float]:
        f()
        start = time.perf_counter()
        found = f()
        return found, 1e3 * (time.perf_counter() - start)

    for n in (1_000, 5_000, 20_000):
        boxes, scores, labels = crowded(n)
        there = boxes.cuda(), scores.cuda(), labels.cuda()
        kept, spent = on_cpu(lambda: nms(boxes, scores, 0.5))  # noqa: B023
        assert torch.equal(nms(there[0], there[1], 0.5).cpu(), kept)
        report(f"nms {n}", lambda: nms(there[0], there[1], 0.5),  # noqa: B023
               lambda: peer.nms(there[0], there[1], 0.5), spent)  # fmt: skip  # noqa: B023
        kept, spent = on_cpu(lambda: batched_nms(boxes, scores, labels, 0.5))  # noqa: B023
        assert torch.equal(batched_nms(*there, 0.5).cpu(), kept)
        report(f"batched_nms {n}", lambda: batched_nms(*there, 0.5),  # noqa: B023
               lambda: peer.batched_nms(*there, 0.5), spent)  # fmt: skip  # noqa: B023
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
        near, far = maps.cuda().requires_grad_(), boxes.cuda()
        name = f"{channels}x{side}² {count}"
        with torch.no_grad():
            found, spent = on_cpu(lambda: roi_align(maps, boxes, 7, 1 / 16))  # noqa: B023
            gap = (roi_align(near, far, 7, 1 / 16).cpu() - found).abs().max().item()
            print(f"roi_align {name}: largest difference to the CPU {gap:.2e}")
            if peer is not None:
                other = peer.roi_align(near, far, 7, 1 / 16, 2, True).cpu()
                print(f"roi_align {name}: to torchvision {(other - found).abs().max().item():.2e}")
            report(f"roi_align {name}", lambda: roi_align(near, far, 7, 1 / 16),  # noqa: B023
                   lambda: peer.roi_align(near, far, 7, 1 / 16, 2, True), spent)  # fmt: skip  # noqa: B023
            report(f"roi_pool {name}", lambda: roi_pool(near, far, 7, 1 / 16),  # noqa: B023
                   lambda: peer.roi_pool(near, far, 7, 1 / 16), float("nan"))  # fmt: skip  # noqa: B023
        report(f"roi_align+grad {name}", lambda: roi_align(near, far, 7, 1 / 16).sum().backward(),  # noqa: B023
               lambda: peer.roi_align(near, far, 7, 1 / 16, 2, True).sum().backward(),  # noqa: B023
               float("nan"))  # fmt: skip
    if "OUT" in os.environ:
        with (Path(os.environ["OUT"]) / "detection-gpu.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["what", "groundstate ms", "torchvision ms", "cpu ms"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
