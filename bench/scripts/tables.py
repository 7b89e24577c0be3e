"""`groundstate fit` on ten real tables beside tuned LightGBM, random forest and linear models.

``python bench/scripts/tables.py FOLDER [--only NAME ...] [--trials 20] [--out FILE]``. FOLDER holds
diamonds, mpg, penguins, tips, titanic and winequality-white as CSV; four more are built in. Every
table is cut once: a quarter of the rows (at most 5,000) is looked at by no contestant before the end.
`fit` chooses among our models on the rest; each peer is tuned there by a random search over 5 folds.
The score is accuracy or R² on the quarter; ``low`` and ``high`` are its 95 % bootstrap interval.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import loguniform, randint
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import RandomizedSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from groundstate.bench.machine import commit, machine, today, versions
from groundstate.data import load
from groundstate.report import study

FILES = {
    "diamonds": "price",
    "mpg": "mpg",
    "penguins": "species",
    "tips": "tip",
    "titanic": "survived",
    "winequality-white": "quality",
}
BUILT_IN = ("iris", "wine", "breast_cancer", "diabetes")
LEAKS = {"titanic": ["alive"]}  # the target in another word
MOST = 20_000  # rows


def tables(folder: Path) -> dict[str, tuple[pd.DataFrame, str]]:
    found: dict[str, tuple[pd.DataFrame, str]] = {}
    for name, target in FILES.items():
        path = folder / f"{name}.csv"
        frame = pd.read_csv(path, sep=None, engine="python")
        found[name] = frame.drop(columns=LEAKS.get(name, [])).dropna(subset=[target]), target
    for name in BUILT_IN:
        table = load(name)
        found[name] = pd.DataFrame({c: table.values(c) for c in table.columns}), str(table.target)
    return found


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


def peers(classes: bool) -> dict[str, tuple[Any, dict[str, Any]]]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    boosted = (LGBMClassifier if classes else LGBMRegressor)(verbose=-1, n_jobs=1, random_state=0)
    forest = (RandomForestClassifier if classes else RandomForestRegressor)(random_state=0)
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


def interval(y: Any, told: Any, classes: bool) -> tuple[float, float, float]:
    measure = accuracy_score if classes else r2_score
    y, told = np.asarray(y), np.asarray(told)
    rng = np.random.default_rng(0)
    draws = [measure(y[i], told[i]) for i in rng.integers(len(y), size=(1000, len(y)))]
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(measure(y, told)), float(low), float(high)


def ours(train: pd.DataFrame, test: pd.DataFrame, target: str) -> tuple[Any, str]:
    found = study(train, target, models="auto", tune=10, test=0.2, seeds=0, bootstrap=0, n_jobs=2)
    told = found.model.predict(test.drop(columns=target))
    return np.asarray(told).astype(test[target].to_numpy().dtype), found.board.best.name


def one(name: str, frame: pd.DataFrame, target: str, trials: int) -> list[dict[str, Any]]:
    if len(frame) > MOST:
        frame = frame.sample(MOST, random_state=0)
    classes = frame[target].dtype.kind not in "f" and frame[target].nunique() <= 20
    hold = min(len(frame) // 4, 5000)
    train, test = train_test_split(
        frame, test_size=hold, random_state=0, stratify=frame[target] if classes else None
    )
    rows = []
    start = time.perf_counter()
    told, chosen = ours(train, test, target)
    scored = [("groundstate fit", chosen, told, time.perf_counter() - start)]
    for peer, (model, space) in peers(classes).items():
        step = model.steps[-1][0]
        search = RandomizedSearchCV(
            model, {f"{step}__{k}": v for k, v in space.items()}, n_iter=trials, cv=5,
            random_state=0, scoring="accuracy" if classes else "r2", n_jobs=2,
        )  # fmt: skip
        start = time.perf_counter()
        told = search.fit(train.drop(columns=target), train[target]).predict(
            test.drop(columns=target)
        )
        scored.append((peer, "tuned", told, time.perf_counter() - start))
    for who, chosen, told, seconds in scored:
        score, low, high = interval(test[target], told, classes)
        print(f"{name:20} {who:16} {chosen:32} {score:.4f} [{low:.4f}, {high:.4f}]", flush=True)
        rows.append(
            {"table": name, "rows": len(frame), "metric": "accuracy" if classes else "r2"}
            | {"contestant": who, "model": chosen, "score": score, "low": low, "high": high}
            | {"seconds": seconds}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name, (frame, target) in tables(options.folder).items():
        if options.only is None or name in options.only:
            rows += one(name, frame, target, options.trials)
    if options.out and rows:
        where = {"machine": machine(), "versions": versions(("lightgbm",)), "date": today()}
        where["commit"] = commit(Path(__file__).parents[2])
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0], *where])
            writer.writeheader()
            writer.writerows({**row, **where} for row in rows)


if __name__ == "__main__":
    main()
