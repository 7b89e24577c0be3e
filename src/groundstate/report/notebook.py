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
from groundstate.study.facts import report_facts
from groundstate.study.numbers import label, show, show_range
from groundstate.study.progress import progress_line
from groundstate.study.race.names import CANDIDATES, FIRST, TUNED
from groundstate.study.unlabelled.survey import Survey
from groundstate.study.verdict import credited

_SHOWN = 5  # places of the leaderboard
_SCORES = 6


def notebook(found: Assessment | Survey, facts: dict[str, Any], heading: str) -> str:
    """The HTML that a notebook shows for a study."""
    first, *more = facts["verdict"]
    lines = "".join(f"<p style='margin:.2em 0'>{escape(line)}</p>" for line in more)
    rest = facts.get("unfinished") or []
    waiting = f"<p><i>Missing: {escape('; '.join(rest))}.</i></p>" if rest else ""
    columns, rows = found.board._table()
    parts = [
        f"<p><b>{escape(heading)}</b></p>",
        f"<p style='font-size:1.1em;margin:.3em 0'><b>{escape(first)}</b></p>{lines}{waiting}",
        _scores(facts),
        html_table(columns, list(rows)[:_SHOWN]),
        f"<div style='max-width:30em'>{forest(found.board).svg}</div>",
    ]
    return f'<div style="{NOTEBOOK}">' + "\n".join(parts) + "</div>"


class Live:
    """What is known so far, and what runs now, under the running cell of a notebook.

    Attributes
    ----------
    latest : the assessment of the last stage that ended, which an interrupt keeps
    """

    def __init__(self, display: Any) -> None:
        self.html = display.HTML
        self.line = display.display(self.html("starting"), display_id=True)
        self.latest: Assessment | None = None
        self.answer = ""

    def __call__(self, stage: str) -> None:
        """Something else runs now."""
        self.line.update(self.html(f"{self.answer}<i>{escape(progress_line(stage))}</i>"))

    def seen(self, found: Assessment) -> None:
        """A stage ended."""
        self.latest = found
        if found.stage in (FIRST, CANDIDATES, TUNED):
            verdict = str(report_facts(found)["verdict"][0])
            self.answer = f"<b>{escape(found.stage)}:</b> {escape(verdict)}<br>"

    def close(self) -> None:
        """The study itself is shown instead."""
        self.line.update(self.html(""))


def live() -> Live | None:
    """What shows a study while it runs in a notebook; None elsewhere."""
    module: Any = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    if getattr(shell, "kernel", None) is None:  # no notebook
        return None
    return Live(module.display)


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
