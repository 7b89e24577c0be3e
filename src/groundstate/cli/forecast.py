"""``groundstate fit SERIES --forecast N``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from groundstate.cli.answers import forecast_lines
from groundstate.cli.fit import NOT_BETTER
from groundstate.cli.screen import Screen
from groundstate.errors import DataError
from groundstate.report.forecast import forecast_page, forecast_script
from groundstate.store import RunDir
from groundstate.study.forecast import study_forecast


def refuse(options: Mapping[str, Any]) -> None:
    """Refuse options that a forecast has no use for."""
    given = [name for name, value in options.items() if value not in (None, False)]
    if given:
        raise DataError(f"--forecast has no use for {', '.join(given)}; leave it out")


def forecast(
    table: str,
    steps: int,
    out: str,
    *,
    keep_model: bool,
    json: bool,
    no_progress: bool,
    **options: Any,
) -> None:
    """Study the series of a long table and write the folder of results."""
    screen = Screen(json, not no_progress)
    with screen.stages() as progress, RunDir(out) as folder:
        progress("comparing forecasters on the end of the series")
        found = study_forecast(table, steps, **options)
        progress("writing the report")
        facts = found.facts()
        folder.write_text("report.html", forecast_page(found))
        folder.write_json("report.json", facts)
        names = found.table.names
        columns = [names[j] for j in getattr(found.model, "target_", range(len(names)))]
        lines = forecast_lines(found.made, found.table, columns, found.about["time"])
        folder.write_text("forecast.csv", lines.write_csv())
        folder.write_text("reproduce.py", forecast_script(table, steps, options))
        if keep_model:
            folder.save("model.gs", found.model, meta=found.about)
    screen.data({**facts, "out": str(Path(out))})
    notes = [f"- read: {note}" for note in found.notes]
    screen.show(*notes, found.verdict, f"\nreport: {Path(out) / 'report.html'}")
    if not found.better_than_dummy:
        sys.stderr.write("note: no model was shown to be better than repeating what was\n")
        raise typer.Exit(NOT_BETTER)
