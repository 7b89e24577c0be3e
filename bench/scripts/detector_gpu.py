"""Detectors of shapes on a GPU: how good, how long, and the same as on the CPU.

Usage: python bench/scripts/detector_gpu.py [epochs] [scenes]
"""

from __future__ import annotations

import csv
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from groundstate import ObjectDetector
from groundstate.compute.rows import Objects
from groundstate.data import make_shapes
from groundstate.experiments.architectures.detect import mask_overlap
from groundstate.learn.rules.assigned import BalancedSample

NAMES = np.array(["circle", "square", "triangle"])


def scenes(n: int, seed: int) -> tuple[Any, list[Any]]:
    found = make_shapes(n, size=96, random_state=seed)
    rows = zip(found.boxes, found.labels, found.masks, strict=True)
    return found.images, [(b, NAMES[c - 1], m) for b, c, m in rows]


def trained(method: str, epochs: int, n: int, seed: int, precision: str) -> dict[str, Any]:
    X, y = scenes(n, seed)
    new, known = scenes(200, seed + 1000)
    model = ObjectDetector(
        method, max_epochs=epochs, random_state=seed, device="cuda", precision=precision
    )
    torch.cuda.synchronize()
    start = time.perf_counter()
    model.fit(X, y)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    found = model.predict(new)
    answers = time.perf_counter() - start
    scores = model.average_precision(new, known)
    row = {
        "method": method, "seed": seed, "precision": precision, "epochs": model.n_iter_,
        "fit_s": round(seconds, 1), "predict_200_s": round(answers, 2),
        "ap50": round(scores.ap50, 4), "ap": round(scores.ap, 4),
        "mask_iou": round(mask_overlap(found, known), 4) if method == "mask" else "",
        "held_out": round(model.history_.extra["validation"][-1], 4),
    }  # fmt: skip
    print(row, flush=True)
    return row


def beside_the_cpu() -> None:
    X, y = scenes(16, 7)
    model = ObjectDetector("mask", max_epochs=2, val_fraction=0, random_state=0, device="cpu").fit(
        X, y
    )
    energy, rule = model.energy_, BalancedSample()
    numbers = [(b, np.searchsorted(NAMES, c) + 1, m) for b, c, m in y]
    batch: dict[str, Any] = {"x": torch.from_numpy(X), "y": Objects.of(numbers)}
    here = rule.mean(energy, batch)[0].item()
    energy.cuda()
    there = {k: v.to(torch.device("cuda")) for k, v in batch.items()}
    grads = []
    for _ in range(2):
        loss = rule.mean(energy, there)[0]
        found = torch.autograd.grad(loss, list(energy.parameters()))
        grads.append([loss.detach(), *found])
    same = all(torch.equal(a, b) for a, b in zip(*grads, strict=True))
    print(f"loss on the CPU {here:.6f}, on the GPU {loss.item():.6f}; the same bits twice: {same}")
    for _ in range(3):
        rule.mean(energy, there)[0].backward()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        rule.mean(energy, there)[0].backward()
    torch.cuda.synchronize()
    print(f"step of 16 pictures: {(time.perf_counter() - start) / 20 * 1e3:.1f} ms")
    with torch.profiler.profile() as profile:
        rule.mean(energy, there)[0].backward()
        torch.cuda.synchronize()
    print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25))


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    beside_the_cpu()
    rows = []
    for method, seed, precision in (
        ("faster", 0, "auto"), ("mask", 0, "auto"), ("mask", 0, "32"), ("mask", 1, "auto"),
    ):  # fmt: skip
        rows.append(trained(method, epochs, n, seed, precision))
    out = os.environ.get("OUT")
    if out:
        with (Path(out) / "detector_gpu.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
