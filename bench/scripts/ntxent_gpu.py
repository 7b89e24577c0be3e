"""The loss of SimCLR over many rows on one GPU.

``python bench/scripts/ntxent_gpu.py [--device cuda] [--small]`` prints the seconds and the peak memory of
``nt_xent`` forward and backward for N rows (2N views, the table of similarities is 2N × 2N), beside the
whole table as long as that fits; the numbers also go to ``$OUT/ntxent-gpu.csv``.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.learn.losses import nt_xent


def whole(z1: Tensor, z2: Tensor) -> Tensor:
    n = len(z1)
    z = functional.normalize(torch.cat((z1, z2)), dim=1)
    s = (z @ z.T / 0.5).fill_diagonal_(-torch.inf)
    at = torch.arange(n, device=z.device)
    return functional.cross_entropy(s, torch.cat((at + n, at)))


def measured(
    loss: Callable[[Tensor, Tensor], Tensor], n: int, d: int, device: str
) -> dict[str, Any]:
    g = torch.Generator().manual_seed(0)
    z1 = torch.randn(n, d, generator=g).to(device)
    z2 = z1 + torch.randn(n, d, generator=g).to(device)
    z1.requires_grad_()
    z2.requires_grad_()
    best, value = float("inf"), float("nan")
    cuda = device != "cpu"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(4):
        start = time.perf_counter()
        found = loss(z1, z2)
        torch.autograd.grad(found, (z1, z2))
        if cuda:
            torch.cuda.synchronize()
        best, value = min(best, time.perf_counter() - start), found.item()
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else float("nan")
    return {"seconds": round(best, 5), "peak_GiB": round(peak, 3), "loss": round(value, 5)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for n in (256, 1024) if given.small else (1024, 8192, 32_768):
        for tf32 in (False,) if given.device == "cpu" else (False, True):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            for name, loss in (("groundstate", nt_xent), ("whole table", whole)):
                try:
                    found = measured(loss, n, 128, given.device)
                except torch.cuda.OutOfMemoryError:
                    found = {"seconds": None, "peak_GiB": None, "loss": "out of memory"}
                rows.append({"n": n, "tf32": tf32, "who": name, **found})
                print(rows[-1], flush=True)
    if "OUT" in os.environ:
        with (Path(os.environ["OUT"]) / "ntxent-gpu.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
