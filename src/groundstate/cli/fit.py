"""``groundstate fit`` and ``groundstate assess``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from groundstate.cli.screen import Screen
from groundstate.store import RunDir
from groundstate.studies import RowStudy, Study, study
from groundstate.study.job import forget
from groundstate.study.numbers import show, show_range

NOT_BETTER, LEAK = 3, 4
_READ = 5  # notes of the reader on the screen; the report holds all


def fit(
    table: str,
    target: str | None,
    out: str,
    *,
    keep_model: bool,
    strict: bool,
    json: bool,
    no_progress: bool,
    ledger: str | None,
    **options: Any,
) -> None:
    """Study a table and write the folder of results."""
    screen = Screen(json, not no_progress)
    unfinished = Path(out).parent / f".{Path(out).name}.study-"
    with screen.stages() as progress, RunDir(out) as folder:
        found = study(
            table, target, ledger=ledger or "auto", resume=unfinished, progress=progress, **options
        )
        progress("writing the report")
        facts = found.write(folder, keep_model=keep_model)
    forget(unfinished)  # only now is the search not needed any more
    where = str(Path(out) / "report.html")
    screen.data({**facts, "out": str(Path(out))})
    screen.show(*summary(facts), f"\nreport: {where}")
    _leave(found, strict)


def _leave(found: Study | RowStudy, strict: bool) -> None:
    """Leave with the code of what was found: a leak, or nothing better than a dummy."""
    leaks = getattr(found.found, "leaks", ())
    if strict and leaks:
        sys.stderr.write(f"leak: {leaks[0].sentence}\n")
        raise typer.Exit(LEAK)
    if not found.better_than_dummy:
        sys.stderr.write("note: no model was shown to be better than a constant answer\n")
        raise typer.Exit(NOT_BETTER)


def summary(facts: dict[str, Any]) -> list[Any]:
    """What the terminal shows: findings, ranking, verdict."""
    from rich.table import Table as Grid

    board = facts["candidates"]
    name = board["metric"]
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column in ("", "model", name, f"{board['level']:.0%} interval", "held-out rows"):
        grid.add_column(column, justify="right" if column == name else "left")
    for entry in board["entries"]:
        best = entry["name"] == facts["chosen"]
        mark = "*" if best else "≈" if entry["tied_with_best"] else ""
        seen = ""
        if entry["test_score"] is not None:
            between = show_range(entry["test_low"], entry["test_high"], name)
            seen = f"{show(entry['test_score'], name)} ({between})"
        grid.add_row(
            mark,
            entry["name"],
            show(entry["score"], name),
            show_range(entry["low"], entry["high"], name),
            seen,
            style="bold" if best else None,
        )
    table = facts["data"]
    columns = "" if table["columns"] is None else f", {table['columns']} columns"
    head = f"{table['name']}: {table['rows']:,} rows{columns}"
    sentences = {f["sentence"] for f in table["findings"]}
    read_as = [note for note in table["notes"] if note not in sentences]
    findings = [f"- read: {note}" for note in read_as[:_READ]]
    if len(read_as) > _READ:
        findings.append(f"- read: {len(read_as) - _READ} more such notes in the report")
    findings += [f"- {f['severity']}: {f['sentence']}" for f in table["findings"]]
    notes = [
        f"- {entry['name']}: {note}" for entry in board["entries"] for note in entry["notes"][:1]
    ]
    legend = "* chosen   ≈ cannot be told apart from it"
    skipped = [f"left out: {'; '.join(facts['skipped'])}"] if facts["skipped"] else []
    return [head, *findings, "", grid, legend, *notes, *skipped, "", *facts["verdict"]]
