"""Graphs of near rows and maps on a GPU.

``python bench/scripts/manifolds_gpu.py [--device cuda] [--small]`` prints the seconds of the graph of
the 15 nearest of 500,000 rows with 64 features and its share of the card's peak in single precision,
of t-SNE of 70,000 rows with 50 features, of Isomap and MDS, and a profile of t-SNE; the numbers also
go to ``$OUT/manifolds-gpu.csv``. Data is on the card before the clock starts.
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

import torch
from torch import Tensor

from groundstate import MDS, TSNE, Isomap
from groundstate.math.neighbors import nearest_device
from groundstate.math.neighbors.graph import nearest_others

PEAK = {"H200": 67e12, "H100": 67e12, "A100": 19.5e12}  # float32, without tensor cores
ROWS: list[dict[str, Any]] = []


def clusters(n: int, d: int, device: str, centres: int = 10, seed: int = 0) -> Tensor:
    """Overlapping clouds of different widths, in single precision."""
    g = torch.Generator().manual_seed(seed)
    middle = 4 * torch.randn(centres, d, generator=g)
    width = 0.5 + torch.rand(centres, 1, generator=g)
    label = torch.randint(centres, (n,), generator=g)
    return (middle[label] + width[label] * torch.randn(n, d, generator=g)).to(device)


def clock(device: str, call: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Seconds of the best of some calls, and the last answer."""
    best, answer = float("inf"), None
    for _ in range(repeats):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        answer = call()
        if device != "cpu":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best, answer


def tell(what: str, seconds: float, **numbers: Any) -> None:
    ROWS.append({"what": what, "seconds": round(seconds, 4), **numbers})
    print(what, f"{seconds:.3f} s", *(f"{k}={v}" for k, v in numbers.items()), flush=True)


def graph(device: str, n: int, d: int, k: int = 15) -> None:
    X = torch.randn(n, d, generator=torch.Generator().manual_seed(0)).to(device)
    nearest_others(X[: n // 8], k)
    open_ = []
    level = nearest_device._level

    def counted(*args: Any) -> Any:
        answer = level(*args)
        open_.append(int(answer[2].sum()))
        return answer

    seconds, (distance, _index) = clock(device, lambda: nearest_others(X, k), 2)
    flops = 2.0 * n * n * d / seconds
    name = torch.cuda.get_device_name() if device != "cpu" else "cpu"
    peak = next((v for key, v in PEAK.items() if key in name), float("nan"))
    nearest_device._level = counted
    nearest_others(X, k)
    nearest_device._level = level
    some = torch.randperm(n, generator=torch.Generator().manual_seed(1))[:200].to(device)
    every = torch.cdist(X[some].double(), X.double())
    every[torch.arange(len(some), device=device), some] = torch.inf
    true = every.topk(k, largest=False)
    wrong = int((true.values - distance[some].double()).abs().gt(1e-4).sum())
    tell(
        f"graph {n} x {d}, k={k}", seconds, tflops=round(flops / 1e12, 2),
        share=round(flops / peak, 3), unproved=open_, wrong=wrong, device=name,
    )  # fmt: skip


def tsne(device: str, n: int, d: int) -> None:
    X = clusters(n, d, device)
    TSNE(max_iter=300).fit(X[:6000])
    seconds, model = clock(device, lambda: TSNE(random_state=0).fit(X))
    tell(f"t-SNE {n} x {d}", seconds, kl=round(model.kl_divergence_, 4), steps=model.n_iter_)
    again = TSNE(random_state=0).fit(X)
    tell(
        "the same once more: same bits",
        0.0,
        same=bool((again.embedding_ == model.embedding_).all()),
    )


def others(device: str, n: int) -> None:
    X = clusters(n, 10, device, centres=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Isomap(n_neighbors=10).fit(X[:500])
        seconds, model = clock(device, lambda: Isomap(n_neighbors=10).fit(X))
    tell(f"Isomap {n}", seconds, residual=round(model.residual_variance(), 4))
    seconds, mds = clock(device, lambda: MDS(random_state=0).fit(X[:2000]))
    tell("MDS 2000", seconds, stress=round(mds.stress_, 2), steps=mds.n_iter_)


def profile(device: str, n: int, d: int) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watch

    X = clusters(n, d, device)
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device != "cpu" else [])
    for what, call in (
        ("t-SNE", lambda: TSNE(max_iter=260).fit(X)),
        ("graph", lambda: nearest_others(X, 15)),
    ):
        with watch(activities=kinds) as seen:
            call()
        order = "self_cuda_time_total" if device != "cpu" else "self_cpu_time_total"
        print(
            what,
            "\n",
            seen.key_averages().table(sort_by=order, row_limit=18, max_name_column_width=60),
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    device, part = asked.device, 50 if asked.small else 1
    graph(device, 500_000 // part, 64)
    tsne(device, 70_000 // part, 50)
    others(device, 5_000 // (5 if asked.small else 1))
    if asked.profile:
        profile(device, 70_000 // part, 50)
    if os.environ.get("OUT"):
        path = Path(os.environ["OUT"]) / "manifolds-gpu.csv"
        names = list(dict.fromkeys(key for row in ROWS for key in row))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(ROWS)


if __name__ == "__main__":
    main()
