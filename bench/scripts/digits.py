"""Test accuracy of a multilayer perceptron on ten thousand handwritten digits.

    python bench/scripts/digits.py FOLDER [--device cuda]

FOLDER holds ``mnist10k-images-idx3-ubyte.gz`` and ``mnist10k-labels-idx1-ubyte.gz``: 8,000 rows to
learn from, 2,000 to test.
"""

from __future__ import annotations

import argparse
import gzip
import time
from pathlib import Path

import numpy as np

from groundstate import MLPClassifier


def digits(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1], (10000, 784), and labels."""
    images = gzip.decompress((folder / "mnist10k-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / "mnist10k-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255
    return X, np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default=None)
    parser.add_argument("--epochs", type=int, default=40)
    given = parser.parse_args()
    X, y = digits(given.folder)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:8000], order[8000:]
    model = MLPClassifier(
        (512, 256),
        dropout=0.2,
        max_iter=given.epochs,
        n_iter_no_change=np.inf,
        random_state=0,
        device=given.device,
    )
    start = time.perf_counter()
    model.fit(X[train], y[train])
    took = time.perf_counter() - start
    right = model.predict(X[test]) == y[test]
    error = np.sqrt(right.mean() * (1 - right.mean()) / len(right))
    print(f"test accuracy {right.mean():.4f} ± {1.96 * error:.4f} in {took:.1f} s")


if __name__ == "__main__":
    main()
