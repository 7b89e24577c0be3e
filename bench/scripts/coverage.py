"""Do the intervals of a report hold what they promise? Measured over simulated tables.

    python bench/scripts/coverage.py --tables 500 --out bench/tables/coverage.csv

Each table is drawn afresh from a known distribution, a model is fitted, and every interval that a
report prints is made from 250 test rows. The truth is the same number of the same model on 20,000
rows of the distribution. One line for each quantity: the share of tables whose interval held the
truth, its standard error, what it must lie in, and whether it does. For conformal sets the share is
over rows. The last lines say by how much the score of a chosen model, looked at once, is off on
average. With noise of heavy tails (Student's t with 6 degrees of freedom) squared errors have no
finite fourth moment, so that nothing is promised for 250 rows: those lines are measured and not
judged. Nor are a model fixed beforehand and the plain R², a ratio that is low by about 1/n on
average: they show what is the metric's own bias and not that of choosing. Reports give the
jackknifed R².

With ``--tasks regression`` only those lines of an existing file are measured again.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from groundstate import DecisionTreeClassifier, LogisticRegression, Ridge
from groundstate.compute.random import Key
from groundstate.evaluate import METRICS, Scores, conformal, conformal_cv, interval, metric
from groundstate.evaluate.compare.baseline import skill_interval
from groundstate.evaluate.losses import row_losses
from groundstate.evaluate.predictions import Prediction
from groundstate.math.stats import Interval, auc, auc_interval, mean_interval, proportion_interval
from groundstate.study.held_out import compared

TRAIN, HELD, TEST, MANY, D = 150, 150, 250, 20_000, 5
WEIGHTS = np.array([1.2, -0.8, 0.5, 0.0, 0.0])
STRENGTHS = (0.01, 1.0, 100.0)
SEEDS, REPEATS = 10, 100
HEAVY, FIXED, PLAIN = "heavy tails", "fixed beforehand", "plain"
TASKS = ("classification", "regression", f"regression, {HEAVY}")
HEAD = ["quantity", "method", "nominal", "tables", "measured", "standard_error", "at_least",
        "at_most", "holds"]  # fmt: skip


def rows(rng: np.random.Generator, n: int, task: str) -> tuple[Any, Any]:
    """Standard normal features; logistic labels, or values with normal or heavy-tailed noise."""
    X = rng.standard_normal((n, D))
    mean = X @ WEIGHTS
    if task == "classification":
        return X, (rng.random(n) < 1 / (1 + np.exp(-mean))).astype(np.int64)
    return X, mean + (rng.standard_t(6, n) if task.endswith(HEAVY) else rng.standard_normal(n))


class Tally:
    """What was covered, by quantity."""

    def __init__(self) -> None:
        self.inside: dict[tuple[str, str, float], list[float]] = defaultdict(list)
        self.off: dict[str, list[float]] = defaultdict(list)

    def add(self, quantity: str, found: Any, truth: float) -> None:
        key = (quantity, found.method, found.level)
        self.inside[key].append(float(found.low <= truth <= found.high))

    def lines(self) -> list[list[Any]]:
        out: list[list[Any]] = []
        for (quantity, method, level), values in sorted(self.inside.items()):
            low, high = level - 0.02, level + 0.025
            if quantity.startswith("conformal"):
                low, high = level - 0.015, 1.0
            error = float(np.std(values)) / math.sqrt(len(values))
            out.append(
                [quantity, method, level, *line(values, error, low, high, HEAVY in quantity)]
            )
        for quantity, values in sorted(self.off.items()):
            error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
            free = any(word in quantity for word in (HEAVY, FIXED, PLAIN))
            told = line(values, error, -2 * error, 2 * error, free)
            out.append([quantity, "reported less true", "", *told])
        return out


def line(values: list[float], error: float, low: float, high: float, free: bool) -> list[Any]:
    """Tables, mean, standard error, and what the mean must lie in unless nothing is promised."""
    mean = float(np.mean(values))
    asked = ["", "", ""] if free else [f"{low:.4g}", f"{high:.4g}", low <= mean <= high]
    return [len(values), f"{mean:.5f}", f"{error:.5f}", *asked]


def table(key: Key, task: str, tally: Tally) -> None:
    """One simulated table: choose a model, look at the test rows once, and check every interval."""
    rng = key.fold("rows").numpy()
    (X, y), (V, v), (Z, t), (M, m) = (rows(rng, n, task) for n in (TRAIN, HELD, TEST, MANY))
    classes = np.arange(2) if task == "classification" else None
    made: Any = (lambda s: LogisticRegression(C=1 / s)) if classes is not None else Ridge
    columns = (np.arange(D), np.arange(3), np.array([0, 1]))
    kind_of = "regression" if classes is None else task
    main = metric(task=kind_of)
    found = []
    for s in STRENGTHS:
        for kept in columns:
            model = made(s).fit(X[:, kept], y)
            found.append((main.score(v, Prediction.of(model, V[:, kept], classes)), model, kept))
    _, model, kept = (max if main.greater_is_better else min)(found, key=lambda f: f[0])
    said, every = (
        Prediction.of(model, Z[:, kept], classes),
        Prediction.of(model, M[:, kept], classes),
    )
    for name, measure in METRICS.items():
        if measure.task != kind_of or not measure.available(said):
            continue
        truth, seen = measure.score(m, every), interval(measure, t, said, key=key.fold(name))
        tally.add(f"{task}: {name}", seen, truth)
        if measure is main:
            told = f"{task}: {main.name} of the winner on test rows"
            tally.off[told].append(seen.estimate - truth)
    _, one, cols = found[0]
    tally.off[f"{task}: {main.name} of a model {FIXED}"].append(
        interval(main, t, Prediction.of(one, Z[:, cols], classes), key=key.fold("fixed")).estimate
        - main.score(m, Prediction.of(one, M[:, cols], classes))
    )
    if classes is None:
        tally.off[f"{task}: {PLAIN} {main.name} of the winner on test rows"].append(
            main.score(t, said) - main.score(m, every)
        )
        mse = metric("mse")
        tally.off[f"{task}: mse of the winner on test rows"].append(
            mse.score(t, said) - mse.score(m, every)
        )
    kind = "zero_one" if classes is not None else "squared"
    own, all_own = (row_losses(model, A[:, kept], b, kind) for A, b in ((Z, t), (M, m)))
    tally.add(f"{task}: mean loss", mean_interval(own), float(all_own.mean()))
    constant: Any = np.bincount(y).argmax() if classes is not None else y.mean()
    dull, all_dull = (
        (b != constant).astype(float) if classes is not None else np.square(b - constant)
        for b in (t, m)
    )
    skill = skill_interval(own, dull, 0.95, np.ones(TEST), 2000, key.fold("skill"))
    tally.add(f"{task}: skill", skill, 1 - float(all_own.mean() / all_dull.mean()))
    same = tuple(Prediction(np.full(len(b), constant), classes=classes) for b in (t, m))
    gap = compared(main, t, "model", [{"model": said, "constant": same[0]}], weight=np.ones(TEST),
                   level=0.95, key=key.fold("gap"))[0]  # fmt: skip
    apart = main.score(m, every) - main.score(m, same[1])
    tally.add(f"{task}: difference to a constant answer",
              Interval(gap["difference"], gap["lo"], gap["hi"], 0.95, gap["method"]), apart)  # fmt: skip
    for name in ("precision", "recall", "f1") if classes is not None else ():
        tally.add(f"{task}: {name}", interval(metric(name), t, said, key=key.fold(name)),
                  metric(name).score(m, every))  # fmt: skip
    if classes is not None:
        p, q = model.predict_proba(Z[:, kept])[:, 1], model.predict_proba(M[:, kept])[:, 1]
        tally.add("classification: AUC by DeLong", auc_interval(t, p), auc(m, q))
        wrong = int(own.sum())
        for how in ("exact", "jeffreys"):
            tally.add(f"{task}: error rate", proportion_interval(wrong, TEST, method=how),
                      float(all_own.mean()))  # fmt: skip
    sets = conformal(model, V[:, kept], v, random_state=key.fold("sets"))
    inside = np.asarray(sets.predict(M[:, kept]).contains(m), float)
    tally.inside[(f"conformal, {task}", "split", 0.9)].append(float(inside.mean()))


def crossed(key: Key, tally: Tally) -> None:
    """Conformal intervals from cross-validation, which spend no rows on calibration."""
    rng = key.numpy()
    (X, y), (M, m) = rows(rng, 100, "regression"), rows(rng, 4000, "regression")
    sets = conformal_cv(Ridge(1.0), X, y, random_state=key.fold("folds"))
    inside = np.asarray(sets.predict(M).contains(m), float)
    tally.inside[("conformal, regression", "cross-validation", 0.9)].append(float(inside.mean()))


def seeds(key: Key, tally: Tally) -> None:
    """Student's interval over ten seeds, for the mean over all seeds on one table."""
    rng = key.numpy()
    (X, y), (Z, t) = rows(rng, TRAIN, "classification"), rows(rng, TEST, "classification")
    tree = DecisionTreeClassifier(max_features=1, max_depth=4)
    scores = np.array(
        [
            float(tree.set_params(random_state=i).fit(X, y).score(Z, t))
            for i in range(REPEATS * SEEDS)
        ]
    )
    truth = float(scores.mean())
    for own in scores.reshape(REPEATS, SEEDS):
        tally.add("seeds: mean accuracy over seeds", Scores(own, ("seed",)).interval(), truth)


def kept(path: str, lines: list[list[Any]]) -> list[list[Any]]:
    """New lines among those of an existing file about other tasks, in the order of a whole run."""
    with open(path, newline="") as file:
        old = list(csv.reader(file))[1:]
    other = [row for row in old if "regression" not in row[0]]
    last = "reported less true"
    return sorted([*other, *lines], key=lambda row: (row[1] == last, row[0], row[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="bench/tables/coverage.csv")
    parser.add_argument("--tasks", choices=["all", "regression"], default="all")
    options = parser.parse_args()
    tasks = TASKS if options.tasks == "all" else TASKS[1:]
    warnings.simplefilter("ignore")
    key, tally, start = Key.of(options.seed), Tally(), time.perf_counter()
    with threadpool_limits(1):
        for i in range(options.tables):
            for task in tasks:
                table(key.fold(task, i), task, tally)
            if i % 50 == 49:
                print(
                    f"{i + 1} tables, {time.perf_counter() - start:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
        for i in range(max(1, options.tables // 5)):
            crossed(key.fold("crossed", i), tally)
        for i in range(max(1, options.tables // 50) if options.tasks == "all" else 0):
            seeds(key.fold("seeds", i), tally)
    lines = tally.lines()
    if options.tasks != "all":
        lines = kept(options.out, lines)
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    with open(options.out, "w", newline="") as file:
        csv.writer(file).writerows([HEAD, *lines])
    for row in lines:
        print(*row)
    asked = [row for row in lines if row[-1] != ""]
    missed = [row for row in asked if str(row[-1]) != "True"]
    print(f"{len(asked) - len(missed)} of {len(asked)} hold, {time.perf_counter() - start:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
