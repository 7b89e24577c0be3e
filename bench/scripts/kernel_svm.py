"""Time of one SVC fit on a device against scikit-learn's, at the same dual objective.

``python bench/scripts/kernel_svm.py [--device cuda] [--rows 20000 50000] [--peer 20000]`` prints one
line for each size: seconds (the best of two after a first fit), support vectors and the dual objective;
scikit-learn is timed up to ``--peer`` rows. A row count above that is compared with our own CPU path
up to ``--own`` rows.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import SVC as Libsvm

from groundstate import SVC


def table(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(
        n, 20, n_informative=10, n_redundant=0, class_sep=0.8, flip_y=0.05, random_state=0
    )
    return X.astype(np.float32), y


def timed(make: Any, X: np.ndarray, y: np.ndarray, repeats: int) -> tuple[float, Any]:
    best, model = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        model = make().fit(X, y)
        best = min(best, time.perf_counter() - start)
    return best, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 50_000])
    parser.add_argument("--peer", type=int, default=20_000)
    parser.add_argument("--own", type=int, default=0)
    given = parser.parse_args()
    X, y = table(3000)
    SVC(device=given.device, cache_size=1.0).fit(X, y)  # compiled before the clock starts
    for n in given.rows:
        X, y = table(n)
        seconds, model = timed(lambda: SVC(device=given.device), X, y, 2)
        dual = model.report().dual[0]
        line = (
            f"{n} rows: {given.device} {seconds:.2f} s, {len(model.support_)} vectors, {dual:.2f}"
        )
        if n <= given.own:
            own, twin = timed(SVC, X, y, 1)
            line += f"; cpu {own:.2f} s ({own / seconds:.1f}x), {twin.report().dual[0]:.2f}"
        if n <= given.peer:
            peer, twin = timed(lambda: Libsvm(cache_size=2000), X, y, 1)
            agree = float((twin.predict(X[:5000]) == model.predict(X[:5000])).mean())
            line += f"; scikit-learn {peer:.2f} s ({peer / seconds:.1f}x), {agree:.4f} equal"
        print(line, flush=True)


if __name__ == "__main__":
    main()
