"""`ImageClassifier()` with its defaults on ten thousand handwritten digits: accuracy and time on a CPU.

    python bench/scripts/digits_cnn.py FOLDER [--seeds 3] [--threads 2] [--sizes 60,200,1000,5000,8000]

FOLDER holds the two files of ``digits.py``: 8,000 rows to learn from, 2,000 kept aside. Of the 8,000 the first
rows of a random order are learned from, as many as a size says; beside it stands scikit-learn's logistic
regression on the pixels, with the best of three penalties on the rows kept aside (one, C = 0.1, from more
than 1,000 rows). The rows go to ``bench/tables/digits_cnn.csv``, or to ``$OUT`` where it is set; ``cpu_s`` is
processor time of the fit over all threads, ``seconds`` the time on the clock, which other programs share.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np
import torch
from digits import digits
from sklearn.linear_model import LogisticRegression

from groundstate import ImageClassifier

PENALTIES = (0.1, 0.01, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--sizes", default="60,200,1000,5000,8000")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    X, y = digits(given.folder)
    pictures = X.reshape(-1, 1, 28, 28)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:8000], order[8000:]
    rows = []
    for n in (int(v) for v in given.sizes.split(",")):
        for seed in range(given.seeds):
            own = np.random.default_rng(seed).permutation(train)[:n]
            linear = max(
                LogisticRegression(C=c, max_iter=200).fit(X[own], y[own]).score(X[test], y[test])
                for c in PENALTIES[: 3 if n <= 1000 else 1]
            )
            start, cpu = time.perf_counter(), time.process_time()
            model = ImageClassifier(random_state=seed, device="cpu").fit(pictures[own], y[own])
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            rows.append({
                "rows": n, "seed": seed, "kept_aside": len(test),
                "accuracy": round(model.score(pictures[test], y[test]), 4),
                "logistic_regression": round(linear, 4), "epochs": model.n_iter_,
                "seconds": round(seconds, 1), "cpu_s": round(cpu, 1), "threads": given.threads,
            })  # fmt: skip
            print(rows[-1], flush=True)
    out = Path(os.environ.get("OUT", Path(__file__).parents[1] / "tables")) / "digits_cnn.csv"
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
