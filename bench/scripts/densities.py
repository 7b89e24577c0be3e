"""Held-out log-likelihood of densities: moons, rings, a checkerboard, digits.

``PYTHONPATH=src python bench/scripts/densities.py [--rows 1000] [--epochs 40] [--only KernelDensity]``.
Every model learns from the same rows; the score is the mean log density of as many new rows, in nats, with
a 95 % interval. The flows of groundstate and zuko have the same sizes, optimiser and epochs; mixtures and
kernel widths are chosen by likelihood on a fifth of the training rows, the width of groundstate's kernels by
leaving rows out. Digits are the first six principal components of scikit-learn's. Writes
``bench/tables/densities.csv``; ``--only`` measures the models whose name holds a word and keeps other rows.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import groundstate as gs


def moons(n: int, rng: Any) -> Any:
    from sklearn.datasets import make_moons

    return make_moons(n, noise=0.1, random_state=int(rng.integers(2**31)))[0]


def rings(n: int, rng: Any) -> Any:
    radius = rng.choice([1.0, 2.0, 3.0], n) + 0.08 * rng.normal(size=n)
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), 1)


def checkerboard(n: int, rng: Any) -> Any:
    x, y = rng.integers(0, 4, n), rng.integers(0, 2, n)
    return np.stack((x, 2 * y + x % 2), 1) + rng.uniform(size=(n, 2)) - 2


def digits(n: int, rng: Any) -> Any:
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    rows = PCA(6, random_state=0).fit_transform(load_digits().data)
    return rows[rng.permutation(len(rows))[:n]] / 10


def best(make: Callable[[Any], Any], settings: Any, X: Any) -> Any:
    cut = len(X) // 5
    chosen = max(settings, key=lambda s: make(s).fit(X[cut:]).score_samples(X[:cut]).mean())
    return make(chosen).fit(X)


class ZukoNSF:
    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def fit(self, X: Any) -> ZukoNSF:
        import zuko

        torch.manual_seed(0)
        self.mean, self.std = X.mean(0), X.std(0)
        x = torch.from_numpy((X - self.mean) / self.std).float()
        self.flow = zuko.flows.NSF(X.shape[1], transforms=3, hidden_features=(64, 64))
        adam = torch.optim.Adam(self.flow.parameters(), 5e-3)
        for _ in range(self.epochs):
            for at in torch.randperm(len(x)).split(128):
                adam.zero_grad()
                (-self.flow().log_prob(x[at]).mean()).backward()
                adam.step()
        return self

    def score_samples(self, X: Any) -> Any:
        with torch.no_grad():
            x = torch.from_numpy((X - self.mean) / self.std).float()
            return self.flow().log_prob(x).double().numpy() - np.log(self.std).sum()


def models(epochs: int) -> dict[str, Callable[[Any], Any]]:
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity

    sizes, widths = (2, 5, 10, 20, 40), (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
    return {
        "groundstate NormalizingFlow": lambda X: gs.NormalizingFlow(
            max_iter=epochs, random_state=0
        ).fit(X),
        "groundstate AutoregressiveDensity": lambda X: gs.AutoregressiveDensity(
            n_components=10, max_iter=epochs, random_state=0
        ).fit(X),
        "groundstate GaussianMixture": lambda X: best(
            lambda k: gs.GaussianMixture(k, reg_covar=1e-4, random_state=0), sizes, X
        ),
        "groundstate KernelDensity": lambda X: gs.KernelDensity("likelihood").fit(X),
        "zuko NSF": lambda X: ZukoNSF(epochs).fit(X),
        "scikit-learn KernelDensity": lambda X: best(
            lambda h: KernelDensity(bandwidth=h), widths, X
        ),
        "scikit-learn GaussianMixture": lambda X: best(
            lambda k: GaussianMixture(k, reg_covar=1e-4, random_state=0), sizes, X
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="bench/tables/densities.csv")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    out = Path(given.out)
    kept: dict[tuple[str, str], list[str]] = {}
    if given.only and out.exists():
        with out.open() as file:
            kept = {(row[0], row[1]): row for row in list(csv.reader(file))[1:]}
    with out.open("w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "model", "log_likelihood", "low", "high", "rows", "fit_cpu_s"])
        for make in (moons, rings, checkerboard, digits):
            every = make(2 * given.rows, np.random.default_rng(0))
            half = len(every) // 2
            for name, fit in models(given.epochs).items():
                if given.only not in name:
                    if (make.__name__, name) in kept:
                        writer.writerow(kept[make.__name__, name])
                    continue
                start = time.process_time()
                model = fit(every[:half])
                spent = time.process_time() - start
                found = np.asarray(model.score_samples(every[half:]))
                error = 1.96 * found.std(ddof=1) / len(found) ** 0.5
                mean = found.mean()
                row = [
                    make.__name__,
                    name,
                    *(f"{v:.3f}" for v in (mean, mean - error, mean + error)),
                ]
                writer.writerow([*row, half, f"{spent:.2f}"])
                file.flush()
                print(*row, f"{spent:.1f} s", flush=True)


if __name__ == "__main__":
    main()
