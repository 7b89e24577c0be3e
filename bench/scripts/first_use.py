"""How long the first fit of every model takes with nothing compiled before, and what compiles.

``python bench/scripts/first_use.py [--only NAME ...] [--rows 1000] [--columns 10] [--label WORD]
[--out bench/results/first-use.csv]`` fits every registered model in a fresh process with an empty
compile cache and one thread. It reports the CPU seconds of the fit and of the first prediction, and
how many of them were spent in numba's compiler; ``label`` names the state that was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from groundstate.bench.machine import commit, machine, package_version, today, versions
from groundstate.bench.table import BenchRow, BenchTable


def table(name: str, rows: int, columns: int) -> tuple[Any, Any]:
    """Rows and targets that a model takes: counts where it wants them, labels for a classifier."""
    import numpy as np

    from groundstate.registry import models

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    z = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows)
    if name in ("MultinomialNB", "CategoricalNB", "ComplementNB"):
        X = np.clip(np.round(X), -2, 2) + 2
    if name == "BernoulliRBM":
        X = (X > 0).astype(float)
    role = models[name].role
    if role == "classifier":
        return X, (z > 0).astype(int)
    return X, np.exp(z) if name.startswith(("Gamma", "Poisson", "Tweedie")) else z


def measure(name: str, rows: int, columns: int) -> dict[str, Any]:
    """One model, in this process."""
    from numba.core import event

    import groundstate

    class Compiler(event.Listener):  # type: ignore[misc]
        """CPU seconds inside the compiler, and how many functions it was asked for."""

        def __init__(self) -> None:
            self.depth, self.start, self.seconds, self.functions = 0, 0.0, 0.0, 0

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.start = time.process_time()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            self.functions += 1
            if self.depth == 0:
                self.seconds += time.process_time() - self.start

    compiler = Compiler()
    event.register("numba:compile", compiler)
    row: dict[str, Any] = {"model": name, "rows": rows, "columns": columns}
    X, y = table(name, rows, columns)
    estimator = getattr(groundstate, name)()
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
            row["fit_cpu_s"] = round(time.process_time() - start, 2)
            row["compile_s"] = compiler.seconds
            if hasattr(estimator, "predict"):
                estimator.predict(X)
    except Exception as error:  # a model that wants other rows: its line says so
        row["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:80]
    fitted = row.setdefault("compile_s", compiler.seconds)
    row["predict_compile_s"] = round(compiler.seconds - fitted, 2)
    row["compile_s"], row["compiled"] = round(fitted, 2), compiler.functions
    return row


def alone(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """`measure` in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        own = {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--one", name]
        command += ["--rows", str(options.rows), "--columns", str(options.columns)]
        try:
            done = subprocess.run(
                command, env={**os.environ, **own}, capture_output=True, text=True, timeout=1800
            )
        except subprocess.TimeoutExpired:
            return {"model": name, "error": "longer than half an hour"}
    if done.returncode:
        return {"model": name, "error": (done.stderr.strip().splitlines() or ["?"])[-1][:80]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--label", default="groundstate")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.rows, options.columns)))
        return
    from groundstate.registry import models

    for name in options.only or [row.name for row in models]:
        row = alone(name, options)
        print(f"{name:36} fit {row.get('fit_cpu_s', '-'):>6} s, compiling {row.get('compile_s', '-')}"
              f" + {row.get('predict_compile_s', '-')} s {row.get('error', '')}", flush=True)  # fmt: skip
        if options.out and "error" not in row:
            result(row, options.label).to_csv(options.out)


def result(row: dict[str, Any], label: str) -> BenchTable:
    """One line of the results: CPU seconds of fit and prediction, and of compiling as the score."""
    compiled = row["compile_s"] + row["predict_compile_s"]
    seconds = max(row["fit_cpu_s"] + row["predict_compile_s"], 0.01)
    line = BenchRow(
        size=row["model"], contestant=label, ours=label == "groundstate", median_s=seconds,
        min_s=seconds, max_s=seconds, repeats=1, calls=1, peak_mib=0.0, device_mib=0.0,
        score=compiled, version=package_version("groundstate"),
    )  # fmt: skip
    return BenchTable(
        name="first-use", title=f"first fit, {row['rows']} x {row['columns']}, CPU time, nothing compiled",
        score_name="seconds compiling", better="low", target=1.0, rows=(line,), absent=(),
        machine=machine(), threads=1, versions=versions(), date=today(),
        commit=commit(Path(__file__).parents[2]),
    )  # fmt: skip


if __name__ == "__main__":
    main()
