"""``groundstate bench``."""

from __future__ import annotations

from groundstate.bench import discover, folder
from groundstate.bench import run as measure
from groundstate.cli.screen import Screen
from groundstate.errors import Unsupported


def bench(
    name: str | None,
    listed: bool,
    sizes: str | None,
    repeats: int,
    out: str | None,
    seed: int,
    device: str | None,
    json: bool,
    no_progress: bool,
) -> None:
    """List benchmarks, or measure one and keep its rows."""
    screen = Screen(json, not no_progress)
    if device is not None:
        raise Unsupported("a benchmark names its own device; leave --device out")
    if listed or name is None:
        _list(screen)
        return
    labels = None if sizes is None else [label.strip() for label in sizes.split(",")]
    with screen.stages() as progress:
        table = measure(name, labels, repeats, progress, seed=seed)
    screen.data(table.records())
    screen.show(table.to_rich())
    if out != "-":
        path = table.to_csv(out or folder() / "results" / f"{name}.csv")
        screen.show(f"written to {path}")


def _list(screen: Screen) -> None:
    from rich.table import Table

    found = discover()
    screen.data(
        [{"name": b.name, "title": b.title, "sizes": list(b.sizes)} for b in found.values()]
    )
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "sizes", "what is measured"):
        grid.add_column(column)
    for row in found.values():
        grid.add_row(row.name, ", ".join(map(str, row.sizes)), row.title)
    screen.show(grid, "\ngroundstate bench NAME measures one")
