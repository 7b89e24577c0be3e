"""``groundstate drift``: two tables side by side."""

from __future__ import annotations

import sys

import typer

from groundstate.cli.screen import Screen
from groundstate.data import read
from groundstate.data.messages import listing
from groundstate.errors import DataError
from groundstate.evaluate.explain.drift import Drift
from groundstate.evaluate.explain.drift import drift as compared
from groundstate.study.numbers import show

DRIFTED = 4
_SHOWN = 20


def drift(
    table: str,
    other: str | None,
    test: str | None,
    columns: str | None,
    alpha: float,
    strict: bool,
    seed: int,
    json: bool,
) -> None:
    """Print the verdict and one line per column."""
    if (other is None) == (test is None):
        raise DataError("name one table to compare with: groundstate drift a.csv b.csv")
    if not 0 < alpha < 1:
        raise DataError(f"--alpha is a chance between 0 and 1, such as 0.05, got {alpha}")
    first = read(table)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    for name in names or ():
        first.column(name)  # an unknown name raises, with the nearest known one
    found = compared(first, other or test, columns=names, alpha=alpha, random_state=seed)
    screen = Screen(json)
    screen.data({"a": table, "b": other or test, **found.to_dict()})
    screen.show(found.sentence, "", _grid(found))
    if strict and found.drifted:
        sys.stderr.write(f"drift: {found.sentence}\n")
        raise typer.Exit(DRIFTED)


def _grid(found: Drift) -> object:
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name in ("", "column", "kind", "distance", "p, corrected", "missing", "new values"):
        grid.add_column(name, justify="right" if name in ("distance", "p, corrected") else "left")
    for column in found.columns[:_SHOWN]:
        new = f"{listing(column.new, limit=3)} ({column.new_share:.1%})" if column.new else ""
        grid.add_row(
            "*" if column.drifted(found.alpha) else "",
            column.name,
            column.kind,
            "" if column.distance is None else f"{column.distance:.3f}",
            "" if column.p_corrected is None else show(column.p_corrected, "p"),
            f"{column.missing[0]:.1%} → {column.missing[1]:.1%}" if any(column.missing) else "",
            new,
        )
    if len(found.columns) > _SHOWN:
        grid.add_row("", f"and {len(found.columns) - _SHOWN} more (--json lists all)")
    return grid
