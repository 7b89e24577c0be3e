"""Does `groundstate fit` end inside its time, and when does it answer? As a user calls it, one process each.

    python bench/scripts/study_times.py --out bench/tables/study_times.csv [--cases budget-20s,wide]

One line for each case: the budget, seconds by the clock of the wall and of the processor until the end,
seconds at which the first answer and the chosen model (before it is tuned, or the end) were printed, the
most memory, what was left out for time, and the load of the machine before the run. Python keeps what it
compiled of modules, as it does unasked. ``cold`` cases are run from a copy of the package of which nothing
is compiled, as after an installation. On a busy machine the wall says little: with ``--processor`` the
command counts processor time instead, in one process, and so do its budget and the seconds of its answers.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl

import groundstate

HEAD = ["case", "rows", "columns", "budget", "wall_s", "cpu_s", "first_answer_s", "chosen_s", "gib",
        "exit_code", "left_out", "clock", "load", "version"]  # fmt: skip
WALL = "from groundstate.cli import main; main()"
PROCESSOR = """
import time
time.monotonic = time.perf_counter = time.process_time  # before anything keeps the others
import groundstate.cli
groundstate.cli._process_began = lambda: 0.0
from groundstate.study.race.clock import Clock
Clock.alarm = ("ITIMER_PROF", "SIGPROF")
groundstate.cli.main()
"""
Frame = dict[str, np.ndarray]


def rows_of(n: int, d: int) -> Callable[[np.random.Generator], Frame]:
    """Numbers, a column of towns, and a target of two classes with an interaction."""

    def made(rng: np.random.Generator) -> Frame:
        columns: Frame = {f"x{j}": rng.normal(size=n).round(4) for j in range(d - 1)}
        columns["town"] = rng.choice([f"town {k}" for k in range(40)], n)
        columns["y"] = columns["x0"] + columns["x1"] * columns["x2"] + rng.normal(size=n) > 0
        return columns

    return made


def classes_of(n: int, d: int, k: int) -> Callable[[np.random.Generator], Frame]:
    """Groups around centres of their own, one class each."""

    def made(rng: np.random.Generator) -> Frame:
        label = rng.integers(0, k, n)
        X = rng.normal(size=(k, d))[label] * 2 + rng.normal(size=(n, d))
        columns: Frame = {f"x{j}": X[:, j].round(4) for j in range(d)}
        return {**columns, "y": np.array([f"class {c}" for c in label])}

    return made


@dataclass(frozen=True)
class Case:
    """A table with options of the command."""

    rows: int
    columns: int
    make: Callable[[np.random.Generator], Frame] | None
    options: tuple[str, ...] = ()
    budget: float = 60.0
    cold: bool = False


CASES = {
    "iris": Case(150, 5, None),
    "iris-cold": Case(150, 5, None, cold=True),
    "usual": Case(5_000, 50, rows_of(5_000, 50), budget=61.2),
    "budget-20s": Case(5_000, 50, rows_of(5_000, 50), ("--budget", "20s"), 20.0),
    "budget-20s-large": Case(500_000, 30, rows_of(500_000, 30), ("--budget", "20s"), 20.0),
    "classes": Case(20_000, 20, classes_of(20_000, 20, 151), budget=305.0),
    "wide": Case(2_000, 5_000, rows_of(2_000, 5_000), budget=379.5),
    "large": Case(500_000, 30, rows_of(500_000, 30), budget=475.0),
}  # fmt: skip


def run(name: str, processor: bool) -> dict[str, object]:
    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        table, target = "iris", "target"
        if case.make is not None:
            table, target = str(Path(folder) / "table.csv"), "y"
            pl.DataFrame(case.make(np.random.default_rng(0))).write_csv(table)
        out = Path(folder) / "out"
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        if case.cold:
            package = Path(groundstate.__file__).parent
            plain = shutil.ignore_patterns("__pycache__")
            shutil.copytree(package, Path(folder) / "fresh" / package.name, ignore=plain)
            env["PYTHONPATH"] = str(Path(folder) / "fresh")
        code = PROCESSOR if processor else WALL
        command = [sys.executable, "-c", code, "fit", table, "-t", target, "-o", str(out), "--no-progress",
                   "--ledger", "none", *case.options,
                   *(["--workers", "1"] if processor else [])]  # fmt: skip
        load, start = os.getloadavg()[0], time.perf_counter()
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=env, cwd=folder
        )
        wall = time.perf_counter() - start
        found = json.loads((out / "report.json").read_text()) if out.exists() else {}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    end = used.ru_utime + used.ru_stime if processor else wall
    if done.returncode not in (0, 3):
        print(done.stderr[-2000:], file=sys.stderr)
    printed = re.findall(r"^([a-z ]+), after (\d+) s:", done.stdout, re.M)
    after = dict(reversed(printed))  # a model may be chosen twice: before and after slow candidates
    return {
        "case": name, "rows": case.rows, "columns": case.columns,
        "budget": found.get("design", {}).get("budget") or case.budget, "wall_s": f"{wall:.1f}",
        "cpu_s": f"{used.ru_utime + used.ru_stime:.1f}", "first_answer_s": after.get("first answer", ""),
        "chosen_s": after.get("chosen model", after.get("tuned", f"{end:.0f}")),
        "gib": f"{used.ru_maxrss / 2**20:.2f}",
        "exit_code": done.returncode, "left_out": " | ".join(found.get("skipped", [])),
        "clock": "processor" if processor else "wall", "load": f"{load:.1f}", "version": version("groundstate"),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--out", type=Path, default=Path("bench/tables/study_times.csv"))
    parser.add_argument(
        "--one", help="one case in this process, as JSON; used by the script itself"
    )
    parser.add_argument("--processor", action="store_true", help="count processor time")
    args = parser.parse_args()
    if args.one:  # a process each, whose children's time and memory are of one case
        print(json.dumps(run(args.one, args.processor)))
        return
    known = list(csv.DictReader(args.out.open())) if args.out.exists() else []
    for name in args.cases.split(","):
        told = subprocess.run(
            [sys.executable, __file__, "--one", name, *(["--processor"] if args.processor else [])],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = json.loads(told.stdout)
        known = [*(row for row in known if row["case"] != name), line]
        with args.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, HEAD)
            writer.writeheader()
            writer.writerows(known)
        print({k: v for k, v in line.items() if k != "version"}, flush=True)


if __name__ == "__main__":
    main()
