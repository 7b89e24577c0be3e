"""The folder of an assessment: model, report, numbers, script, times."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from groundstate.data.builtin.load import is_builtin
from groundstate.errors import NotStorableError
from groundstate.models.tables.ensemble import TableEnsemble
from groundstate.models.tables.table import TablePredictor
from groundstate.report.html import page
from groundstate.report.pictures import draw_all, draw_survey
from groundstate.report.script import reproduce_script
from groundstate.report.svg import Picture
from groundstate.store import RunDir
from groundstate.study.assess import Assessment
from groundstate.study.candidates import inner_of
from groundstate.study.facts import report_facts
from groundstate.study.numbers import plain
from groundstate.study.single_rows import kept_with_model
from groundstate.study.unlabelled.survey import Survey, survey_facts


def report(
    found: Assessment | Survey, facts: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[Picture]]:
    """The facts, the data of every picture among them, and the pictures."""
    if isinstance(found, Survey):
        facts, drawn = facts or survey_facts(found), draw_survey(found)
    else:
        facts = facts or report_facts(found)
        drawn = draw_all(found, facts)
    shown = {
        picture.name: {"title": picture.title, "caption": picture.caption, "data": picture.data}
        for picture in drawn
    }
    return {**facts, "pictures": plain(shown)}, drawn


def write(
    found: Assessment | Survey,
    run: RunDir,
    source: str,
    *,
    keep_model: bool = True,
    facts: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write everything an assessment or a survey leaves behind into an open run; returns the facts.

    Parameters
    ----------
    found : the assessment or survey
    run : a `store.RunDir`, inside its ``with``
    source : path or built-in name of the table, for ``reproduce.py``
    keep_model : also write the fitted model
    facts : of the assessment, where they are known already
    """
    facts, drawn = report(found, facts)
    metric = facts["design"]["metric"]
    score = facts["scores"][metric]
    if keep_model:
        meta = {
            "target": facts["data"]["target"],
            "table": facts["data"]["hash"],
            "metric": metric,
            "test": [score["value"], score["lo"], score["hi"]],
        }
        if not isinstance(found, Survey):
            meta |= kept_with_model(found)
        try:
            run.save("model.gs", timeless(found.model), meta=meta)
        except NotStorableError:
            name = type(inner_of(found.model)).__name__
            facts["skipped"].append(
                f"model.gs: {name} is another library's model, which files of this one do not "
                "hold; reproduce.py fits it again"
            )
    if isinstance(found, Survey) and found.filled is not None:
        run.write_text("filled.csv", found.filled.write_csv())
    run.write_json("report.json", facts)
    run.write_text("report.html", page(facts, drawn))
    settings = getattr(found, "ran", None) or found.settings
    run.write_text("reproduce.py", reproduce_script(facts, settings, located(source)))
    fits = {entry.name: entry.fit_seconds for entry in found.board if entry.fit_seconds}
    run.write_json("timing.json", {"stages": found.seconds, "one_fit": fits})
    return facts


def timeless(model: Any) -> Any:
    """The same model without the times of its solver, so that equal runs give equal files."""
    if isinstance(model, TableEnsemble):
        whole = copy(model)
        whole.members_ = [timeless(member) for member in model.members_]
        return whole
    history = getattr(inner_of(model), "history_", None)
    if history is None or not isinstance(model, TablePredictor):
        return model
    kept = copy(model)
    kept.estimator_ = copy(model.estimator_)
    kept.estimator_.history_ = replace(history, seconds=[])
    return kept


def located(source: str) -> str:
    """A name as it is, a path made absolute, so that a script finds it from anywhere."""
    if is_builtin(source):
        return source
    return str(Path(source).expanduser().resolve())
