"""``groundstate ledger`` and ``groundstate board``: what was looked at, and what has been made."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Any

from groundstate.cli.screen import Screen
from groundstate.errors import DataError
from groundstate.evaluate import metric as metric_named
from groundstate.evaluate.ledger import Ledger
from groundstate.report.numbers import plain, show, show_range

BLIND = "Looks made elsewhere, without this file, are not counted."


def ledger(path: str, metric: str | None, level: float, json: bool) -> None:
    """List looks at test rows with intervals that hold for all of them at once."""
    screen = Screen(json)
    if not Path(path).is_file():
        raise DataError(f"there is no ledger {path!r}; fit and assess write one beside the table")
    book = Ledger(path)
    rows: list[dict[str, Any]] = []
    for look in book.looks():
        name = metric if metric is not None else next(iter(look.scores))
        if name not in look.scores:
            continue
        after = book.adjusted(look, name, level)
        rows.append(
            {
                "time": look.time,
                "test": look.test,
                "look": look.number,
                "model": look.model,
                "purpose": look.purpose,
                "metric": name,
                "value": after.plain.estimate,
                "lo": after.plain.low,
                "hi": after.plain.high,
                "simultaneous_lo": after.simultaneous.low,
                "simultaneous_hi": after.simultaneous.high,
                "optimism": after.optimism,
            }
        )
    intact = book.verify()
    screen.data(plain({"looks": rows, "intact": intact, "note": BLIND}))
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in (
        "time",
        "test set",
        "look",
        "model",
        "metric",
        "value",
        "interval",
        "all at once",
    ):
        grid.add_column(column)
    for row in rows:
        name = row["metric"]
        grid.add_row(
            row["time"], row["test"][:8], str(row["look"]), row["model"], name,
            show(row["value"], name), show_range(row["lo"], row["hi"], name),
            show_range(row["simultaneous_lo"], row["simultaneous_hi"], name),
        )  # fmt: skip
    words = "" if intact else "\nthe file was changed by hand: some lines do not follow each other"
    screen.show(grid, f"\n{BLIND}{words}")


def board(folder: str, json: bool) -> None:
    """Rank the runs under a folder, each table by itself."""
    screen = Screen(json)
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"there is no folder {folder!r}")
    entries = sorted(filter(None, map(_entry, root.rglob("report.json"))), key=_rank)
    if not entries:
        raise DataError(f"there is no report.json under {folder!r}; fit and assess write one")
    _tie(entries)
    screen.data(plain(entries))
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("table", "target", "", "model", "metric", "score", "interval", "run"):
        grid.add_column(column)
    for e in entries:
        grid.add_row(
            e["table"], e["target"], "≈" if e["tied"] else "", e["model"], e["metric"],
            show(e["value"], e["metric"]), show_range(e["lo"], e["hi"], e["metric"]), e["run"],
        )  # fmt: skip
    screen.show(grid, "\n≈ the interval reaches that of the best run on the same rows")


def _entry(path: Path) -> dict[str, Any] | None:
    try:
        told = jsonlib.loads(path.read_text())
        metric = told["design"]["metric"]
        score = told["scores"][metric]
        return {
            "table": told["data"]["name"],
            "hash": told["data"]["hash"],
            "target": told["data"]["target"] or "",
            "model": told["chosen"],
            "metric": metric,
            "value": score["value"],
            "lo": score["lo"],
            "hi": score["hi"],
            "design": told["design"]["kind"],
            "run": str(path.parent),
        }
    except (OSError, ValueError, KeyError, TypeError):  # not one of ours
        return None


def _rank(entry: dict[str, Any]) -> tuple[Any, ...]:
    value = entry["value"] if entry["value"] is not None else float("-inf")
    better = -value if metric_named(entry["metric"]).greater_is_better else value
    return entry["table"], entry["hash"], entry["target"], entry["metric"], better, entry["run"]


def _tie(entries: list[dict[str, Any]]) -> None:
    """Mark runs whose interval reaches the best run's on the same table, target and metric."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        first = best.setdefault(_rank(entry)[:4], entry)
        spans = all(entry[k] is not None and first[k] is not None for k in ("lo", "hi"))
        entry["tied"] = bool(spans and entry["lo"] <= first["hi"] and first["lo"] <= entry["hi"])


__all__ = ["board", "ledger"]
