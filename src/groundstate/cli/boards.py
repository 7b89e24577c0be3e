"""``groundstate ledger`` and ``groundstate board``: what was looked at, and what has been made."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Any

from groundstate.cli.screen import Screen
from groundstate.errors import DataError
from groundstate.evaluate import metric as metric_named
from groundstate.evaluate.audit.ledger import Ledger
from groundstate.evaluate.audit.repeated_looks import BLIND
from groundstate.evaluate.board.contest import Contest, find_labels, judge_folder
from groundstate.study.numbers import plain, show, show_range


def ledger(path: str, metric: str | None, level: float, json: bool) -> None:
    """List looks at test rows with intervals that hold for all of them at once."""
    screen = Screen(json)
    if not Path(path).is_file():
        raise DataError(f"there is no ledger {path!r}; fit and assess write one beside the table")
    book = Ledger(path)
    rows: list[dict[str, Any]] = []
    looks = book.looks()
    known = sorted({name for look in looks for name in look.scores})
    if metric is not None and looks and metric not in known:
        raise DataError(f"no look has a {metric!r}; there are {', '.join(known)}")
    for look in looks:
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


def board(folder: str, json: bool, labels: str | None = None, **options: Any) -> None:
    """Rank the submissions of a folder that holds labels, or else the runs under it."""
    screen = Screen(json)
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"there is no folder {folder!r}")
    if labels is not None or find_labels(root) is not None or (root / "submissions").is_dir():
        _contest(screen, judge_folder(root, labels=labels, **options))
        return
    entries = sorted(filter(None, map(_entry, root.rglob("report.json"))), key=_rank)
    if not entries:
        raise DataError(
            f"{folder!r} holds neither labels with submissions (test.csv and submissions/name.csv) "
            "nor a report.json, as fit and assess write it"
        )
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


def _contest(screen: Screen, found: Contest) -> None:
    from rich.table import Table

    board = found.board
    answers, name = board.answers, board.metric
    screen.data(
        plain(
            {
                "metric": name,
                "mechanism": board.mechanism,
                "level": board.level,
                "looks": found.looks,
                "places": [_place(p, answers.get(p.name)) for p in found.places],
                "refused": [{"file": k, "reason": v} for k, v in found.refused.items()],
                "final": None if found.final is None else [_place(p) for p in found.final],
                "ledger": str(found.ledger),
                "page": str(found.page),
            }
        )
    )
    for title, places in (("", found.places), ("on fresh labels", found.final)):
        if places is None:
            continue
        grid = Table(box=None, pad_edge=False, header_style="bold", title=title or None)
        for column in ("rank", "name", "reported", name, "interval", "group"):
            grid.add_column(column)
        for p in places:
            low, high = p.ranks
            reported = answers[p.name] if places is found.places else None
            grid.add_row(
                f"{low}" if low == high else f"{low}-{high}", p.name, show(reported, name),
                show(p.score.estimate, name), show_range(p.score.low, p.score.high, name),
                str(p.group),
            )  # fmt: skip
        screen.show(grid)
    screen.show(
        "",
        f"{found.looks} submissions so far; ranks and intervals hold for all at once "
        f"({board.level:.0%}), one group cannot be told apart",
        *(f"left out: {reason}" for reason in found.refused.values()),
        f"page: {found.page}   ledger: {found.ledger}",
    )


def _place(place: Any, answer: float | None = None) -> dict[str, Any]:
    extra = {} if answer is None else {"answer": answer}
    return {
        "name": place.name,
        "ranks": list(place.ranks),
        "group": place.group,
        **extra,
        "value": place.score.estimate,
        "lo": place.score.low,
        "hi": place.score.high,
    }


def _entry(path: Path) -> dict[str, Any] | None:
    try:
        facts = jsonlib.loads(path.read_text())
        metric = facts["design"]["metric"]
        score = facts["scores"][metric]
        return {
            "table": facts["data"]["name"],
            "hash": facts["data"]["hash"],
            "target": facts["data"]["target"] or "",
            "model": facts["chosen"],
            "metric": metric,
            "value": score["value"],
            "lo": score["lo"],
            "hi": score["hi"],
            "design": facts["design"]["kind"],
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
