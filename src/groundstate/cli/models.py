"""``groundstate models``."""

from __future__ import annotations

from pathlib import Path

from groundstate.cli.loading import load_model
from groundstate.cli.screen import Screen
from groundstate.models.explain import explain
from groundstate.registry import models as registered


def models(name: str | None, json: bool) -> None:
    """List every model, or explain one by name or file."""
    screen = Screen(json)
    if name is not None:
        is_file = name not in registered and Path(name).is_file()
        explanation = explain(load_model(name, None) if is_file else name)
        screen.data(explanation.to_dict())
        screen.show(str(explanation))
        return
    rows = sorted(registered, key=lambda row: (row.task, row.family, row.name))
    screen.data(
        [
            {
                "name": r.name,
                "task": r.task,
                "family": r.family,
                "role": r.role,
                "rows": r.rows,
                "words": r.summary,
            }
            for r in rows
        ]
    )
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "task", "rows", "family", "in one line"):
        grid.add_column(column)
    for row in rows:
        grid.add_row(row.name, row.task, row.rows, row.family, row.summary)
    screen.show(grid, "\ngroundstate models NAME explains one")
