"""Synthetic twins of real tables: how well they are told from real rows, and what a model learns from them.

``python bench/scripts/synthetic_tables.py FOLDER [--tables penguins,titanic,diamonds] [--seeds 3]``.
For each table (``FOLDER/NAME.csv``) and seed, rows are halved; every generator learns from the first half, as
does a Gaussian copula and a mixture behind the same columns, and makes as many rows. Scores on the second
half: accuracy of a boosted classifier that tells generated from real rows (½ is best), Fréchet distance, and
the score of a boosted model that learned the target column from generated rows, beside one that learned
from real rows (accuracy or R², 95 % intervals over the test
rows). Writes ``bench/tables/synthetic_tables.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import groundstate as gs
from groundstate.data import read
from groundstate.evaluate import assess_generator

TARGETS = {"penguins": "species", "titanic": "survived", "diamonds": "price"}
TWINS = {"titanic": ("alive",)}  # columns that say the target again
GENERATORS: dict[str, Callable[[int], Any]] = {
    "TableMixture": lambda seed: gs.TableMixture(random_state=seed),
    "AutoregressiveDensity": lambda seed: gs.AutoregressiveDensity(random_state=seed),
    "NormalizingFlow": lambda seed: gs.NormalizingFlow(early_stopping=True, random_state=seed),
    "VAE": lambda seed: gs.VAE(early_stopping=True, random_state=seed),
    "DDPM": lambda seed: gs.DDPM(random_state=seed),
    "WGAN": lambda seed: gs.WGAN(random_state=seed),
}


class Columns:
    """Numbers of a coded table: normal scores, and one-hot levels, for densities of real rows alone."""

    def __init__(self, density: Any) -> None:
        self.density = density

    def fit(self, frame: pl.DataFrame, y: Any = None, sample_weight: Any = None) -> Columns:
        self.frame, self.levels = frame, {}
        self.density.fit(self._numbers(frame))
        self.log_prob_kind_ = "none"
        return self

    def _numbers(self, frame: pl.DataFrame) -> Any:
        parts = []
        for column in frame:
            if column.dtype.is_numeric():
                parts.append(column.to_numpy()[:, None])
            else:
                words = np.array(column.to_list())
                self.levels.setdefault(column.name, np.unique(words))
                parts.append((words[:, None] == self.levels[column.name]).astype(float))
        return np.concatenate(parts, 1)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"density": self.density}

    def set_params(self, **given: Any) -> Columns:
        return self

    def iter_samples(
        self, n: int, y: Any = None, *, T: float = 1.0, random_state: Any = None
    ) -> Iterator[pl.DataFrame]:
        drawn = self.density.sample(n)
        rows = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
        made, at = {}, 0
        for column in self.frame:
            if column.dtype.is_numeric():
                made[column.name] = rows[:, at]
                at += 1
            else:
                levels = self.levels[column.name]
                made[column.name] = levels[rows[:, at : at + len(levels)].argmax(1)].tolist()
                at += len(levels)
        yield pl.DataFrame(made)


GENERATORS["Gaussian copula"] = lambda seed: Columns(
    gs.GaussianMixture(1, reg_covar=1e-3, random_state=seed)
)
GENERATORS["mixture"] = lambda seed: Columns(
    gs.GaussianMixture(10, covariance_type="full", reg_covar=1e-2, random_state=seed)
)


def learned(
    rows: pl.DataFrame, test: pl.DataFrame, target: str, seed: int
) -> tuple[float, float, float]:
    """Accuracy, or R², on real rows of a boosted model that learned from these, with its interval."""
    few = rows[target].dtype == pl.String or rows[target].n_unique() <= 2
    model = gs.HistGradientBoostingClassifier if few else gs.HistGradientBoostingRegressor
    predictor = gs.TablePredictor(model(random_state=seed))
    keep = rows.filter(pl.col(target).is_not_null())
    real = test.filter(pl.col(target).is_not_null())
    if keep[target].n_unique() < 2:
        return (float("nan"),) * 3
    predictor.fit(keep.drop(target), keep[target].to_numpy())
    true, said = real[target].to_numpy(), np.asarray(predictor.predict(real.drop(target)))

    def score(at: Any) -> float:
        if few:
            return float((true[at] == said[at]).mean())
        return float(1 - ((true[at] - said[at]) ** 2).mean() / true[at].var())

    rng = np.random.default_rng(seed)
    again = [score(rng.integers(0, len(true), len(true))) for _ in range(500)]
    low, high = np.quantile(again, [0.025, 0.975])
    return score(slice(None)), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--tables", default="penguins,titanic,diamonds")
    parser.add_argument("--models", default=",".join(GENERATORS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--out", default="bench/tables/synthetic_tables.csv")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    out = Path(given.out)
    fresh = not out.exists()
    with out.open("a") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(
                ["table", "model", "seed", "rows", "told_apart", "low", "high", "frechet", "frechet_real",
                 "learned_from_it", "from_low", "from_high", "learned_from_real", "real_low", "real_high",
                 "near_copies", "fit_cpu_s"]
            )  # fmt: skip
        for name in given.tables.split(","):
            table = read(f"{given.folder}/{name}.csv")
            again = TWINS.get(name, ())
            kept = [
                c for c in table.columns
                if c not in again and table.column(c).kind not in ("id", "text")
            ]  # fmt: skip
            frame = table.select(kept).frame
            target = TARGETS.get(name, kept[-1])
            for seed in range(given.seeds):
                order = np.random.default_rng(seed).permutation(len(frame))[: 2 * given.rows]
                half = len(order) // 2
                train, test = frame[order[:half]], frame[order[half:]]
                real = learned(train, test, target, seed)
                for label in given.models.split(","):
                    start = time.process_time()
                    model = gs.TableGenerator(GENERATORS[label](seed)).fit(train)
                    seconds = time.process_time() - start
                    twin = model.sample(len(test), random_state=seed)
                    found = assess_generator(
                        twin, test.select(twin.columns), train.select(twin.columns)
                    )
                    own = learned(twin, test, target, seed)
                    assert found.memorisation is not None
                    row = [name, label, seed, half, *(f"{v:.4f}" for v in (found.c2st.estimate, found.c2st.low,
                           found.c2st.high, found.frechet.estimate, found.frechet_floor or 0.0, *own, *real,
                           found.memorisation.copies, seconds))]  # fmt: skip
                    writer.writerow(row)
                    file.flush()
                    print(*row, flush=True)


if __name__ == "__main__":
    main()
