"""The measurement itself: same data, same process, contestants taking turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median

from groundstate.bench.benchmark import Benchmark, NoBenchmark, Peer, find, folder
from groundstate.bench.machine import commit, machine, package_version, threads, today, versions
from groundstate.bench.measure import busy_seconds, calls_per_timing, peak_mib, timed
from groundstate.bench.table import BenchRow, BenchTable

Progress = Callable[[str], None]
LONG, VERY_LONG = 10.0, 30.0  # seconds


def run(
    benchmark: str | Benchmark,
    sizes: Iterable[str] | None = None,
    repeats: int = 5,
    progress: Progress | None = None,
    *,
    seed: int = 0,
    where: Path | None = None,
) -> BenchTable:
    """Measure ours and every installed peer at each size.

    Each contestant runs once to warm up (compilation, caches, thread pools) and once under the
    memory meter; a run of more than 10 seconds is both at once. Then all take turns ``repeats``
    times, the first of a round being another one each round, and the median is kept: a slow moment
    of the machine falls on everybody. A contestant that needs more than 30 seconds runs in the first
    round alone.

    Parameters
    ----------
    benchmark : name of a benchmark in ``bench/``, or a `Benchmark`
    sizes : labels of the sizes to run; all three unless given
    repeats : number of rounds
    progress : called with one line of text before each step
    seed : seed of the data
    where : folder of the benchmark files
    """
    bench = benchmark if isinstance(benchmark, Benchmark) else find(benchmark, where)
    labels = list(bench.sizes) if sizes is None else list(sizes)
    for label in labels:
        if label not in bench.sizes:
            raise NoBenchmark(
                f"benchmark {bench.name!r} has no size {label!r}; its sizes are"
                f" {', '.join(map(str, bench.sizes))}"
            )
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; give at least 1")
    everyone = bench.contestants()
    present = {name: entry for name, entry in everyone.items() if entry[1].installed}
    rows: list[BenchRow] = []
    for label in labels:
        rows += _size(bench, label, present, repeats, seed, progress or (lambda _: None))
    return BenchTable(
        name=bench.name,
        title=bench.title,
        score_name=bench.score_name,
        better=bench.better,
        target=bench.target,
        margin=bench.margin,
        rows=tuple(rows),
        absent=tuple(name for name in everyone if name not in present),
        machine=machine(),
        threads=threads(),
        versions=versions(tuple(peer.package for _, peer in present.values())),
        date=today(),
        commit=_commit(where),
    )


def _size(
    bench: Benchmark,
    label: str,
    present: dict[str, tuple[bool, Peer]],
    repeats: int,
    seed: int,
    progress: Progress,
) -> list[BenchRow]:
    progress(f"{bench.name} {label}: data")
    data = bench.data(bench.sizes[label], seed)
    scores: dict[str, float] = {}
    memory: dict[str, tuple[float, float]] = {}
    number: dict[str, int] = {}
    once: set[str] = set()
    for name, (_, peer) in present.items():
        progress(f"{bench.name} {label}: {name} warms up")
        call = partial(peer.run, data)
        start = time.perf_counter()
        result, host, device = peak_mib(call)
        first = time.perf_counter() - start
        if first < LONG:
            result, host, device = peak_mib(call)
        memory[name] = host, device
        scores[name] = float(bench.score(data, result))
        del result
        number[name] = 1 if first > LONG else calls_per_timing(busy_seconds(call))
        if first > VERY_LONG:
            once.add(name)
    times: dict[str, list[float]] = {name: [] for name in present}
    cpu: dict[str, list[float]] = {name: [] for name in present}
    order = list(present)
    for turn in range(repeats):
        progress(f"{bench.name} {label}: round {turn + 1} of {repeats}")
        shift = turn % len(order)
        for name in order[shift:] + order[:shift]:
            if turn and name in once:
                continue
            wall, busy = timed(partial(present[name][1].run, data), number[name])
            times[name].append(wall)
            cpu[name].append(busy)
    return [
        BenchRow(
            size=label,
            contestant=name,
            ours=ours,
            median_s=median(times[name]),
            min_s=min(times[name]),
            max_s=max(times[name]),
            repeats=len(times[name]),
            calls=number[name],
            peak_mib=memory[name][0],
            device_mib=memory[name][1],
            score=scores[name],
            version=package_version("groundstate" if ours else peer.package),
            cpu_s=min(cpu[name]),
        )
        for name, (ours, peer) in present.items()
    ]


def _commit(where: Path | None) -> str:
    try:
        return commit(where or folder())
    except NoBenchmark:
        return ""
