"""A study in a notebook: its verdict, scores, candidates and their picture, without any script."""

from __future__ import annotations

import sys
from html import escape
from typing import Any

from groundstate.compute.display import html_table
from groundstate.report.pictures import forest
from groundstate.report.style import NOTEBOOK
from groundstate.study.assess import Assessment
from groundstate.study.candidates import DUMMY
from groundstate.study.numbers import label, show, show_range
from groundstate.study.progress import Progress, progress_line
from groundstate.study.unlabelled.survey import Survey
from groundstate.study.verdict import credited

_SHOWN = 5  # places of the leaderboard
_SCORES = 6


def notebook(found: Assessment | Survey, facts: dict[str, Any], heading: str) -> str:
    """The HTML that a notebook shows for a study."""
    first, *more = facts["verdict"]
    lines = "".join(f"<p style='margin:.2em 0'>{escape(line)}</p>" for line in more)
    rest = facts.get("unfinished") or []
    waiting = f"<p><i>In progress: {escape('; '.join(rest))}.</i></p>" if rest else ""
    columns, rows = found.board._table()
    parts = [
        f"<p><b>{escape(heading)}</b></p>",
        f"<p style='font-size:1.1em;margin:.3em 0'><b>{escape(first)}</b></p>{lines}{waiting}",
        _scores(facts),
        html_table(columns, list(rows)[:_SHOWN]),
        f"<div style='max-width:30em'>{forest(found.board).svg}</div>",
    ]
    return f'<div style="{NOTEBOOK}">' + "\n".join(parts) + "</div>"


def live() -> Progress | None:
    """One line under the running cell of a notebook that says what runs now; None elsewhere."""
    module: Any = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    if getattr(shell, "kernel", None) is None:  # no notebook
        return None
    line = module.display.display(module.display.HTML("starting"), display_id=True)

    def progress(stage: str) -> None:
        line.update(module.display.HTML(f"<i>{escape(progress_line(stage))}</i>"))

    return progress


def _scores(facts: dict[str, Any]) -> str:
    """The headline metric first, then the next few, beside the constant answer."""
    main = facts["design"]["metric"]
    base = facts.get("baselines", {}).get(DUMMY, {})
    names = [main, *(name for name in facts["scores"] if name != main)][:_SCORES]
    rows = []
    for name in names:
        row = facts["scores"][name]
        constant = show(base[name]["value"], name) if name in base else ""
        rows.append((label(name), show(row["value"], name),
                     show_range(row["lo"], row["hi"], name), constant))  # fmt: skip
    who = credited(facts) if "chosen_in_folds" in facts else str(facts["chosen"])
    return html_table(("held-out rows", who, "interval", "constant answer"), rows)
