"""Training steps of generators on a GPU: `fit` as called beside a hand-written loop over the same modules.

``python bench/scripts/generative_gpu.py [--device cuda] [--rows 60000] [--epochs 3]``. Rows stand on the
device. The loop draws a permutation, computes the same loss of the same energy, and steps torch's fused
Adam; a game of two players takes its two steps. Times are of one epoch: a fit of ``1 + epochs`` epochs less
a fit of one, so that making networks and compiling are in neither. Writes ``generative-gpu.csv`` under
``$OUT`` where that is set.
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

import groundstate as gs
from groundstate.learn.rules.players import moves_of


def made(name: str, *given: Any, **settings: Any) -> Any:
    """A generator with those of the settings that it has."""
    cls = getattr(gs, name)
    known = cls(*given).get_params(deep=False)
    return cls(*given, **{k: v for k, v in settings.items() if k in known})


def synchronised(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def fit_epoch(make: Callable[[int], Any], X: Tensor, epochs: int, device: str) -> tuple[float, Any]:
    """Seconds of one epoch of ``fit``, and the fitted model."""
    model = make(1).fit(X)
    times = []
    for n in (1, 1 + epochs):
        start = synchronised(device)
        make(n).fit(X)
        times.append(synchronised(device) - start)
    return (times[1] - times[0]) / epochs, model


def loop_epoch(model: Any, X: Tensor, batch: int, epochs: int, device: str) -> float:
    """Seconds of one epoch of a plain loop over the same energy and loss."""
    energy, rows = model.energy_.train(), model.coding_.encode(X)
    rule = model.rule_ if hasattr(model, "rule_") else model._loss(energy)
    rule.to(rows.device, rows.dtype).train()
    moves = moves_of(rule, energy)
    taken = {id(p) for m in moves.values() for p in m.parameters}
    main = {id(p): p for p in (*energy.parameters(), *rule.parameters())}
    own = [p for k, p in main.items() if k not in taken and p.requires_grad]
    fused = device == "cuda"
    optimizer = torch.optim.Adam(own, 1e-4, fused=fused)
    others = {k: torch.optim.Adam(m.parameters, 1e-4, fused=fused) for k, m in moves.items()}
    generator = torch.Generator(device=rows.device).manual_seed(0)
    bf16 = torch.autocast(device, torch.bfloat16, enabled=fused and rows.dtype == torch.float32)

    def step(x: Tensor) -> None:
        data = {"x": x}
        for before in (True, False):
            for name, move in moves.items():
                if move.before is before:
                    for _ in range(move.steps):
                        with bf16:
                            loss = move.loss(energy, data, generator)
                        if loss is None:
                            break
                        others[name].zero_grad(set_to_none=True)
                        loss.backward(inputs=list(move.parameters))
                        others[name].step()
            if before:
                with bf16:
                    loss = rule.mean(energy, data, None, 1.0, generator)[0]
                optimizer.zero_grad(set_to_none=True)
                loss.backward(inputs=own)
                optimizer.step()

    def epoch() -> None:
        order = torch.randperm(len(rows), device=rows.device)
        for at in range(0, len(rows) - batch + 1, batch):
            step(rows[order[at : at + batch]])

    epoch()
    start = synchronised(device)
    for _ in range(epochs):
        epoch()
    return (synchronised(device) - start) / epochs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    device, batch = given.device, 256
    g = torch.Generator().manual_seed(0)
    pictures = torch.rand(given.rows, 784, generator=g).to(device)
    table = torch.randn(given.rows, 16, generator=g).to(device)
    common: dict[str, Any] = {
        "batch_size": batch, "n_iter_no_change": float("inf"), "random_state": 0, "device": None,
    }  # fmt: skip
    cases: dict[str, tuple[Callable[[int], Any], Tensor]] = {
        "Autoencoder 784": (lambda n: made("Autoencoder", 16, max_iter=n, **common), pictures),
        "VAE 784-512-256": (
            lambda n: made("VAE", 16, hidden_layer_sizes=(512, 256), max_iter=n, **common), pictures,
        ),
        "GAN 784": (
            lambda n: made("GAN", 100, hidden_layer_sizes=(256, 512), max_iter=n, **common), pictures,
        ),
        "WGAN 16": (lambda n: made("WGAN", 16, max_iter=n, **common), table),
        "RealNVP 16": (lambda n: made("NormalizingFlow", "realnvp", max_iter=n, **common), table),
        "MAF 16": (lambda n: made("NormalizingFlow", "maf", max_iter=n, **common), table),
        "NSF 16": (lambda n: made("NormalizingFlow", "nsf", max_iter=n, **common), table),
        "FlowMatching 16": (lambda n: made("FlowMatching", max_iter=n, **common), table),
        "DDPM 16": (lambda n: made("DDPM", max_iter=n, **common), table),
        "AutoregressiveDensity 16": (
            lambda n: made("AutoregressiveDensity", early_stopping=False, max_iter=n, **common), table,
        ),
        "EnergyModel 16": (lambda n: made("EnergyModel", max_iter=n, **common), table),
    }  # fmt: skip
    rows = []
    for name, (make, X) in cases.items():
        if given.only and given.only not in name:
            continue
        try:
            ours, model = fit_epoch(make, X, given.epochs, device)
            loop = loop_epoch(model, X, batch, given.epochs, device)
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        steps = len(X) // batch
        rows.append([name, steps, f"{ours:.5f}", f"{loop:.5f}", f"{loop / ours:.3f}"])
        print(*rows[-1], flush=True)
    if "OUT" in os.environ:
        with (Path(os.environ["OUT"]) / "generative-gpu.csv").open("w") as file:
            writer = csv.writer(file)
            writer.writerow(["family", "steps", "fit_epoch_s", "loop_epoch_s", "times_loop"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
