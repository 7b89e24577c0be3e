"""Do intervals of small tables hold what the chosen model does on rows to come? Simulated tables.

    python bench/scripts/race_coverage.py --tables 500 --seed 1 --out bench/tables/race_coverage.csv

Each table is drawn afresh from one of four distributions (those of `fold_intervals.py`) and studied as
`fit` does: four candidates and six settings of the best on five folds, the choice judged by leaving
out a fold at a time. The truth is the score of the chosen model on 20,000 rows of the distribution.
One line for each number of rows, kind of target and quantity: the share of tables whose 95 % interval
held it, with its standard error, and by how much the reported score is off on average; beside it, what
the winner's own folds would have said. The distributions take turns, and the line ``all`` joins them.
The file is written again after every ten tables, and ``--seconds`` ends early with what there is.
Nearly all the time is for fits, which do not depend on how intervals are made: with ``--kept FILE`` the
answers for rows of folds are kept in a file, and tables that are there already are not studied again,
only their intervals are made anew.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import pickle
import sys
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from fold_intervals import FAMILIES, D, signal

from groundstate.compute.random import Key
from groundstate.evaluate import METRICS
from groundstate.evaluate.predictions import Prediction
from groundstate.study.assess import Assessment, assess
from groundstate.study.race import stages
from groundstate.study.race.judged import Judged, scored
from groundstate.study.race.names import DONE, TUNED
from groundstate.study.tuning import Search

MANY = 20_000
NAMES = {
    "classification": "LogisticRegression,GaussianNB,KNeighborsClassifier,DecisionTreeClassifier",
    "regression": "Ridge,Lasso,KNeighborsRegressor,DecisionTreeRegressor",
}
HEAD = ["task", "target", "rows", "metric", "tables", "covered", "standard_error", "width", "off",
        "error_of_off", "winner_off", "seed"]  # fmt: skip
Seen = dict[tuple[str, str, int, str], list[tuple[float, float, float, float]]]


def drawn(rng: np.random.Generator, n: int, task: str, family: str) -> tuple[Any, Any]:
    """Standard normal features; logistic labels, or normal noise."""
    X = rng.standard_normal((n, D))
    mean = signal(X, family)
    if task == "classification":
        return X, (rng.random(n) < 1 / (1 + np.exp(-mean))).astype(np.int64)
    return X, mean + rng.standard_normal(n)


class Enough(Exception):
    """The choice is made; refits and curves are not what is measured here."""


@dataclass(frozen=True)
class Table:
    """What the study of a table says about its rows, and the scores of its model on the distribution."""

    task: str
    family: str
    n: int
    i: int
    name: str
    judged: Judged
    codes: Any
    positive: int | None
    true: dict[str, float]


def studied(task: str, family: str, n: int, i: int, seed: int, tune: int) -> Table:
    """Draw a table and study it, as far as the choice of the model and its score."""
    rng = np.random.default_rng([seed, i, n, len(task)])
    (X, y), (M, m) = (drawn(rng, rows, task, family) for rows in (n, MANY))
    found: list[Assessment] = []
    judged: list[Any] = []
    on_folds = stages.on_folds

    def watched(question: Any, *rest: Any) -> Judged:
        judged[:] = [on_folds(question, *rest), question.positive]
        return judged[0]  # type: ignore[no-any-return]

    def seen(assessment: Assessment) -> None:
        found[:] = [assessment]
        if assessment.stage in (TUNED, DONE):
            raise Enough

    with contextlib.suppress(Enough), mock.patch.object(stages, "on_folds", watched):
        assess(NAMES[task], X, y, tuner=Search(tune), repeats=1, ledger=None, random_state=i,
               seen=seen)  # fmt: skip
    one = found[0]
    truth = m.astype(float) if one.classes is None else np.searchsorted(one.classes, m)
    columns = [name for name in one.table.columns if name != one.table.target]
    rows = {name: M[:, j] for j, name in enumerate(columns)}
    answers = Prediction.of(one.model, rows, one.classes)
    true = {name: METRICS[name].score(truth, answers) for name in one.scores if name in METRICS}
    return Table(task, family, n, i, one.chosen, judged[0], one.truth, judged[1], true)


def note(seen: Seen, one: Table) -> None:
    """Of every score whether its interval holds the truth, how wide it is, and how far it is off."""
    reported, _ = scored(
        one.judged, one.name, one.codes, task=one.task, weight=np.ones(one.n), level=0.95,
        key=Key.of(one.i).fold("score"), groups=None, positive=one.positive,
    )  # fmt: skip
    alone = one.judged.alone
    assert alone is not None
    for name, true in one.true.items():
        found = reported[one.name][name]
        held = float(found.low <= true <= found.high)
        winner = METRICS[name].score(one.codes, alone) - true
        for target in (one.family, "all"):
            seen[one.task, target, one.n, name].append(
                (held, found.high - found.low, found.estimate - true, winner)
            )


def written(path: str, seen: Seen, seed: int) -> list[list[Any]]:
    """One line for each quantity, into the file."""
    lines = []
    for (task, target, n, name), values in sorted(seen.items()):
        held, width, off, winner = np.array(values).T
        root = len(held) ** 0.5
        lines.append([
            task, target, n, name, len(held), f"{held.mean():.4f}", f"{held.std() / root:.4f}",
            f"{width.mean():.4f}", f"{off.mean():.5f}", f"{off.std() / root:.5f}", f"{winner.mean():.5f}", seed,
        ])  # fmt: skip
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([HEAD, *lines])
    return lines


def before(path: Path) -> dict[Any, Table]:
    """Tables of a file, by seed, settings, number, rows and task."""
    out: dict[Any, Table] = {}
    if path.exists():
        with path.open("rb") as file, contextlib.suppress(EOFError):
            while True:
                at, one = pickle.load(file)
                out[at] = one
    return out


def keep(path: Path | None, at: Any, one: Table) -> None:
    """One more table into the file."""
    if path is not None:
        with path.open("ab") as file:
            pickle.dump((at, one), file)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=500, help="of each task and number of rows")
    parser.add_argument("--rows", default="60,150,250,400")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tune", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--kept", type=Path, help="file of tables that were studied before")
    parser.add_argument("--out", default="bench/tables/race_coverage.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seen: Seen = defaultdict(list)
    known = {} if options.kept is None else before(options.kept)
    start = time.monotonic()
    for i in range(options.tables):
        for n in map(int, options.rows.split(",")):
            for task in NAMES:
                family = FAMILIES[i % len(FAMILIES)]
                at = (options.seed, options.tune, i, n, task)
                if at not in known:
                    known[at] = studied(task, family, n, i, options.seed, options.tune)
                    keep(options.kept, at, known[at])
                note(seen, known[at])
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
