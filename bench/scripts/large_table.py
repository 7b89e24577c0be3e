"""`groundstate fit` on 500,000 rows × 30 columns: time and the most memory it held.

PYTHONPATH=src python bench/scripts/large_table.py [ROWS]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

LIMIT = 4.0  # GiB


def main(rows: int) -> int:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        columns = {f"x{j}": rng.normal(size=rows).round(4) for j in range(27)}
        columns["town"] = rng.choice([f"town {k}" for k in range(40)], rows)
        columns["when"] = np.datetime64("2015-01-01") + rng.integers(0, 3000, rows)
        columns["y"] = columns["x0"] + columns["x1"] * columns["x2"] + rng.normal(size=rows) > 0
        pl.DataFrame(columns).write_csv(path)
        start = time.perf_counter()
        code = (
            "import sys; from groundstate.cli.app import app; "
            "app(sys.argv[1:], standalone_mode=False)"
        )
        options = ["-t", "y", "-o", str(Path(folder) / "out"), "--tune", "3", "--ledger", "none"]
        done = subprocess.run([sys.executable, "-c", code, "fit", str(path), *options], check=False)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(
        f"{rows:,} rows: {seconds:.0f} s, {peak:.2f} GiB of {LIMIT:.0f}, exit code {done.returncode}"
    )
    return int(peak > LIMIT or done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500_000))
