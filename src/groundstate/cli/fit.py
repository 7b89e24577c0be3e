"""``groundstate fit`` and ``groundstate assess``."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import Any

import typer

from groundstate.cli.screen import Screen
from groundstate.data import Table, read
from groundstate.data.messages import count, listing
from groundstate.data.preparation.preparation import without_features
from groundstate.errors import DataError
from groundstate.report import Survey, study, survey, write
from groundstate.store import RunDir
from groundstate.study.assess import Assessment
from groundstate.study.densities import METRIC
from groundstate.study.job import forget
from groundstate.study.ledger_entry import ledger_of
from groundstate.study.numbers import show, show_range

NOT_BETTER, LEAK = 3, 4
_SURVEYED = 0.25  # share of the rows that judge densities
_FEWEST = 5  # rows with a target, below which no score of held-out rows means anything
_READ = 5  # notes of the reader on the screen; the report holds all


def fit(
    table: str,
    target: str | None,
    model: str,
    out: str,
    *,
    keep_model: bool,
    metric: str | None,
    workers: int | None,
    seed: int,
    device: str | None,
    json: bool,
    no_progress: bool,
    strict: bool,
    test: str | None,
    folds: int,
    params: str | None,
    ledger: str | None,
    budget: str | None,
    weights: str | None,
    **options: Any,
) -> None:
    """Assess a table and write the folder of results."""
    screen = Screen(json, not no_progress)
    source = read(table) if target in (None, "none") else read(table).with_target(target)
    _learnable(source, target)
    unfinished = Path(out).parent / f".{Path(out).name}.study-"
    with screen.stages() as progress, RunDir(out) as run:
        found: Assessment | Survey
        if source.target is None or target == "none":
            found = _survey(
                source, model, metric, test, folds, workers or 1, seed, device, progress
            )
        else:
            model, chosen = _settings(model, params)
            found = study(
                source,
                models=model,
                params=chosen,
                metric=metric,
                test=_test(test),
                folds=folds,
                sample_weight=weights,
                budget=None if budget is None else seconds(budget),
                ledger=ledger_of(table, ledger or "auto"),
                resume=unfinished,
                keep=True,
                n_jobs=workers,
                random_state=seed,
                device=device,
                progress=progress,
                **options,
            )
        progress("writing the report")
        told = write(found, run, table, keep_model=keep_model)
    forget(unfinished)  # only now is the search not needed any more
    where = str(Path(out) / "report.html")
    screen.data({**told, "out": str(Path(out))})
    screen.show(*summary(told), f"\nreport: {where}")
    if isinstance(found, Assessment):
        _leave(found, strict)


def _learnable(source: Table, target: str | None) -> None:
    """Refuse a table that has nothing to learn from before anything is spent on it."""
    if source.target is None or target == "none":
        return
    if all(column.kind in ("id", "constant") for column in source.features.schema):
        raise without_features(source.features)
    if source.n_rows < _FEWEST:
        raise DataError(
            f"{source.name!r} has {count(source.n_rows, 'row')} with a value of "
            f"{source.target!r}; to learn from some and judge by others takes {_FEWEST} or more"
        )
    if source.task == "classification" and source.frame[source.target].is_unique().all():
        raise DataError(
            f"every row has its own value of {source.target!r}, such as "
            f"{str(source.frame[source.target][0])!r}, so no class can be learned; choose "
            "another target"
        )


def _leave(found: Assessment, strict: bool) -> None:
    """Leave with the code of what was found: a leak, or nothing better than a dummy."""
    if strict and found.leaks:
        sys.stderr.write(f"leak: {found.leaks[0].sentence}\n")
        raise typer.Exit(LEAK)
    if not found.better_than_dummy:
        sys.stderr.write("note: no model was shown to be better than a constant answer\n")
        raise typer.Exit(NOT_BETTER)


def _survey(
    source: Table,
    model: str,
    metric: str | None,
    test: str | None,
    folds: int,
    workers: int,
    seed: int,
    device: str | None,
    progress: Any,
) -> Survey:
    if metric not in (None, METRIC):
        raise DataError(
            f"without a target densities are ranked by {METRIC}, not {metric!r}; say what "
            f"to predict with --target out of {listing(source.columns)}"
        )
    share = _test(test)
    if isinstance(share, str):
        raise DataError("without a target --test is a share of the rows, not a file")
    return survey(
        source, models=model, test=_SURVEYED if share is None else share, seed=seed, cv=folds,
        workers=workers, device=device, progress=progress,
    )  # fmt: skip


def _test(given: str | None) -> float | str | None:
    """A share of the rows, or a file."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        return given


def seconds(text: str) -> float:
    """A time such as 90, 60s, 2m or 1h.

    >>> seconds("90"), seconds("60s"), seconds("2m"), seconds("0.5h")
    (90.0, 60.0, 120.0, 1800.0)
    """
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    try:
        return float(text if unit is None else text[:-1]) * (unit or 1.0)
    except ValueError:
        raise DataError(f"--budget is a time such as 60s, 2m or 1h, got {text!r}") from None


def _settings(model: str, path: str | None) -> tuple[str, dict[str, Any] | None]:
    """Model and settings from a file that ``tune`` wrote."""
    if path is None:
        return model, None
    try:
        told = jsonlib.loads(Path(path).read_text())
        params = told.get("params", told)
        named = told.get("model", model) if model == "auto" else model
        if not isinstance(params, dict):
            raise TypeError("params is not an object")
    except (ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{path!r} does not hold settings as written by tune: {error}") from error
    return str(named), params


def summary(told: dict[str, Any]) -> list[Any]:
    """What the terminal shows: findings, ranking, verdict."""
    from rich.table import Table as Grid

    board = told["candidates"]
    name = board["metric"]
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column in ("", "model", name, f"{board['level']:.0%} interval", "judged rows"):
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
    table = told["data"]
    head = f"{table['name']}: {table['rows']:,} rows, {table['columns']} columns"
    said = {f["sentence"] for f in table["findings"]}
    read_as = [note for note in table["notes"] if note not in said]
    findings = [f"- read: {note}" for note in read_as[:_READ]]
    if len(read_as) > _READ:
        findings.append(f"- read: {len(read_as) - _READ} more such notes in the report")
    findings += [f"- {f['severity']}: {f['sentence']}" for f in table["findings"]]
    notes = [
        f"- {entry['name']}: {note}" for entry in board["entries"] for note in entry["notes"][:1]
    ]
    legend = "* chosen   ≈ cannot be told apart from it"
    skipped = [f"left out: {'; '.join(told['skipped'])}"] if told["skipped"] else []
    return [head, *findings, "", grid, legend, *notes, *skipped, "", *told["verdict"]]


__all__ = ["LEAK", "NOT_BETTER", "fit", "seconds", "summary"]
