"""Do pruners find as good settings for less? Digits, fifty settings, with and without pruning.

    python bench/scripts/prune.py --first 20 --seeds 10 --out bench/tables/prune.csv

Every seed splits the digits anew into training, validation and test rows, draws fifty settings and
judges them to the end; the same search is repeated with each pruner. Trials stop between epochs of
a network, between folds, or between doubling shares of the rows. The cost is counted in rows times
passes over them, in units of the search without pruning. A seed counts as good when the validation
score of the pruned search's winner is no more than one standard error below that of the other;
the last column is the mean difference of their scores on test rows that took no part. The file is
written whenever a fidelity is done with a sampler; lines of others that it holds are kept. The factor
of halving was chosen with seeds below 20.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from groundstate import SVC, MLPClassifier
from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.evaluate.splits.folds import train_test
from groundstate.tune import Real, Tune

TRIALS, EPOCHS, STOPS, FOLDS, RUNGS = 50, 16, 8, 5, 5
PRUNERS = ("median", "halving", "hyperband")
HEAD = ["fidelity", "model", "sampler", "pruner", "first_seed", "seeds", "cost", "good_seeds", "holds",
        "validation_difference", "test_difference"]  # fmt: skip


def searches(sampler: str, seed: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """What is searched, by what trials stop between."""
    kernel = {"C": Real(1e-3, 1e2, log=True), "gamma": Real(1e-5, 1e1, log=True)}
    network = {
        "learning_rate_init": Real(1e-4, 1e-1, log=True),
        "alpha": Real(1e-6, 1.0, log=True),
    }
    shared: dict[str, Any] = {"sampler": sampler, "n_trials": TRIALS, "random_state": seed}
    net = MLPClassifier((32,), max_iter=EPOCHS, batch_size=64, tol=0.0)
    return {
        "epochs": (
            "MLPClassifier",
            {"estimator": net, "space": network, "checkpoints": STOPS, **shared},
        ),
        "folds": ("SVC", {"estimator": SVC(), "space": kernel, "cv": FOLDS, **shared}),
        "rows": (
            "SVC",
            {"estimator": SVC(), "space": kernel, "fidelity": "rows", "rungs": RUNGS, **shared},
        ),
    }


def one(
    options: dict[str, Any], seed: int, pruners: list[str]
) -> dict[str, tuple[float, float, float]]:
    """Cost, validation score and test score of a search, by pruner; "" is none."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    split = train_test(X, y, test=0.25, key=Key.of(seed).fold("test"), stratify=True)
    rows, held = split.train_rows, split.test_rows
    found = {}
    for pruner in ("", *pruners):
        search = Tune(**options, pruner=pruner or None).fit(X[rows], y[rows])
        cost = float(np.nansum(search.cv_results_["rows"]))
        found[pruner] = cost, search.best_score_, search.score(X[held], y[held])
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--first", type=int, default=20)
    given.add_argument("--seeds", type=int, default=10)
    given.add_argument("--samplers", default="random,smbo")
    given.add_argument("--fidelities", default="epochs,folds,rows")
    given.add_argument("--pruners", default=",".join(PRUNERS))
    given.add_argument("--out", type=Path)
    options = given.parse_args()
    pruners = options.pruners.split(",")
    n = round(0.75 * 1797)
    for sampler in options.samplers.split(","):
        for fidelity in options.fidelities.split(","):
            runs, lines = [], []
            for seed in range(options.first, options.first + options.seeds):
                model, search = searches(sampler, seed)[fidelity]
                runs.append(one(search, seed, pruners))
                judged = n if fidelity == "folds" else round(0.2 * n)
                print(fidelity, sampler, seed, *runs[-1].items(), file=sys.stderr, flush=True)
            for pruner in pruners:
                cost = np.mean([run[pruner][0] / run[""][0] for run in runs])
                off = np.array([run[pruner][1] - run[""][1] for run in runs])
                error = np.array([_error(run[""][1], judged) for run in runs])
                test = np.mean([run[pruner][2] - run[""][2] for run in runs])
                good = float((off >= -error).mean())
                lines.append([
                    fidelity, model, sampler, pruner, options.first, options.seeds, f"{cost:.3f}",
                    f"{good:.2f}", bool(cost <= 0.4 and good >= 0.8), f"{off.mean():.4f}",
                    f"{test:.4f}",
                ])  # fmt: skip
                print(*lines[-1], sep=",", file=sys.stderr, flush=True)
            if options.out is not None:
                write(options.out, fidelity, sampler, lines)


def write(path: Path, fidelity: str, sampler: str, lines: list[list[Any]]) -> None:
    kept: list[list[str]] = []
    if path.exists():
        with path.open(newline="") as stream:
            kept = [
                r for r in csv.reader(stream) if r != HEAD and (r[0], r[2]) != (fidelity, sampler)
            ]
    with path.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([HEAD, *kept, *lines])


def _error(share: float, n: int) -> float:
    """Standard error of a share of n rows; one row where the share is 1."""
    return max(math.sqrt(share * (1 - share) / n), 1 / n)


if __name__ == "__main__":
    with warnings.catch_warnings(), threadpool_limits(1), threads(1):
        warnings.simplefilter("ignore")
        main()
