"""Every estimator that scikit-learn has too, fitted and asked with its defaults on one table.

``python bench/scripts/every.py [--rows 100] [--columns 10] [--only NAME ...] [--clock wall|cpu]
[--out FILE] [--resume]`` prints one line per estimator and task and writes its rows into the CSV at
once; ``--resume`` passes over estimators that the file has from this commit and machine. 100 rows of
10 columns measure overhead: ours should take at most 1.2 times as long (small.csv); 2,000 rows of 20
are an ordinary table, where ours should not be slower (middle.csv). On a busy machine the CPU clock,
with one thread, is the one to compare.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.discovery import all_estimators

import groundstate
from groundstate.bench.machine import commit, machine, package_version, threads, today, versions
from groundstate.bench.measure import calls_per_timing, timed
from groundstate.bench.table import BenchRow, BenchTable, read_csv
from groundstate.registry import models

CLOCKS = ("wall", "cpu")  # in the order of `timed`
POSITIVE_X = ("MultinomialNB", "CategoricalNB", "ComplementNB", "NMF")
POSITIVE_Y = ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")
SETTINGS: dict[str, dict[str, Any]] = {
    "BernoulliRBM": {"random_state": 0},
    # with targets as they are the two searches for a kernel end at different likelihoods
    "GaussianProcessRegressor": {"normalize_y": True, "alpha": 0.1},
    "RadiusNeighborsClassifier": {"radius": 5.0, "outlier_label": "most_frequent"},
    "RadiusNeighborsRegressor": {"radius": 5.0},
    "StackingClassifier": {"estimators": [("one", GaussianNB()), ("other", LogisticRegression())]},
    "StackingRegressor": {"estimators": [("one", Ridge()), ("other", DecisionTreeRegressor())]},
    "VotingClassifier": {"estimators": [("one", GaussianNB()), ("other", LogisticRegression())]},
    "VotingRegressor": {"estimators": [("one", Ridge()), ("other", DecisionTreeRegressor())]},
}


def table(name: str, rows: int, columns: int) -> tuple[Any, Any, Any, Any]:
    """Rows to fit, their targets, and as many rows with targets held out."""
    n, role, kind = 2 * rows, models[name].role, columns // 2
    if role == "regressor":
        X, y = make_regression(n, columns, noise=1.0, random_state=0)
        y = np.exp(y / np.abs(y).max()) if name in POSITIVE_Y else y
    else:
        X, y = make_classification(n, columns, n_informative=kind, n_redundant=0, random_state=0)
        if name in POSITIVE_X:
            X = np.clip(np.round(X), -2, 2) + 2
        if name == "BernoulliRBM":
            X = (X > 0).astype(float)
        y = y if role == "classifier" else None
    return X[:rows], X[rows:], *((None, None) if y is None else (y[:rows], y[rows:]))


def score(model: Any, X: Any, y: Any) -> float:
    try:
        return float(model.score(X, y))
    except (AttributeError, TypeError):
        return float("nan")


ASKED = ("predict", "transform", "kneighbors")


def asked(model: Any) -> bool:
    """Whether a model answers for new rows at all."""
    return any(hasattr(model, method) for method in ASKED)


def answer(model: Any, X: Any) -> Any:
    """What a model is asked for first."""
    return getattr(model, next(m for m in ASKED if hasattr(model, m)))(X)


def measure(name: str, options: argparse.Namespace, peer: Any) -> list[BenchRow]:
    clock = CLOCKS.index(options.clock)
    X, new, y, truth = table(name, options.rows, options.columns)
    settings = SETTINGS.get(name, {})
    makers = {"groundstate": getattr(groundstate, name), "scikit-learn": peer}
    fits = {who: partial(lambda make: make(**settings).fit(X, y), m) for who, m in makers.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {who: fit() for who, fit in fits.items()}
        scores = {who: score(model, new, truth) for who, model in fitted.items()}
        asks = {who: partial(answer, model, new) for who, model in fitted.items()}
        rows = []
        tasks = [(name, fits), (f"{name} answer", asks)][: 1 + all(map(asked, fitted.values()))]
        for task, runs in tasks:
            for run in runs.values():
                run()
            number = {who: calls_per_timing(timed(run, 1)[clock], 0.1) for who, run in runs.items()}
            times: dict[str, list[tuple[float, ...]]] = {who: [] for who in runs}
            for _ in range(options.repeats):
                for who, run in runs.items():
                    times[who].append(timed(run, number[who]))
            rows += [
                BenchRow(
                    size=task,
                    contestant=who,
                    ours=who == "groundstate",
                    median_s=statistics.median(one[clock] for one in taken),
                    min_s=min(one[clock] for one in taken),
                    max_s=max(one[clock] for one in taken),
                    repeats=options.repeats,
                    calls=number[who],
                    peak_mib=0.0,
                    device_mib=0.0,
                    score=scores[who],
                    version=package_version(who),
                    cpu_s=min(one[CLOCKS.index("cpu")] for one in taken),
                )
                for who, taken in times.items()
            ]
    return rows


def table_of(rows: list[BenchRow], options: argparse.Namespace) -> BenchTable:
    unit, small = "" if options.clock == "wall" else ", CPU time", options.rows <= 100
    return BenchTable(
        name="small" if small else "middle",
        title=f"default settings, {options.rows} x {options.columns}{unit}",
        score_name="score on rows held out",
        better="high",
        target=1 / 1.2 if small else 1.0,
        rows=tuple(rows),
        absent=(),
        machine=machine(),
        threads=threads(),
        versions=versions(),
        date=today(),
        commit=commit(Path(__file__).parents[2]),
    )


def written(out: Path | None) -> set[str]:
    """Estimators that the file has from this commit and machine."""
    if out is None or not out.is_file():
        return set()
    here = machine(), commit(Path(__file__).parents[2])
    return {row["size"] for row in read_csv(out) if (row["machine"], row["commit"]) == here}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    theirs = dict(all_estimators())
    done = written(options.out) if options.resume else set()
    for name in options.only or [row.name for row in models if row.name in theirs]:
        if name in done:
            continue
        rows = measure(name, options, theirs[name])
        for ours, peer in zip(rows[::2], rows[1::2], strict=True):
            print(
                f"{ours.size:32} {ours.median_s * 1e3:9.2f} ms {peer.median_s * 1e3:9.2f} ms"
                f" {ours.median_s / peer.median_s:7.2f} times  score {ours.score:.4g} {peer.score:.4g}",
                flush=True,
            )
        if options.out:
            table_of(rows, options).to_csv(options.out)


if __name__ == "__main__":
    main()
