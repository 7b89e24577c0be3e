"""How wide have intervals of cross-validated scores to be? Simulated tables, every choice judged by folds.

    python bench/scripts/fold_intervals.py --tables 500 --workers 16 --out bench/tables/fold_intervals.csv

A lean twin of the study's race, with models of scikit-learn: four candidates and settings of the best
one on five folds, rows of a fold answered by what the other folds chose, the choice of all rows fitted
to all of them. The truth is its score on the distribution, with the target integrated out. One line for
each task, kind of target, number of rows and metric: the share of tables whose 95 % interval held the
truth, from the spread of rows alone and with `groundstate.math.stats.folds.widened`; by how many
standard errors the score is off; and how many times the variance of the rows would have held in 95 %,
which is 1 + δ + c/n there. With ``--fixed`` nothing is chosen: one line for each model as it comes, which
shows how much of this is of the fits alone. δ and c were read from seeds 200000 to 200449 (of which
bootstrap intervals were made for the first 316), which no line of the file is of.
``--seconds`` stops early, with as many tables as there were.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from groundstate.math.stats.folds import widened
from groundstate.math.stats.interval import Interval

F64 = NDArray[np.float64]
SIZES, FAMILIES, D, MANY, FOLDS = (
    (60, 150, 250, 400, 1000),
    ("linear", "mixed", "tree", "noisy"),
    6,
    3000,
    5,
)
SLOPES = np.array([1.2, -0.8, 0.5, 0.0, 0.0, 0.0])
KNN, TREE = [{"n_neighbors": 15}, {"n_neighbors": 40}], [{"max_depth": 2}, {"max_depth": 4}]
MODELS: dict[str, list[tuple[Callable[..., Any], list[dict[str, Any]]]]] = {
    "classification": [
        (LogisticRegression, [{"C": 0.01}, {"C": 0.1}, {"C": 10.0}]),
        (GaussianNB, [{"var_smoothing": 0.1}]),
        (KNeighborsClassifier, KNN),
        (DecisionTreeClassifier, TREE),
    ],
    "regression": [
        (Ridge, [{"alpha": 10.0}, {"alpha": 100.0}]),
        (Lasso, [{"alpha": 0.03}, {"alpha": 0.3}]),
        (KNeighborsRegressor, KNN),
        (DecisionTreeRegressor, TREE),
    ],
}
HEAD = ["task", "target", "rows", "metric", "tables", "rows_alone", "widened", "standard_error",
        "off_in_errors", "needed"]  # fmt: skip


def signal(X: F64, family: str) -> F64:
    """The mean of the target, or the log odds of the second class."""
    line = X @ SLOPES
    if family == "linear":
        return line
    if family == "mixed":
        return np.asarray(line + 0.7 * X[:, 0] * X[:, 1])
    if family == "tree":
        left, right = np.where(X[:, 2] > -0.5, 1.6, -2.4), np.where(X[:, 1] > 0.5, 2.0, -2.0)
        return np.where(X[:, 0] > 0, right, left)
    return np.asarray(0.3 * X[:, 0])


def scores(task: str, p: F64, y: F64) -> dict[str, tuple[float, F64]]:
    """Every metric with the influence of each row on it."""
    if task == "regression":
        square, spread = (p - y) ** 2, (y - y.mean()) ** 2
        loss, whole = square.mean(), spread.mean()
        moved = (spread - whole) * loss / whole**2 - (square - loss) / whole
        absolute = abs(p - y)
        root = loss**0.5
        return {"rmse": (root, (square - loss) / 2 / root), "r2": (1 - loss / whole, moved),
                "mae": (absolute.mean(), absolute - absolute.mean())}  # fmt: skip
    one = y == 1
    hit, share = ((p > 0.5) == one).astype(float), one.mean()
    right = hit[one].mean(), hit[~one].mean()
    balanced = 0.5 * np.where(one, (hit - right[0]) / share, (hit - right[1]) / (1 - share))
    brier, log = (p - y) ** 2, -np.log(np.clip(np.where(one, p, 1 - p), 1e-15, 1))
    low, high = np.sort(p[~one]), np.sort(p[one])
    above = (np.searchsorted(low, p[one]) + np.searchsorted(low, p[one], "right")) / 2 / len(low)
    under = (np.searchsorted(high, p[~one]) + np.searchsorted(high, p[~one], "right")) / 2
    area, ranked = above.mean(), np.empty(len(y))
    ranked[one], ranked[~one] = (above - area) / share, (1 - under / len(high) - area) / (1 - share)
    return {
        "accuracy": (hit.mean(), hit - hit.mean()), "balanced_accuracy": (sum(right) / 2, balanced),
        "brier": (brier.mean(), brier - brier.mean()), "log_loss": (log.mean(), log - log.mean()),
        "roc_auc": (area, ranked), "f1_macro": f1_of(p > 0.5, one),
    }  # fmt: skip


def f1_of(called: Any, one: Any) -> tuple[float, F64]:
    """The mean of both classes' F1, 2·hits/(called + own), with the influence of each row."""
    value, moved = 0.0, np.zeros(len(one))
    for said, own in ((called, one), (~called, ~one)):
        both = said.mean() + own.mean()
        f1 = 2 * (said & own).mean() / both
        value += f1 / 2
        moved += (2.0 * (said & own) - f1 * (1.0 * said + own)) / both / 2
    return float(value), moved


def truths(task: str, family: str, p: F64, X: F64) -> dict[str, float]:
    """The same metrics on the distribution, with the target integrated out."""
    mean = signal(X, family)
    if task == "regression":
        off = p - mean
        loss = float((off**2).mean()) + 1
        absolute = off * (2 * norm.cdf(off) - 1) + 2 * norm.pdf(off)
        return {"rmse": loss**0.5, "mae": float(absolute.mean()), "r2": 1 - loss / (mean.var() + 1)}
    q, called = expit(mean), p > 0.5
    c = np.clip(p, 1e-15, 1 - 1e-15)
    place = np.unique(p, return_inverse=True)[1]
    up, down = np.bincount(place, q), np.bincount(place, 1 - q)
    return {
        "accuracy": float(np.where(called, q, 1 - q).mean()),
        "balanced_accuracy": float((q @ called / q.sum() + (1 - q) @ ~called / (1 - q).sum()) / 2),
        "brier": float((q * (1 - p) ** 2 + (1 - q) * p**2).mean()),
        "log_loss": float(-(q * np.log(c) + (1 - q) * np.log(1 - c)).mean()),
        "roc_auc": float(up @ (np.cumsum(down) - down / 2) / (up.sum() * down.sum())),
        "f1_macro": float(q @ called / (called.sum() + q.sum())
                          + (1 - q) @ ~called / ((~called).sum() + (1 - q).sum())),
    }  # fmt: skip


def answers(model: Any, X: F64) -> F64:
    return np.asarray(
        model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)
    )


def made(task: str, at: tuple[int, int]) -> Any:
    kind, settings = MODELS[task][at[0]]
    model = kind(**([{}, *settings][at[1]]))
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def choose(losses: dict[tuple[int, int], F64], rows: Any) -> tuple[int, int]:
    """The best model as it comes, or its best setting if that gains more than a standard error."""
    usual = min((at for at in losses if not at[1]), key=lambda at: float(losses[at][rows].mean()))
    own = [at for at in losses if at[0] == usual[0] and at[1]]
    rival = min(own, key=lambda at: float(losses[at][rows].mean()))
    gain = losses[usual][rows] - losses[rival][rows]
    return rival if gain.mean() > gain.std(ddof=1) / len(gain) ** 0.5 else usual


def drawn(job: tuple[int, int, str, str]) -> tuple[F64, F64, F64, list[Any]]:
    """Rows with their target, many more rows without, and folds."""
    seed, n, family, task = job
    rng = np.random.default_rng([seed, n, FAMILIES.index(family), len(task)])
    X, M = rng.standard_normal((n, D)), rng.standard_normal((MANY, D))
    mean, classes = signal(X, family), task == "classification"
    y = (rng.random(n) < expit(mean)).astype(float) if classes else mean + rng.standard_normal(n)
    cut = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=seed)
    return X, y, M, list(cut.split(X, y))


def table(job: tuple[int, int, str, str]) -> list[tuple[Any, ...]]:
    """Truth, score and standard error by rows of every metric on one simulated table."""
    warnings.simplefilter("ignore")
    _, n, family, task = job
    X, y, M, folds = drawn(job)
    configurations = [(i, j) for i, (_, s) in enumerate(MODELS[task]) for j in range(1 + len(s))]
    said = {at: np.empty(n) for at in configurations}
    for at in configurations:
        for train, test in folds:
            said[at][test] = answers(made(task, at).fit(X[train], y[train]), X[test])
    losses = {at: (p - y) ** 2 for at, p in said.items()}
    rule = np.empty(n)
    for train, test in folds:
        rule[test] = said[choose(losses, train)][test]
    chosen = choose(losses, np.arange(n))
    true = truths(task, family, answers(made(task, chosen).fit(X, y), M), M)
    alone = scores(task, said[chosen], y)
    return [
        ((task, family, n, name), value - true[name], float(moved.std(ddof=1)) / n**0.5,
         value - alone[name][0])
        for name, (value, moved) in scores(task, rule, y).items()
    ]  # fmt: skip


def fixed(job: tuple[int, int, str, str]) -> list[tuple[Any, ...]]:
    """The same for every model as it comes, with its name for the kind of target: nothing is chosen."""
    warnings.simplefilter("ignore")
    _, n, family, task = job
    X, y, M, folds = drawn(job)
    out = []
    for i, (kind, _) in enumerate(MODELS[task]):
        said = np.empty(n)
        for train, test in folds:
            said[test] = answers(made(task, (i, 0)).fit(X[train], y[train]), X[test])
        true = truths(task, family, answers(made(task, (i, 0)).fit(X, y), M), M)
        out += [
            ((task, kind.__name__, n, name), value - true[name],
             float(moved.std(ddof=1)) / n**0.5, 0.0)
            for name, (value, moved) in scores(task, said, y).items()
        ]  # fmt: skip
    return out


def summary(lines: list[tuple[Any, ...]]) -> list[list[Any]]:
    found = defaultdict(list)
    for key, *numbers in lines:
        for family in (key[1], "all"):
            found[key[0], family, key[2], key[3]].append(numbers)
    out = []
    for (task, family, n, name), values in sorted(found.items()):
        off, error, apart = (np.array(v) for v in zip(*values, strict=True))
        error = np.maximum(error, 1e-12)
        ends = [
            widened(Interval(0.0, -1.96 * s, 1.96 * s), n, a)
            for s, a in zip(error, apart, strict=True)
        ]
        held = np.array([low <= -v <= high for v, (low, high) in zip(off, ends, strict=True)])
        further = np.maximum(np.where(off > 0, apart, -apart), 0)  # of the limit on that side
        needed = (np.maximum(abs(off) - further, 0) / 1.96 / error) ** 2
        share = float(held.mean())
        out.append([
            task, family, n, name, len(off), f"{(abs(off) <= 1.96 * error).mean():.4f}",
            f"{share:.4f}", f"{(share * (1 - share) / len(off)) ** 0.5:.4f}",
            f"{(off / error).mean():.3f}", f"{np.quantile(needed, 0.95):.3f}",
        ])  # fmt: skip
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--fixed", action="store_true", help="nothing is chosen")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--out", default="bench/tables/fold_intervals.csv")
    args = parser.parse_args()
    jobs = [
        (seed, int(n), family, task)
        for seed in range(args.seed, args.seed + args.tables)
        for n in args.sizes.split(",")
        for family in FAMILIES
        for task in MODELS
    ]
    lines: list[tuple[Any, ...]] = []
    start = time.monotonic()
    with get_context("fork").Pool(args.workers) as pool:
        for found in pool.imap_unordered(fixed if args.fixed else table, jobs, chunksize=4):
            lines += found
            if time.monotonic() - start > args.seconds:
                pool.terminate()
                break
    with open(args.out, "w", newline="") as file:
        csv.writer(file).writerows([HEAD, *summary(lines)])
    for row in summary(lines):
        if row[1] == "all":
            print(*row)


if __name__ == "__main__":
    main()
