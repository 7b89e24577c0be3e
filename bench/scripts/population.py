"""Time of P tabular MLPs (50-128-128-5) trained as one program, against one.

``python bench/scripts/population.py [--device cuda] [--members 1 16 256 1024] [--batch 128] [--out
FILE]`` prints the table and writes the CSV. Times are of training steps alone (20,000 rows, Adam,
float32, every member with its own step size, penalty and seed of initialisation), given against two
baselines: one ordinary ``fit`` through the trainer, and a population of one, which on a GPU is
recorded as a CUDA graph like the larger ones.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch
from torch import Tensor

from groundstate.bench.machine import commit, machine, package_version, threads, today, versions
from groundstate.bench.table import BenchRow, BenchTable
from groundstate.energy import NetClassEnergy
from groundstate.learn import SoftMin, Stochastic, fit, fit_population

ROWS, FEATURES, CLASSES = 20_000, 50, 5


def table(device: str) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, FEATURES, generator=g)
    y = (x @ torch.randn(FEATURES, CLASSES, generator=g)).argmax(1)
    return {"x": x.to(device), "y": y.to(device)}


def members(p: int, device: str) -> list[NetClassEnergy]:
    return [
        NetClassEnergy(
            FEATURES, CLASSES, (128, 128), generator=torch.Generator().manual_seed(s)
        ).to(device)
        for s in range(p)
    ]


def seconds(p: int, device: str, epochs: int, batch: int) -> float:
    """Seconds per epoch of P members: the difference of two runs leaves the set-up out."""
    data, lr = table(device), [10 ** (-4 + 2 * i / max(1, p - 1)) for i in range(p)]
    strength = [float(i % 3) for i in range(p)]

    def run(n: int) -> float:
        population = members(p, device)
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        fit_population(
            population, data, SoftMin(), Stochastic(batch_size=batch, max_epochs=n, tol=None), lr=lr,
            strength=strength, random_state=0, capture=device == "cuda",
        )  # fmt: skip
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    run(1)
    return (run(2 * epochs) - run(epochs)) / epochs


def alone(device: str, epochs: int, batch: int) -> float:
    """Seconds per epoch of one ordinary fit through the trainer."""
    data = table(device)

    def run(n: int) -> float:
        (energy,) = members(1, device)
        start = time.perf_counter()
        fit(
            energy,
            data,
            SoftMin(),
            Stochastic(batch_size=batch, max_epochs=n, tol=None),
            random_state=0,
        )
        return time.perf_counter() - start

    run(1)
    return (run(2 * epochs) - run(epochs)) / epochs


def row(batch: int, name: str, times: list[float], ratio: float) -> BenchRow:
    return BenchRow(
        size=f"batch {batch}",
        contestant=name,
        ours=name != "one fit",
        median_s=statistics.median(times),
        min_s=min(times),
        max_s=max(times),
        repeats=len(times),
        calls=1,
        peak_mib=0.0,
        device_mib=0.0,
        score=ratio,
        version=package_version("groundstate"),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--batch", type=int, nargs="+", default=[128])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for batch in options.batch:
        runs = [alone(options.device, options.epochs, batch) for _ in range(options.repeats)]
        single = statistics.median(runs)
        rows.append(row(batch, "one fit", runs, 1.0))
        for p in options.members:
            runs = [
                seconds(p, options.device, options.epochs, batch) for _ in range(options.repeats)
            ]
            rows.append(row(batch, f"{p} stacked", runs, statistics.median(runs) / single))
            print(rows[-1], flush=True)
    result = BenchTable(
        name="population",
        title="P tabular MLPs (50-128-128-5) trained as one program: seconds per epoch",
        score_name="times the time of one fit",
        better="low",
        target=None,
        rows=tuple(rows),
        absent=(),
        machine=machine(),
        threads=threads(),
        versions=versions(),
        date=today(),
        commit=commit(Path(__file__).parents[2]),
    )
    if options.out:
        result.to_csv(options.out)


if __name__ == "__main__":
    main()
