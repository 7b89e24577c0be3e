"""``groundstate fit`` and ``groundstate assess``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import typer

from groundstate import cli
from groundstate.cli.boundary import Terminated
from groundstate.cli.screen import Screen
from groundstate.data.messages import count
from groundstate.store import RunDir
from groundstate.studies import RowStudy, Study, study
from groundstate.study.assess import Assessment
from groundstate.study.listed import left_out, together
from groundstate.study.numbers import show, show_range
from groundstate.study.race.names import CANDIDATES, DONE, FIRST, TUNED
from groundstate.study.verdict import RECIPE, credited, probabilities_alone

NOT_BETTER, LEAK = 3, 4
_ANSWERS = (FIRST, CANDIDATES, TUNED)
_SELDOM = 10  # a report is written again after so many times what writing it took
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
    """Study a table and write the folder of results, again after every stage."""
    screen = Screen(json, not no_progress)
    kept = _Kept(table, out, keep_model, screen)
    RunDir(out).check()
    with screen.stages() as progress:
        try:
            found = study(
                table, target, ledger=ledger or "auto", progress=progress, seen=kept.stage,
                begun=cli.begun, **options,
            )  # fmt: skip
        except BaseException as error:
            kept.stopped(error)
            raise
        if kept.facts is None or isinstance(found, RowStudy) or not kept.is_last(found):
            progress("writing the report")
            kept.write(found)
    assert kept.facts is not None
    where = str(Path(out) / "report.html")
    screen.data({**kept.facts, "out": str(Path(out))})
    screen.show(*summary(kept.facts), f"\nreport: {where}")
    _leave(found, strict, kept.facts)


class _Kept:
    """The folder as the stages fill it: whole after each of them.

    Between the stages that change the answer a report is written only when little of the time
    went into writing.
    """

    def __init__(self, table: str, out: str, keep_model: bool, screen: Screen) -> None:
        self.table, self.out, self.keep_model, self.screen = table, out, keep_model, screen
        self.facts: dict[str, Any] | None = None
        self.last: Any = None
        self.latest: Study | None = None  # what the stages found, written or not yet
        self.reported = ""
        self.wrote, self.took = time.monotonic(), 0.0
        self.began = time.monotonic() if cli.begun is None else cli.begun

    def stage(self, found: Assessment) -> None:
        """Write what is there after a stage, and say the answer."""
        now = self.latest = Study(found, self.table)
        done = not found.unfinished or found.stage == DONE
        idle = time.monotonic() - self.wrote
        if not (found.stage in _ANSWERS or done or idle > _SELDOM * self.took):
            return
        if found.stage == FIRST:  # which does not wait for its report
            self.answer(now, found.stage)
        self.write(now)
        if found.stage in _ANSWERS and found.stage != FIRST:
            self.answer(now, found.stage)

    def answer(self, found: Study, stage: str) -> None:
        after, verdict = time.monotonic() - self.began, found.facts["verdict"][0]
        if stage == TUNED and found.facts["tuning"] is None:  # the model chosen, and nothing more
            stage = CANDIDATES
            if verdict == self.reported:
                return
        self.reported = verdict
        self.screen.show(f"{stage}, after {after:.0f} s: {verdict}")

    def write(self, found: Study | RowStudy) -> None:
        """Write the folder, which a reader always finds whole."""
        start = time.monotonic()
        with RunDir(self.out) as folder:
            self.facts = found.write(folder, keep_model=self.keep_model)
        self.last, self.wrote = found.found, time.monotonic()
        self.took = self.wrote - start

    def is_last(self, found: Study | RowStudy) -> bool:
        """Whether the folder holds this study already."""
        return self.last is found.found

    def stopped(self, error: BaseException) -> None:
        """Somebody stopped the study: write what there is, and say what is missing."""
        if not isinstance(error, KeyboardInterrupt | Terminated):
            return
        if self.latest is not None and not self.is_last(self.latest):
            sys.stderr.write("note: writing what there is; stop again to leave at once\n")
            self.write(self.latest)
        if self.facts is None:
            return
        missing = ", ".join(self.facts["unfinished"]) or "nothing"
        sys.stderr.write(
            f"note: {Path(self.out) / 'report.html'} holds the study as far as "
            f"{self.facts['stage']!r}; missing: {missing}\n"
        )


def _leave(found: Study | RowStudy, strict: bool, facts: dict[str, Any]) -> None:
    """Leave with the code of what was found: a leak, or nothing better than a dummy."""
    leaks = getattr(found.found, "leaks", ())
    if strict and leaks:
        sys.stderr.write(f"leak: {leaks[0].sentence}\n")
        raise typer.Exit(LEAK)
    if not found.better_than_dummy:
        words = "no model was shown to be better than a constant answer"
        if "comparison" in facts and probabilities_alone(facts):
            words = "labels were not shown to be better than a constant answer, probabilities were"
        sys.stderr.write(f"note: {words}\n")
        raise typer.Exit(NOT_BETTER)


def summary(facts: dict[str, Any]) -> list[Any]:
    """What the terminal shows: findings, ranking, verdict."""
    from rich.table import Table as Grid

    board = facts["candidates"]
    name = board["metric"]
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    asked = facts["design"]["metric"]
    both = any(entry.get("reported") is not None for entry in board["entries"])
    head = ("", "model", *((asked,) if both else ()), name)
    for column in (*head, f"{board['level']:.0%} interval", "held-out rows"):
        grid.add_column(column, justify="right" if column in (name, asked) else "left")
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
            *((show(entry["reported"], asked),) if both else ()),
            show(entry["score"], name),
            show_range(entry["low"], entry["high"], name),
            seen,
            style="bold" if best else None,
        )
    if credited(facts) != facts["chosen"]:  # folds chose others: no model's score is its
        score = facts["scores"][name]
        seen = f"{show(score['value'], name)} ({show_range(score['lo'], score['hi'], name)})"
        grid.add_row("", RECIPE, *(("",) if both else ()), "", "", seen)
    table = facts["data"]
    columns = "" if table["columns"] is None else f", {count(table['columns'], 'column')}"
    title = f"{table['name']}: {count(table['rows'], 'row')}{columns}"
    sentences = {f["sentence"] for f in table["findings"]}
    read_as = [note for note in table["notes"] if note not in sentences]
    findings = [f"- read: {note}" for note in read_as[:_READ]]
    if len(read_as) > _READ:
        findings.append(f"- read: {len(read_as) - _READ} more such notes in the report")
    findings += [f"- {severity}: {finding}" for severity, finding in together(table["findings"])]
    notes = [
        f"- {entry['name']}: {note}" for entry in board["entries"] for note in entry["notes"][:1]
    ]
    legend = "* chosen   ≈ cannot be told apart from it"
    if both:
        legend += f"   (chosen by {name})"
    skipped = [f"left out: {part}" for part in left_out(facts["skipped"])]
    return [title, *findings, "", grid, legend, *notes, *skipped, "", *facts["verdict"]]
