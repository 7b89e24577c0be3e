"""The options of ``groundstate drift``."""

from __future__ import annotations

from typing import Annotated

import typer

from groundstate.cli.options import Device, Json, Quiet, Seed, TableName


def drift(
    table: TableName,
    other: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="The rows to compare with.")
    ] = None,
    test: Annotated[
        str | None, typer.Option("--test", help="The same as OTHER: a file of test rows.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="Names with commas; all by default.")
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="Chance of any false alarm among the columns.")
    ] = 0.05,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 when rows drifted.")
    ] = False,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Whether two tables come from one distribution: each column, and all of them together."""
    from groundstate.cli.drift import drift as run

    run(table, other, test, columns, alpha, strict, seed, json)
