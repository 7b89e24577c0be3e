"""Regret and overhead of samplers: ours against Optuna's Gaussian process, TPE and random search.

    OMP_NUM_THREADS=1 python bench/scripts/smbo.py        # seeds 100 to 119 of every task
    OMP_NUM_THREADS=1 python bench/scripts/smbo.py --tasks branin --first 0 --runs runs.csv --out -

Three test functions and three real tuning tasks; every sampler has its own defaults, the same number of
trials and the same seeds. Each run adds a row to ``--runs`` when it ends and is not run again, so that
an interrupted benchmark goes on where it stopped; delete the rows of a sampler to repeat it. From the
runs follows ``--out``, one row for each task and sampler: quartiles of the regret (the best value less
the minimum, or less the best value that any run found where the minimum is not known), the median CPU
seconds of a suggestion over a run and over its last five trials, and versions.

The priors of the surrogate and the scale of the risks were chosen with seeds below 20 of these tasks.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import FloatDistribution, IntDistribution

TABLES = Path(__file__).parents[1] / "tables"
RUN = ["task", "sampler", "seed", "trials", "best", "seconds", "late_seconds", "versions"]
HEAD = ["task", "trials", "sampler", "seeds", "median_regret", "q25", "q75",
        "seconds_per_suggestion", "late_seconds", "versions"]  # fmt: skip

_A = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
               [17, 8, 0.05, 10, 0.1, 14]])  # fmt: skip
_P = 1e-4 * np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                      [2348, 1451, 3522, 2883, 3047, 6650],
                      [4047, 8828, 8732, 5743, 1091, 381]])  # fmt: skip


def branin(x: float, y: float) -> float:
    curve = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return float(curve + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 - 0.397887357729738)


def hartmann(**setting: float) -> float:
    x = np.array([setting[f"x{i}"] for i in range(6)])
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    return float(3.322368011415515 - heights @ np.exp(-(_A * (x - _P) ** 2).sum(1)))


def ackley(**setting: float) -> float:
    x = np.array([setting[f"x{i}"] for i in range(5)])
    far = -20 * np.exp(-0.2 * np.sqrt((x * x).mean()))
    return float(far - np.exp(np.cos(2 * np.pi * x).mean()) + 20 + np.e)


@cache
def diabetes() -> tuple[Any, Any]:
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import scale

    X, y = load_diabetes(return_X_y=True)
    return scale(X), scale(y)


@cache
def tumours() -> tuple[Any, Any]:
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(return_X_y=True)


def svr(**setting: float) -> float:
    """Mean squared error of the progress of diabetes over five folds."""
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVR

    score = cross_val_score(SVR(**setting), *diabetes(), cv=5, scoring="neg_mean_squared_error")
    return -float(score.mean())


def boosting(**setting: Any) -> float:
    """Log loss of tumours over two folds."""
    return _boosted(2, **setting)


def boosting_wide(**setting: Any) -> float:
    """Log loss of tumours over three folds."""
    return _boosted(3, **setting)


def _boosted(folds: int, **setting: Any) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_score

    model = HistGradientBoostingClassifier(
        max_iter=30, early_stopping=False, random_state=0, **setting
    )
    return -float(cross_val_score(model, *tumours(), cv=folds, scoring="neg_log_loss").mean())


@dataclass(frozen=True)
class Task:
    """What is minimised, over which settings, with how many trials."""

    risk: Callable[..., float]
    space: dict[str, Any]
    trials: int
    minimum: float | None = 0.0


TASKS = {
    "branin": Task(branin, {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15)}, 35),
    "hartmann6": Task(hartmann, {f"x{i}": FloatDistribution(0, 1) for i in range(6)}, 50),
    "ackley5": Task(ackley, {f"x{i}": FloatDistribution(-32.768, 32.768) for i in range(5)}, 60),
    "svr-diabetes": Task(
        svr,
        {
            "C": FloatDistribution(1e-2, 1e3, log=True),
            "gamma": FloatDistribution(1e-4, 1e1, log=True),
            "epsilon": FloatDistribution(1e-3, 1.0, log=True),
        },
        40,
        None,
    ),
    "boosting-tumours": Task(
        boosting,
        {
            "learning_rate": FloatDistribution(0.01, 1.0, log=True),
            "max_leaf_nodes": IntDistribution(2, 32, log=True),
            "min_samples_leaf": IntDistribution(2, 100, log=True),
            "l2_regularization": FloatDistribution(1e-3, 1e2, log=True),
        },
        30,
        None,
    ),
}
TASKS["boosting-tumours-5"] = Task(
    boosting_wide,
    {**TASKS["boosting-tumours"].space, "max_features": FloatDistribution(0.2, 1.0)},
    40,
    None,
)


def ours(seed: int) -> Any:
    from groundstate.tune import SMBOSampler

    return SMBOSampler(seed=seed)


SAMPLERS: dict[str, Callable[[int], Any]] = {
    "groundstate SMBO": ours,
    "optuna GP": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "optuna TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "optuna random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def search(sampler: Any, task: Task, trials: int | None = None) -> tuple[float, list[float]]:
    """Best value, and the CPU seconds that every trial took outside the objective."""
    study = optuna.create_study(sampler=sampler)
    seconds = []
    for _ in range(trials or task.trials):
        start = time.process_time()
        trial = study.ask(task.space)
        asked = time.process_time()
        value = task.risk(**trial.params)
        valued = time.process_time()
        study.tell(trial, value)
        seconds.append(asked - start + time.process_time() - valued)
    return float(study.best_value), seconds


def versions(sampler: str) -> str:
    names = ["optuna", "torch", "scipy", "numpy"]
    return " ".join(
        f"{name}-{version(name)}" for name in (["groundstate"] * ("SMBO" in sampler) + names)
    )


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(path: Path, tasks: list[str], samplers: list[str], seeds: range) -> None:
    """Add the runs that are missing."""
    done = {(row["task"], row["sampler"], int(row["seed"])) for row in read(path)}
    warm: set[str] = set()
    for name in tasks:
        for seed in seeds:  # samplers in turn, so that they meet the same load
            for sampler in samplers:
                if (name, sampler, seed) in done:
                    continue
                if sampler not in warm:  # imports and compilation are not a suggestion's time
                    search(SAMPLERS[sampler](0), TASKS["branin"], 13)
                    warm.add(sampler)
                best, seconds = search(SAMPLERS[sampler](seed), TASKS[name])
                late = float(np.median(seconds[-5:]))
                row = [name, sampler, seed, len(seconds), repr(best),
                       f"{np.mean(seconds):.5f}", f"{late:.5f}", versions(sampler)]  # fmt: skip
                fresh = not path.exists()
                with open(path, "a", newline="") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    writer.writerows([RUN, row] if fresh else [row])
                print(*row[:-1], file=sys.stderr, flush=True)


def summary(runs: list[dict[str, str]], seeds: range) -> list[list[Any]]:
    """One row for each task and sampler."""
    rows: list[list[Any]] = []
    for name, task in TASKS.items():
        mine = [row for row in runs if row["task"] == name and int(row["seed"]) in seeds]
        if not mine:
            continue
        floor = task.minimum
        if floor is None:
            floor = min(float(row["best"]) for row in mine)
        for sampler in SAMPLERS:
            those = [row for row in mine if row["sampler"] == sampler]
            if not those:
                continue
            regret = np.array([float(row["best"]) for row in those]) - floor
            low, middle, high = np.quantile(regret, [0.25, 0.5, 0.75])
            cost, late = (np.median([float(row[k]) for row in those]) for k in RUN[5:7])
            rows.append([name, task.trials, sampler, len(those), f"{middle:.6g}", f"{low:.6g}",
                         f"{high:.6g}", f"{cost:.5f}", f"{late:.5f}",
                         those[-1]["versions"]])  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    parser.add_argument("--runs", type=Path, default=TABLES / "smbo_runs.csv")
    parser.add_argument("--out", default=str(TABLES / "smbo.csv"), help="- for the screen")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    seeds = range(options.first, options.first + options.seeds)
    run(options.runs, options.tasks.split(","), options.samplers.split(","), seeds)
    rows = [HEAD, *summary(read(options.runs), seeds)]
    if options.out == "-":
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    else:
        with open(options.out, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
