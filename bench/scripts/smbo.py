"""Regret and overhead of samplers: ours against Optuna's TPE and Gaussian process.

    python bench/scripts/smbo.py --seeds 20 --out smbo.csv

Three test functions and two real tuning tasks, each sampler with the same budget and seeds. The
overhead is the CPU time of a suggestion, the objective's own time taken off. One row for each task
and sampler: median regret (of the tasks without a known minimum, over the best value that any run
found), quartiles, milliseconds per trial.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import optuna

Objective = Callable[[Any], float]

_A = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
               [17, 8, 0.05, 10, 0.1, 14]])  # fmt: skip
_P = 1e-4 * np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                      [2348, 1451, 3522, 2883, 3047, 6650],
                      [4047, 8828, 8732, 5743, 1091, 381]])  # fmt: skip


def branin(trial: Any) -> float:
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    curve = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return float(curve + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 - 0.397887357729738)


def hartmann(trial: Any) -> float:
    x = np.array([trial.suggest_float(f"x{i}", 0, 1) for i in range(6)])
    heights = np.array([1.0, 1.2, 3.0, 3.2])
    return float(3.322368011415515 - heights @ np.exp(-(_A * (x - _P) ** 2).sum(1)))


def ackley(trial: Any) -> float:
    x = np.array([trial.suggest_float(f"x{i}", -32.768, 32.768) for i in range(5)])
    far = -20 * np.exp(-0.2 * np.sqrt((x * x).mean()))
    return float(far - np.exp(np.cos(2 * np.pi * x).mean()) + 20 + np.e)


@cache
def digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X[:900] / 16.0, y[:900]


@cache
def tumours() -> tuple[Any, Any]:
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(return_X_y=True)


def svc(trial: Any) -> float:
    """Share of wrong digits over three folds."""
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    C = trial.suggest_float("C", 1e-3, 1e3, log=True)
    gamma = trial.suggest_float("gamma", 1e-5, 1e1, log=True)
    return 1.0 - float(cross_val_score(SVC(C=C, gamma=gamma), *digits(), cv=3).mean())


def boosting(trial: Any) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_score

    model = HistGradientBoostingClassifier(
        learning_rate=trial.suggest_float("learning_rate", 0.01, 1.0, log=True),
        max_iter=trial.suggest_int("max_iter", 5, 80, log=True),
        max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 2, 64, log=True),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 2, 100, log=True),
        l2_regularization=trial.suggest_float("l2_regularization", 1e-6, 1e2, log=True),
        early_stopping=False,
        random_state=0,
    )
    score = cross_val_score(model, *tumours(), cv=3, scoring="neg_log_loss")
    return -float(score.mean())


TASKS: dict[str, tuple[Objective, int, bool]] = {  # objective, trials, whether its minimum is 0
    "branin": (branin, 35, True),
    "hartmann6": (hartmann, 50, True),
    "ackley5": (ackley, 60, True),
    "svc-digits": (svc, 40, False),
    "boosting-tumours": (boosting, 40, False),
}


def samplers() -> dict[str, Callable[[int], Any]]:
    from groundstate.tune import SMBOSampler

    return {
        "groundstate-smbo": lambda seed: SMBOSampler(seed=seed),
        "optuna-gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
        "optuna-tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
        "optuna-random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    }


def study(
    make: Callable[[int], Any], objective: Objective, n: int, seed: int
) -> tuple[float, float]:
    """Best value, and CPU seconds per trial outside the objective."""
    inside = 0.0

    def timed(trial: Any) -> float:
        nonlocal inside
        start, watch = time.process_time(), Watch(trial)
        value = objective(watch)
        inside += time.process_time() - start - watch.seconds
        return value

    found = optuna.create_study(sampler=make(seed))
    start = time.process_time()
    found.optimize(timed, n_trials=n)
    return float(found.best_value), (time.process_time() - start - inside) / n


class Watch:
    """A trial that adds up the CPU time of its suggestions, which are made when first asked for."""

    def __init__(self, trial: Any) -> None:
        self._trial, self.seconds = trial, 0.0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._trial, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - start

        return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=20)
    # the prior of the lengths was chosen with seeds below 20 of the three functions
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--out", default="-")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    rows = []
    for task in options.tasks.split(","):
        objective, n, known = TASKS[task]
        best: dict[str, list[float]] = {}
        cost: dict[str, list[float]] = {}
        for name, make in samplers().items():
            seeds = range(options.first, options.first + options.seeds)
            runs = [study(make, objective, n, seed) for seed in seeds]
            best[name], cost[name] = [r[0] for r in runs], [r[1] for r in runs]
        floor = 0.0 if known else min(min(values) for values in best.values())
        for name, values in best.items():
            low, middle, high = np.quantile(np.array(values) - floor, [0.25, 0.5, 0.75])
            rows.append([task, n, name, options.seeds, f"{middle:.6g}", f"{low:.6g}",
                         f"{high:.6g}", f"{1e3 * np.median(cost[name]):.2f}"])  # fmt: skip
            print(*rows[-1], file=sys.stderr, flush=True)
    head = ["task", "trials", "sampler", "seeds", "median_regret", "q25", "q75", "ms_per_trial"]
    with open(
        1 if options.out == "-" else options.out, "w", newline="", closefd=options.out != "-"
    ) as f:
        csv.writer(f).writerows([head, *rows])


if __name__ == "__main__":
    main()
