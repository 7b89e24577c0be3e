"""Side-by-side benchmarks against peers: time, peak memory and score in one process.

A benchmark is a `Benchmark` at the top level of a file in ``bench/`` of a source checkout. `run`
measures one and returns a `BenchTable`, which prints with `to_rich` and is kept with `to_csv`.
"""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.bench.benchmark import Benchmark as Benchmark
    from groundstate.bench.benchmark import NoBenchmark as NoBenchmark
    from groundstate.bench.benchmark import Peer as Peer
    from groundstate.bench.benchmark import discover as discover
    from groundstate.bench.benchmark import folder as folder
    from groundstate.bench.harness import run as run
    from groundstate.bench.table import BenchRow as BenchRow
    from groundstate.bench.table import BenchTable as BenchTable
    from groundstate.bench.table import read_csv as read_csv

lazy(__name__)
