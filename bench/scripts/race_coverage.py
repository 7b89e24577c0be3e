"""Do intervals of small tables hold what the chosen model does on rows to come? Simulated tables.

    python bench/scripts/race_coverage.py --tables 500 --seed 1 --out bench/tables/race_coverage.csv

Each table is drawn afresh from one of four distributions (those of `fold_intervals.py`) and studied as
`fit` does: four candidates and six settings of the best on five folds, the choice judged by leaving
out a fold at a time. The truth is the score of the chosen model on 20,000 rows of the distribution.
One line for each number of rows, kind of target and quantity: the share of tables whose 95 % interval
held it, with its standard error, and by how much the reported score is off on average; beside it, what
the winner's own folds would have said. The distributions take turns, and the line ``all`` joins them.
The file is written again after every ten tables, and ``--seconds`` ends early with what there is.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import sys
import time
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
from fold_intervals import FAMILIES, D, signal

from groundstate.evaluate import METRICS
from groundstate.evaluate.predictions import Prediction
from groundstate.study.assess import Assessment, assess
from groundstate.study.race.names import DONE, TUNED
from groundstate.study.tuning import Search

MANY = 20_000
NAMES = {
    "classification": "LogisticRegression,GaussianNB,KNeighborsClassifier,DecisionTreeClassifier",
    "regression": "Ridge,Lasso,KNeighborsRegressor,DecisionTreeRegressor",
}
HEAD = ["task", "target", "rows", "metric", "tables", "covered", "standard_error", "off",
        "error_of_off", "winner_off", "seed"]  # fmt: skip
Seen = dict[tuple[str, str, int, str], list[tuple[float, float, float]]]


def drawn(rng: np.random.Generator, n: int, task: str, family: str) -> tuple[Any, Any]:
    """Standard normal features; logistic labels, or normal noise."""
    X = rng.standard_normal((n, D))
    mean = signal(X, family)
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


def table(seen: Seen, task: str, family: str, n: int, i: int, seed: int, tune: int) -> None:
    """Draw and study one table, and note of every score whether its interval held the truth."""
    rng = np.random.default_rng([seed, i, n, len(task)])
    (X, y), (M, m) = (drawn(rng, rows, task, family) for rows in (n, MANY))
    found = studied(NAMES[task], X, y, tune, i)
    classes, own = found.classes, found.developed.spare
    assert own is not None
    truth = m.astype(float) if classes is None else np.searchsorted(classes, m)
    columns = [name for name in found.table.columns if name != found.table.target]
    rows = {name: M[:, j] for j, name in enumerate(columns)}
    predicted = Prediction.of(found.model, rows, classes)
    for name, reported in found.scores.items():
        if name not in METRICS:
            continue
        true = METRICS[name].score(truth, predicted)
        held = float(reported.low <= true <= reported.high)
        winner = METRICS[name].score(found.truth, own) - true
        for target in (family, "all"):
            seen[task, target, n, name].append((held, reported.estimate - true, winner))


def written(path: str, seen: Seen, seed: int) -> list[list[Any]]:
    """One line for each quantity, into the file."""
    lines = []
    for (task, target, n, name), values in sorted(seen.items()):
        held, off, winner = np.array(values).T
        root = len(held) ** 0.5
        lines.append([
            task, target, n, name, len(held), f"{held.mean():.4f}", f"{held.std() / root:.4f}",
            f"{off.mean():.5f}", f"{off.std() / root:.5f}", f"{winner.mean():.5f}", seed,
        ])  # fmt: skip
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([HEAD, *lines])
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=500, help="of each task and number of rows")
    parser.add_argument("--rows", default="60,150,400")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tune", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", default="bench/tables/race_coverage.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seen: Seen = defaultdict(list)
    start = time.monotonic()
    for i in range(options.tables):
        for n in map(int, options.rows.split(",")):
            for task in NAMES:
                family = FAMILIES[i % len(FAMILIES)]
                table(seen, task, family, n, i, options.seed, options.tune)
        if i % 10 == 9:
            written(options.out, seen, options.seed)
            print(f"{i + 1} tables", file=sys.stderr, flush=True)
        if time.monotonic() - start > options.seconds:
            break
    for line in written(options.out, seen, options.seed):
        if line[1] == "all":
            print(*line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
