"""Do intervals of small tables hold what the chosen model does on rows to come? Simulated tables.

    python bench/scripts/race_coverage.py --tables 500 --out bench/tables/race_coverage.csv

Each table of 150 rows is drawn afresh from a known distribution and studied as `fit` does: four
candidates and six settings of the best on five folds, the choice judged by leaving out a fold at a
time. The truth is the score of the chosen model on 20,000 rows of the distribution. One line for
each quantity: the share of tables whose 95 % interval held it, with its standard error, and by how
much the reported score is off on average; beside it, what the winner's own folds would have said.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import math
import sys
import warnings
from collections import defaultdict
from typing import Any

import numpy as np

from groundstate.evaluate import METRICS
from groundstate.evaluate.predictions import Prediction
from groundstate.study.assess import Assessment, assess
from groundstate.study.race.names import DONE, TUNED
from groundstate.study.tuning import Search

ROWS, MANY, D = 150, 20_000, 6
WEIGHTS = np.array([1.2, -0.8, 0.5, 0.0, 0.0, 0.0])
NAMES = {
    "classification": "LogisticRegression,GaussianNB,KNeighborsClassifier,DecisionTreeClassifier",
    "regression": "Ridge,Lasso,KNeighborsRegressor,DecisionTreeRegressor",
}
HEAD = ["task", "metric", "tables", "covered", "standard_error", "off", "error_of_off",
        "winner_off"]  # fmt: skip


def drawn(rng: np.random.Generator, n: int, task: str) -> tuple[Any, Any]:
    """Standard normal features with one interaction; logistic labels, or normal noise."""
    X = rng.standard_normal((n, D))
    mean = X @ WEIGHTS + 0.7 * X[:, 0] * X[:, 1]
    if task == "classification":
        return X, (rng.random(n) < 1 / (1 + np.exp(-mean))).astype(np.int64)
    return X, mean + rng.standard_normal(n)


class Enough(Exception):
    """The choice is made; refits and curves are not what is measured here."""


def studied(names: str, X: Any, y: Any, tune: int, seed: int) -> Assessment:
    """The study as far as the choice of the model and its score."""
    kept: list[Assessment] = []

    def seen(found: Assessment) -> None:
        kept.append(found)
        if found.stage in (TUNED, DONE):
            raise Enough

    with contextlib.suppress(Enough):
        assess(
            names, X, y, tuner=Search(tune), repeats=1, ledger=None, random_state=seed, seen=seen
        )
    return kept[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tune", type=int, default=6)
    parser.add_argument("--out", default="bench/tables/race_coverage.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    inside: dict[tuple[str, str], list[float]] = defaultdict(list)
    off: dict[tuple[str, str], list[float]] = defaultdict(list)
    winner: dict[tuple[str, str], list[float]] = defaultdict(list)
    for i in range(options.tables):
        for task, names in NAMES.items():
            rng = np.random.default_rng([options.seed, i, len(task)])
            (X, y), (M, m) = (drawn(rng, n, task) for n in (ROWS, MANY))
            found = studied(names, X, y, options.tune, i)
            classes = found.classes
            truth = m.astype(float) if classes is None else np.searchsorted(classes, m)
            columns = [name for name in found.table.columns if name != found.table.target]
            rows = {name: M[:, j] for j, name in enumerate(columns)}
            said = Prediction.of(found.model, rows, classes)
            own = found.developed.spare
            for name, told in found.scores.items():
                if name not in METRICS:
                    continue
                true = METRICS[name].score(truth, said)
                inside[task, name].append(float(told.low <= true <= told.high))
                off[task, name].append(told.estimate - true)
                assert own is not None
                winner[task, name].append(METRICS[name].score(found.truth, own) - true)
        if i % 10 == 9:
            print(f"{i + 1} tables", file=sys.stderr, flush=True)
    with open(options.out, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(HEAD)
        for (task, name), values in inside.items():
            n, error = len(values), float(np.std(values)) / math.sqrt(len(values))
            gap, spread = float(np.mean(off[task, name])), float(np.std(off[task, name]))
            line = [task, name, n, f"{np.mean(values):.4f}", f"{error:.4f}", f"{gap:.5f}",
                    f"{spread / math.sqrt(n):.5f}", f"{np.mean(winner[task, name]):.5f}"]  # fmt: skip
            out.writerow(line)
            print(*line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
