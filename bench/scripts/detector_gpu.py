"""Detectors of shapes on a GPU: how good, how long, and the same as on the CPU.

Usage: python bench/scripts/detector_gpu.py [epochs] [scenes] [seeds]
"""

from __future__ import annotations

import csv
import json
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


def trained(method: str, epochs: int, n: int, seed: int) -> dict[str, Any]:
    X, y = scenes(n, seed)
    new, known = scenes(200, seed + 1000)
    model = ObjectDetector(method, max_epochs=epochs, random_state=seed, device="cuda")
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
        "method": method, "seed": seed, "epochs": model.n_iter_,
        "fit_s": round(seconds, 1), "predict_200_s": round(answers, 2),
        "ap50": round(scores.ap50, 4), "ap": round(scores.ap, 4),
        "mask_iou": round(mask_overlap(found, known), 4) if method == "mask" else "",
        "held_out": round(model.history_.extra["validation"][-1], 4),
    }  # fmt: skip
    print(row, flush=True)
    losses = model.history_.extra
    print("  loss", [round(v, 3) for v in losses["loss"]], "held out",
          [round(v, 3) for v in losses["validation"]], flush=True)  # fmt: skip
    if method == "mask":
        keep(found[:8])
    return row


def keep(found: list[dict[str, Any]]) -> None:
    """Answers for the pictures of the docs, scenes of ``make_shapes(8, size=96, random_state=1000)``."""
    told = []
    for one in found:
        sure = one["scores"] > 0.5
        runs = [
            np.flatnonzero(np.diff(np.pad(m.ravel(), 1).astype(int))).tolist()
            for m in one["masks"][sure]
        ]
        told.append({
            "boxes": one["boxes"][sure].round(1).tolist(), "labels": one["labels"][sure].tolist(),
            "scores": one["scores"][sure].round(3).tolist(), "masks": runs,
        })  # fmt: skip
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / "detected.json").write_text(json.dumps(told))
    print(json.dumps(told), flush=True)


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
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rows = [
        trained(method, epochs, n, seed) for seed in range(seeds) for method in ("mask", "faster")
    ]
    out = os.environ.get("OUT")
    if out:
        with (Path(out) / "detector_gpu.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
