"""Test accuracy of multilayer perceptrons on ten thousand handwritten digits.

    python bench/scripts/digits.py FOLDER [--device cuda] [--choose]

FOLDER holds ``mnist10k-images-idx3-ubyte.gz`` and ``mnist10k-labels-idx1-ubyte.gz``: 8,000 rows to
learn from, 2,000 to test. ``--choose`` compares settings on 1,500 of the 8,000 rows and never sees a
test row; without it the chosen setting is learned from all 8,000 with three seeds and looked at once.
"""

from __future__ import annotations

import argparse
import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np

from groundstate import MLPClassifier

CHOSEN: dict[str, Any] = {"hidden_layer_sizes": (512, 256), "dropout": 0.3, "max_iter": 8}
CANDIDATES: tuple[tuple[bool, dict[str, Any]], ...] = (
    (False, {"hidden_layer_sizes": (512, 256), "dropout": 0.2, "max_iter": 15}),
    (True, {"hidden_layer_sizes": (256,), "dropout": 0.3, "max_iter": 8}),
    (True, CHOSEN),
    (True, {**CHOSEN, "dropout": 0.5}),
)


def digits(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1], (10000, 784), and labels."""
    images = gzip.decompress((folder / "mnist10k-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / "mnist10k-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255
    return X, np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)


def shifted(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows and their copies moved by one pixel in each direction; the margins are empty."""
    pictures = X.reshape(-1, 28, 28)
    moved = [np.roll(pictures, step, axis) for axis in (1, 2) for step in (1, -1)]
    return np.concatenate([pictures, *moved]).reshape(-1, 784), np.tile(y, 5)


def learned(X: np.ndarray, y: np.ndarray, shifts: bool = True, **settings: Any) -> MLPClassifier:
    """A perceptron that runs all its epochs."""
    rows = shifted(X, y) if shifts else (X, y)
    return MLPClassifier(n_iter_no_change=np.inf, **settings).fit(*rows)


def told(right: np.ndarray, start: float) -> str:
    error = np.sqrt(right.mean() * (1 - right.mean()) / len(right))
    return f"{right.mean():.4f} ± {1.96 * error:.4f} in {time.perf_counter() - start:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default=None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--choose", action="store_true")
    given = parser.parse_args()
    X, y = digits(given.folder)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:8000], order[8000:]
    if given.choose:
        fit, held_out = train[:6500], train[6500:]
        for shifts, settings in CANDIDATES:
            start = time.perf_counter()
            model = learned(X[fit], y[fit], shifts, random_state=0, device=given.device, **settings)
            right = model.predict(X[held_out]) == y[held_out]
            print(f"shifts={shifts} {settings}: {told(right, start)}", flush=True)
        return
    mean = np.zeros((len(test), 10))
    begun = time.perf_counter()
    for seed in range(given.seeds):
        start = time.perf_counter()
        model = learned(X[train], y[train], random_state=seed, device=given.device, **CHOSEN)
        mean += model.predict_proba(X[test])
        right = model.predict(X[test]) == y[test]
        print(f"seed {seed}: test accuracy {told(right, start)}", flush=True)
    print(f"their mean: test accuracy {told(mean.argmax(1) == y[test], begun)}")


if __name__ == "__main__":
    main()
