"""KMeans and GaussianMixture on a GPU, end to end: seconds, host copies, the CPU's answer, a profile.

``python bench/scripts/clusters_gpu.py [--device cuda] [--rows 1000000] [--columns 32] [--repeats 3]``.
Rows are float32 tensors on the device; a fit is timed from the call to the fitted model. Results go
to ``$OUT/clusters-gpu.csv`` where OUT is set.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_resident import host_copies

from groundstate import GaussianMixture, KMeans

Fit = Callable[[Any], Any]


def blobs(n: int, d: int, k: int, device: str, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator(device).manual_seed(seed)
    means = 4 * torch.randn(k, d, generator=generator, device=device)
    z = torch.randint(k, (n,), generator=generator, device=device)
    return means[z] + torch.randn(n, d, generator=generator, device=device)


FITS: dict[str, tuple[float, Fit]] = {
    "KMeans k=64, 20 iterations": (
        0.15,
        lambda X: KMeans(64, max_iter=20, tol=0, random_state=0).fit(X),
    ),
    "KMeans k=64": (float("nan"), lambda X: KMeans(64, random_state=0).fit(X)),
    "GaussianMixture k=16, 20 iterations": (
        0.3,
        lambda X: GaussianMixture(16, max_iter=20, tol=0, random_state=0).fit(X),
    ),
    "GaussianMixture k=16 diag, 20 iterations": (
        float("nan"),
        lambda X: GaussianMixture(
            16, covariance_type="diag", max_iter=20, tol=0, random_state=0
        ).fit(X),
    ),
}


def waited(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def centres(model: Any) -> Any:
    return np.asarray(getattr(model, "cluster_centers_", getattr(model, "means_", None)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    device, n, d = given.device, given.rows, given.columns
    X, small = blobs(n, d, 40, device), blobs(20_000, d, 40, device, 1)
    table = [("fit", "rows", "columns", "seconds", "target", "host copies", "off the CPU by")]
    for name, (target, fit) in FITS.items():
        with host_copies(1000) as copies:
            model = fit(small)  # and everything that a first call does
        off = float(np.abs(centres(model) - centres(fit(small.cpu()))).max())
        fit(X)
        seconds = []
        for _ in range(given.repeats):
            start = waited(device)
            model = fit(X)
            seconds.append(waited(device) - start)
        steps = f"{model.n_iter_} iterations"
        print(f"{name}: {min(seconds):.4f} s (target {target}), {steps}, {len(copies)} host copies "
              f"{copies[:6]}, centres of 20,000 rows differ from the CPU's by {off:.2e}")  # fmt: skip
        row = (name, n, d, f"{min(seconds):.5f}", target, len(copies), f"{off:.3e}")
        table.append(tuple(map(str, row)))  # type: ignore[arg-type]
        kinds = [torch.profiler.ProfilerActivity.CPU]
        kinds += [torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else []
        with torch.profiler.profile(activities=kinds) as profile:
            fit(X)
        by = "cuda_time_total" if device == "cuda" else "cpu_time_total"
        rows = profile.key_averages().table(sort_by=by, row_limit=18, max_name_column_width=60)
        print("\n".join(line[:62] + " |" + line[-72:] for line in rows.splitlines()))
    folder = os.environ.get("OUT")
    if folder:
        with (Path(folder) / "clusters-gpu.csv").open("w", newline="") as file:
            csv.writer(file).writerows(table)


if __name__ == "__main__":
    main()
