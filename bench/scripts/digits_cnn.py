"""A convolutional network on ten thousand handwritten digits: accuracy and time on a CPU.

    python bench/scripts/digits_cnn.py FOLDER [--seeds 3] [--threads 2] [--choose]

FOLDER holds the two files of ``digits.py``: 8,000 rows to learn from, 2,000 kept aside. ``--choose``
compares settings on 1,500 of the 8,000 rows and never sees a row that is kept aside; without it the chosen
setting is learned from all 8,000 with each seed and looked at once. The rows go to
``bench/tables/digits_cnn.csv``, or to ``$OUT`` where it is set; ``cpu_s`` is processor time of the fit over
all threads, ``seconds`` the time on the clock, which other programs share.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from digits import digits

from groundstate import ImageClassifier

CHOSEN: dict[str, Any] = {
    "network_params": {"channels": (16, 32, 64), "head": "flatten"}, "max_epochs": 8, "batch_size": 64,
    "lr": 3e-3,
}  # fmt: skip
CANDIDATES: tuple[dict[str, Any], ...] = (
    CHOSEN,
    {**CHOSEN, "network_params": {"channels": (16, 32), "head": "flatten"}},
    {**CHOSEN, "augment": "none"},
)


def learned(X: np.ndarray, y: np.ndarray, seed: int, **settings: Any) -> tuple[Any, float, float]:
    """The fitted model, seconds on the clock and of the processor."""
    start, cpu = time.perf_counter(), time.process_time()
    model = ImageClassifier("cnn", val_fraction=0.0, device="cpu", random_state=seed, **settings)
    model.fit(X, y)
    return model, time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--choose", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    X, y = digits(given.folder)
    X = X.reshape(-1, 1, 28, 28)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:8000], order[8000:]
    if given.choose:
        fit, held_out = train[:6500], train[6500:]
        for settings in CANDIDATES:
            model, seconds, cpu = learned(X[fit], y[fit], 0, **settings)
            right = model.score(X[held_out], y[held_out])
            print(
                f"{settings}: {right:.4f} in {seconds:.1f} s, {cpu:.1f} s of the processor",
                flush=True,
            )
        return
    rows = []
    for seed in range(given.seeds):
        model, seconds, cpu = learned(X[train], y[train], seed, **CHOSEN)
        rows.append({
            "seed": seed, "rows": len(train), "kept_aside": len(test),
            "accuracy": round(model.score(X[test], y[test]), 4), "seconds": round(seconds, 1),
            "cpu_s": round(cpu, 1), "threads": given.threads,
        })  # fmt: skip
        print(rows[-1], flush=True)
    out = Path(os.environ.get("OUT", Path(__file__).parents[1] / "tables")) / "digits_cnn.csv"
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
