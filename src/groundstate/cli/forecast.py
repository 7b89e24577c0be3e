"""``groundstate fit SERIES --forecast N``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from groundstate.cli.screen import Screen
from groundstate.report.forecast import forecast_page
from groundstate.store import RunDir
from groundstate.study.forecast import ForecastStudy, study_forecast


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
        folder.write_text("forecast.csv", _lines(found))
        if keep_model:
            folder.save("model.gs", found.model)
    screen.data({**facts, "out": str(Path(out))})
    screen.show(found.verdict, f"\nreport: {Path(out) / 'report.html'}")


def _lines(found: ForecastStudy) -> str:
    made, ids = found.made, found.table.ids
    columns = getattr(found.model, "target_", [0])
    lines = ["id,step,column,mean,lower,upper"]
    for i, s, j in np.ndindex(made.mean.shape):
        who = "" if ids is None else ids[i]
        numbers = ",".join(f"{float(v[i, s, j]):.10g}" for v in (made.mean, made.lower, made.upper))
        lines.append(f"{who},{s + 1},{found.table.names[columns[j]]},{numbers}")
    return "\n".join(lines) + "\n"
