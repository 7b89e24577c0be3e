"""Two source trees side by side: the same plain calls, in turn, on one machine.

``python bench/scripts/before_after.py BEFORE/src [AFTER/src] [--rows 100 2000] [--columns 10 20]
[--only NAME ...] [--threads 1] [--clock wall|cpu] [--out FILE]`` starts one process for each tree, asks
both for the same estimator's fit and answer in alternating rounds, and prints the ratio of the least times
(after over before; above 1 is slower now) with the spread between rounds of one tree beside it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import importlib.util, json, sys, time, warnings
from unittest.mock import MagicMock
bare = importlib.util.find_spec("polars") is None  # tables are not read here
if bare:
    sys.modules["polars"] = MagicMock()
from groundstate.registry import models
models.names()
if bare:
    del sys.modules["polars"]
warnings.simplefilter("ignore")
spec = importlib.util.spec_from_file_location("every", sys.argv[1])
every = importlib.util.module_from_spec(spec)
spec.loader.exec_module(every)
import groundstate
ready = {}
clock = {"wall": time.perf_counter, "cpu": time.process_time}[sys.argv[2]]
for line in sys.stdin:
    order = json.loads(line)
    name, rows, columns = order["name"], order["rows"], order["columns"]
    try:
        X, new, y, truth = every.table(name, rows, columns)
        make = lambda: getattr(groundstate, name)(**every.SETTINGS.get(name, {}))
        model = ready.get((name, rows)) or make().fit(X, y)
        ready[name, rows] = model
        out = {}
        for task, run in (("fit", lambda: make().fit(X, y)), ("answer", lambda: every.answer(model, new))):
            start = clock(); run(); once = clock() - start
            number = max(1, min(1000, int(order["seconds"] / max(once, 1e-7))))
            start = clock()
            for _ in range(number):
                run()
            out[task] = (clock() - start) / number
        print(json.dumps(out), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}), flush=True)
"""


def worker(src: Path, threads: int, clock: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(src), "OMP_NUM_THREADS": str(threads),
                   "NUMBA_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}  # fmt: skip
    every = ROOT / "bench" / "scripts" / "every.py"
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(every), clock], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def ask(process: subprocess.Popen[str], **order: Any) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    return dict(json.loads(process.stdout.readline()))


def names() -> list[str]:
    from sklearn.utils.discovery import all_estimators

    if find_spec("polars") is None:  # tables are not read here
        sys.modules["polars"] = MagicMock()
    from groundstate.registry import models

    theirs = dict(all_estimators())
    return [row.name for row in models if row.name in theirs]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=ROOT / "src")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 2000])
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sys.path.insert(0, str(options.after))
    trees = {
        "before": worker(options.before, options.threads, options.clock),
        "after": worker(options.after, options.threads, options.clock),
    }
    lines = []
    for rows, columns in zip(options.rows, options.columns):
        for name in options.only or names():
            taken: dict[str, dict[str, list[float]]] = {who: {} for who in trees}
            failed = ""
            for turn in range(options.rounds + 1):  # the first round compiles and is not counted
                for who, process in trees.items():
                    got = ask(
                        process, name=name, rows=rows, columns=columns, seconds=options.seconds
                    )
                    if "error" in got:
                        failed = f"{who}: {got['error']}"
                    elif turn:
                        for task, time in got.items():
                            taken[who].setdefault(task, []).append(time)
                if failed:
                    break
            if failed:
                print(f"{name:32} {rows:6} {failed}", flush=True)
                continue
            for task in ("fit", "answer"):
                old, new = taken["before"][task], taken["after"][task]
                noise = statistics.median(old) / min(old)
                ratio = min(new) / min(old)
                mark = "  <-- slower" if ratio > 1.03 * noise and ratio > 1.05 else ""
                print(
                    f"{name:32} {task:7} {rows:6} x {columns:3} {min(old) * 1e3:10.3f} ms"
                    f" {min(new) * 1e3:10.3f} ms {ratio:6.2f} (noise {noise:.2f}){mark}",
                    flush=True,
                )
                lines.append([name, task, rows, columns, min(old), min(new), ratio, noise])
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["estimator", "task", "rows", "columns", "before_s", "after_s", "ratio", "noise"]
            )
            writer.writerows(lines)
    for process in trees.values():
        process.terminate()


if __name__ == "__main__":
    main()
