"""Training steps on a GPU: the trainer against the same loop by hand, with the same flags.

``PYTHONPATH=src python bench/scripts/neural_gpu.py [--parts plain dropout ...] [--seconds S]
[--out FILE]`` prints one JSON line per case as soon as it is measured, and writes all of them to the
file at the end. With ``compile="reduce-overhead"`` ours records the step as a CUDA graph; the loop by
hand compiles its network in that mode, last and once each: its first fit is the time of compiling.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from groundstate.bench.machine import machine, today
from groundstate.energy import NetClassEnergy
from groundstate.learn import Checkpoint, SoftMin, Stochastic, fit

CASES = {
    "20-100-3": ((20, 100, 3), 200, 40_000, 5),
    "50-256-128-10": ((50, 256, 128, 10), 256, 51_200, 5),
    "784-1024-1024-10": ((784, 1024, 1024, 10), 512, 102_400, 5),
}
FLAGS = ("32", "tf32", "bf16", "fp16")
PARTS = ("plain", "graph", "dropout", "resume", "compiled")
ROWS: list[dict[str, Any]] = []  # what was measured so far


def net(sizes: tuple[int, ...], device: str) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(device)


def by_hand(model: Any, x: Tensor, y: Tensor, batch: int, epochs: int, precision: str) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    scaler = torch.amp.GradScaler(x.device.type, enabled=precision == "fp16")
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    for _ in range(epochs):
        order = torch.randperm(len(x), device=x.device)
        xs, ys = x[order], y[order]
        for at in range(0, len(x), batch):
            with torch.autocast(x.device.type, dtype=half, enabled=half is not None):
                loss = cross_entropy(model(xs[at : at + batch]), ys[at : at + batch])
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    torch.set_float32_matmul_precision("highest")


def ours(energy: Any, x: Tensor, y: Tensor, solver: Stochastic, losses: list[float]) -> None:
    history = fit(energy, {"x": x, "y": y}, SoftMin(), solver, random_state=0)
    losses.append(history.objective[-1])


def timed(run: Any, device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def report(case: str, best: dict[str, float], steps: int, **more: Any) -> None:
    row: dict[str, Any] = {"case": case, **more}
    row |= {f"{k}_us_per_step": round(1e6 * v / steps, 1) for k, v in best.items()}
    keep({**row, "ratio": round(best["ours"] / best["hand"], 3)})


def keep(row: dict[str, Any]) -> None:
    ROWS.append(row)
    print(json.dumps(row), flush=True)


def rows_of(name: str, device: str) -> tuple[Tensor, Tensor, int]:
    sizes, batch, rows, epochs = CASES[name]
    g = torch.Generator().manual_seed(1)
    x = torch.randn(rows, sizes[0], generator=g).to(device)
    y = torch.randint(sizes[-1], (rows,), generator=g).to(device)
    return x, y, epochs * -(-rows // batch)


def with_dropout(model: nn.Sequential) -> nn.Sequential:
    layers: list[nn.Module] = []
    for layer in model:
        layers += [layer, nn.Dropout(0.3)] if isinstance(layer, nn.ReLU) else [layer]
    return nn.Sequential(*layers)


def plain(
    name: str, device: str, precision: str, dropout: bool = False, graph: bool = False
) -> None:
    sizes, batch, _, epochs = CASES[name]
    x, y, steps = rows_of(name, device)
    best = {"ours": float("inf"), "hand": float("inf")}
    settings: dict[str, Any] = {"batch_size": batch, "max_epochs": epochs, "tol": None}
    losses: list[float] = []
    if graph:  # recorded and not: the same numbers
        own = NetClassEnergy(sizes[0], sizes[-1], prepared(sizes, device, dropout))
        ours(own, x, y, Stochastic(**settings, precision=precision), losses)
        settings["compile"] = "reduce-overhead"
    for _ in range(4):
        solver = Stochastic(**settings, precision=precision)
        own = NetClassEnergy(sizes[0], sizes[-1], prepared(sizes, device, dropout))
        by_us = partial(ours, own, x, y, solver, losses)
        by = prepared(sizes, device, dropout)
        hand = partial(by_hand, by, x, y, batch, epochs, precision)
        for label, run in (("ours", by_us), ("hand", hand)):
            best[label] = min(best[label], timed(run, device))
    report(name, best, steps, device=device, precision=precision, dropout=dropout, graph=graph,
           same=len(set(losses)) == 1, spread=max(losses) - min(losses))  # fmt: skip


def prepared(sizes: tuple[int, ...], device: str, dropout: bool) -> nn.Sequential:
    model = net(sizes, device)
    return with_dropout(model) if dropout else model


def compiled(name: str, device: str, mode: str) -> None:
    """The loop by hand through ``torch.compile``, and ours in the same mode."""
    sizes, batch, _, epochs = CASES[name]
    x, y, steps = rows_of(name, device)
    solver = Stochastic(batch_size=batch, max_epochs=epochs, tol=None, compile=mode)
    own = NetClassEnergy(sizes[0], sizes[-1], net(sizes, device))
    by_us = partial(ours, own, x, y, solver, [])
    model = torch.compile(net(sizes, device), mode=mode, dynamic=False)
    hand = partial(by_hand, model, x, y, batch, epochs, "32")
    best: dict[str, float] = {}
    for label, run in (("ours", by_us), ("hand", hand)):
        first = timed(run, device)
        print(json.dumps({"case": name, "mode": mode, "who": label, "first fit, s": round(first, 1)}),
              flush=True)  # fmt: skip
        best[label] = min(timed(run, device) for _ in range(2))
    report(name, best, steps, device=device, mode=mode)


def resumed(device: str, mode: bool | str) -> None:
    """Whether stopping in the middle and resuming gives the same numbers on this device."""
    g = torch.Generator().manual_seed(0)
    data = {"x": torch.randn(2000, 20, generator=g).to(device),
            "y": torch.arange(2000, device=device) % 3}  # fmt: skip
    out = []
    with TemporaryDirectory() as folder:
        for epochs, callbacks in ((6, []), (3, [Checkpoint(folder)]), (6, [Checkpoint(folder)])):
            model = net((20, 100, 3), device)
            solver = Stochastic(
                batch_size=64, max_epochs=epochs, tol=None, deterministic=True, compile=mode
            )
            fit(NetClassEnergy(20, 3, model), data, SoftMin(), solver, callbacks=callbacks,
                random_state=0)  # fmt: skip
            out.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
    gap = float((out[0] - out[2]).abs().max())
    keep({"case": "resume", "device": device, "compile": mode, "largest_difference": gap})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--seconds", type=float, default=240.0, help="no case begins later")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    start = time.perf_counter()
    jobs: list[tuple[str, partial[None]]] = []
    for graph in (False, True):
        part = "graph" if graph else "plain"
        jobs += [(part, partial(plain, n, device, p, False, graph)) for n in CASES for p in FLAGS]
        jobs += [("dropout", partial(plain, n, device, "32", True, graph)) for n in CASES]
    jobs += [("resume", partial(resumed, device, mode)) for mode in (False, "reduce-overhead")]
    jobs += [("compiled", partial(compiled, n, device, "reduce-overhead")) for n in CASES]
    for part, job in jobs:
        if part not in options.parts:
            continue
        if time.perf_counter() - start > options.seconds:
            print(json.dumps({"left out": part, "case": str(job.args[0])}), flush=True)
        else:
            job()
    if options.out is not None:
        write(options.out, device)


def write(path: Path, device: str) -> None:
    where = torch.cuda.get_device_name() if device == "cuda" else machine()
    about = {"machine": where, "torch": torch.__version__, "date": today()}
    rows = [{**row, **about} for row in ROWS]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
