"""Fits to Parquet files larger than the memory they take: rows in pieces, a process for each model.

Usage: python bench/scripts/out_of_core.py [rows] [columns] [folder] [results.csv] [model ...]
"""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from groundstate.bench.machine import machine

PART = 500_000
GROUPS = 8
MODELS = {
    "PCA": {"n_components": 5},
    "ProbabilisticPCA": {"n_components": 5},
    "FactorAnalysis": {"n_components": 3},
    "KMeans": {"n_clusters": GROUPS, "random_state": 0},
    "GaussianMixture": {"n_components": GROUPS, "random_state": 0},
}


def write(folder: Path, rows: int, columns: int) -> list[Path]:
    """Files of half a million rows each: groups along a few directions."""
    rng = np.random.default_rng(0)
    W, centres = rng.normal(size=(3, columns)), 4 * rng.normal(size=(GROUPS, columns))
    paths = []
    for at in range(0, rows, PART):
        rng = np.random.default_rng(at + 1)
        n = min(PART, rows - at)
        X = rng.normal(size=(n, 3)) @ W + rng.normal(size=(n, columns))
        X += centres[rng.integers(GROUPS, size=n)]
        path = folder / f"{at:09d}.parquet"
        pl.DataFrame(X, schema=[f"c{j}" for j in range(columns)]).write_parquet(path)
        paths.append(path)
    return paths


def one(name: str, folder: str) -> None:
    """Fit one model; seconds, largest resident memory and iterations as JSON."""
    import groundstate

    model = getattr(groundstate, name)(**MODELS[name])
    start = time.perf_counter()
    model.fit(sorted(Path(folder).glob("*.parquet")))
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = {"seconds": round(took, 1), "peak_gib": round(peak, 3), "n_iter": model.n_iter_}
    print(json.dumps(found))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    columns = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    table = []
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as folder:
        paths = write(Path(folder), rows, columns)
        size = sum(path.stat().st_size for path in paths) / 2**30
        print(f"{rows} x {columns}, {len(paths)} files, {size:.2f} GiB", flush=True)
        for name in sys.argv[5:] or MODELS:
            ran = subprocess.run(
                [sys.executable, __file__, "--one", name, folder],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            found = json.loads(ran.stdout.splitlines()[-1])
            table.append({"model": name, "rows": rows, "columns": columns,
                          "files_gib": round(size, 3), **found, "machine": machine(),
                          "date": time.strftime("%Y-%m-%d")})  # fmt: skip
            print(table[-1], flush=True)
    if len(sys.argv) > 4:
        with Path(sys.argv[4]).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:4])
    else:
        main()
