"""Training steps of networks through the estimators, beside the loop that one would write by hand.

``python bench/scripts/network_steps_gpu.py [device]``: ResNet-18 on 32 x 32 pictures, a U-Net, a GRU, and a
population of 25 small CNNs beside one. Both sides take the same module, batch size, optimiser
(fused AdamW) and bf16; rows lie on the device. A step is the difference of a long and a short run, so
that set-up does not count; the whole fit stands beside it. Results go to ``$OUT/network-steps-gpu.csv``.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import groundstate
from groundstate import ImageClassifier, Segmenter, SequenceClassifier

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
FEW = DEVICE == "cpu"
FIELDS = ("task", "rows", "batch", "ours_ms", "hand_ms", "ratio", "fit_s", "compiled")


def synchronise() -> None:
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def timed(f: Callable[[], Any]) -> float:
    synchronise()
    start = time.perf_counter()
    f()
    synchronise()
    return time.perf_counter() - start


def by_hand(net: nn.Module, X: Tensor, y: Tensor, batch: int, epochs: int, lr: float) -> None:
    """Shuffled batches, autocast, backward, a step."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, fused=True)
    half = torch.autocast(X.device.type, torch.bfloat16, enabled=X.device.type == "cuda")
    for _ in range(epochs):
        for index in torch.randperm(len(X), device=X.device).split(batch):
            with half:
                loss = cross_entropy(net(X[index]), y[index])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()


def compared(task: str, make: Callable[[int], Any], X: Any, y: Any, batch: int, short: int, long: int,
             like: Tensor | None = None, compiled: bool = False) -> dict[str, Any]:  # fmt: skip
    """Milliseconds of a step on both sides."""
    fitted = make(1).fit(X, y)
    net = fitted.network_
    steps = (long - short) * -(-len(y) // batch)
    few, many = (timed(lambda n=n: make(n).fit(X, y)) for n in (short, long))
    rows = X if like is None else like
    labels = torch.as_tensor(
        np.unique(np.asarray(y.cpu()), return_inverse=True)[1].reshape(y.shape)
    )
    labels = labels.to(rows.device)
    net = net.train()
    by_hand(net, rows, labels, batch, 1, 1e-3)
    hand_few, hand_many = (
        timed(lambda n=n: by_hand(net, rows, labels, batch, n, 1e-3)) for n in (short, long)
    )
    ours, hand = 1e3 * (many - few) / steps, 1e3 * (hand_many - hand_few) / steps
    row = {"task": task, "rows": len(y), "batch": batch, "ours_ms": round(ours, 3),
           "hand_ms": round(hand, 3), "ratio": round(hand / ours, 3), "fit_s": round(many, 2),
           "compiled": compiled}  # fmt: skip
    print(row, flush=True)
    return row


def images(compiled: bool) -> dict[str, Any]:
    n = 64 if FEW else 12_800
    X = torch.randn(n, 3, 32, 32, device=DEVICE)
    y = torch.arange(n, device=DEVICE) % 10

    def make(epochs: int) -> Any:
        return ImageClassifier("resnet18", augment="none", max_epochs=epochs, batch_size=128,
                               val_fraction=0, schedule=None, random_state=0, device=DEVICE,
                               compile=compiled)  # fmt: skip

    return compared("resnet18, 32x32", make, X, y, 128, 1, 4, compiled=compiled)


def masks() -> dict[str, Any]:
    n = 16 if FEW else 640
    X = torch.randn(n, 1, 96, 96, device=DEVICE)
    y = (X[:, 0] > 0).long()

    def make(epochs: int) -> Any:
        return Segmenter("unet", loss="ce", network_params={"base": 32}, max_epochs=epochs, batch_size=16,
                         val_fraction=0, patience=None, random_state=0, device=DEVICE)  # fmt: skip

    return compared("U-Net, 96x96", make, X, y, 16, 2, 8)


def sequences() -> dict[str, Any]:
    n = 256 if FEW else 12_800
    X = torch.randn(n, 64, 16, device=DEVICE)
    y = (X[:, 0, 0] > 0).long()

    def make(epochs: int) -> Any:
        return SequenceClassifier("gru", {"hidden": 128}, max_epochs=epochs, batch_size=128,
                                  val_fraction=0, patience=None, clip_norm=None, random_state=0,
                                  device=DEVICE)  # fmt: skip

    fitted = make(1).fit(X, y)
    print("network:", type(fitted.network_).__name__, flush=True)

    class Padded(nn.GRU):
        def __init__(self) -> None:
            super().__init__(16, 128, batch_first=True)
            self.head = nn.Linear(128, 2)

        def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:  # type: ignore[override]
            return self.head(super().forward(x, hx)[0][:, -1])

    few, many = (timed(lambda n=n: make(n).fit(X, y)) for n in (1, 5))
    net = Padded().to(DEVICE)
    by_hand(net, X, y, 128, 1, 3e-3)
    hand_few, hand_many = (timed(lambda n=n: by_hand(net, X, y, 128, n, 3e-3)) for n in (1, 5))
    steps = 4 * -(-n // 128)
    ours, hand = 1e3 * (many - few) / steps, 1e3 * (hand_many - hand_few) / steps
    row = {"task": "GRU, 64 steps", "rows": n, "batch": 128, "ours_ms": round(ours, 3),
           "hand_ms": round(hand, 3), "ratio": round(hand / ours, 3), "fit_s": round(many, 2),
           "compiled": False}  # fmt: skip
    print(row, flush=True)
    return row


def population() -> dict[str, Any]:
    """Five folds of five seeds of a small CNN, and one of them."""
    n = 200 if FEW else 8_000
    rng = np.random.default_rng(0)
    y = np.arange(n) % 10
    X = rng.normal(size=(n, 1, 28, 28)).astype(np.float32) + y[:, None, None, None] / 10

    def make() -> Any:
        return ImageClassifier("cnn", {"channels": (16, 32)}, augment="none", max_epochs=4, batch_size=128,
                               val_fraction=0, schedule=None, precision="32", random_state=0,
                               device=DEVICE)  # fmt: skip

    folds = np.stack([(np.arange(n) // 10 % 5 != k).astype(float) for k in range(5)])
    settings = [{"random_state": s} for s in range(5)]
    make().fit(X, y)
    one = timed(lambda: make().fit(X, y, sample_weight=folds[0]))
    many = timed(lambda: groundstate.fit_many(make(), X, y, folds, settings))
    row = {"task": "25 CNNs beside one", "rows": n, "batch": 128, "ours_ms": round(1e3 * many, 1),
           "hand_ms": round(1e3 * one, 1), "ratio": round(many / one, 2), "fit_s": round(many, 2),
           "compiled": False}  # fmt: skip
    print(row, "ratio here is the time of 25 over that of one", flush=True)
    return row


def main() -> None:
    rows = []
    for f in (lambda: images(False), masks, sequences, population, lambda: images(True)):
        rows.append(f())
        out = Path(os.environ.get("OUT", ".")) / "network-steps-gpu.csv"
        if "OUT" in os.environ:
            with out.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
