"""Verdicts of the experiments at several seeds, on all cores.

``python bench/scripts/verdicts.py [--seeds 0-4] [--theme generative] [--ids A,B] [--workers 2] [--minutes 8]``.
Results go to ``bench/tables/verdicts.csv``, or to ``$OUT`` where it is set: one line per experiment and
seed, with the claims that failed. Runs that had not ended when the time was over have an empty verdict;
lines of experiments and seeds that were not asked for stay as they are.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import time
import warnings
from pathlib import Path
from typing import Any

FIELDS = ("experiment", "seed", "holds", "seconds", "failed")


def one(task: tuple[str, int]) -> dict[str, Any]:
    import torch

    from groundstate.experiments import get

    name, seed = task
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    try:
        claims = get(name).run(seed).claims
        failed = [f"{c.text}: {c.value} ({c.expected})" for c in claims if not c.holds]
        holds = not failed
    except Exception as error:  # one broken experiment leaves the others
        failed, holds = [f"{type(error).__name__}: {error}"], False
    return {"experiment": name, "seed": seed, "holds": holds,
            "seconds": round(time.perf_counter() - start, 1), "failed": "; ".join(failed)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--theme", default="", help="themes, separated by commas")
    parser.add_argument("--ids", default="")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=60.0)
    args = parser.parse_args()
    from groundstate.registry import experiments

    first, _, last = args.seeds.partition("-")
    themes, ids = set(filter(None, args.theme.split(","))), set(filter(None, args.ids.split(",")))
    names = [r.name for r in experiments if (not themes or r.theme in themes)
             and (not ids or r.name in ids)]  # fmt: skip
    tasks = [(n, s) for s in range(int(first), int(last or first) + 1) for n in names]
    end = time.monotonic() + 60 * args.minutes
    found: dict[tuple[str, int], dict[str, Any]] = {}
    with multiprocessing.get_context("spawn").Pool(args.workers) as pool:
        answers = pool.imap_unordered(one, tasks)
        while len(found) < len(tasks):
            try:
                row = answers.next(max(end - time.monotonic(), 0.1))
            except multiprocessing.TimeoutError:
                pool.terminate()
                break
            found[row["experiment"], row["seed"]] = row
            if not row["holds"]:
                print("FAILS", row["experiment"], row["seed"], row["failed"], flush=True)
    out = Path(os.environ.get("OUT", Path(__file__).parents[1] / "tables")) / "verdicts.csv"
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    if out.exists():
        with out.open(newline="") as file:
            lines = {(row["experiment"], int(row["seed"])): row for row in csv.DictReader(file)}
    for name, seed in tasks:
        lines[name, seed] = found.get((name, seed), {"experiment": name, "seed": seed})
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(lines[key] for key in sorted(lines))
    held = sum(bool(r["holds"]) for r in found.values())
    print(f"{held} of {len(found)} runs hold; {len(tasks) - len(found)} did not end in time")


if __name__ == "__main__":
    main()
