"""Single fits and populations of one image classifier in one number format.

``python bench/scripts/precision_gpu.py`` (about a minute): 5 seeds of a small CNN on made-up pictures, as one
program and one by one, with ``precision`` "auto" (bf16 on a GPU), "bf16" and "32". Prints seconds,
accuracy on new pictures, and the largest difference of probabilities between the two ways; "auto" must
be as "bf16".
Results go to ``$OUT/precision-gpu.csv``.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from groundstate import ImageClassifier
from groundstate.models.population.many import fit_many

FIELDS = ("precision", "together_s", "alone_s", "accuracy_together", "accuracy_alone", "gap")
SEEDS = 5


def pictures(n: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Noise with a bright square in one of four corners."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1, 16, 16)).astype(np.float32)
    y = rng.integers(0, 4, n)
    for i, corner in enumerate(y):
        a, b = 8 * (corner // 2), 8 * (corner % 2)
        x[i, 0, a + 2 : a + 6, b + 2 : b + 6] += 0.7
    return x, y


def timed(run: Any) -> tuple[float, Any]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = run()
    torch.cuda.synchronize()
    return time.perf_counter() - start, found


def main() -> None:
    X, y = pictures(4096, 0)
    new, truth = pictures(1024, 1)
    rows = []
    for precision in ("auto", "bf16", "32"):
        model = ImageClassifier(
            "cnn", network_params={"channels": (16, 32)}, max_epochs=5, batch_size=128,
            val_fraction=0.0, patience=None, precision=precision, device="cuda", random_state=0,
        )  # fmt: skip
        changes = [{"random_state": s} for s in range(SEEDS)]
        fit_many(model, X, y, settings=changes)  # kernels are chosen
        together, many = timed(lambda: fit_many(model, X, y, settings=changes))  # noqa: B023
        alone, each = timed(
            lambda: [clone(model).set_params(**c).fit(X, y) for c in changes]  # noqa: B023
        )
        p, q = (np.stack([m.predict_proba(new) for m in found]) for found in (many, each))
        right = [float((v.argmax(2) == truth).mean()) for v in (p, q)]
        rows.append((precision, f"{together:.2f}", f"{alone:.2f}", *(f"{r:.4f}" for r in right),
                     f"{np.abs(p - q).max():.4f}"))  # fmt: skip
        print(dict(zip(FIELDS, rows[-1], strict=True)), flush=True)
    if out := os.environ.get("OUT"):
        with (Path(out) / "precision-gpu.csv").open("w", newline="") as file:
            csv.writer(file).writerows([FIELDS, *rows])


if __name__ == "__main__":
    main()
