"""Side-by-side benchmarks against peers: time, peak memory and score in one process.

A benchmark is a `Benchmark` at the top level of a file in ``bench/`` of a source checkout. `run`
measures one and returns a `BenchTable`, which prints with `to_rich` and is kept with `to_csv`.
"""

from __future__ import annotations

from groundstate.bench.benchmark import Benchmark, NoBenchmark, Peer, discover, folder
from groundstate.bench.harness import run
from groundstate.bench.table import BenchRow, BenchTable, read_csv

__all__ = [
    "BenchRow",
    "BenchTable",
    "Benchmark",
    "NoBenchmark",
    "Peer",
    "discover",
    "folder",
    "read_csv",
    "run",
]
