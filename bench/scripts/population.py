"""Time of P tabular MLPs (50-128-128-5) trained as one program, against one.

``python bench/scripts/population.py [--device cuda] [--members 1 16 256 1024] [--batch 128]
[--backend auto reference] [--grid] [--out FILE]`` prints the table and writes the CSV. Times are of
training steps alone (20,000 rows, Adam, float32, every member with its own step size, penalty and
seed of initialisation), given against one ordinary ``fit`` through the trainer. Other baselines in
the table: one bare loop in torch, one compiled fit, and a population of one, which on a GPU is recorded
as a CUDA graph like the larger ones. ``--grid`` adds 5 folds x 20 settings x 5 seeds: 500 members, each
with its own rows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from groundstate.bench.machine import commit, machine, package_version, threads, today, versions
from groundstate.bench.table import BenchRow, BenchTable
from groundstate.compute import Key, WeightLine
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


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def per_epoch(run: Callable[[int], None], device: str, epochs: int) -> float:
    """Seconds per epoch: the difference of two runs leaves the set-up out."""

    def timed(n: int) -> float:
        wait(device)
        start = time.perf_counter()
        run(n)
        wait(device)
        return time.perf_counter() - start

    timed(1)
    return (timed(3 * epochs) - timed(epochs)) / (2 * epochs)


def seconds(p: int, device: str, epochs: int, batch: int, backend: str) -> float:
    """Seconds per epoch of P members on shared batches."""
    data, lr = table(device), [10 ** (-4 + 2 * i / max(1, p - 1)) for i in range(p)]
    strength = [float(i % 3) for i in range(p)]

    def run(n: int) -> None:
        fit_population(
            members(p, device), data, SoftMin(),
            Stochastic(batch_size=batch, max_epochs=n, tol=None), lr=lr, strength=strength,
            random_state=0, capture=device == "cuda", backend=backend,
        )  # fmt: skip

    return per_epoch(run, device, epochs)


def grid(device: str, epochs: int, batch: int, backend: str) -> float:
    """Seconds per epoch of 5 folds x 20 settings x 5 seeds."""
    data = table(device)
    folds = WeightLine.of(data["x"].cpu().numpy(), data["y"].cpu().numpy()).folds(Key.of(0), 5)
    rows = [(f, i, s) for f in range(5) for i in range(20) for s in range(5)]
    weight = torch.from_numpy(folds)[[f for f, _, _ in rows]]
    lr = [10 ** (-4 + 2 * (i % 5) / 4) for _, i, _ in rows]
    strength = [float(i // 5) for _, i, _ in rows]
    seeds = [s for _, _, s in rows]

    def run(n: int) -> None:
        fit_population(
            members(len(rows), device), data, SoftMin(),
            Stochastic(batch_size=batch, max_epochs=n, tol=None), lr=lr, strength=strength,
            sample_weight=weight, random_state=seeds, capture=device == "cuda", backend=backend,
        )  # fmt: skip

    return per_epoch(run, device, epochs)


def alone(device: str, epochs: int, batch: int, compiled: bool | str = False) -> float:
    """Seconds per epoch of one ordinary fit through the trainer."""
    data = table(device)

    def run(n: int) -> None:
        (energy,) = members(1, device)
        solver = Stochastic(batch_size=batch, max_epochs=n, tol=None, compile=compiled)
        fit(energy, data, SoftMin(), solver, random_state=0)

    return per_epoch(run, device, epochs)


def by_hand(device: str, epochs: int, batch: int) -> float:
    """Seconds per epoch of one bare loop in torch, with fused Adam and its own threads."""
    data = table(device)

    def run(n: int) -> None:
        net = members(1, device)[0].net
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
        for _ in range(n):
            order = torch.randperm(ROWS, device=device)
            x, y = data["x"][order], data["y"][order]
            for at in range(0, ROWS, batch):
                optimizer.zero_grad()
                cross_entropy(net(x[at : at + batch]), y[at : at + batch]).backward()
                optimizer.step()

    return per_epoch(run, device, epochs)


def row(batch: int, name: str, times: list[float], ratio: float) -> BenchRow:
    return BenchRow(
        size=f"batch {batch}",
        contestant=name,
        ours=not name.startswith("one "),
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
    parser.add_argument("--backend", nargs="+", default=["auto"])
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device, epochs = options.device, options.epochs
    rows = []
    for batch in options.batch:
        baselines: dict[str, Callable[[], float]] = {
            "one fit": partial(alone, device, epochs, batch),
            "one torch loop": partial(by_hand, device, epochs, batch),
        }
        if device == "cuda":
            baselines["one compiled fit"] = partial(alone, device, epochs, batch, True)
        single = 0.0
        for name, baseline in baselines.items():
            runs = [baseline() for _ in range(options.repeats)]
            single = single or statistics.median(runs)
            rows.append(row(batch, name, runs, statistics.median(runs) / single))
            print(rows[-1], flush=True)
        for backend in options.backend:
            kind = "stacked" if backend == "auto" else f"stacked, {backend}"
            jobs: dict[str, Callable[[], float]] = {
                f"{p} {kind}": partial(seconds, p, device, epochs, batch, backend)
                for p in options.members
            }
            if options.grid:
                jobs[f"5 folds x 20 settings x 5 seeds {kind}"] = partial(
                    grid, device, epochs, batch, backend
                )
            for name, job in jobs.items():
                runs = [job() for _ in range(options.repeats)]
                rows.append(row(batch, name, runs, statistics.median(runs) / single))
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
