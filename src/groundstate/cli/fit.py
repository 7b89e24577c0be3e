"""``groundstate fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groundstate.cli.screen import Screen
from groundstate.data import read
from groundstate.data.words import listing
from groundstate.errors import DataError
from groundstate.report import Study, Survey, study, survey, write
from groundstate.report.density import METRIC
from groundstate.report.numbers import show, show_range
from groundstate.store import RunDir


def fit(
    table: str,
    target: str | None,
    model: str,
    out: str,
    test: float,
    metric: str | None,
    folds: int,
    workers: int,
    seed: int,
    device: str | None,
    json: bool,
    no_progress: bool,
) -> None:
    """Study a table and write the folder of results."""
    screen = Screen(json, not no_progress)
    source = read(table) if target in (None, "none") else read(table).with_target(target)
    options: dict[str, Any] = {"models": model, "test": test, "seed": seed, "cv": folds}
    options |= {"workers": workers, "device": device}
    with screen.stages() as progress, RunDir(out) as run:
        found: Study | Survey
        if source.target is None or target == "none":
            if metric not in (None, METRIC):
                raise DataError(
                    f"without a target densities are ranked by {METRIC}, not {metric!r}; say what "
                    f"to predict with --target out of {listing(source.columns)}"
                )
            found = survey(source, progress=progress, **options)
        else:
            found = study(source, metric=metric, progress=progress, **options)
        progress("writing the report")
        told = write(found, run, table)
    where = str(Path(out) / "report.html")
    screen.data({**told, "out": str(Path(out))})
    screen.show(*summary(told), f"\nreport: {where}")


def summary(told: dict[str, Any]) -> list[Any]:
    """What the terminal shows of a study: findings, ranking, verdict."""
    from rich.table import Table as Grid

    board = told["leaderboard"]
    name = board["metric"]
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column in ("", "model", name, f"{board['level']:.0%} interval", "test rows"):
        grid.add_column(column, justify="right" if column == name else "left")
    for entry in board["entries"]:
        best = entry["name"] == told["chosen"]
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
    table = told["table"]
    head = f"{table['name']}: {table['rows']:,} rows, {table['columns']} columns"
    findings = [f"- {f['severity']}: {f['sentence']}" for f in told["audit"]]
    notes = [
        f"- {entry['name']}: {note}" for entry in board["entries"] for note in entry["notes"][:1]
    ]
    legend = "* chosen   ≈ cannot be told apart from it"
    return [head, *findings, "", grid, legend, *notes, "", *told["verdict"]]


__all__ = ["fit", "summary"]
