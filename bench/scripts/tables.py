"""Which tool predicts tables best in the same time? Measured on rows kept aside, table by table.

    python bench/scripts/tables.py --tables iris,tips --budget 20 --splits 3 --data FOLDER
    python bench/scripts/tables.py --summary

One line for each table, system, split and budget goes to ``bench/tables/public_tables.csv`` (``--out``): log
loss or root mean squared error and accuracy on the kept rows with 95 % intervals, seconds and versions;
``behind`` is how much larger the mean log loss or squared error is than that of the best other system of
another library, row by row on the same kept rows, and ``behind_error`` its standard error. Lines are written
when all systems of a table are done, and a rerun continues with the next table and tries again what failed,
so that a long run can be made in pieces. Seconds are processor time. Systems that search get the budget;
forests, linear models and single models take the time they take. ``--summary`` ranks the systems over all
tables that all of them finished, with Friedman's test, and names the tables on which a system is measurably
worse than the best other one: by the rows of one split, or by the splits where there are at least three.

With ``--losses FOLDER`` what was measured stays there row by row, and what is there is not measured again:
after a change here, remove ``*_groundstate_*`` and write a new file of lines; the other systems, which did
not change, keep theirs from the same machine and are compared row by row as if they had run beside it.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import time
import warnings
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from public_tables import TABLES
from scipy.stats import t as student
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from table_systems import CLASSES, SYSTEMS

FIELDS = (
    "table", "system", "split", "budget", "task", "rows", "columns", "metric", "loss", "low", "high",
    "accuracy", "seconds", "version", "note", "behind", "behind_error",
)  # fmt: skip
PACKAGES = {
    "lightgbm": "lightgbm",
    "xgboost": "xgboost-cpu",
    "catboost": "catboost",
    "flaml": "FLAML",
}
HELD_OUT = 0.3


def label(value: Any) -> str:
    """A class as text, the same for 1, 1.0 and "1"."""
    try:
        return f"{float(value):g}"
    except ValueError:
        return str(value)


def judged(task: str, model: Any, X: Any, y: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """Loss with its interval on rows that no fit has seen, and the loss of each row."""
    if task == CLASSES:
        classes = [label(c) for c in model.classes_]
        p = np.clip(np.asarray(model.predict_proba(X), float), 1e-15, 1)
        p /= p.sum(1, keepdims=True)
        places = [classes.index(v) if v in classes else -1 for v in map(label, y)]
        each = np.array([-math.log(p[i, k]) if k >= 0 else -math.log(1e-15)
                         for i, k in enumerate(places)])  # fmt: skip
        loss, reach = each.mean(), 1.96 * each.std(ddof=1) / math.sqrt(len(each))
        told = [classes[k] for k in p.argmax(1)]
        right = accuracy_score([label(v) for v in y], told)
        return {"metric": "log_loss", "loss": loss, "low": loss - reach, "high": loss + reach,
                "accuracy": right}, each  # fmt: skip
    squares = (np.asarray(model.predict(X), float).ravel() - y.astype(float)) ** 2
    mean, reach = squares.mean(), 1.96 * squares.std(ddof=1) / math.sqrt(len(squares))
    ends = (math.sqrt(max(0.0, mean - reach)), math.sqrt(mean + reach))
    return {
        "metric": "rmse",
        "loss": math.sqrt(mean),
        "low": ends[0],
        "high": ends[1],
        "accuracy": "",
    }, squares


def versions(system: str) -> str:
    package = PACKAGES.get(system, "groundstate" if "groundstate" in system else "scikit-learn")
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def run(
    table: str, system: str, split: int, budget: float, folder: Path | None
) -> tuple[dict[str, Any], np.ndarray | None]:
    """The line of one system, and its losses row by row unless it failed."""
    task, X, y = TABLES[table](folder)
    fair = y if task == CLASSES and np.unique(y, return_counts=True)[1].min() > 1 else None
    A, B, a, b = train_test_split(X, y, test_size=HELD_OUT, random_state=split, stratify=fair)
    A, B = A.reset_index(drop=True), B.reset_index(drop=True)
    line: dict[str, Any] = {
        "table": table, "system": system, "split": split, "budget": budget, "task": task,
        "rows": len(X), "columns": X.shape[1], "version": versions(system), "note": "",
    }  # fmt: skip
    start, each = time.process_time(), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SYSTEMS[system](task, A, a, budget, split)
            line["seconds"] = time.process_time() - start
            numbers, each = judged(task, model, B, b)
            line |= numbers
    except Exception as error:  # a system that fails is a result
        line["seconds"] = time.process_time() - start
        line["note"] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
    return line, each


def measured(
    table: str, system: str, split: int, budget: float, data: Path | None, kept: Path | None
) -> tuple[dict[str, Any], np.ndarray | None]:
    """What :func:`run` finds, or found before where losses are kept; failures are tried again."""
    path = None if kept is None else kept / f"{table}_{system}_{split}_{budget:g}.npz"
    if path is not None and path.exists():
        with np.load(path) as found:
            return json.loads(str(found["line"])), found["each"]
    line, each = run(table, system, split, budget, data)
    if path is not None and each is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in line.items()}
        np.savez_compressed(path, line=json.dumps(plain), each=each)
    return line, each


def behind(lines: list[dict[str, Any]], each: dict[str, np.ndarray]) -> None:
    """Add to the lines of a table how far each system is behind the best other one, row by row."""
    for line in lines:
        own = line["system"]
        others = [s for s in each if s not in (own, "constant") and not s.startswith("groundstate")]
        if own not in each or not others:
            continue
        d = each[own] - each[min(others, key=lambda s: float(each[s].mean()))]
        line["behind"], line["behind_error"] = d.mean(), d.std(ddof=1) / math.sqrt(len(d))


def known(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def summary(path: Path, budget: float | None) -> str:
    """Mean ranks with Friedman's test, and on how many tables each system is measurably worse."""
    from groundstate.evaluate.compare.friedman import friedman

    lines = [r for r in known(path) if r["loss"] and r["system"] != "constant"]
    lines = [r for r in lines if budget is None or float(r["budget"]) == budget]
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    gaps: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for r in lines:
        found[r["table"]][r["system"]][int(r["split"])] = float(r["loss"])
        if r["behind"]:
            gaps[r["table"], r["system"]].append((float(r["behind"]), float(r["behind_error"])))
    names = [s for s in SYSTEMS if any(s in own for own in found.values())]
    whole = [t for t, own in found.items() if all(s in own for s in names)]
    out = [f"{len(whole)} tables finished by all of {', '.join(names)}"]
    if len(whole) >= 2 and len(names) >= 3:
        means = np.array([[np.mean(list(found[t][s].values())) for s in names] for t in whole])
        ranked = friedman(means, greater_is_better=False, names=names)
        out.append(str(ranked))
        for s in names:
            seen = [t for t in whole if gaps[t, s]]
            worse = [t for t in seen if _worse(gaps[t, s])]
            out.append(
                f"{s}: measurably worse than the best other on {len(worse)} of {len(seen)} {worse}"
            )
    return "\n".join(out)


def _worse(gaps: list[tuple[float, float]]) -> bool:
    """Whether the loss is above that of the best other one by more than chance explains.

    From three splits on by their spread, with Nadeau and Bengio's standard error, for splits share rows;
    before by the rows of the first split.
    """
    if len(gaps) < 3:
        mean, error = gaps[0]
        return mean > 1.96 * error
    d, share = np.array([mean for mean, _ in gaps]), HELD_OUT / (1 - HELD_OUT)
    error = math.sqrt((1 / len(d) + share) * float(d.var(ddof=1)))
    return bool(d.mean() > student.ppf(0.975, len(d) - 1) * error)


def beaten(kept: Path, budget: float) -> str:
    """For each other system alone: the tables on whose first split it is measurably better than ours.

    By the losses of the rows that are kept; tables where either has none are not counted.
    """
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for path in sorted(kept.glob(f"*_0_{budget:g}.npz")):
        with np.load(path) as one:
            line, each = json.loads(str(one["line"])), one["each"]
        ours = kept / f"{line['table']}_groundstate_0_{budget:g}.npz"
        if line["system"].startswith("groundstate") or not ours.exists():
            continue
        with np.load(ours) as own:
            d = own["each"] - each
        seen, worse = found[line["system"]]
        seen.append(line["table"])
        if d.mean() > 1.96 * d.std(ddof=1) / math.sqrt(len(d)):
            worse.append(line["table"])
    return "\n".join(
        f"{name} alone is measurably better than groundstate on {len(worse)} of {len(seen)} {worse}"
        for name, (seen, worse) in found.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--budget", type=float, default=None, help="seconds; 20 unless told")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--data", type=Path, default=os.environ.get("GROUNDSTATE_TABLES"))
    parser.add_argument("--out", type=Path, default=Path("bench/tables/public_tables.csv"))
    parser.add_argument("--losses", type=Path, help="folder that keeps the losses of every row")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--list", action="store_true", help="names and sizes of the tables")
    args = parser.parse_args()
    folder = Path(args.data) if args.data else None
    if args.list:
        for name in args.tables.split(","):
            task, X, _ = TABLES[name](folder)
            print(f"{name:16s} {task:15s} {X.shape[0]:5d} x {X.shape[1]}")
        return
    if not args.summary:
        budget = 20.0 if args.budget is None else args.budget
        done = {(r["table"], r["system"], int(r["split"]), float(r["budget"]))
                for r in known(args.out) if not r["note"]}  # fmt: skip
        args.out.parent.mkdir(parents=True, exist_ok=True)
        fresh = not args.out.exists()
        with args.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, restval="")
            if fresh:
                writer.writeheader()
            for split in range(args.splits):
                for table in args.tables.split(","):
                    systems = args.systems.split(",")
                    if all((table, system, split, budget) in done for system in systems):
                        continue
                    lines, each = [], {}
                    for system in systems:
                        line, losses = measured(table, system, split, budget, folder, args.losses)
                        lines.append(line)
                        if losses is not None:
                            each[system] = losses
                        print(table, system, split, line.get("loss", line["note"]),
                              f"{float(line['seconds']):.1f}s", flush=True)  # fmt: skip
                    behind(lines, each)
                    for line in lines:
                        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v
                                         for k, v in line.items()})  # fmt: skip
                    file.flush()
    print(summary(args.out, args.budget))
    if args.losses:
        print(beaten(args.losses, 20.0 if args.budget is None else args.budget))


if __name__ == "__main__":
    main()
