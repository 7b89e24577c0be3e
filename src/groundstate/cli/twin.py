"""``groundstate fit DATA --generate``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundstate.cli.screen import Screen
from groundstate.errors import DataError
from groundstate.report.generators import write_generators
from groundstate.store import RunDir
from groundstate.study.generators import study_generators


def refuse(options: Mapping[str, Any]) -> None:
    """Refuse options that a comparison of generators has no use for."""
    given = [name for name, value in options.items() if value not in (None, False)]
    if "--target" in given:
        raise DataError(
            "--generate learns all columns together, so it takes no --target; rows of one value are "
            "drawn afterwards: groundstate sample model.gs --y COLUMN=VALUE"
        )
    if given:
        raise DataError(f"--generate has no use for {', '.join(given)}; leave it out")


def twin(
    source: str,
    out: str,
    *,
    keep_model: bool,
    model: str,
    level: float,
    seed: int,
    device: Any,
    json: bool,
    no_progress: bool,
) -> None:
    """Compare generators of such rows, judge the best, and write new rows with the report."""
    screen = Screen(json, not no_progress)
    settings: dict[str, Any] = {"model": model, "seed": seed, "level": level}
    with screen.stages() as progress, RunDir(out) as folder:
        found = study_generators(source, device=device, progress=progress, **settings)
        progress("writing the report")
        facts = write_generators(found, folder, source, settings, keep_model=keep_model, seed=seed)
    screen.data({**facts, "out": str(Path(out))})
    lines = [f"{name}  {value}" for name, value in found.numbers()]
    screen.show(*found.verdict, "", *lines, f"\nreport: {Path(out) / 'report.html'}")
