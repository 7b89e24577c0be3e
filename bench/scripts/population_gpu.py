"""Populations and one estimator on a GPU, by the plain call, beside one bare loop in torch.

``PYTHONPATH=src python bench/scripts/population_gpu.py [--device cuda] [--repeats 3] [--profile]
[--scale 1.0] [--out FILE]``. Three measurements, set-up included, each beside a loop with fused Adam
over one such network in the same process:

- ``members``: ``learn_population(make, {"seed": range(1024)}, data, epochs=10, batch_size=128)``, MLPs
  50-128-128-5 with seeds of their own on 20,000 rows;
- ``estimator``: ``MLPClassifier(device="cuda")`` on the same rows;
- ``convolutions``: 256 small convolutional networks on 4,096 images of 28 x 28 pixels.

The score is the time in units of the bare loop's. ``--profile`` adds where the time goes: phases on
the host and kernels on the device. ``--scale`` makes everything smaller, to try it out.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import os
import pstats
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from groundstate import MLPClassifier
from groundstate.bench.machine import commit, machine, package_version, threads, today, versions
from groundstate.bench.table import BenchRow, BenchTable
from groundstate.energy import NetClassEnergy
from groundstate.learn import learn_population

ROWS, FEATURES, CLASSES, BATCH, EPOCHS, MEMBERS = 20_000, 50, 5, 128, 10, 1_024
IMAGES, SIDE, CONVOLUTIONS = 4_096, 28, 256
Job = Callable[[], Any]


def table(device: str, rows: int) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(rows, FEATURES, generator=g)
    y = (x @ torch.randn(FEATURES, CLASSES, generator=g)).argmax(1)
    return {"x": x.to(device), "y": y.to(device)}


def images(device: str, rows: int) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.rand(rows, 1, SIDE, SIDE, generator=g)
    y = (x.flatten(1) @ torch.randn(SIDE * SIDE, 10, generator=g)).argmax(1)
    return {"x": x.to(device), "y": y.to(device)}


def dense(generator: torch.Generator) -> NetClassEnergy:
    return NetClassEnergy(FEATURES, CLASSES, (128, 128), "relu", generator=generator)


def convolutional(generator: torch.Generator) -> NetClassEnergy:
    with torch.random.fork_rng([]):
        torch.manual_seed(generator.initial_seed())
        net = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 64), nn.ReLU(), nn.Linear(64, 10),
        )  # fmt: skip
    return NetClassEnergy((1, SIDE, SIDE), 10, net)


def bare(net: nn.Module, data: dict[str, Tensor], epochs: int, device: str) -> None:
    """One network, as one would write it by hand."""
    net.to(device).train()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    x, y = data["x"], data["y"]
    for _ in range(epochs):
        order = torch.randperm(len(x), device=device)
        for at in range(0, len(x), BATCH):
            rows = order[at : at + BATCH]
            optimizer.zero_grad()
            cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()


def seconds(job: Job, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    job()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def jobs(device: str, scale: float) -> dict[str, dict[str, tuple[Job, Job]]]:
    """Of each measurement: the contestants, each with a small job that warms it up."""
    rows, epochs = max(BATCH + 7, int(ROWS * scale)), max(1, round(EPOCHS * scale))
    many, nets = max(2, int(MEMBERS * scale)), max(2, int(CONVOLUTIONS * scale))
    data, pixels = table(device, rows), images(device, max(BATCH, int(IMAGES * scale)))
    generator = torch.Generator().manual_seed(0)

    def members(n: int, epochs: int) -> Any:
        return learn_population(dense, {"seed": range(n)}, data, epochs=epochs, batch_size=BATCH)

    def estimator(epochs: int) -> Any:
        model = MLPClassifier(
            (128, 128), batch_size=BATCH, max_iter=epochs, n_iter_no_change=epochs, device=device,
            random_state=0,
        )  # fmt: skip
        return model.fit(data["x"], data["y"])

    def convolutions(n: int, epochs: int) -> Any:
        return learn_population(
            convolutional, {"seed": range(n)}, pixels, epochs=epochs, batch_size=BATCH
        )

    def loop(make: Callable[..., NetClassEnergy], data: dict[str, Tensor], epochs: int) -> None:
        bare(make(generator).net, data, epochs, device)

    flat = (lambda: loop(dense, data, epochs), lambda: loop(dense, data, 1))
    few = max(1, epochs // 3)
    return {
        "members": {
            "bare loop": flat,
            f"{many} members": (lambda: members(many, epochs), lambda: members(many, 1)),
        },
        "estimator": {
            "bare loop": flat,
            "MLPClassifier": (lambda: estimator(epochs), lambda: estimator(1)),
        },
        "convolutions": {
            "bare loop": (
                lambda: loop(convolutional, pixels, few),
                lambda: loop(convolutional, pixels, 1),
            ),
            "1 member": (lambda: convolutions(1, few), lambda: convolutions(1, 1)),
            f"{nets} members": (lambda: convolutions(nets, few), lambda: convolutions(nets, 1)),
        },
    }


def profiled(name: str, job: Job, device: str, out: Path) -> None:
    host = cProfile.Profile()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    host.enable()
    job()
    host.disable()
    text = io.StringIO()
    pstats.Stats(host, stream=text).sort_stats("cumtime").print_stats(60)
    with torch.profiler.profile(activities=activities) as kernels:
        job()
    order = "cuda_time_total" if device == "cuda" else "cpu_time_total"
    text.write(kernels.key_averages().table(sort_by=order, row_limit=30, max_name_column_width=60))
    (out / f"population-gpu-profile-{name}.txt").write_text(text.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=["members", "estimator", "convolutions"])
    parser.add_argument("--profile", action="store_true")
    folder = Path(os.environ.get("OUT", "bench/results"))
    parser.add_argument("--out", type=Path, default=folder / "population-gpu.csv")
    options = parser.parse_args()
    device, rows = options.device, []
    for what, contestants in jobs(device, options.scale).items():
        if what not in options.only:
            continue
        base = 0.0
        for name, (job, warm) in contestants.items():
            first = seconds(warm, device)
            times = [seconds(job, device) for _ in range(options.repeats)]
            base = base or min(times)
            print(json.dumps({
                "what": what, "who": name, "best_s": round(min(times), 4),
                "median_s": round(statistics.median(times), 4), "warm_s": round(first, 4),
                "ratio": round(min(times) / base, 3),
            }), flush=True)  # fmt: skip
            rows.append(BenchRow(
                size=what, contestant=name, ours=name != "bare loop",
                median_s=statistics.median(times), min_s=min(times), max_s=max(times),
                repeats=len(times), calls=1, peak_mib=0.0,
                device_mib=torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else 0.0,
                score=min(times) / base, version=package_version("groundstate"),
            ))  # fmt: skip
            if options.profile and name != "bare loop":
                profiled(f"{what}-{name.replace(' ', '-')}", warm, device, options.out.parent)
    BenchTable(
        name="population-gpu", title="Populations and one estimator on a GPU, by the plain call",
        score_name="times the time of one bare loop", better="low", target=None, rows=tuple(rows),
        absent=(), machine=machine(), threads=threads(), versions=versions(), date=today(),
        commit=commit(Path(__file__).parents[2]),
    ).to_csv(options.out)  # fmt: skip


if __name__ == "__main__":
    main()
