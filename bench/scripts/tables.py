"""`groundstate fit` on ten real tables beside tuned LightGBM, random forest and linear models.

    python bench/scripts/tables.py FOLDER --seconds 60 --out bench/tables/tables.csv

FOLDER holds diamonds, mpg, penguins, tips, titanic and winequality-white as CSV; four more are built
in. Every table is cut once: a quarter of the rows (at most 5,000) is looked at by no contestant
before the end. `fit` compares and tunes our models on the rest; each peer is tuned there by a random
search over 5 folds, as long as ``--seconds`` lets a new setting begin. The score is accuracy or R² on
the quarter; ``low`` and ``high`` are its 95 % bootstrap interval. ``behind`` is by how much ours is
below the contestant, with the 95 % interval of the difference on the same rows: where all of it is
above zero, ours is worse. Lines are written table by table; a table that the file has is not run
again.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import ParameterSampler, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from groundstate.bench.machine import commit, machine, today, versions
from groundstate.data import load
from groundstate.study import assess_tuned

FILES = {
    "diamonds": "price",
    "mpg": "mpg",
    "penguins": "species",
    "tips": "tip",
    "titanic": "survived",
    "winequality-white": "quality",
}
NAMELESS = {"winequality-white"}  # files without a line of names; the target is the last column
BUILT_IN = ("iris", "wine", "breast_cancer", "diabetes")
LEAKS = {"titanic": ["alive"]}  # the target in another word
MOST = 20_000  # rows
LEAST = 3  # settings of a peer
OURS = "groundstate fit"


def tables(folder: Path) -> Iterator[tuple[str, pd.DataFrame, str]]:
    for name in BUILT_IN:
        table = load(name)
        frame = pd.DataFrame({c: table.values(c) for c in table.columns})
        yield name, frame, str(table.target)
    for name, target in sorted(FILES.items(), key=lambda row: row[0] == "diamonds"):
        frame = pd.read_csv(folder / f"{name}.csv", header=None if name in NAMELESS else 0)
        if name in NAMELESS:
            frame.columns = [*(f"x{j}" for j in range(frame.shape[1] - 1)), target]
        yield name, frame.drop(columns=LEAKS.get(name, [])).dropna(subset=[target]), target


def encoder(one_hot: bool) -> Any:
    words = make_column_selector(dtype_exclude=np.number)
    numbers = make_column_selector(dtype_include=np.number)
    fill = SimpleImputer(strategy="most_frequent")
    if one_hot:
        coded: Any = OneHotEncoder(handle_unknown="ignore")
        plain: Any = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    else:
        coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        plain = SimpleImputer(strategy="median")
    return make_column_transformer((make_pipeline(fill, coded), words), (plain, numbers))


def peers(classes: bool, jobs: int) -> dict[str, tuple[Any, dict[str, Any]]]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    boosted = (LGBMClassifier if classes else LGBMRegressor)(
        verbose=-1, n_jobs=jobs, random_state=0
    )
    forest = (RandomForestClassifier if classes else RandomForestRegressor)(
        n_jobs=jobs, random_state=0
    )
    linear = LogisticRegression(max_iter=2000) if classes else Ridge()
    return {
        "LightGBM": (
            make_pipeline(encoder(False), boosted),
            {
                "n_estimators": randint(50, 400),
                "learning_rate": loguniform(0.02, 0.2),
                "num_leaves": randint(7, 64),
                "min_child_samples": randint(5, 50),
                "reg_lambda": loguniform(1e-3, 10),
            },
        ),
        "random forest": (
            make_pipeline(encoder(False), forest),
            {
                "n_estimators": randint(100, 300),
                "max_features": ["sqrt", 0.33, 0.6, 1.0],
                "min_samples_leaf": randint(1, 10),
            },
        ),
        "linear": (
            make_pipeline(encoder(True), linear),
            {"C" if classes else "alpha": loguniform(1e-3, 1e3)},
        ),
    }


def tuned(
    model: Any, space: dict[str, Any], X: Any, y: Any, scoring: str, trials: int, seconds: float
) -> tuple[Any, int]:
    """The best of up to ``trials`` random settings, fitted to all rows, and how many were tried."""
    step, begun, best, tried = model.steps[-1][0], time.perf_counter(), (-np.inf, model), 0
    for setting in ParameterSampler(space, trials, random_state=0):
        if tried >= LEAST and time.perf_counter() - begun > seconds:
            break
        one = clone(model).set_params(**{f"{step}__{k}": v for k, v in setting.items()})
        score = float(cross_val_score(one, X, y, cv=5, scoring=scoring).mean())
        best = max(best, (score, one), key=lambda pair: pair[0])
        tried += 1
    return best[1].fit(X, y), tried


def ours(
    train: pd.DataFrame, test: pd.DataFrame, target: str, trials: int, seconds: float, jobs: int
) -> tuple[Any, str]:
    """What the command does with a table and a file of further rows; refits are left out."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("train.csv", "test.csv")]
        for frame, path in zip((train, test), paths, strict=True):
            frame.to_csv(path, index=False)
        found = assess_tuned(
            paths[0], target, test=paths[1], tune=trials, budget=seconds, seeds=0, bootstrap=0,
            n_jobs=jobs,
        )  # fmt: skip
    told = found.predictions[found.chosen].values
    if found.classes is None:
        return told, found.chosen
    return np.asarray(found.classes)[told.astype(np.int64)], found.chosen


def resampled(y: Any, told: dict[str, Any], classes: bool) -> dict[str, Any]:
    """Every contestant's score on the same 2,000 resamples of the rows, after the score itself."""
    measure = accuracy_score if classes else r2_score
    y = np.asarray(y)
    rng = np.random.default_rng(0)
    rows = [np.arange(len(y)), *rng.integers(len(y), size=(2000, len(y)))]
    return {who: np.array([measure(y[i], said[i]) for i in rows]) for who, said in told.items()}


def one(name: str, frame: pd.DataFrame, target: str, options: Any) -> list[dict[str, Any]]:
    if len(frame) > MOST:
        frame = frame.sample(MOST, random_state=0)
    classes = frame[target].dtype.kind not in "f" and frame[target].nunique() <= 20
    train, test = train_test_split(
        frame,
        test_size=min(len(frame) // 4, 5000),
        random_state=0,
        stratify=frame[target] if classes else None,
    )
    told, models, seconds = {}, {}, {}
    start = time.perf_counter()
    told[OURS], models[OURS] = ours(
        train, test, target, options.trials, options.seconds, options.jobs
    )
    told[OURS] = told[OURS].astype(test[target].to_numpy().dtype if classes else float)
    seconds[OURS] = time.perf_counter() - start
    for who, (model, space) in peers(classes, options.jobs).items():
        start = time.perf_counter()
        best, tried = tuned(
            model, space, train.drop(columns=target), train[target],
            "accuracy" if classes else "r2", options.trials, options.seconds,
        )  # fmt: skip
        told[who] = np.asarray(best.predict(test.drop(columns=target)))
        models[who], seconds[who] = f"best of {tried}", time.perf_counter() - start
    draws = resampled(test[target], told, classes)
    rows = []
    for who, scores in draws.items():
        low, high = np.quantile(scores[1:], [0.025, 0.975])
        behind = scores - draws[OURS]
        worse = np.quantile(behind[1:], [0.025, 0.975])
        print(f"{name:18} {who:16} {models[who]:32} {scores[0]:.4f} [{low:.4f}, {high:.4f}]"
              f"  ours behind by {behind[0]:+.4f} [{worse[0]:+.4f}, {worse[1]:+.4f}]"
              f" {seconds[who]:6.1f} s", flush=True)  # fmt: skip
        rows.append(
            {"table": name, "rows": len(frame), "metric": "accuracy" if classes else "r2"}
            | {"contestant": who, "model": models[who], "score": scores[0], "low": low}
            | {"high": high, "behind": behind[0], "behind_low": worse[0], "behind_high": worse[1]}
            | {"seconds": seconds[who]}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done: set[str] = set()
    if options.out is not None and options.out.exists():
        with options.out.open() as file:
            done = {row["table"] for row in csv.DictReader(file)}
    where = {"machine": machine(), "versions": versions(("lightgbm",)), "date": today()}
    where["commit"] = commit(Path(__file__).parents[2])
    for name, frame, target in tables(options.folder):
        if name in done or (options.only is not None and name not in options.only):
            continue
        rows = one(name, frame, target, options)
        if options.out is not None:
            new = not options.out.exists()
            with options.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, [*rows[0], *where])
                if new:
                    writer.writeheader()
                writer.writerows({**row, **where} for row in rows)


if __name__ == "__main__":
    main()
