"""Factor models on a GPU: does the work stay there, is it the CPU's answer, how long does it take?

``python bench/scripts/factors_gpu.py [--device cuda] [--rows 1000000] [--columns 64] [--repeats 3]``.
Each model is fitted on tensors of the device without ``device=``: seconds for many rows, and for few
rows where θ and the answers live, host copies of at least one number per row, and the largest
difference of answers and learned numbers from the CPU's. Rows go to ``$OUT/factors-gpu.csv`` where OUT
is set.
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

import groundstate as gs

LESS = 4_000  # rows where the CPU is asked too
Made = Callable[[], Any]

# name: the model, rows of the long table (a kernel matrix has rows squared), what is compared
MODELS: dict[str, tuple[Made, int | None, str]] = {
    "PCA full": (lambda: gs.PCA(10, svd_solver="full"), 200_000, "explained_variance_"),
    "PCA covariance_eigh": (lambda: gs.PCA(10), None, "explained_variance_"),
    "PCA randomized": (
        lambda: gs.PCA(10, svd_solver="randomized", random_state=0), None, "explained_variance_",
    ),
    "PCA arpack": (
        lambda: gs.PCA(10, svd_solver="arpack", random_state=0), 200_000, "explained_variance_",
    ),
    "ProbabilisticPCA": (lambda: gs.ProbabilisticPCA(10), None, "explained_variance_"),
    "ProbabilisticPCA em": (
        lambda: gs.ProbabilisticPCA(5, solver="em", random_state=0), None, "explained_variance_",
    ),
    "FactorAnalysis": (lambda: gs.FactorAnalysis(5), None, "noise_variance_"),
    "IncrementalPCA": (
        lambda: gs.IncrementalPCA(10, batch_size=10_000), None, "explained_variance_",
    ),
    "IncrementalPCA sketch": (
        lambda: gs.IncrementalPCA(10, method="sketch", batch_size=10_000), 200_000,
        "explained_variance_",
    ),
    "TruncatedSVD": (lambda: gs.TruncatedSVD(10, random_state=0), None, "singular_values_"),
    "KernelPCA rbf": (
        lambda: gs.KernelPCA(
            5, kernel="rbf", gamma=0.01, fit_inverse_transform=True, random_state=0
        ), 10_000, "eigenvalues_",
    ),
    "KernelPCA landmarks": (
        lambda: gs.KernelPCA(5, kernel="rbf", gamma=0.01, n_landmarks=500, random_state=0),
        200_000, "eigenvalues_",
    ),
    "FastICA": (lambda: gs.FastICA(5, random_state=0, tol=1e-6), None, "mixing_"),
    "Whitener": (lambda: gs.Whitener(), None, "mean_"),
}  # fmt: skip


def table(n: int, d: int, device: str, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Five sources of heavy tails, mixed, with noise of another size on each column."""
    generator = torch.Generator("cpu").manual_seed(seed)
    mixing = torch.randn(5, d, generator=generator)
    noise = 0.3 * torch.exp(0.5 * torch.randn(d, generator=generator))
    there = torch.Generator(device).manual_seed(seed)
    source = torch.randn(n, 5, generator=there, device=device) ** 3
    rows = source @ mixing.to(device)
    rows += torch.randn(n, d, generator=there, device=device) * noise.to(device)
    return (rows + 1.0).to(dtype)


def waited(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def far(a: Any, b: Any) -> float:
    a, b = (np.asarray(v.cpu() if isinstance(v, torch.Tensor) else v, dtype=float) for v in (a, b))
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))


def line(name: str, given: argparse.Namespace) -> list[str]:
    made, most, what = MODELS[name]
    device, n = given.device, min(most or given.rows, given.rows)
    few = table(LESS, given.columns, device, torch.float64, 1)
    with host_copies(LESS) as copies:
        model = made().fit(few)  # and everything that a first call does
        answer = model.transform(few)
    goes_back = getattr(model, "fit_inverse_transform", True)
    back = model.inverse_transform(answer) if goes_back else answer
    lives = {str(v.device.type) for v in (*model.energy_.parameters(), *model.energy_.buffers())}
    there = "/".join(sorted(lives | {answer.device.type, back.device.type}))
    host = made().fit(few.cpu())
    off = far(answer, host.transform(few.cpu()))
    learned = far(getattr(model, what), getattr(host, what))
    X = table(n, given.columns, device, torch.float32)
    made().fit(X)
    seconds, asked = [], []
    for _ in range(given.repeats):
        start = waited(device)
        model = made().fit(X)
        seconds.append(waited(device) - start)
        model.transform(X)
        asked.append(waited(device) - start - seconds[-1])
    print(
        f"{name}: {n} rows in {min(seconds):.4f} s, transform {min(asked):.4f} s, lives on {there}, "
        f"{len(copies)} host copies {copies[:4]}, codes off by {off:.1e}, {what} by {learned:.1e}",
        flush=True,
    )
    return [name, str(n), str(given.columns), f"{min(seconds):.5f}", f"{min(asked):.5f}", there,
            str(len(copies)), f"{off:.2e}", f"{learned:.2e}"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = "model,rows,columns,fit_s,transform_s,lives on,host copies,codes off,learned off"
    rows = [heads.split(",")]
    for name in given.only or MODELS:
        try:
            rows.append(line(name, given))
        except Exception as error:  # one model that fails must not hide the others
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            rows.append([name, "", "", "", "", type(error).__name__, "", "", ""])
    folder = os.environ.get("OUT")
    if folder:
        with (Path(folder) / "factors-gpu.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
