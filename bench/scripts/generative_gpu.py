"""Training steps of generators: `fit` as called beside a hand-written loop over the same modules.

``python bench/scripts/generative_gpu.py [--device cuda] [--rows 30000] [--epochs 3] [--data FOLDER]``. Rows
stand on the device. The loop draws a permutation, computes the same loss of the same energy, and steps torch's
fused Adam; a game of two players takes its two steps. Times are of one epoch: a fit of ``1 + epochs`` epochs
less a fit of one, so that making networks and compiling are in neither. With ``--device cpu`` they are
processor times, so that other programs hardly change them, and each is the least of ``--rounds`` that take
turns; ``bench/tables/generative-cpu.csv`` holds them. With ``--data``, a folder with the digits of MNIST, a
small diffusion model and a VAE learn them (``generated_digits.py``). Writes ``generative-DEVICE.csv``,
``digits-DEVICE.csv`` and sheets of digits under ``$OUT`` where that is set.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generated_digits
import torch
from torch import Tensor

import groundstate as gs
from groundstate.learn.rules.players import moves_of

BATCH = 256


def made(name: str, *given: Any, **settings: Any) -> Any:
    """A generator with those of the settings that it has."""
    cls = getattr(gs, name)
    known = cls(*given).get_params(deep=False)
    return cls(*given, **{k: v for k, v in settings.items() if k in known})


def synchronised(device: str) -> float:
    if device == "cpu":
        return time.process_time()
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
    energy, rows = model.energy_.train(), model.coding_.encode(X.flatten(1))
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


Case = tuple[Callable[[int], Any], Tensor]


def cases(n: int, device: str) -> dict[str, Case]:
    """One network of every family, as a function of its epochs, with rows for it."""
    g = torch.Generator().manual_seed(0)
    pictures = torch.rand(n, 784, generator=g).to(device)
    table = torch.randn(n, 16, generator=g).to(device)
    small = torch.randint(0, 2, (n // 4, 1, 14, 14), generator=g).float().to(device)
    common: dict[str, Any] = {
        "batch_size": BATCH, "n_iter_no_change": float("inf"), "random_state": 0, "device": None,
        "early_stopping": False,
    }  # fmt: skip

    def of(rows: Tensor, name: str, *given: Any, **own: Any) -> Case:
        return lambda epochs: made(name, *given, **common, **own, max_iter=epochs), rows

    return {
        "Autoencoder 784": of(pictures, "Autoencoder", 16),
        "SparseAutoencoder 784": of(pictures, "SparseAutoencoder", 16),
        "DenoisingAutoencoder 784": of(pictures, "DenoisingAutoencoder", 16),
        "ContractiveAutoencoder 784": of(pictures, "ContractiveAutoencoder", 16),
        "VQAutoencoder 784": of(pictures, "VQAutoencoder", 16),
        "VAE 784-512-256": of(pictures, "VAE", 16, hidden_layer_sizes=(512, 256)),
        "HierarchicalVAE 784": of(pictures, "HierarchicalVAE", (16, 8)),
        "GAN 784": of(pictures, "GAN", 100, hidden_layer_sizes=(256, 512)),
        "WGAN 16": of(table, "WGAN", 16),
        "EnergyGAN 16": of(table, "EnergyGAN", 16),
        "RealNVP 16": of(table, "NormalizingFlow", "realnvp"),
        "MAF 16": of(table, "NormalizingFlow", "maf"),
        "NSF 16": of(table, "NormalizingFlow", "nsf"),
        "CNF 16": of(table[: n // 8], "CNF", method="rk4", n_steps=4, trace="hutchinson"),
        "FlowMatching 16": of(table, "FlowMatching"),
        "DDPM 16": of(table, "DDPM"),
        "ScoreModel 16": of(table, "ScoreModel"),
        "ScoreSDE 16": of(table, "ScoreSDE"),
        "AutoregressiveDensity 16": of(table, "AutoregressiveDensity"),
        "MADE 16": of(table, "MADE"),
        "PixelCNN 14x14": of(small, "PixelCNN"),
        "EnergyModel 16": of(table[: n // 4], "EnergyModel"),
    }


def written(out: Path | None, name: str, rows: list[dict[str, Any]]) -> None:
    if out is None or not rows:
        return
    with (out / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(k for row in rows for k in row)))
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="families whose name has this in it")
    parser.add_argument("--data", type=Path, help="folder with the two files of MNIST")
    parser.add_argument("--digit-epochs", type=int, default=60)
    parser.add_argument("--digit-base", type=int, default=32, help="channels of the U-Net")
    parser.add_argument("--draws", type=int, default=2000)
    given = parser.parse_args()
    out = Path(os.environ["OUT"]) if "OUT" in os.environ else None
    drawn: list[dict[str, Any]] = []

    def report(what: str, **numbers: Any) -> None:
        drawn.append({"what": what, **numbers})
        print(what, " ".join(f"{k}={v}" for k, v in numbers.items()), flush=True)
        written(out, f"digits-{given.device}.csv", drawn)

    if given.data is not None:
        generated_digits.run(
            given.data, given.digit_epochs, given.device, out, report,
            base=given.digit_base, n=given.draws,
        )  # fmt: skip
    steps: list[dict[str, Any]] = []
    broken: list[str] = []
    for name, (make, X) in cases(given.rows, given.device).items():
        if given.only not in name:
            continue
        try:
            rounds = []
            for _ in range(given.rounds):
                ours, model = fit_epoch(make, X, given.epochs, given.device)
                rounds.append((ours, loop_epoch(model, X, BATCH, given.epochs, given.device)))
            ours, loop = (min(times) for times in zip(*rounds, strict=True))
        except Exception as error:  # the other families are measured; the run fails at its end
            traceback.print_exc()
            broken.append(f"{name}: {type(error).__name__}")
            continue
        steps.append({
            "family": name, "steps": len(X) // BATCH, "fit_epoch_s": f"{ours:.5f}",
            "loop_epoch_s": f"{loop:.5f}", "times_loop": f"{loop / ours:.3f}",
        })  # fmt: skip
        print(*steps[-1].values(), flush=True)
        written(out, f"generative-{given.device}.csv", steps)
    if broken:
        sys.exit("not measured: " + "; ".join(broken))


if __name__ == "__main__":
    main()
