"""The folder of a study: model, report, numbers, script, times."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from groundstate.data import available
from groundstate.models.table import TablePredictor
from groundstate.report.facts import report_facts
from groundstate.report.html import page
from groundstate.report.job import Study
from groundstate.report.pictures import draw_all, draw_survey
from groundstate.report.script import reproduce_script
from groundstate.report.unlabelled import Survey, survey_facts
from groundstate.store import RunDir


def write(found: Study | Survey, run: RunDir, source: str) -> dict[str, Any]:
    """Write everything a study or a survey leaves behind into an open run; returns the facts.

    Parameters
    ----------
    found : the study or survey
    run : a `store.RunDir`, inside its ``with``
    source : path or built-in name of the table, for ``reproduce.py``
    """
    if isinstance(found, Survey):
        told, drawn = survey_facts(found), draw_survey(found)
    else:
        told = report_facts(found)
        drawn = draw_all(found, told)
    score = told["test"]["scores"][told["settings"]["metric"]]
    meta = {
        "target": told["table"]["target"],
        "table": told["table"]["sha256"],
        "metric": told["settings"]["metric"],
        "test": [score["score"], score["low"], score["high"]],
    }
    run.save("model.gs", timeless(found.model), meta=meta)
    run.write_json("report.json", told)
    run.write_text("report.html", page(told, drawn))
    run.write_text("reproduce.py", reproduce_script(told, located(source)))
    fits = {entry.name: entry.fit_seconds for entry in found.board if entry.fit_seconds}
    run.write_json("timing.json", {"stages": found.seconds, "one_fit": fits})
    return told


def timeless(model: TablePredictor) -> TablePredictor:
    """The same model without the times of its solver, so that equal runs give equal files."""
    history = getattr(model.estimator_, "history_", None)
    if history is None:
        return model
    kept = copy(model)
    kept.estimator_ = copy(model.estimator_)
    kept.estimator_.history_ = replace(history, seconds=[])
    return kept


def located(source: str) -> str:
    """A name as it is, a path made absolute, so that a script finds it from anywhere."""
    if source in available() and not os.path.exists(source):
        return source
    return str(Path(source).expanduser().resolve())


__all__ = ["located", "timeless", "write"]
