"""Divergences and transport on a GPU beside the same on the CPU: largest difference, and times.

``python bench/scripts/math_gpu.py [--device cuda]``; a CSV goes to ``$OUT/math-gpu.csv`` if set.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from groundstate import divergences, info, transport
from groundstate.math.stats import two_sample

Case = tuple[str, Callable[..., Tensor], tuple[Tensor, ...], bool]


def cases() -> list[Case]:
    g = torch.Generator().manual_seed(0)

    def rows(n: int, d: int, shift: float = 0.0) -> Tensor:
        return torch.randn(n, d, generator=g, dtype=torch.float64) + shift

    def spd(d: int) -> Tensor:
        A = rows(d + 50, d)
        return A.mT @ A / (d + 50)

    X, Y = rows(4000, 8), rows(4000, 8, 0.5)
    long = rows(20_000, 8), rows(20_000, 8, 0.5)
    tables = torch.rand(100_000, 64, generator=g, dtype=torch.float64) + 1e-3
    other = torch.rand(100_000, 64, generator=g, dtype=torch.float64) + 1e-3
    M = torch.cdist(X, Y).square()
    images = torch.rand(3, 128, 128, generator=g, dtype=torch.float64) ** 8
    turns = torch.randn(256, 8, generator=g, dtype=torch.float64)
    turns = turns / turns.norm(dim=1, keepdim=True)
    return [
        ("kl 100000x64", divergences.kl, (tables, other), True),
        ("js 100000x64", divergences.js, (tables, other), True),
        ("entropy 100000x64", info.entropy, (tables,), True),
        ("sinkhorn plan 4000", lambda M: transport.sinkhorn(None, None, M, 1.0).plan, (M,), False),
        ("sinkhorn divergence 4000", lambda x, y: divergences.sinkhorn(x, y, eps=1.0), (X, Y), True),
        ("sinkhorn in tiles 20000",
         lambda x, y: divergences.sinkhorn(x, y, eps=1.0, tol=1e-4), long, True),
        ("sliced 20000x8, 256",
         lambda x, y, t: divergences.sliced_wasserstein(x, y, projections=t), (*long, turns), True),
        ("mmd 20000x8", divergences.mmd, long, True),
        ("mmd features 20000x8",
         lambda x, y: divergences.mmd(x, y, method="features", random_state=0), long, True),
        ("frechet 2048", divergences.frechet,
         (torch.zeros(2048).double(), spd(2048), torch.ones(2048).double(), spd(2048)), True),
        ("barycentre of images 128",
         lambda p: transport.barycenter(list(p), kind="images", eps=5e-3, tol=1e-3), (images,), False),
        ("two_sample mmd 2000x8",
         lambda x, y: torch.tensor(two_sample(x[:2000], y[:2000], "mmd").pvalue), (X, Y), False),
    ]  # fmt: skip


def timed(run: Callable[[], Tensor], device: str) -> tuple[Tensor, float]:
    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    run()
    best = float("inf")
    for _ in range(3):
        wait()
        start = time.perf_counter()
        out = run()
        wait()
        best = min(best, time.perf_counter() - start)
    return out, best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    lines = [("case", "cpu_s", "device_s", "relative difference", "gradient difference")]
    for name, function, given, smooth in cases():
        there = tuple(t.to(device) for t in given)
        start = time.perf_counter()
        here = function(*given)
        cpu = time.perf_counter() - start
        answer, seconds = timed(lambda f=function, v=there: f(*v), device)  # type: ignore[misc]
        expected_on = "cpu" if "two_sample" in name else torch.device(device).type
        assert answer.device.type == expected_on, f"{name} came back on {answer.device}"
        off = float((answer.cpu() - here).abs().max() / here.abs().max().clamp_min(1e-300))
        slopes = float("nan")
        if smooth:
            pairs = []
            for side in (given, there):
                leaves = tuple(t.clone().requires_grad_() for t in side[:2])
                value = function(*leaves, *side[2:]).sum()
                pairs.append(torch.autograd.grad(value, leaves))
            slopes = max(
                float((b.cpu() - a).abs().max() / a.abs().max().clamp_min(1e-300))
                for a, b in zip(*pairs, strict=True)
            )
        lines.append((name, f"{cpu:.4f}", f"{seconds:.5f}", f"{off:.1e}", f"{slopes:.1e}"))
        print("  ".join(lines[-1]), flush=True)
    if out := os.environ.get("OUT"):
        with (Path(out) / "math-gpu.csv").open("w", newline="") as file:
            csv.writer(file).writerows(lines)


if __name__ == "__main__":
    main()
