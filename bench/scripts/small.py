"""Every estimator that scikit-learn has too, fitted with its defaults on 100 rows of 10 columns.

``python bench/scripts/small.py [--only NAME ...] [--clock wall|cpu] [--out FILE] [--resume]`` prints
one line per estimator and writes its rows into the CSV at once; ``--resume`` passes over estimators
that the file has from this commit and machine. Overhead is what such fits measure: ours should take at
most 1.2 times as long. On a busy machine the CPU clock, with one thread, is the one to compare.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import warnings
from collections.abc import Callable
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
from groundstate.bench.measure import calls_per_timing, seconds
from groundstate.bench.table import BenchRow, BenchTable, read_csv
from groundstate.registry import models

POSITIVE_X = ("MultinomialNB", "CategoricalNB")
POSITIVE_Y = ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")
SETTINGS: dict[str, dict[str, Any]] = {
    "BernoulliRBM": {"random_state": 0},
    "VotingClassifier": {"estimators": [("one", GaussianNB()), ("other", LogisticRegression())]},
    "VotingRegressor": {"estimators": [("one", Ridge()), ("other", DecisionTreeRegressor())]},
}


def table(name: str) -> tuple[Any, Any]:
    if models[name].role == "regressor":
        X, y = make_regression(100, 10, noise=1.0, random_state=0)
        return X, np.exp(y / np.abs(y).max()) if name in POSITIVE_Y else y
    X, y = make_classification(100, 10, n_informative=5, n_redundant=0, random_state=0)
    if name in POSITIVE_X:
        X = np.round(X - X.min(0))
    if name == "BernoulliRBM":
        X = (X > 0).astype(float)
    return X, y if models[name].role == "classifier" else None


def score(model: Any, X: Any, y: Any) -> float:
    try:
        return float(model.score(X, y))
    except (AttributeError, TypeError):
        return float("nan")


def cpu_seconds(run: Callable[[], Any], number: int) -> float:
    """The mean CPU time of one of so many calls."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        for _ in range(number):
            run()
        return (time.process_time() - start) / number
    finally:
        gc.enable()


def measure(name: str, repeats: int, peer: Any, clock: Any = seconds) -> list[BenchRow]:
    X, y = table(name)
    settings = SETTINGS.get(name, {})
    makers = {"groundstate": getattr(groundstate, name), "scikit-learn": peer}
    runs = {who: partial(lambda make: make(**settings).fit(X, y), m) for who, m in makers.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = {who: score(run(), X, y) for who, run in runs.items()}
        number = {who: calls_per_timing(clock(run, 1), 0.1) for who, run in runs.items()}
        times: dict[str, list[float]] = {who: [] for who in runs}
        for _ in range(repeats):
            for who, run in runs.items():
                times[who].append(clock(run, number[who]))
    return [
        BenchRow(
            size=name,
            contestant=who,
            ours=who == "groundstate",
            median_s=statistics.median(taken),
            min_s=min(taken),
            max_s=max(taken),
            repeats=repeats,
            calls=number[who],
            peak_mib=0.0,
            device_mib=0.0,
            score=scores[who],
            version=package_version(who),
        )
        for who, taken in times.items()
    ]


def table_of(rows: list[BenchRow], clock: str) -> BenchTable:
    unit = "" if clock == "wall" else ", CPU time"
    return BenchTable(
        name="small",
        title=f"fit with default settings, 100 x 10{unit}",
        score_name="score on the training rows",
        better="high",
        target=1 / 1.2,
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
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    theirs = dict(all_estimators())
    done = written(options.out) if options.resume else set()
    clock = seconds if options.clock == "wall" else cpu_seconds
    for name in options.only or [row.name for row in models if row.name in theirs]:
        if name in done:
            continue
        rows = measure(name, options.repeats, theirs[name], clock)
        ours, peer = rows
        print(
            f"{name:32} {ours.median_s * 1e3:9.2f} ms {peer.median_s * 1e3:9.2f} ms"
            f" {ours.median_s / peer.median_s:7.2f} times  score {ours.score:.4g} {peer.score:.4g}",
            flush=True,
        )
        if options.out:
            table_of(rows, options.clock).to_csv(options.out)


if __name__ == "__main__":
    main()
