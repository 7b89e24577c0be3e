"""Digits by generators: how long they learn, how near their draws are, a sheet to look at.

Each generator learns 8,000 digits of MNIST with their labels. A small classifier of the same digits judges
draws: the Fréchet distance of its 64 features to those of the 2,000 digits that nothing has seen, beside that
of 2,000 digits that were learned from, and how many draws are read as the label that was asked for.
``generative_gpu.py`` runs it on a GPU;
``python bench/scripts/generated_digits.py FOLDER [--only VAE] [--epochs 40] [--sheets DIR]`` runs it here and
writes ``bench/tables/digits.csv``, with processor times, and a sheet for each generator.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from groundstate import DDPM, ConditionalVAE
from groundstate.math.divergences import frechet_from_samples

IMAGES, LABELS = "mnist10k-images-idx3-ubyte.gz", "mnist10k-labels-idx1-ubyte.gz"
TRAIN = 0.8


def read(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Digits in [0, 1] and labels, shuffled: the file is sorted by difficulty."""
    raw = [gzip.decompress((folder / name).read_bytes()) for name in (IMAGES, LABELS)]
    X = np.frombuffer(raw[0], np.uint8, offset=16).reshape(-1, 28, 28).astype(np.float32) / 255
    y = np.frombuffer(raw[1], np.uint8, offset=8).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def classifier(X: np.ndarray, y: np.ndarray, device: str) -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 49, 64), nn.ReLU(), nn.Linear(64, 10),
    ).to(device)  # fmt: skip
    rows, labels = torch.from_numpy(X).to(device)[:, None], torch.from_numpy(y).to(device)
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(8):
        for at in torch.randperm(len(rows), device=device).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(rows[at]), labels[at]).backward()
            optimiser.step()
    return net.eval()


@torch.no_grad()
def features(net: nn.Sequential, X: np.ndarray, device: str) -> np.ndarray:
    return net[:-1](torch.from_numpy(X).to(device)[:, None]).cpu().double().numpy()


@torch.no_grad()
def labels_read(net: nn.Sequential, X: np.ndarray, device: str) -> np.ndarray:
    return net(torch.from_numpy(X).to(device)[:, None]).argmax(1).cpu().numpy()


def generators(epochs: int, base: int, device: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Models with what their draws of a label take."""
    diffusion = DDPM(
        1000, "cosine", network_params={"base": base}, scale="minmax", max_iter=epochs,
        sampler="dpmpp_2m", sample_steps=25, random_state=0, device=device,
    )  # fmt: skip
    vae = ConditionalVAE(
        8, likelihood="bernoulli", conditional_prior=True, hidden_layer_sizes=(512, 256),
        batch_size=128, max_iter=epochs, random_state=0, device=device,
    )  # fmt: skip
    return {"DDPM": (diffusion, {"guidance_scale": 2.0}), "VAE": (vae, {"return_mean": True})}


def run(
    folder: Path, epochs: int, device: str, out: Path | None, report: Callable[..., None],
    *, base: int = 32, n: int = 2000, only: str = "",
) -> None:  # fmt: skip
    """Learn, draw, judge, and write one sheet for each generator under ``out``."""
    X, y = read(folder)
    cut = int(TRAIN * len(X))
    train, test = X[:cut], X[cut:]
    net = classifier(train, y[:cut], device)
    unseen = features(net, test, device)
    report(
        "digits", frechet=_distance(features(net, train[: len(test)], device), unseen),
        right_label=float((labels_read(net, test, device) == y[cut:]).mean().round(3)),
    )  # fmt: skip
    asked = np.repeat(np.arange(10), n // 10)
    clock = time.process_time if device == "cpu" else time.perf_counter
    for name, (model, own) in generators(epochs, base, device).items():
        if only not in name:
            continue
        start = clock()
        model.fit(train, y[:cut])
        fitted = clock() - start
        start = clock()
        plain = {k: v for k, v in own.items() if k == "return_mean"}
        drawn = _pictures(model.sample(n, random_state=0, **plain))
        drawing = clock() - start
        of_labels = _pictures(model.sample(len(asked), y=asked, random_state=1, **own))
        report(
            f"digits by {name}", fit_s=round(fitted, 1), sample_s=round(drawing, 2), epochs=epochs,
            frechet=_distance(features(net, drawn, device), unseen),
            right_label=float((labels_read(net, of_labels, device) == asked).mean().round(3)),
        )  # fmt: skip
        if out is not None:
            sheet(of_labels.reshape(10, -1, 28, 28)[:, :10], out / f"{name.lower()}-digits.png")


def _pictures(drawn: Any) -> np.ndarray:
    return np.asarray(drawn, np.float32).reshape(-1, 28, 28).clip(0, 1)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return round(float(frechet_from_samples(a, b)), 3)


def sheet(rows: np.ndarray, path: Path) -> None:
    """Pictures ``(r, c, h, w)`` in one PNG, written without a plotting library."""
    import struct
    import zlib

    r, c, h, w = rows.shape
    grey = (255 * rows.transpose(0, 2, 1, 3).reshape(r * h, c * w)).astype(np.uint8)
    lines = np.column_stack([np.zeros(len(grey), np.uint8), grey]).tobytes()

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sheets", type=Path)
    parser.add_argument("--out", type=Path, default=Path("bench/tables/digits.csv"))
    given = parser.parse_args()
    found: list[dict[str, Any]] = []

    def report(what: str, **numbers: Any) -> None:
        found.append({"what": what, **numbers})
        print(what, " ".join(f"{k}={v}" for k, v in numbers.items()), flush=True)

    run(given.folder, given.epochs, given.device, given.sheets, report, only=given.only)
    with given.out.open("w", newline="") as file:
        names = list(dict.fromkeys(k for row in found for k in row))
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    main()
