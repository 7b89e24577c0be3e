"""``groundstate run``: experiments and their verdicts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from groundstate.cli.screen import Screen
from groundstate.errors import DataError, Unsupported
from groundstate.registry import ExperimentRow, experiments
from groundstate.store import atomic_file


def run(
    id: str | None,
    listed: bool,
    everything: bool,
    theme: str | None,
    quick: bool,
    pictures: str | None,
    seed: int,
    device: str | None,
    json: bool,
    no_progress: bool,
) -> None:
    """List experiments, or run one, a theme or all."""
    screen = Screen(json, not no_progress)
    if device not in (None, "cpu"):
        raise Unsupported(
            f"experiments run on the CPU, where their tolerances are stated, not on {device!r}"
        )
    rows = _chosen(id, theme)
    if listed or (id is None and not everything and theme is None):
        _list(rows, screen)
        return
    results = []
    with screen.stages() as progress:
        for at, row in enumerate(rows, 1):
            progress(f"{row.name} ({at} of {len(rows)})")
            results.append((row, _run(row, seed, quick, pictures, alone=id is not None)))
    if id is not None:
        _one(*results[0], screen)
    else:
        _table(results, screen)
    if not all(outcome["verdict"] for _, outcome in results):
        raise typer.Exit(1)


def _chosen(id: str | None, theme: str | None) -> list[ExperimentRow]:
    if id is not None:
        short = [row for row in experiments if row.name.rpartition("-X-")[2] == id]
        return short if len(short) == 1 else [experiments[id]]
    rows = [row for row in experiments if theme in (None, row.theme)]
    if not rows:
        themes = ", ".join(sorted({row.theme for row in experiments})) or "none yet"
        raise DataError(f"there is no experiment of the theme {theme!r}; themes: {themes}")
    return rows


def _run(
    row: ExperimentRow, seed: int, quick: bool, pictures: str | None, alone: bool
) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        result = row.obj.run(seed, quick=quick)
    except Exception as error:
        if alone:
            raise
        # one broken experiment must not take the table of the others with it
        seconds = time.perf_counter() - start
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return {
            "verdict": False, "claims": [], "error": reason, "wall_seconds": seconds, "quick": quick,
        }  # fmt: skip
    outcome: dict[str, Any] = {**result.to_dict(), "quick": quick}
    outcome["wall_seconds"] = time.perf_counter() - start
    if pictures is not None:
        folder = Path(pictures)
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / f"{row.name}.svg") as stream:
            result.picture(stream, format="svg")
        outcome["picture"] = str(folder / f"{row.name}.svg")
    return outcome


def _list(rows: list[ExperimentRow], screen: Screen) -> None:
    from rich.table import Table

    screen.data([{"id": r.name, "theme": r.theme, "title": r.title} for r in rows])
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "theme", "claim"):
        grid.add_column(column)
    for row in rows:
        grid.add_row(row.name, row.theme, row.title)
    screen.show(grid, "\ngroundstate run ID runs one, groundstate run --all runs every one")


def _one(row: ExperimentRow, outcome: dict[str, Any], screen: Screen) -> None:
    screen.data({"id": row.name, "title": row.title, **outcome})
    lines = [f"{row.name}: {row.title}", ""]
    for claim in outcome["claims"]:
        mark = "holds" if claim["holds"] else "FAILS"
        lines.append(f"{mark}  {claim['text']}: {_value(claim['value'])} ({claim['expected']})")
    lines += [
        "",
        f"verdict: {_word(outcome['verdict'])} ({outcome['wall_seconds']:.1f} s{_how(outcome)})",
    ]
    lines += [f"picture: {outcome['picture']}"] if "picture" in outcome else []
    screen.show("\n".join(lines))


def _table(results: list[tuple[ExperimentRow, dict[str, Any]]], screen: Screen) -> None:
    from rich.table import Table

    screen.data([{"id": row.name, "title": row.title, **outcome} for row, outcome in results])
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("verdict", "id", "claims", "seconds", "title"):
        grid.add_column(column, justify="right" if column in ("claims", "seconds") else "left")
    for row, outcome in results:
        held = sum(claim["holds"] for claim in outcome["claims"])
        grid.add_row(
            _word(outcome["verdict"]),
            row.name,
            f"{held}/{len(outcome['claims'])}",
            f"{outcome['wall_seconds']:.1f}",
            outcome.get("error", row.title),
        )
    good = sum(outcome["verdict"] for _, outcome in results)
    how = _how(results[0][1])
    screen.show(grid, f"\n{good} of {len(results)} experiments hold{how}")


def _how(outcome: dict[str, Any]) -> str:
    return ", with less data and fewer repetitions (--quick)" if outcome["quick"] else ""


def _word(verdict: bool) -> str:
    return "holds" if verdict else "FAILS"


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
