"""PCA of Parquet files larger than the memory it takes: rows in pieces, one pass.

Usage: python bench/scripts/out_of_core.py [rows] [columns] [folder]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from groundstate import PCA, FactorAnalysis, ProbabilisticPCA

PART = 500_000


def write(folder: Path, rows: int, columns: int) -> list[Path]:
    """Files of half a million rows each."""
    W = np.random.default_rng(0).normal(size=(3, columns))
    paths = []
    for at in range(0, rows, PART):
        rng = np.random.default_rng(at + 1)
        n = min(PART, rows - at)
        X = rng.normal(size=(n, 3)) @ W + rng.normal(size=(n, columns))
        path = folder / f"{at:09d}.parquet"
        pl.DataFrame(X, schema=[f"c{j}" for j in range(columns)]).write_parquet(path)
        paths.append(path)
    return paths


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    columns = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as name:
        paths = write(Path(name), rows, columns)
        size = sum(path.stat().st_size for path in paths) / 2**30
        print(f"{rows} x {columns}, {len(paths)} files, {size:.2f} GiB", flush=True)
        for model in (PCA(5), ProbabilisticPCA(5), FactorAnalysis(3)):
            start = time.perf_counter()
            model.fit(paths)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            took = time.perf_counter() - start
            print(f"{type(model).__name__}: {took:.1f} s, peak {peak:.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
