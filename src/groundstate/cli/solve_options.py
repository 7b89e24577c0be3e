"""The options of ``groundstate solve``."""

from __future__ import annotations

from typing import Annotated

import typer

from groundstate.cli.options import Device, Json, Quiet, Seed


def solve(
    file: Annotated[str, typer.Argument(metavar="FILE", help="TOML file of the problem.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Folder; by default NAME-solution.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Table of measurements: coordinates and unknowns.")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    no_progress: Quiet = False,
) -> None:
    """Solve a differential equation, or find its coefficients from measurements.

    The file has problem = "burgers" (or another of the library), or an equation such as
    "u.t + u*u.x - nu*u.xx" with [domain], [[conditions]] and [parameters]; [pinn] holds settings. Writes
    model.gs, report.html and report.json.
    """
    from groundstate.cli.solve import solve as run

    run(file, out, data, seed, device, json, no_progress)
