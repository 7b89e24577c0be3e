"""Boosting on a GPU against our own CPU path: time of 100 trees, and whether the trees agree.

``python bench/scripts/boosting_device.py [--rows 1000000] [--columns 50] [--steps 100] [--device
cuda]`` prints one line per path. Needs torch and numba alone; each path is fitted once on few rows
first, so that compilation is left out.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

from groundstate.energy.tree_boosted import BoostedClassEnergy
from groundstate.learn import SoftMin, fit
from groundstate.learn.boosting import HistogramBoosting


def table(rows: int, columns: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(rows, columns, generator=g)
    score = x[:, 0] + x[:, 1] * x[:, 2] + torch.sin(3 * x[:, 3])
    return {"x": x, "y": (score + torch.randn(rows, generator=g) > 0).long()}


def fitted(data: dict[str, torch.Tensor], device: str, steps: int) -> tuple[float, Any]:
    energy = BoostedClassEnergy(data["x"].shape[1], 2).to(device)
    moved = {name: value.to(device) for name, value in data.items()}
    if device != "cpu":
        torch.cuda.synchronize()
    start = time.perf_counter()
    fit(energy, moved, SoftMin(), HistogramBoosting(steps), random_state=0)
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - start, energy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    data = table(given.rows, given.columns)
    few = {name: value[:20_000] for name, value in data.items()}
    found = []
    for device in ("cpu", given.device):
        fitted(few, device, 2)
        seconds, energy = fitted(data, device, given.steps)
        found.append((seconds, energy.cpu()))
        print(f"{device}: {seconds:.2f} s, {given.rows} x {given.columns}, {given.steps} trees")
    (slow, one), (quick, two) = found
    parts = [(one.nodes.tree(t), two.nodes.tree(t)) for t in range(given.steps)]
    same = sum(np.array_equal(a.feature, b.feature) for a, b in parts)
    x = data["x"][:100_000]
    gap = float((one.raw(x) - two.raw(x)).abs().max())
    print(
        f"ratio {slow / quick:.2f}; {same} of {given.steps} trees equal; scores differ by {gap:.1e}"
    )


if __name__ == "__main__":
    main()
