"""What every benchmark promises; a new file in bench/ is tested by being there."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from groundstate.bench import Benchmark, discover, read_csv
from groundstate.bench.benchmark import folder
from groundstate.bench.table import COLUMNS

BENCHMARKS = discover()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_says_what_it_measures(name: str) -> None:
    bench: Benchmark = BENCHMARKS[name]
    assert bench.name == name and bench.title and bench.score_name
    assert len(bench.sizes) >= 3 and bench.peers
    assert bench.better in ("low", "high")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_same_seed_same_data_and_a_finite_score(name: str) -> None:
    bench = BENCHMARKS[name]
    smallest = next(iter(bench.sizes.values()))
    data = bench.data(smallest, 0)
    ours = next(peer for is_ours, peer in bench.contestants().values() if is_ours)
    score = bench.score(data, ours.run(data))
    assert math.isfinite(score)
    assert score == pytest.approx(bench.score(bench.data(smallest, 0), ours.run(data)), rel=1e-6)


@pytest.mark.parametrize("path", sorted((folder() / "results").glob("*.csv")), ids=lambda p: p.name)
def test_committed_results_have_the_columns_of_the_harness(path: Path) -> None:
    for row in read_csv(path):
        assert tuple(row) == COLUMNS
        assert float(row["median_s"]) > 0 and row["machine"] and row["versions"] and row["date"]
