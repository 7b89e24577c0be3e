"""The benchmark harness on a tiny benchmark; no benchmark is itself a test."""

from __future__ import annotations

import dataclasses
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from groundstate import bench
from groundstate.bench import Benchmark, NoBenchmark, Peer
from groundstate.bench.measure import _sampled, calls_per_timing, peak_mib

TINY = Benchmark(
    name="tiny",
    title="Sum of squares",
    sizes={"1": 10, "2": 100, "3": 1000},
    data=lambda size, seed: {"x": np.random.default_rng(seed).normal(size=size)},
    ours=lambda data: data["x"] @ data["x"],
    peers={
        "python": lambda data: sum(v * v for v in data["x"]),
        "ghost": Peer(lambda data: 0.0, "gs-no-such-package", "gs_no_such_package"),
    },
    score=lambda data, result: float(result),
    score_name="sum",
)


@pytest.fixture(scope="module")
def table() -> bench.BenchTable:
    return bench.run(TINY, repeats=2)


def test_every_contestant_is_measured_at_every_size(table: bench.BenchTable) -> None:
    assert [(row.size, row.contestant) for row in table.rows] == [
        (size, who) for size in "123" for who in ("groundstate", "python")
    ]
    assert table.absent == ("ghost",)
    for row in table.rows:
        assert 0 < row.min_s <= row.median_s <= row.max_s
        assert row.cpu_s is not None and row.cpu_s >= 0
        assert row.peak_mib >= 0 and row.repeats == 2
    assert "numpy" in table.versions and "cores" in table.machine and table.date[:2] == "20"


def test_contestants_get_the_same_data_and_their_answers_are_scored(
    table: bench.BenchTable,
) -> None:
    ours, peer = table.rows[-2:]
    assert ours.score == pytest.approx(peer.score, rel=1e-12)


def test_speed_is_the_best_peers_time_over_ours(table: bench.BenchTable) -> None:
    ours, peer = table.rows[-2:]
    assert table.speed(ours) == pytest.approx(peer.median_s / ours.median_s)
    assert table.speed(peer) == 1.0
    alone = dataclasses.replace(table, rows=(ours,))
    assert alone.speed(ours) is None


@pytest.mark.parametrize("better", ["low", "high"])
def test_a_quick_peer_that_ends_worse_sets_no_speed(table: bench.BenchTable, better: str) -> None:
    ours, peer = table.rows[-2:]
    sign = 1.0 if better == "low" else -1.0
    mine = dataclasses.replace(ours, score=100.0 * sign, median_s=1.0)
    near, far = (104.0, 120.0) if better == "low" else (-104.0, -120.0)
    rows = (
        mine,
        dataclasses.replace(peer, contestant="as good", score=near, median_s=3.0),
        dataclasses.replace(peer, contestant="worse", score=far, median_s=0.5),
    )
    plain = dataclasses.replace(table, rows=rows, better=better)
    assert plain.speed(mine) == 0.5
    fair = dataclasses.replace(plain, margin=0.05)
    assert fair.speed(mine) == 3.0 and fair.speed(rows[2]) == 6.0
    out = io.StringIO()
    Console(file=out, width=200).print(fair.to_rich())
    assert "5% worse set no speed" in out.getvalue()
    nobody = dataclasses.replace(fair, rows=(mine, rows[2]))
    assert nobody.speed(mine) == 0.5  # the only peer there is


def test_warm_up_is_not_timed_and_turns_are_taken() -> None:
    calls: list[str] = []

    def contestant(name: str) -> Callable[[Any], float]:
        def run(data: Any) -> float:
            calls.append(name)
            if calls.count(name) == 1:
                sum(range(3_000_000))  # the cold call
            sum(range(300_000))
            return 0.0

        return run

    result = bench.run(
        dataclasses.replace(TINY, ours=contestant("a"), peers={"b": contestant("b")}),
        sizes=["1"],
        repeats=2,
    )
    rounds = "".join(
        calls[10:]
    )  # five calls each before the rounds: cold, memory, three that count
    first = rounds[: len(rounds) // 2 + 1]
    assert first[0] == "a" and "b" in first and rounds[-1] == "a"  # a b, then b a
    assert all(row.max_s < 0.5 for row in result.rows)


def test_a_very_long_contestant_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundstate.bench.harness.VERY_LONG", 0.0)
    result = bench.run(TINY, sizes=["1"], repeats=3)
    assert [row.repeats for row in result.rows] == [1, 1]
    assert all(row.min_s == row.median_s == row.max_s for row in result.rows)


def test_csv_carries_the_machine_and_keeps_rows_of_others(
    table: bench.BenchTable, tmp_path: Path
) -> None:
    path = table.to_csv(tmp_path / "results" / "tiny.csv")
    other = dataclasses.replace(table, machine="abacus, 1 cores")
    other.to_csv(path)
    table.to_csv(path)  # replaces its own rows only
    rows = bench.read_csv(path)
    assert len(rows) == 2 * len(table.rows)
    assert {row["machine"] for row in rows} == {table.machine, "abacus, 1 cores"}
    assert {"versions", "date", "commit", "threads", "speed", "peak_mib"} <= set(rows[0])
    assert list(path.parent.iterdir()) == [path]


def test_rich_table_shows_ratio_and_what_is_absent(table: bench.BenchTable) -> None:
    text = io.StringIO()
    Console(file=text, width=200).print(dataclasses.replace(table, target=4.0).to_rich())
    assert "1.00x" in text.getvalue() and "not installed: ghost" in text.getvalue()
    assert "promised speed: 4x" in text.getvalue() and "Sum of squares" in text.getvalue()


def test_progress_is_told_each_step() -> None:
    lines: list[str] = []
    bench.run(TINY, sizes=["2"], repeats=1, progress=lines.append)
    assert lines[0] == "tiny 2: data" and lines[-1] == "tiny 2: round 1 of 1"


@pytest.mark.parametrize("measure", [peak_mib, lambda run: (*_sampled(run), 0.0)])
def test_native_memory_is_seen(measure: Callable[..., tuple[Any, float, float]]) -> None:
    def hold() -> int:
        block = np.ones(8_000_000)  # 61 MiB that tracemalloc-free code allocates
        return len(block)

    result, peak, _ = measure(hold)
    assert result == 8_000_000
    assert peak > 55


def test_memory_of_the_call_before_is_not_charged() -> None:
    peak_mib(lambda: np.ones(8_000_000).sum())
    _, peak, _ = peak_mib(lambda: np.ones(1000).sum())
    assert peak < 20


def test_short_calls_are_repeated() -> None:
    assert calls_per_timing(1.0) == 1
    assert calls_per_timing(1e-3) == 20
    assert calls_per_timing(0.0) == 1000


def test_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoBenchmark, match="has no size '4'; its sizes are 1, 2, 3"):
        bench.run(TINY, sizes=["4"])
    with pytest.raises(ValueError, match="has 1 sizes; give at least three"):
        dataclasses.replace(TINY, sizes={"1": 1})
    with pytest.raises(ValueError, match="repeats is 0"):
        bench.run(TINY, repeats=0)
    with pytest.raises(NoBenchmark, match="did you mean 'kmeans'"):
        bench.run("kmean")
    monkeypatch.setattr("groundstate.bench.benchmark.__file__", str(tmp_path / "a/b/c/d.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoBenchmark, match="clone the repository"):
        bench.folder()


def test_benchmarks_are_found_in_files(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from groundstate.bench import Benchmark\n"
        "B = Benchmark('mine', 'Mine', {'a': 1, 'b': 2, 'c': 3}, lambda s, seed: s,\n"
        "              lambda d: d, {}, lambda d, r: r, 'value')\n"
    )
    assert bench.discover(tmp_path)["mine"].source == "mine.py"
    result = bench.run("mine", sizes=["b"], repeats=1, where=tmp_path)
    assert [row.score for row in result.rows] == [2.0]


def test_listing_imports_no_heavy_library() -> None:
    import subprocess
    import sys

    code = (
        "from groundstate import bench; import sys; assert bench.discover();"
        "print(*({'torch', 'sklearn', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_calls_of_a_timing_are_counted_by_processor_time() -> None:
    """A call that other programs hold up does not count as a long one, one that waits does."""
    from groundstate.bench.measure import busy_seconds

    assert busy_seconds(lambda: time.sleep(0.05)) >= 0.005
    assert busy_seconds(lambda: sum(range(1000))) < 0.005
