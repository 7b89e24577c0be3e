"""Maps of many rows by t-SNE, a process for each contestant: time, KL and trustworthiness of one fit.

Usage: python bench/scripts/tsne_large.py ROWS RESULTS.csv [--limit SECONDS] [CONTESTANT ...]

A contestant that takes more processor time than the limit is stopped, and its row says so.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from groundstate.bench.benchmark import find, folder
from groundstate.bench.machine import machine, package_version, threads, today

PACKAGES = {
    "groundstate": "groundstate",
    "openTSNE": "openTSNE",
    "scikit-learn": "scikit-learn",
}
COLUMNS = (
    *("rows", "columns", "contestant", "seconds", "cpu_s", "kl", "trustworthiness", "note"),
    *("version", "machine", "threads", "date"),
)


def one(rows: int, name: str, limit: int) -> dict[str, Any]:
    """Fit one contestant; wall and processor seconds of the fit, and how good its map is."""
    by_kl, by_trust = find("tsne-kl"), find("tsne")
    fit = by_kl.contestants()[name][1].run
    fit(by_kl.data((500, 50), 1))  # compiles, and starts threads
    data = by_kl.data((rows, 50), 0)
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if limit:
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + limit, most))
    wall, busy = time.perf_counter(), time.process_time()
    Y = fit(data)
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    scores = {"kl": by_kl.score(data, Y), "trustworthiness": by_trust.score(data, Y)}
    return {"seconds": round(wall, 1), "cpu_s": round(busy, 1), **scores, "threads": threads()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("results", type=Path)
    parser.add_argument("contestants", nargs="*", default=list(PACKAGES))
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--one", action="store_true")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.rows, given.contestants[0], given.limit)))
        return
    assert folder()
    for name in given.contestants:
        command = [sys.executable, __file__, str(given.rows), "-", name, "--one"]
        ran = subprocess.run(
            [*command, "--limit", str(given.limit)], capture_output=True, text=True
        )
        row = {"rows": given.rows, "columns": 50, "contestant": name, "machine": machine(),
               "version": package_version(PACKAGES[name]), "date": today()}  # fmt: skip
        if ran.returncode == -signal.SIGXCPU:
            row |= {"cpu_s": given.limit, "note": "stopped here, and had not ended"}
        elif ran.returncode:
            raise SystemExit(ran.stderr)
        else:
            found = json.loads(ran.stdout.splitlines()[-1])
            row |= {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in found.items()}
        print(row, flush=True)
        keep(given.results, row)


def keep(path: Path, row: dict[str, Any]) -> None:
    """Write a row in place of an older one of the same rows and contestant."""
    old: list[dict[str, Any]] = []
    if path.is_file():
        with path.open(newline="") as file:
            old = list(csv.DictReader(file))
    same = (str(row["rows"]), row["contestant"])
    old = [one for one in old if (one["rows"], one["contestant"]) != same]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*old, row])


if __name__ == "__main__":
    main()
